"""Episodes: played to an end, one record each, resumed in the middle, graded as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apbjudge.agents.environments.benchmarks import BenchmarkKind, open_benchmark
from apbjudge.agents.environments.simulate import Simulation, simulate
from apbjudge.errors import OptionError, TransportError
from apbjudge.llm.base import Completion, NativeCall, Request, ScriptedClient
from apbjudge.records import Usage
from apbjudge.records.trajectories import trajectory_of

from .counting import Counting

MODEL = "hosted_vllm/counter"
WORLD = Counting("1", "2", "3")


def adding(text: str) -> Completion:
    """A reply that calls ``add`` with these arguments."""
    return Completion(
        text="",
        finish_reason="tool_calls",
        tool_calls=(NativeCall(name="add", arguments=text, id=""),),
        usage=Usage(calls=1, prompt_tokens=10, completion_tokens=5),
        cost_usd=0.5,
    )


def done() -> Completion:
    return adding("").model_copy(
        update={"text": "Done.", "finish_reason": "stop", "tool_calls": ()}
    )


def goal(request: Request) -> int:
    first = next(m for m in request.messages if m["role"] == "user")
    return int(first["content"].removeprefix("Reach ").removesuffix("."))


def total(request: Request) -> int:
    results = [m["content"] for m in request.messages if m["role"] == "tool"]
    return json.loads(results[-1])["sum"] if results else 0


def one_by_one(request: Request) -> Completion:
    return done() if total(request) == goal(request) else adding('{"amount": 1}')


def run(client: ScriptedClient, where: Any = WORLD, **settings: Any) -> Simulation:
    return simulate(where, model={"model": MODEL, "retries": 0}, client=client, **settings)


def test_episodes_are_played_to_their_end(tmp_path: Path) -> None:
    client = ScriptedClient(one_by_one)
    played = run(client, out=tmp_path / "run", trials=2)
    (counts,) = played.counts.values()
    assert (counts.played, counts.successes, counts.turns) == (6, 6, 2 * (2 + 3 + 4))
    assert counts.endings == {"answered": 6}
    assert counts.cost_usd == 0.5 * counts.turns
    assert [request.tools[0]["function"]["name"] for request in client.requests] == ["add"] * 18
    runs = [trajectory_of(row) for row in played]
    assert sorted((r.trajectory_id, r.case_id, r.trial) for r in runs) == sorted(
        (task if trial == 0 else f"{task}#2", task, trial) for task in "123" for trial in (0, 1)
    )
    longest = max(runs, key=lambda each: len(each.steps))
    assert [step.kind for step in longest.steps] == ["call", "call", "call", "answer"]
    assert longest.steps[2].observations[0].content == {"sum": 3}
    again = run(ScriptedClient(one_by_one), out=tmp_path / "run", trials=3)
    assert again.progress.done == 3  # the third trials alone


def test_what_a_model_does_wrong_is_said_to_it_and_ends_the_episode_in_the_end() -> None:
    replies = {1: "nonsense", 2: "[1]", 3: '{"amount": "one"}'}

    def odd(request: Request) -> Completion:
        return adding(replies[goal(request)])

    played = {trajectory_of(row).case_id: trajectory_of(row) for row in run(ScriptedClient(odd))}
    ends = {name: (each.termination, len(each.steps)) for name, each in played.items()}
    assert ends["1"] == ends["2"] == ("exceeded_max_call_errors", 2)
    assert ends["3"] == ("exceeded_max_steps", 6)
    assert played["1"].steps[0].calls[0].parse_error
    assert "no JSON object" in str(played["2"].steps[0].observations[0].content)
    assert played["3"].steps[0].observations[0].is_error


@pytest.mark.parametrize(
    ("limit", "ending"),
    [
        ({"max_turns": 2}, "exceeded_turns"),
        ({"max_episode_tokens": 30}, "exceeded_tokens"),
        ({"max_episode_cost": 1.0}, "exceeded_cost"),
    ],
    ids=str,
)
def test_an_episode_ends_at_the_limits_of_the_run(limit: dict[str, Any], ending: str) -> None:
    (row,) = run(ScriptedClient(one_by_one), Counting("2"), **limit)
    ended = trajectory_of(row)
    assert (ended.termination, row["turns"]) == (ending, 2)
    assert ended.outcome is not None
    assert ended.outcome.is_success is False  # though the sum is right


@pytest.mark.parametrize("cached", [False, True])
def test_an_interrupted_episode_goes_on_where_it_was(tmp_path: Path, cached: bool) -> None:
    """Task 3 fails at its third reply; the second session pays for what is missing."""
    where: dict[str, Any] = {"out": tmp_path / "run", "cache": cached and tmp_path / "cache"}

    def failing(request: Request) -> Completion:
        if total(request) == 2 and goal(request) == 3:
            raise TransportError("scripted failure")
        return one_by_one(request)

    first = run(ScriptedClient(failing), **where)
    assert (first.failed, {row["case_id"] for row in first}) == (1, {"1", "2"})
    client = ScriptedClient(one_by_one)
    second = run(client, **where)
    assert (second.failed, len(client.requests)) == (0, 2)  # the third call and the answer
    (row,) = (row for row in second if row["case_id"] == "3")
    assert trajectory_of(row).outcome is not None
    assert (row["turns"], row["usage"]["reused"]) == (4, 2)


def test_tasks_and_options_have_to_be_known(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"--tasks: expected ids of tasks, got '9'"):
        run(ScriptedClient(one_by_one), tasks=("9",))
    with pytest.raises(OptionError, match=r"--kind: expected .* got 'nowhere'"):
        open_benchmark(tmp_path, "nowhere")
    with pytest.raises(OptionError, match="BENCHMARK: expected planbench-xl"):
        open_benchmark(tmp_path)


def test_an_installed_package_adds_a_kind_of_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[Path, Mapping[str, str]]] = []

    def open_counting(path: Path, options: Mapping[str, str]) -> Counting:
        opened.append((path, options))
        return WORLD

    settings = {"upto": "A number."}
    counting = BenchmarkKind(
        name="counting", holds=lambda path: False, open=open_counting, settings=settings
    )
    found = SimpleNamespace(name="counting", load=lambda: counting)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [found])
    client = ScriptedClient(one_by_one)
    played = run(client, tmp_path, kind="counting", options=("upto=3",))
    assert opened == [(tmp_path, {"upto": "3"})]
    assert len(list(played)) == 3
    with pytest.raises(OptionError, match="--with: expected upto, got 'other'"):
        open_benchmark(tmp_path, "counting", {"other": "1"})
    found.load = lambda: "no kind"
    with pytest.raises(OptionError, match="'counting' is not an apbjudge BenchmarkKind"):
        open_benchmark(tmp_path, "counting")
