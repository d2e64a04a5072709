"""Multi-turn tasks of BFCL through the adapter, against the package's own executor and checker."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from apbjudge.agents.environments.execution.hosted import bfcl

pytest.importorskip("bfcl_eval")

Calls = list[list[dict[str, Any]]]
"""The calls of each turn."""

GOLD_CALLS = {"base": 1142, "miss_func": 1140, "miss_param": 1140, "long_context": 1203}


@cache
def suite_of(category: str, turns: str = "official") -> Any:
    return bfcl.suite({"category": category, "turns": turns})


@cache
def answers() -> dict[str, tuple[dict[str, Any], list[list[str]]]]:
    """The rows of all tasks and their gold calls as the package reads them."""
    utils = importlib.import_module("bfcl_eval.utils")
    return {
        row["id"]: (row, gold["ground_truth"])
        for category in GOLD_CALLS
        for row, gold in zip(
            utils.load_dataset_entry(f"multi_turn_{category}"),
            utils.load_ground_truth_entry(f"multi_turn_{category}"),
            strict=True,
        )
    }


@pytest.fixture
def package() -> Iterator[Any]:
    """The package's executor, whose objects are dropped after each test."""
    executor = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils")
    yield executor
    for name in [name for name in vars(executor) if name.endswith("_instance")]:
        delattr(executor, name)


def text_of(call: dict[str, Any]) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in call["arguments"].items())
    return f"{call['name']}({arguments})"


def checked(task_id: str, turns: Calls, name: str) -> bool:
    """Whether the package's checker finds calls right, each a step of its own."""
    checker = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker")
    row, gold = answers()[task_id]
    steps = [[[text_of(call)] for call in calls] for calls in turns]
    return checker.multi_turn_checker(steps, gold, deepcopy(row), "", name)["valid"]


def scored(suite: Any, task_id: str, turns: Calls) -> dict[str, Any]:
    episode = suite.begin(task_id)
    for calls in turns:
        for call in calls:
            episode.call(call["name"], call["arguments"], "agent")
        told = episode.say("done")
    assert told["next"] == "end"
    return episode.score()


# Gold calls ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("category", GOLD_CALLS)
def test_gold_calls_fit_the_tools_offered_and_succeed_in_every_task(category: str) -> None:
    suite = suite_of(category)
    tasks = suite.tasks()
    made = 0
    for task in tasks:
        tools, episode = task["tools"], suite.begin(task["id"])
        assert not any(task["reference"]) or episode.score()["reward"] == 0
        for calls in task["reference"]:
            schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
            for call in calls:
                Draft202012Validator(schemas[call["name"]]).validate(call["arguments"])
                text, is_error = episode.call(call["name"], call["arguments"], call["by"])
                assert not is_error, text
                made += 1
            told = episode.say("done")
            tools = told["tools"] or tools
        assert told == {"next": "end", "text": "", "tools": None}
        assert episode.score() == {"reward": 1.0, "details": {"turn": None, "why": ""}}
    assert (len(tasks), made) == (200, GOLD_CALLS[category])


@pytest.mark.parametrize("category", ["base", "long_context"])
def test_results_are_those_of_the_package(category: str, package: Any) -> None:
    suite = suite_of(category)
    for task in suite.tasks()[::20]:
        row, gold = answers()[task["id"]]
        episode = suite.begin(task["id"])
        calls = [call for turn in task["reference"] for call in turn]
        calls += [{"name": call["name"], "arguments": {"nonsense": 1}} for call in calls[:1]]
        texts = [text for turn in gold for text in turn] + [text_of(call) for call in calls[-1:]]
        results, _ = package.execute_multi_turn_func_call(
            texts,
            row["initial_config"],
            row["involved_classes"],
            "results",
            task["id"],
            long_context=category == "long_context",
        )
        assert [episode.call(call["name"], call["arguments"], "agent")[0] for call in calls] == (
            results
        )


# Rewards are the package's ------------------------------------------------------------------------


def without_last(turns: Calls) -> Calls:
    """Without the last call of all."""
    last = max(i for i, calls in enumerate(turns) if calls)
    return [calls[:-1] if i == last else calls for i, calls in enumerate(turns)]


def hasty(turns: Calls) -> Calls:
    """The calls of the second turn already in the first."""
    return [turns[0] + turns[1], *turns[1:]] if len(turns) > 1 else turns


def twice(turns: Calls) -> Calls:
    return [calls + calls for calls in turns]


REWARDS = {
    without_last: (0, 0, 0),
    hasty: (94, 150, 136),
    twice: (73, 73, 73),
}
"""How many of 200 tasks succeed, of each category."""


@pytest.mark.parametrize("change", REWARDS)
def test_rewards_of_some_tasks_are_those_of_the_package(change: Any, package: Any) -> None:
    del package
    assert rewards_of("miss_func", change, every=20)


@pytest.mark.slow
@pytest.mark.parametrize("change", REWARDS)
@pytest.mark.parametrize("category", ["base", "miss_func", "miss_param"])
def test_rewards_are_those_of_the_package(category: str, change: Any, package: Any) -> None:
    del package
    rewards = rewards_of(category, change)
    assert sum(rewards) == REWARDS[change][list(GOLD_CALLS).index(category)]


def rewards_of(category: str, change: Any, *, every: int = 1) -> list[float]:
    """Rewards of every so manyth task, each of which is the package's own."""
    suite = suite_of(category)
    rewards: list[float] = []
    for task in suite.tasks()[::every]:
        turns = change(task["reference"])
        score = scored(suite, task["id"], turns)
        assert score["reward"] == checked(task["id"], turns, change.__name__), task["id"]
        assert (score["details"]["turn"] is None) == (score["reward"] == 1)
        rewards.append(score["reward"])
    return rewards


# What the user says -------------------------------------------------------------------------------


def test_held_back_tools_are_offered_from_their_turn_on() -> None:
    suite = suite_of("miss_func")
    early_tools: list[str] = []
    for task in suite.tasks():
        row, _ = answers()[task["id"]]
        episode = suite.begin(task["id"])
        names = {tool["function"]["name"] for tool in task["tools"]}
        for turn in range(1, len(row["question"])):
            told = episode.say("")
            if not (held := row["missed_function"].get(str(turn))):
                assert told["tools"] is None
                continue
            held_names = {tool["name"] for tool in held}
            early_tools += [f"{task['id']}: {name}" for name in sorted(held_names & names)]
            now = [tool["function"]["name"] for tool in told["tools"]]
            assert set(now) == names | held_names
            assert len(now) == len(set(now))
            assert told["text"]
    assert early_tools == ["multi_turn_miss_func_49: tail"]


def test_joined_turns_are_one_request_and_scored_at_any_time() -> None:
    suite = suite_of("base", "joined")
    for task in suite.tasks()[::10]:
        row, _ = answers()[task["id"]]
        (calls,) = task["reference"]
        assert task["user"] == "none"
        assert all(messages[0]["content"] in task["query"] for messages in row["question"])
        episode = suite.begin(task["id"])
        assert not calls or episode.score()["reward"] == 0
        for call in calls:
            episode.call(call["name"], call["arguments"], "agent")
        assert episode.score()["reward"] == 1
        assert episode.say("done")["next"] == "end"
        assert episode.score()["reward"] == 1
    assert scored(suite, task["id"], [calls[:-1]])["reward"] == 0


# Options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"category": "base+base"}, "category: expected some of .*, got 'base\\+base'"),
        ({"category": "all", "turns": "joined"}, "turns: expected official with miss_func, got"),
    ],
)
def test_options_that_are_not_as_expected(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bfcl.suite(options)
