"""The adapter for ToolSandbox, where the package is installed in a venv of its own.

``APBJUDGE_TOOLSANDBOX_PYTHON`` names the interpreter of that venv.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from apbjudge.environments.execution.hosted import toolsandbox

PROGRAM = Path(__file__).with_name("toolsandbox_replays.py")
PYTHON = os.environ.get("APBJUDGE_TOOLSANDBOX_PYTHON", "")

HAS_PACKAGE = bool(PYTHON) and (
    subprocess.run([PYTHON, "-c", "import tool_sandbox"], check=False).returncode == 0
)
needs_package = pytest.mark.skipif(
    not HAS_PACKAGE,
    reason="APBJUDGE_TOOLSANDBOX_PYTHON names no interpreter that has the package tool_sandbox",
)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def replay(options: dict[str, str], episodes: list[Any]) -> dict[str, Any]:
    request = json.dumps({"options": options, "episodes": episodes})
    done = subprocess.run(
        [PYTHON, str(PROGRAM), request], capture_output=True, text=True, timeout=240, check=True
    )
    return json.loads(done.stdout)


GOLD = [
    "wifi_off",
    "search_phone_number_with_name",
    "add_contact_with_name_and_phone_number",
    "remove_contact_by_phone",
    "turn_on_cellular_low_battery_mode",
    "send_message_with_contact_content_cellular_off",
    "update_contact_relationship_with_relationship",
]
UNANSWERABLE = "remove_contact_by_phone_no_search_contacts_insufficient_information"
LOCKED = "turn_on_wifi_low_battery_mode"
CONTACT = "9e137f06-916a-5310-8174-cf0b7e9f7054"


EPISODES: list[tuple[str, list[Any], float]] = [
    *((name, ["reference", None], 1.0) for name in GOLD),
    (UNANSWERABLE, ["I can't find that contact."], 1.0),
    (UNANSWERABLE, [call("remove_contact", person_id=CONTACT), "Done."], 0.0),
    (LOCKED, [call("get_wifi_status")] * 15 + ["reference", None], 0.0),  # over 30 messages
]
"""The scenario, the steps, and their reward."""


@needs_package
def test_plain_scenarios_are_scored_as_in_the_packages_own_loop() -> None:
    done = replay({}, [[name, steps] for name, steps, _ in EPISODES])
    tasks = done["tasks"]
    assert len({task["id"] for task in tasks}) == len(tasks) == 95
    assert sum(any(task["reference"]) for task in tasks) == 32
    for task in tasks:
        assert (task["user"], task["user_tools"]) == ("model", [])
        schemas = {
            tool["function"]["name"]: tool["function"]["parameters"] for tool in task["tools"]
        }
        for gold in (gold for turn in task["reference"] for gold in turn):
            Draft202012Validator(schemas[gold["name"]]).validate(gold["arguments"])
    for (name, _, reward), episode in zip(EPISODES, done["episodes"], strict=True):
        assert episode["after"] == episode["again"], name
        assert episode["after"]["reward"] == pytest.approx(reward), name
        assert episode["after"]["reward"] == pytest.approx(episode["package"]["similarity"])
        assert episode["after"]["details"]["turns"] == episode["package"]["turns"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variants": "hard"}, r"variants: expected one of plain, all, .*, got 'hard'"),
        ({"domain": "airline"}, r"domain: expected one of variants, network, got this name"),
    ],
)
def test_options_are_checked(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toolsandbox.suite(options)
