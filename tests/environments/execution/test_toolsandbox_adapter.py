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


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return replay(
        {},
        [
            *([name, ["reference", None]] for name in GOLD),
            [UNANSWERABLE, ["I can't find that contact."]],
            [UNANSWERABLE, [call("remove_contact", person_id=CONTACT), "Done."]],
            [
                LOCKED,
                [
                    call("set_wifi_status", on=True),
                    call("set_wifi_status", enabled=True),
                    call("get_wifi_status"),
                    "I could not turn it on.",
                ],
            ],
            [LOCKED, [call("get_wifi_status")] * 15 + ["reference", None]],
        ],
    )


@needs_package
def test_the_plain_scenarios_that_run_offline_are_tasks(plain: dict[str, Any]) -> None:
    tasks = plain["tasks"]
    assert plain["version"].startswith("tool_sandbox")
    assert len({task["id"] for task in tasks}) == len(tasks) == 95
    assert sum(any(task["reference"]) for task in tasks) == 32
    for task in tasks:
        assert task["query"]
        assert task["system_prompt"]
        assert task["user"] == "model"
        assert task["user_tools"] == []
        assert task["user_prompt"].count("###STOP###") >= 2  # at the examples' ends, in our line
    names = {tool["function"]["name"] for task in tasks for tool in task["tools"]}
    assert "set_wifi_status" in names
    assert not names & {"end_conversation", "search_stock", "search_weather_around_lat_lon"}


@needs_package
def test_references_fit_the_schemas_of_the_tools(plain: dict[str, Any]) -> None:
    for task in plain["tasks"]:
        schemas = {
            tool["function"]["name"]: tool["function"]["parameters"] for tool in task["tools"]
        }
        for schema in schemas.values():
            Draft202012Validator.check_schema(schema)
        for gold in (gold for turn in task["reference"] for gold in turn):
            assert gold["by"] == "agent"
            Draft202012Validator(schemas[gold["name"]]).validate(gold["arguments"])


@needs_package
def test_gold_calls_and_the_text_asked_for_have_similarity_one(plain: dict[str, Any]) -> None:
    for name, episode in zip(GOLD, plain["episodes"], strict=False):
        assert episode["before"]["reward"] == 0.0, name
        assert episode["after"]["reward"] == pytest.approx(1.0), name
        assert not any(is_error for _, is_error in episode["answers"][:-1]), name
        assert episode["answers"][-1] == {"next": "user", "text": "", "tools": None}


@needs_package
def test_doing_nothing_is_right_where_nothing_can_be_done(plain: dict[str, Any]) -> None:
    nothing, touched = plain["episodes"][len(GOLD) : len(GOLD) + 2]
    assert nothing["before"]["reward"] == nothing["after"]["reward"] == 1.0
    assert touched["answers"][0] == ["None", False]
    assert touched["after"]["reward"] == 0.0
    assert touched["after"]["details"]["minefields"] == [1.0]


@needs_package
def test_exceptions_are_answers(plain: dict[str, Any]) -> None:
    answers = plain["episodes"][-2]["answers"]
    assert answers[0][0].startswith("PermissionError: ")
    assert answers[1][0].startswith("TypeError: ")
    assert [is_error for _, is_error in answers[:3]] == [True, True, False]
    assert answers[2] == ["False", False]
    assert plain["episodes"][-2]["after"]["reward"] < 0.5


@needs_package
def test_what_comes_after_the_limit_of_messages_does_not_count(plain: dict[str, Any]) -> None:
    episode = plain["episodes"][-1]
    assert [is_error for _, is_error in episode["answers"][:-1]] == [False] * 15 + [True] * 2
    assert "limit of 30 messages" in episode["answers"][15][0]
    assert episode["answers"][-1]["next"] == "end"
    assert episode["after"]["reward"] == 0.0


@needs_package
def test_scores_are_those_of_the_packages_own_loop(plain: dict[str, Any]) -> None:
    for episode in plain["episodes"]:
        assert episode["after"] == episode["again"]
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
