"""The methods that branching is compared with: open loop, a vote of whole runs, reflection."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise, permutations
from math import factorial, prod
from pathlib import Path
from random import Random
from typing import Any

import pytest
from examples.simulated_agents import SimulatedPolicy, SimulatedStep, chain_case

import apbjudge
from apbjudge.agents.environments.branching.config import BranchConfig
from apbjudge.agents.environments.branching.corrections import correction
from apbjudge.agents.environments.branching.methods import winners
from apbjudge.agents.environments.branching.model_policy import ModelPolicy
from apbjudge.agents.environments.branching.policy import Decision, Reflection
from apbjudge.agents.environments.branching.run import branch
from apbjudge.agents.environments.branching.search import BranchResult, branch_case
from apbjudge.agents.environments.plans import FinalOutput, PlanAction, Situation
from apbjudge.agents.environments.slate import RecordedOutputs, SlateEnvironment
from apbjudge.agents.environments.slate.config import Scope
from apbjudge.errors import OptionError
from apbjudge.llm.base import Completion, MonotonicClock, Request, ScriptedClient
from apbjudge.llm.logprobs import TokenChoice
from apbjudge.llm.model_spec import ModelSpec
from apbjudge.records import Usage
from apbjudge.records.trajectories import ToolCall, Trajectory
from apbjudge.trajectories.slate import SlateCase, load_cases

CASES = Path(__file__).parents[3] / "examples" / "trajectories" / "slate_cases.jsonl"
BY_QUERY = {case.query: case for case in load_cases(CASES).by_id.values()}
MODEL = {"model": "hosted_vllm/planner", "retries": 0}
UNSURE = tuple(SimulatedStep(tool, {tool: 0.7, "x": 0.3}) for tool in "abc")


def reply(value: Any) -> Completion:
    usage = Usage(calls=1, prompt_tokens=100, completion_tokens=10)
    return Completion(text=json.dumps(value), finish_reason="stop", usage=usage, cost_usd=0.01)


def knowing(wrong: Callable[[Request], bool] = lambda _: False) -> ScriptedClient:
    """A model that knows the reference, but for the requests at which it calls nothing."""

    def answer(request: Request) -> Completion:
        text = request.messages[-1]["content"]
        if "state rules for the next attempt" in text:
            return reply("Call the tools.")
        case = next(case for query, case in BY_QUERY.items() if query in text)
        substep = text.rpartition("Do substep ")[2].split()[0]
        step = next(each for each in case.substeps if each.step == substep)
        tool = None if wrong(request) else step.tool
        return reply({"tool": tool, "arguments": step.arguments})

    return ScriptedClient(answer)


def run(method: str, steps: Sequence[SimulatedStep], seed: int = 0, **more: Any) -> BranchResult:
    environment = SlateEnvironment(RecordedOutputs([chain_case(steps)]))
    policy = SimulatedPolicy(steps, random=Random(seed))
    config = BranchConfig.model_validate({"method": method, **more})
    return asyncio.run(branch_case("chain", policy, environment, config))


# Costs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "requests", "samples", "passes"),
    [
        ({"method": "react"}, 8, 8, 0),
        ({"method": "egb", "samples": 10}, 8, 80, 0),
        ({"method": "egb", "samples": 0}, 8, 8, 8),
        ({"method": "self-consistency-plan", "max_trajectories": 10}, 80, 80, 0),
    ],
)
def test_requests_samples_and_forward_passes_are_counted_apart(
    settings: dict[str, Any],
    requests: int,
    samples: int,
    passes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A case of 8 substeps, right at once; each call takes a second of a virtual clock."""
    now = [0.0]
    monkeypatch.setattr(MonotonicClock, "now", lambda _: now[0])
    steps = [SimulatedStep(tool, {tool: 1.0}) for tool in "abcdefgh"]
    case = chain_case(steps)

    def answer(request: Request) -> Completion:
        now[0] += 1
        text = request.messages[-1]["content"]
        (substep,) = re.findall(r"(?:Do|for|does) substep (1\.[0-9])", text)
        step = next(each for each in case.substeps if each.step == substep)
        if request.logprobs:
            label = "ABCDEFGH"["abcdefgh".index(step.tool or "")]
            token = TokenChoice(label, 0.0, ((label, 0.0),))
            return reply(label).model_copy(update={"text": label, "logprobs": (token,)})
        return reply({"tool": step.tool, "arguments": step.arguments})

    client = ScriptedClient(answer)
    row = case.model_dump(mode="json", by_alias=True)
    (counts,) = (branched := branch([row], client=client, model=MODEL, **settings)).counts.values()
    assert counts.successes == 1
    assert (counts.requests, counts.samples, counts.forward_passes) == (requests, samples, passes)
    assert counts.forward_tokens == 100 * passes
    assert counts.calls == samples + passes
    assert counts.latency_ms >= 1000 * counts.calls == counts.elapsed_ms
    assert f"cases {counts.calls}.0 s" in str(branched)


# How a further run corrects the first -------------------------------------------------------------

KEY: dict[str, Any] = {"key": {"type": "string"}}
CORRECTED = {
    "id": "c",
    "query": "Use the key.",
    "plan": [
        {"step": "1.1", "tool": "find", "arguments": {"key": "x"}},
        {"step": "1.2", "tool": "use", "arguments": {"key": "OUTPUT_FROM_STEP_1.1.key"}},
    ],
    "tools": [
        {"name": name, "arguments": KEY, "results": KEY, "default": {"key": "lost"}}
        for name in ("find", "seek", "use")
    ],
    "outputs": {"1.1": {"key": "K"}, "1.2": {"key": "done"}},
}
FIND, SEEK, WRONG = ("find", "x"), ("seek", "x"), ("find", "y")
USE, LITERAL, MISUSE = ("use", "OUTPUT_FROM_STEP_1.1.key"), ("use", "K"), ("use", "L")
Action = tuple[str, str] | None


@pytest.mark.parametrize("scope", ["case", "library"])
@pytest.mark.parametrize(
    ("first", "then", "kinds", "later_changed"),
    [
        ((SEEK, MISUSE), (FIND, USE), ["direct", "cascade"], 1),
        ((FIND, SEEK), (FIND, USE), ["direct"], 0),
        ((WRONG, USE), (SEEK, USE), ["equivalent", "cascade"], 0),
        ((WRONG, USE), (None, LITERAL), ["cascade"], 1),
        ((FIND, MISUSE), (FIND, USE), ["arguments"], 0),
    ],
)
def test_a_correction_is_classed_by_rule(
    scope: Scope,
    first: Sequence[Action],
    then: Sequence[Action],
    kinds: list[str],
    later_changed: int,
) -> None:
    """``seek`` is answered by another case only; its own default ends in a wrong result."""
    plan = [{"step": "1.1", "tool": "seek", "arguments": {"key": "x"}}]
    other = CORRECTED | {"id": "d", "plan": plan, "outputs": {"1.1": {"key": "K"}}}
    cases = [SlateCase.model_validate(each) for each in (CORRECTED, other)]
    environment = SlateEnvironment(RecordedOutputs(cases, scope=scope))

    def trajectory(actions: Sequence[Action]) -> Trajectory:
        environment.reset("c")
        for action in actions:
            call = None if action is None else ToolCall(action[0], {"key": action[1]})
            environment.act(PlanAction(call))
        return environment.trajectory()

    found = correction(trajectory(first), trajectory(then))
    assert found is not None
    if scope == "case":  # by the case's own outputs alone no other tool is equivalent
        kinds = [] if kinds[0] == "equivalent" else kinds
    assert (list(found.kinds), found.later_changed) == (kinds, later_changed)


def test_corrections_are_counted_with_the_scope_of_outputs() -> None:
    client = knowing(lambda request: request.sample < 3)
    branched = branch(CASES, client=client, model=MODEL, method="reflexion")
    (counts,) = branched.counts.values()
    assert counts.corrections == {"direct": counts.cases}
    assert counts.scopes == {"case": counts.cases}
    assert counts.overlaps == {"direct+cascade": sum(len(c.calls) > 1 for c in BY_QUERY.values())}
    changed = sum(len(case.calls) - 1 for case in BY_QUERY.values())
    assert counts.later_changed == changed
    assert f"direct+cascade {counts.overlaps['direct+cascade']}" in str(branched)
    assert "outputs by --scope case: direct 8" in str(branched)


# Free texts that a model compares -----------------------------------------------------------------


def test_a_model_is_asked_once_for_each_pair_that_code_cannot_settle(tmp_path: Path) -> None:
    arguments = {"title": {"type": "string"}, "on": {"type": "string"}}
    row: dict[str, Any] = {
        "query": "Borrow The Salt Path.",
        "plan": [
            {
                "step": "1.1",
                "tool": "borrow",
                "arguments": {"title": "The Salt Path", "on": "2026-03-05"},
            }
        ],
        "tools": [{"name": "borrow", "arguments": arguments, "default": {"id": "none"}}],
        "outputs": {"1.1": {"id": "B4"}},
    }
    passed = {
        "date": {"title": "The Salt Path", "on": "5 March 2026"},
        "paraphrase": {"title": "Salt Path, the book", "on": "5 March 2026"},
        "again": {"title": "Salt Path, the book", "on": "2026-03-05"},
        "other": {"title": "Salt", "on": "2026-03-05"},
        "other date": {"title": "Salt Path, the book", "on": "6 March 2026"},
    }
    rows = [row | {"id": name, "query": f"{row['query']} ({name})"} for name in passed]

    def answer(request: Request) -> Completion:
        text = request.messages[-1]["content"]
        if '"same"' in text:
            return reply({"same": "Salt Path, the book" in text})
        name = next(name for name in passed if f"({name})" in text)
        return reply({"tool": "borrow", "arguments": passed[name]})

    client = ScriptedClient(answer)
    settings: dict[str, Any] = {"method": "react", "same_text": MODEL | {"model": "hosted_vllm/s"}}
    branched = branch(rows, client=client, model=MODEL, out=tmp_path / "run", **settings)
    (counts,) = branched.counts.values()
    asked = [request.model for request in client.requests]
    assert asked.count("hosted_vllm/s") == 2  # the paraphrase, and the other title
    assert counts.calls == len(asked) == 7
    assert counts.requests == 5  # of the tested model
    layers = {row["case_id"]: row["steps"][0]["extra"]["layer"] for row in branched}
    assert layers == {
        "date": "canonical",
        "paraphrase": "judge",
        "again": "judge",
        "other": "default",
        "other date": "default",
    }
    by_rule = branch(rows, client=client, model=MODEL, method="react")
    assert [each.successes for each in by_rule.counts.values()] == [1]
    with pytest.raises(OptionError, match="same_text"):
        branch(rows, client=client, model=MODEL, out=tmp_path / "run", method="react")


# Open loop ----------------------------------------------------------------------------------------


def test_an_agent_that_ignores_history_does_the_same_in_open_loop() -> None:
    for seed in range(20):
        direct, react = (run(method, UNSURE, seed) for method in ("direct", "react"))
        assert direct.first == react.first
        (row,) = direct.rows("m")
        assert row.setting == "direct-open-loop"


def test_no_request_of_an_open_loop_shows_an_output() -> None:
    client = knowing()
    directed = branch(CASES, client=client, model=MODEL, method="direct")
    (counts,) = directed.counts.values()
    assert counts.successes == counts.cases == len(BY_QUERY)
    asked = [request.messages[-1]["content"] for request in client.requests]
    assert len(asked) == sum(len(case.substeps) for case in BY_QUERY.values())
    assert all("All calls are executed after the last substep" in text for text in asked)
    outputs = {
        json.dumps(value)
        for case in BY_QUERY.values()
        for output in case.outputs.values()
        for value in output.values()
        if isinstance(value, str) and value not in case.query
    }
    assert outputs
    assert not [output for output in outputs if any(output in text for text in asked)]


# The vote of whole runs ---------------------------------------------------------------------------


def _compositions(n: int, parts: int) -> Iterator[list[int]]:
    for cuts in combinations(range(n + parts - 1), parts - 1):
        ends = (-1, *cuts, n + parts - 1)
        yield [high - low - 1 for low, high in pairwise(ends)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "k", "success"),
    [
        ([0.6, 0.4], 10, 0.7334),
        ([0.4, 0.3, 0.3], 10, 0.4978),
        ([0.3, 0.2, 0.2, 0.1, 0.1, 0.1], 10, 0.4717),
        ([0.4, 0.6], 10, 0.2666),
        ([0.5, 0.25, 0.25], 5, 0.6172),
    ],
)
def test_the_vote_is_right_as_often_as_computed(
    shares: list[float], k: int, success: float
) -> None:
    """Class 0 is right. Runs are independent, so that each tied class is first as often."""
    results = [(FinalOutput({"id": i}, {}),) for i in range(len(shares))]
    chance = 0.0
    for counts in _compositions(k, len(shares)):
        tied = [i for i, n in enumerate(counts) if n == max(counts)]
        others = [i for i in range(len(shares)) if i not in tied]
        orders = list(permutations(tied))
        won = 0
        for order in orders:
            votes = [i for i in (*order, *others) for _ in range(counts[i])]
            won += votes[winners([results[i] for i in votes])[0]] == 0
        weight = factorial(k) / prod(map(factorial, counts))
        weight *= prod(p**n for p, n in zip(shares, counts, strict=True))
        chance += weight * won / len(orders)
    assert chance == pytest.approx(success, abs=5e-5)


def test_outputs_are_equal_however_written_and_a_default_is_a_class_of_its_own() -> None:
    schema = {"type": "object", "properties": {"fee": {"type": "number"}}}

    def final(fee: Any, *, is_default: bool = False) -> tuple[FinalOutput, ...]:
        return (FinalOutput({"fee": fee}, schema, is_default),)

    runs = [None, final(3), final(4), None, None, final("3.0"), final(3, is_default=True)]
    assert winners(runs) == [1, 5]
    assert winners([None, None]) == []
    assert winners([final(4), final(3), final(3), final(4)]) == [0, 3]


def test_a_vote_takes_k_whole_runs_and_no_verifier(tmp_path: Path) -> None:
    """Of five runs the first and the fourth go wrong, and the majority wins."""
    wrong = knowing(lambda request: request.sample in (0, 3))
    voted = branch(
        CASES,
        client=wrong,
        model=MODEL,
        method="self-consistency-plan",
        max_trajectories=5,
        out=tmp_path / "run",
    )
    (counts,) = voted.counts.values()
    assert (counts.first_successes, counts.successes) == (0, counts.cases)
    assert counts.calls == 5 * sum(len(case.substeps) for case in BY_QUERY.values())
    assert (counts.votes, counts.runs) == (3 * counts.cases, 5 * counts.cases)
    assert "vote share" in str(voted)
    assert {request.settings["temperature"] for request in wrong.requests} == {1.0}
    rows = [row for row in voted if row["setting"] == "self-consistency-plan"]
    assert len(rows) == counts.cases
    graded = apbjudge.grade(voted, protocol="slate", cases=CASES)
    right = {(j.groups["setting"], j.is_correct) for j in graded.judgements}
    assert right == {("first-pass-self-consistency-plan", False), ("self-consistency-plan", True)}


# Reflection ---------------------------------------------------------------------------------------


class Learner(SimulatedPolicy):
    """Wrong at some substeps until a reflection names them; each names the first that is wrong."""

    async def act(self, situation: Situation, sample: int = 0) -> Decision:
        known = set(" ".join(situation.reflections).split())
        decision = await super().act(situation, sample)
        at = int(situation.substep.rpartition(".")[2]) - 1
        if situation.substep in known:
            call = decision.action.call
            assert call is not None
            right = ToolCall(self._steps[at].right, call.arguments)
            return decision._replace(action=PlanAction(right))
        return decision

    async def reflect(self, situation: Situation, sample: int = 0) -> Reflection:
        for past, step in zip(situation.history, self._steps, strict=True):
            if past.calls[0].name != step.right:
                return Reflection(past.extra["substep"], Usage(calls=1))
        raise AssertionError("a run that is right is not reflected on")


@pytest.mark.parametrize("n_wrong", [0, 1, 2, 3])
def test_one_reflection_corrects_one_substep(n_wrong: int) -> None:
    steps = [
        SimulatedStep(t, {"x": 1.0} if i < n_wrong else {t: 1.0}) for i, t in enumerate("abcd")
    ]
    environment = SlateEnvironment(RecordedOutputs([chain_case(steps)]))
    policy = Learner(steps, random=Random(1))
    result = asyncio.run(
        branch_case("chain", policy, environment, BranchConfig(method="reflexion"))
    )
    assert (result.is_success, len(result.runs)) == (True, n_wrong + 1)
    assert result.usage.calls == 4 * (n_wrong + 1) + n_wrong
    *_, final = result.rows("m")
    record = final.extra["branching"]
    assert (final.setting, record["attempts"]) == ("reflexion-oracle", n_wrong + 1)
    assert record["reflections"] == [f"1.{i + 1}" for i in range(n_wrong)]
    assert [each["attempt"] for each in record["branches"]] == list(range(1, n_wrong + 1))


@pytest.mark.slow
@pytest.mark.parametrize("b", [1, 3, 5])
def test_reflections_that_name_nothing_are_independent_retries(b: int) -> None:
    n, p = 400, 0.7**3
    results = [run("reflexion", UNSURE, seed, max_trajectories=b) for seed in range(n)]
    rate, chance = sum(each.is_success for each in results) / n, 1 - (1 - p) ** b
    assert abs(rate - chance) <= 4 * (chance * (1 - chance) / n) ** 0.5
    assert max(len(each.runs) for each in results) == b


def test_a_model_is_shown_its_latest_reflections_and_samples_anew() -> None:
    client = knowing(lambda request: request.sample < 2)
    reflected = branch(CASES, client=client, model=MODEL, method="reflexion", first=1)
    (counts,) = reflected.counts.values()
    assert (counts.successes, counts.branches) == (1, 2)
    (*_, row) = reflected
    assert row["extra"]["branching"]["reflections"] == ['"Call the tools."'] * 2
    texts = [request.messages[-1]["content"] for request in client.requests]
    shown = [len(re.findall("Call the tools", text)) for text in texts if "Do substep" in text]
    substeps = len(shown) // 3
    assert shown == [0] * substeps + [1] * substeps + [2] * substeps


def test_runs_of_two_trials_are_samples_of_their_own() -> None:
    client = knowing()
    settings: dict[str, Any] = {"method": "self-consistency-plan", "max_trajectories": 3}
    branch(CASES, client=client, model=MODEL, trials=2, samples=1, first=1, **settings)
    samples = {request.sample for request in client.requests}
    assert samples == {0, 1, 2, 3, 4, 5}


def test_methods_refuse_settings_that_they_cannot_use() -> None:
    for method, more, complaint in (
        ("reflexion", {"verifier": "none"}, "--verifier none"),
        ("self-consistency-plan", {"verifier": "judge", "judge": MODEL}, "asks no verifier"),
        ("reflexion", {"model": MODEL | {"temperature": 0}}, "--temperature above 0"),
    ):
        settings = {"model": MODEL} | more
        with pytest.raises(OptionError, match=complaint):
            branch(CASES, client=knowing(), method=method, **settings)


def test_the_prompt_of_an_attempt_holds_no_more_than_three_reflections() -> None:
    case: SlateCase = next(iter(BY_QUERY.values()))
    environment = SlateEnvironment(RecordedOutputs([case]))
    client = knowing(lambda _: True)
    policy = ModelPolicy(client, ModelSpec(model="hosted_vllm/scripted"))
    config = BranchConfig(method="reflexion", max_trajectories=6)
    asyncio.run(branch_case(case.case_id, policy, environment, config))
    assert client.requests[-1].messages[-1]["content"].count("Call the tools") == 3
