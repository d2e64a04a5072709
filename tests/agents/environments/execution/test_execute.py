"""Tasks carried out by scripted models: modes, users, resume, what the rows say."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from apbjudge import Completion, ScriptedClient, execute, shards_merge
from apbjudge.agents.environments.execution.benchmark import HostedEnvironment
from apbjudge.agents.environments.execution.bound import UnboundError, bound_plan
from apbjudge.agents.environments.execution.execute import ExecutionRun
from apbjudge.agents.environments.execution.host import StoppedError
from apbjudge.agents.environments.execution.planned import Plans
from apbjudge.agents.environments.results_text import execution_text
from apbjudge.errors import OptionError
from apbjudge.llm.base import NativeCall, Request
from tests.support.judging import write_rows
from tests.support.predicting import read_lines

from .conftest import TOY
from .test_host import write_benchmark


def text_of(request: Request) -> str:
    return "\n".join(str(message["content"]) for message in request.messages)


def goal(request: Request) -> int:
    return int(text_of(request).partition("Bring the counter to ")[2].partition(".")[0])


def steps_so_far(request: Request) -> int:
    return str(request.messages[1]["content"]).count('"role": "assistant"')


def call(name: str, **arguments: Any) -> str:
    function = {"name": name, "arguments": arguments}
    calls = [{"type": "function", "function": function}]
    return json.dumps({"role": "assistant", "thought": "so", "tool_calls": calls})


def done(text: str = "done") -> str:
    return json.dumps({"role": "assistant", "content": text, "tool_calls": []})


def counter(request: Request) -> str:
    """Counts up by ones, and stops at the goal."""
    if "You plan how a task" in text_of(request):
        return json.dumps({"plan": "add ones", "tool_chain": [{"name": "add"}] * goal(request)})
    if steps_so_far(request) < goal(request):
        return call("add", n=1)
    return done()


def played(
    answer: Callable[[Request], Any], **settings: Any
) -> tuple[ExecutionRun, ScriptedClient]:
    client = ScriptedClient(answer)
    return execute(TOY, model="m/scripted", client=client, cache=False, **settings), client


def test_a_model_acts_step_by_step_until_it_makes_no_call() -> None:
    run, client = played(counter)
    counts = run.modes["direct"].counts["m/scripted"]
    assert (counts.played, counts.successes, counts.turns) == (3, 3, 3 + 5 + 0 + 3)
    assert counts.endings == {"agent_stop": 3}
    assert len(client.requests) == 11
    rewards = {row["case_id"]: row["null_reward"] for row in run.executed}
    assert rewards == {"three": 0.0, "five": 0.0, "none": 1.0}


@pytest.mark.parametrize("user", ["none", "scripted"])
def test_the_prompt_of_a_step_is_that_in_the_golden_file(user: str, tmp_path: Path) -> None:
    row = {"id": "three", "tested_model": "alder", "model_response": "Add one, three times."}
    plans = write_rows(tmp_path / "plans.jsonl", [row])
    planned: dict[str, Any] = {"mode": "plan-first", "plans": plans} if user == "none" else {}
    replies = [call("add", n=1), call("fail"), done()]
    _, client = played(
        lambda request: replies[min(2, steps_so_far(request))],
        tasks=["three"],
        options=(f"user={user}",),
        **planned,
    )
    text = "\n=====\n".join(str(m["content"]) for m in client.requests[2].messages) + "\n"
    golden = Path(__file__).parents[3] / "golden" / f"execute_{user}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_a_plan_is_drafted_and_followed_and_refined(tmp_path: Path) -> None:
    def planner(request: Request) -> str:
        text = text_of(request)
        if "VERDICT" in text:
            return "The plan is too long.\n\nVERDICT: CHANGE"
        if any(message["role"] == "assistant" for message in request.messages):
            return json.dumps({"plan": "in one go", "tool_chain": [{"name": "add"}]})
        if "You plan how a task" in text:
            return json.dumps({"plan": "add ones", "tool_chain": []})
        if "in one go" in text and not steps_so_far(request):
            return call("add", n=goal(request))
        return counter(request) if "add ones" in text else done()

    run, client = played(planner, mode=("plan-first", "refine"), tasks=["three"], out=tmp_path)
    assert set(run.drafts) == {"drafts", "refined"}
    assert run.modes["plan-first"].counts["m/scripted"].turns == 4
    assert run.modes["refine"].counts["m/scripted"].turns == 2
    acting = [text_of(each) for each in client.requests if "You carry out" in text_of(each)]
    assert sum('"plan": "add ones"' in text for text in acting) == 4
    assert sum('"plan": "in one go"' in text for text in acting) == 2
    assert [(row["item_id"], row["is_correct"]) for row in run.executed] == [("three", True)] * 2
    for folder, mode in (("drafts", "plan-first"), ("refined", "refine")):
        (draft,) = read_lines(tmp_path / folder / "predictions.jsonl")
        hashed = sha256(draft["model_response"].encode()).hexdigest()
        of_mode = {row["mode"]: row["plan_sha256"] for row in run.executed}
        assert (draft["id"], of_mode[mode]) == ("three", hashed)  # so a judge's run joins its own


def test_trials_carry_out_their_own_drafts() -> None:
    def planner(request: Request) -> str:
        if "You plan how a task" in text_of(request):
            return json.dumps({"plan": f"draft {request.sample}", "tool_chain": []})
        seen = "draft 1" in text_of(request)
        return counter(request) if seen else done()

    run, _ = played(planner, mode="plan-first", tasks=["three"], trials=2)
    assert [(row["item_id"], row["trial"], row["is_correct"]) for row in run.executed] == [
        ("three", 0, False),
        ("three#2", 1, True),
    ]


def add(n: Any = None, path: str | None = None) -> dict[str, Any]:
    """A call; with a path of the result of the first one."""
    return {"name": "add", "arguments": {"n": n if path is None else {"$from": 1, "path": path}}}


BOUND: dict[str, list[dict[str, Any]]] = {
    "nothing to do": [],
    "add twice": [add(1), add(2)],
    "from a result": [add(1), add(path="count"), add(path="list[0]")],
    "nothing there": [add(1), add(path="sum")],
    "far away": [add(1), add(path=f"list[{'9' * 5000}]")],
    "in words": [{"name": "add", "parameter_description": {"n": "the number that is missing"}}],
    "described": [add("<result of step 1>")],
    "from later": [add(path="")],
}


def write_plans(folder: Path, chains: dict[tuple[str, str], list[dict[str, Any]]]) -> Path:
    """A file of plans by task and tested model."""
    rows = (
        {"id": task, "tested_model": name, "model_response": json.dumps({"tool_chain": chain})}
        for (task, name), chain in chains.items()
    )
    return write_rows(folder / "plans.jsonl", rows)


def test_bound_plans_are_carried_out_without_a_model(tmp_path: Path) -> None:
    plans = write_plans(tmp_path, {("three", name): chain for name, chain in BOUND.items()})
    run = execute(TOY, mode="bound", plans=plans, tasks=["three"])
    assert {row["tested_model"]: row["is_correct"] for row in run.executed} == {
        "add twice": True,
        "far away": False,
        "from a result": True,
        "nothing there": False,
        "nothing to do": False,
    }
    ended = {name: each.endings for name, each in run.modes["bound"].counts.items()}
    unclear = {name for name, of in ended.items() if of == {"not_executable": 1}}
    assert (unclear, run.failed) == ({"in words", "described", "from later"}, 0)


def bound_to(value: object) -> object:
    """What the argument of a plan's only call is."""
    chain = [{"name": "add", "arguments": {"n": [value]}}]
    return bound_plan(json.dumps({"tool_chain": chain}))[0].arguments["n"]


def test_descriptions_of_values_are_not_executable_and_unusual_values_are() -> None:
    for value in ("a.b@c.org", "$100", "Step 1", "Result of step 1 is late", '{"a": 1}', None):
        assert bound_to(value) == [value]
    for value in ("x < 3 and y > 5", "<b>bold</b>", "#W2378156", "ABC_1"):
        assert bound_to(value) == [value]
    for value in ("<user id>", "$search.id", "${step_1.id}", "{user_id}", "{{ step 1 }}"):
        with pytest.raises(UnboundError, match="call 1: a value is described, not given"):
            bound_to({"deep": [value]})
    for value in ("PREVIOUS_RESULT", "output from call 2"):
        with pytest.raises(UnboundError):
            bound_to(value)


def test_the_suites_own_solution_succeeds_and_nothing_does_not() -> None:
    run = execute(TOY, mode=("gold", "null"))
    solved = [(row["mode"], row["case_id"]) for row in run.executed if row["is_correct"]]
    assert solved == [*(("gold", task) for task in ("three", "five", "none")), ("null", "none")]


def test_a_reply_without_a_call_ends_the_task_and_the_limit_an_endless_one() -> None:
    replies = {
        3: "I would rather not.",
        5: call("subtract", n=1),
        0: json.dumps({"role": "assistant", "thought": "x", "tool_calls": "add"}),
    }
    run, client = played(lambda request: replies[goal(request)], max_turns=7)
    assert {row["case_id"]: (row["is_correct"], row["termination"]) for row in run.executed} == {
        "three": (False, "agent_stop"),
        "five": (False, "exceeded_turns"),
        "none": (True, "agent_stop"),
    }
    assert len(client.requests) == 1 + 7 + 1
    unread = json.dumps({"tool_calls": [{"function": {"name": "add", "arguments": "n=1"}}]})
    (row,) = played(lambda _: unread, tasks=["none"], max_turns=2)[0].executed
    assert (row["is_correct"], row["termination"]) == (False, "exceeded_turns")


def test_of_one_step_a_bounded_number_of_calls_is_carried_out() -> None:
    many = json.dumps({"tool_calls": [{"function": {"name": "add", "arguments": {"n": 1}}}] * 100})
    run, _ = played(lambda r: done() if steps_so_far(r) else many, tasks=["three"])
    row = next(iter(run.modes["direct"]))
    seen = [each["is_error"] for each in row["steps"][1]["observations"]]
    assert (seen.count(False), seen.count(True)) == (32, 68)


def test_requests_of_a_scripted_user_come_one_by_one_with_their_tools() -> None:
    seen: list[str] = []

    def agent(request: Request) -> str:
        seen.append(text_of(request))
        if steps_so_far(request) == 0:
            return call("add", n=3)
        return done()

    run, _ = played(agent, tasks=["three"], options=("user=scripted",))
    assert run.modes["direct"].counts["m/scripted"].successes == 1
    asked = [("And is it done?" in text, '"hog"' in text) for text in seen]
    assert asked == [(False, True), (False, True), (True, False)]
    assert 'write it under "content"' in seen[0]


def test_a_model_plays_the_user_and_has_tools_of_its_own() -> None:
    def both(request: Request) -> str | Completion:
        if request.model == "m/user":
            assert [tool["function"]["name"] for tool in request.tools] == ["look"]
            assert str(request.messages[0]["content"]).startswith("You want a number.")
            last = request.messages[-1]
            if last["role"] == "tool":
                assert last["content"] == "it shows 3"
                return "It is right. ###STOP###"
            look = NativeCall(name="look", arguments="{}", id="1")
            return Completion(text="", finish_reason="tool_calls", tool_calls=(look,))
        return done("Look at it.") if steps_so_far(request) else call("add", n=3)

    run, client = played(both, tasks=["three"], options=("user=model",), user_model="m/user")
    assert [(row["is_correct"], row["termination"]) for row in run.executed] == [
        (True, "user_stop")
    ]
    heard = [m["content"] for m in client.requests[2].messages if m["role"] == "user"]
    assert heard[-1] == "Look at it."
    row = next(iter(run.modes["direct"]))
    assert [step["source"] for step in row["steps"]] == ["user", "agent", "agent", "user", "user"]


def test_a_user_without_a_model_and_plans_without_a_query_are_refused() -> None:
    with pytest.raises(OptionError, match=r"^--user-model: expected a model that plays the user"):
        played(lambda _: done(), options=("user=model",))
    with pytest.raises(OptionError, match=r"^--mode plan-first: expected tasks that are known"):
        played(lambda _: done(), options=("user=scripted",), mode="plan-first")
    with pytest.raises(OptionError, match=r"^--tasks: expected ids of tasks, got 'nine'"):
        played(lambda _: done(), tasks=["nine"])
    with pytest.raises(OptionError, match="--model: expected a tested model with --mode direct"):
        execute(TOY)


def test_a_suite_that_breaks_is_no_failure_of_the_agent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def dies(self: HostedEnvironment) -> None:
        raise StoppedError

    with monkeypatch.context() as broken:
        broken.setattr(HostedEnvironment, "score", dies)
        run, _ = played(counter, mode=("direct", "gold"), tasks=["three"], out=tmp_path)
    assert (run.executed, run.failed) == ((), 2)
    assert run.modes["direct"].counts["m/scripted"].failed == {"infrastructure": 1}
    for mode in ("direct", "gold"):
        failure = json.loads((tmp_path / mode / "failures.jsonl").read_text())
        assert failure["detail"].startswith("environment toy: the benchmark's process ended")
    run, client = played(counter, mode=("direct", "gold"), tasks=["three"], out=tmp_path)
    assert [row["is_correct"] for row in run.executed] == [True, True]
    assert client.requests == []


def test_the_text_says_of_how_many_plans_that_could_be_run_how_many_succeeded(
    tmp_path: Path,
) -> None:
    chains = {"three": BOUND["add twice"], "five": BOUND["in words"], "none": []}
    plans = write_plans(tmp_path, {(task, "alder"): chain for task, chain in chains.items()})
    text = execution_text(execute(TOY, mode=("bound", "null"), plans=plans))
    assert re.search(r"bound +alder +3 +2/2 +1/2 ", text)
    assert re.search(r"null +null +3 +1/3 +1/3 ", text)
    assert "ended, bound, alder: not_executable 1" in text


def test_a_solution_that_fails_is_the_suites_fault_and_says_what_broke(tmp_path: Path) -> None:
    solutions = {
        "raises": ["fine", "raise"],
        "unknown tool": ["none"],
        "unsolved": ["fine"],
    }
    program = write_benchmark(
        tmp_path,
        f"""
def listed(name, calls):
    tools = [{{**TOOL, "function": {{**TOOL["function"], "name": n}}}} for n in NAMES]
    return task(id=name, tools=tools, reference=[[{{**CALL, "name": n}} for n in calls]])
def call(self, name, arguments, by):
    return (1 // 0 if name == "raise" else "fine"), False
NAMES = ("raise", "fine")
Mine.tasks = lambda self: [listed(*each) for each in {solutions!r}.items()]
Episode.call = call
Episode.score = lambda self: {{"reward": 0}}
""",
    )
    run = execute(program, mode=("gold", "null"), out=tmp_path / "out")
    assert [
        (row["case_id"], row["is_correct"]) for row in run.executed if row["mode"] == "gold"
    ] == [("unsolved", False)]
    assert (run.failed, run.modes["null"].failed) == (2, 0)
    rows = read_lines(tmp_path / "out" / "gold" / "failures.jsonl")
    said = {row["id"]: row["detail"].partition(" its own solution fails at ")[2] for row in rows}
    lines = Path(program).read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "1 // 0" in text)
    zero = f"call 2, raise: 'Error: integer division or modulo by zero' ({program}:{line})"
    assert said["raises"] == zero
    assert said["unknown tool"] == "call 1, none: \"Error: there is no tool 'none'\""


def test_trials_take_the_samples_of_a_case_in_their_order(tmp_path: Path) -> None:
    """A run of predict has them as they were answered."""
    names = ["three#2", "three#10", "three"]
    row = {"case_id": "three", "tested_model": "alder", "model_response": "add"}
    plans = Plans(write_rows(tmp_path / "plans.jsonl", [row | {"id": name} for name in names]))
    trials = [plans.plan_of("three", "alder", trial) for trial in range(4)]
    assert [(plan.id, plan.times) for plan in trials] == [
        ("three", 0),
        ("three#2", 0),
        ("three#10", 0),
        ("three", 1),
    ]


@pytest.mark.slow
def test_parts_of_the_tasks_are_put_together(tmp_path: Path) -> None:
    """Drafts and episodes; at least one of four parts of three tasks has none."""
    n = 4
    settings: dict[str, Any] = {"mode": ("direct", "plan-first", "bound", "gold"), "trials": 2}
    whole, client = played(counter, out=tmp_path / "whole", **settings)
    folders = [tmp_path / f"part-{i}" for i in range(1, n + 1)]
    calls = 0
    for i, folder in enumerate(folders, 1):
        calls += len(played(counter, out=folder, shard=f"{i}/{n}", **settings)[1].requests)
    assert calls == len(client.requests)
    shards_merge(folders[1:], tmp_path / "some", partial=True)
    merged = shards_merge([tmp_path / "some", folders[0]], tmp_path / "merged")
    assert isinstance(merged, ExecutionRun)
    assert sorted(map(str, merged.executed)) == sorted(map(str, whole.executed))
    assert merged.text == whole.text
    again, client = played(counter, out=tmp_path / "merged", **settings)
    assert (client.requests, again.text) == ([], whole.text)
    played(counter, out=tmp_path / "more", mode="gold", shard=f"2/{n}")
    with pytest.raises(OptionError, match=r"part-1 has the runs drafts, .*, and .*more gold"):
        shards_merge([folders[0], tmp_path / "more"], tmp_path / "unlike")
    with pytest.raises(OptionError, match="--shard: expected modes other than refine"):
        played(counter, mode="refine", shard="1/2")
