"""Memory of other cases in ``branch``, and sweeps over a setting."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import apbjudge
from apbjudge.agents.environments.branching.config import BranchRunConfig, MemoryConfig
from apbjudge.agents.environments.branching.memory import Memory
from apbjudge.agents.environments.branching.run import Branching, branch
from apbjudge.agents.environments.plans import PlanLine, Situation
from apbjudge.errors import OptionError
from apbjudge.llm.base import Completion, MonotonicClock, Request, ScriptedClient
from apbjudge.records import Usage
from apbjudge.records.trajectories import trajectory_of
from apbjudge.runs.loop import QUIET

WORDS = "anchor barrel candle drum engine ferry garden harp kiln lantern mirror oven".split()
"""What the tools are for, one a tool: the plan's words for a substep name it."""
USAGE = Usage(calls=1, prompt_tokens=100, completion_tokens=10)
SHOWN = "What was done for substeps of other requests"


def case(name: str, things: list[str], query: str = "") -> dict[str, Any]:
    text = {"type": "string"}
    steps = [f"1.{at}" for at in range(1, len(things) + 1)]
    return {
        "id": name,
        "query": query or f"Request {name}: {' and '.join(things)}, as {name} asks.",
        "plan": [
            {"step": "1", "description": "Do it"},
            *(
                {"step": step, "description": f"Check {of}", "tool": f"t_{of}", "arguments": {}}
                for step, of in zip(steps, things, strict=True)
            ),
        ],
        "tools": [
            {"name": f"t_{of}", "arguments": {}, "results": {"of": text}, "default": {"of": "-"}}
            for of in WORDS
        ],
        "outputs": {step: {"of": of} for step, of in zip(steps, things, strict=True)},
    }


def drawn(names: str, words: list[str], seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    return [case(name, random.sample(words, 3)) for name in names]


class Knowing:
    """Calls the tools of the plan; in cases named in ``fails`` none."""

    def __init__(self, fails: str = "") -> None:
        self.fails, self.prompts = fails, list[str]()

    def tool(self, text: str) -> str | None:
        if any(f"Request {name}:" in text.partition(SHOWN)[0] for name in self.fails):
            return None
        substep = text.rpartition("Do substep ")[2].split()[0]
        return f"t_{text.partition(f'{substep} Check ')[2].split()[0]}"

    def __call__(self, request: Request) -> Completion:
        text = request.messages[-1]["content"]
        self.prompts.append(text)
        reply = json.dumps({"tool": self.tool(text), "arguments": {}})
        return Completion(text=reply, finish_reason="stop", usage=USAGE, cost_usd=0.0)


class Copying(Knowing):
    """Calls the tool that the most similar substep of the memory called."""

    def tool(self, text: str) -> str | None:
        call = text.partition(SHOWN)[2].partition('<data name="call">')[2].partition("</data>")[0]
        return json.loads(call)["tool"] if call else None


def run(cases: list[dict[str, Any]], agent: Knowing, **settings: Any) -> Branching:
    usual: dict[str, Any] = {"model": "hosted_vllm/m", "method": "react"}
    return branch(cases, client=ScriptedClient(agent), **(usual | settings))


def graded(run: Branching, cases: list[dict[str, Any]], **settings: Any) -> Any:
    return apbjudge.grade(run, protocol="slate", cases=cases, **settings)


@pytest.mark.parametrize("seed", range(3))
def test_who_copies_the_nearest_tool_is_right_where_the_memory_has_it(seed: int) -> None:
    earlier, later = drawn("abc", WORDS[:7], seed), drawn("uvwxyz", WORDS, seed + 9)
    memory = run(earlier, Knowing())
    copied = run(later, Copying(), memory=memory, memory_k=1)
    tools = {step["tool"] for of in earlier for step in of["plan"][1:]}
    inside = [[step["tool"] in tools for step in of["plan"][1:]] for of in later]
    n, n_inside = sum(map(len, inside)), sum(map(sum, inside))
    assert 0 < n_inside < n
    metrics = graded(copied, later).summary.groups[0].metrics
    assert metrics["TMR"].value == pytest.approx(n_inside / n)
    assert metrics["tools in memory"].value == pytest.approx(n_inside / n)
    rates = {place: metrics[f"TMR {place} memory"].value for place in ("inside", "outside")}
    assert rates == {"inside": 1, "outside": 0}
    (counts,) = copied.counts.values()
    assert f"tools in memory, hosted_vllm/m: those of {n_inside} of {n} calls" in copied.text
    right = f"right tool in {n_inside} of {n_inside} calls"
    assert f"inside memory, hosted_vllm/m: {right}" in copied.text
    n_cases = sum(map(all, inside))
    assert [counts.memory.get(f"{of} inside memory", 0) for of in ("right", "cases")] == [
        n_cases,
        n_cases,
    ]
    assert {row["setting"] for row in copied} == {"react-memory"}


@pytest.mark.parametrize("method", ["egb", "reflexion"])
def test_an_empty_memory_changes_no_byte(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MonotonicClock, "now", lambda _: 0.0)  # rows state their seconds
    earlier, later = drawn("ab", WORDS, 1), drawn("xyz", WORDS, 2)
    failed = run(earlier, Knowing(fails="ab"))
    prompts, runs, notes = [], [], list[str]()
    for name, memory in (("without", {}), ("empty", {"memory": failed})):
        agent = Knowing(fails="y")
        folder = tmp_path / name
        settings = {"method": method, "samples": 2, "max_trajectories": 2, "out": folder}
        run(later, agent, events=replace(QUIET, note=notes.append), **settings, **memory)
        prompts.append(sorted(agent.prompts))
        rows = (folder / "trajectories.jsonl").read_bytes().splitlines()
        runs.append(sorted(rows))
    assert prompts[0] == prompts[1]
    assert runs[0] == runs[1]
    assert "warning: nothing is remembered of the 2 cases of the memory" in notes


def test_a_memory_that_shows_nothing_is_a_control_with_the_same_cases() -> None:
    earlier, later = drawn("ab", WORDS, 1), drawn("xyz", WORDS, 2)
    memory = run(earlier, Knowing())
    agents = [Knowing(), Knowing()]
    run(later, agents[0])
    control = run([*earlier, *later], agents[1], memory=memory, memory_k=0)
    assert sorted(agents[0].prompts) == sorted(agents[1].prompts)
    assert "tools in memory" in graded(control, later).summary.groups[0].metrics
    assert {row["setting"] for row in control} == {"react"}


def test_cases_of_the_memory_are_left_out_and_near_duplicates_counted() -> None:
    query = "Please see to it that the old lantern is lit before the evening ferry comes in, {}"
    earlier = [case("a", WORDS[:2], query.format("today")), case("b", WORDS[2:4])]
    later = [*earlier, case("x", WORDS[:2], query.format("now")), case("y", WORDS[5:7])]
    notes: list[str] = []
    memory = run(earlier, Knowing(fails="b"))
    events = replace(QUIET, note=notes.append)
    done = run(later, Knowing(), memory=memory, events=events)
    assert {row["case_id"] for row in done} == {"x", "y"}
    assert "2 of 4 cases are in the memory: left out" in notes
    warned = "warning: 1 of 2 cases nearly repeat the request of one in the memory, such as x"
    assert warned in notes
    about = done.manifest["memory"]
    assert (about["left_out"], about["near_duplicates"]) == (["a", "b"], ["x"])
    with pytest.raises(OptionError, match="--memory: expected a run of other cases, got one of"):
        run(earlier, Knowing(), memory=memory)


def test_what_is_remembered_is_results_each_once_by_substep_or_plan() -> None:
    cases = [case("a", ["drum", "oven"]), case("b", ["harp", "oven"])]
    done = [trajectory_of(row) for row in run(cases, Knowing(fails="b"), trials=2)]
    first = [replace(each, setting="first-pass-react") for each in done]
    steps = dict.fromkeys(("1.1", "1.2"))

    def memory(**settings: Any) -> Memory:
        both = [Memory(of, MemoryConfig(**settings), {}) for of in ([*first, *done], done[::-1])]
        assert both[0].digest == both[1].digest
        return both[0]

    assert [len(memory(memory_of=which).units) for which in ("successful", "all")] == [2, 4]
    plans = memory(memory_of="all", memory_unit="plan")
    assert [[step.tool for step in unit] for unit in plans.units] == [
        ["t_drum", "t_oven"],
        [None, None],
    ]
    plan = tuple(PlanLine(step, "Check the oven") for step in steps)
    situation = Situation(
        task="z", query="Request b: harp", plan=plan, substep="1.1", history=(), tools=()
    )
    (nearest, *_) = memory().nearest(situation)
    assert [step.tool for step in nearest] == ["t_oven"]  # by the substep's words
    (nearest, *_) = plans.nearest(situation)
    assert nearest[0].query == cases[1]["query"]  # by the request
    assert memory().nearest(replace(situation, query="?", plan=())) == ()


@pytest.mark.parametrize("method", ["react", "egb"])
def test_runs_with_and_without_a_memory_are_compared_case_by_case(
    tmp_path: Path, method: str
) -> None:
    earlier, later = drawn("abc", WORDS, 1), drawn("uvwxyz", WORDS, 2)
    memory = run(earlier, Knowing())
    names = ("without", "with")
    for name, agent in zip(names, (Knowing(fails="uvw"), Knowing(fails="x")), strict=True):
        own = {"memory": memory} if name == "with" else {}
        done = run(later, agent, method=method, samples=2, **own)
        graded(done, later, out=tmp_path / name)
    setting = {"react": "react", "egb": "egb-entropy-oracle"}[method]
    runs = [tmp_path / name for name in names]
    flips = apbjudge.compare(*runs, of_settings=(setting, f"{setting}-memory")).flips
    assert flips is not None
    assert (flips.first_only, flips.second_only) == (1, 3)
    assert flips.test is not None
    with pytest.raises(OptionError, match=r"--setting: expected one in .*, got 'lats'"):
        apbjudge.compare(*runs, of_settings=["lats"])


def test_a_sweep_is_a_run_for_each_value(tmp_path: Path) -> None:
    cases = drawn("xyz", WORDS, 2)
    config = BranchRunConfig(model="hosted_vllm/m", sweep="m=1,3", out=tmp_path)
    for each, n in zip(config.swept, (1, 3), strict=True):
        done = branch(cases, each, client=ScriptedClient(Knowing("x" if n == 1 else "")))
        (counts,) = done.counts.values()
        assert counts.samples == 9 * n
        graded(done, cases, out=tmp_path / f"graded-{n}")
        rows = (tmp_path / f"m-{n}" / "trajectories.jsonl").read_text(encoding="utf-8")
        settings = {json.loads(row)["setting"] for row in rows.splitlines()}
        assert settings == {f"{of}egb-entropy-oracle m={n}" for of in ("", "first-pass-")}
    figures = {
        of.key: of for of in apbjudge.report([tmp_path / f"graded-{n}" for n in (1, 3)]).figures
    }
    curve = figures["trajectories-sweep"].data
    assert list(zip(curve["name"], curve["at"], curve["value"].round(2), strict=True)) == [
        ("egb-entropy-oracle", "1", 0.67),
        ("egb-entropy-oracle", "3", 1.0),
    ]
    tokens = figures["trajectories-tokens"].data
    assert [*tokens["name"]] == [f"egb-entropy-oracle m={n}" for n in (1, 1, 3, 3)]
    assert [*tokens["column"]] == ["input tokens", "execution success"] * 2
    assert [*tokens["value"][::2]] == [300, 900]
    with pytest.raises(OptionError, match="--sweep: expected one value a run, got 2"):
        branch(cases, config, client=ScriptedClient(Knowing()))


@pytest.mark.parametrize(
    ("method", "sweep", "expected"),
    [("react", "m=1,5", "none"), ("reflexion", "m=1,5", "b=1,5"), ("egb", "k=2", "m=1,5 or b=1,5")],
)
def test_a_sweep_is_of_a_setting_that_the_method_has(
    method: Any, sweep: str, expected: str
) -> None:
    with pytest.raises(OptionError, match=f"--sweep: expected {expected} with --method {method}"):
        BranchRunConfig(model="hosted_vllm/m", method=method, sweep=sweep)
