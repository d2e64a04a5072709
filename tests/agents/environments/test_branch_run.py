"""``branch`` over a file of cases: one record a case, resumed, graded and analysed as it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.agents.environments.branching.run import Branching, branch
from apbjudge.errors import InputError, OptionError
from apbjudge.llm.base import Completion, Request, ScriptedClient
from apbjudge.records import Usage
from apbjudge.records.trajectories import trajectory_of
from apbjudge.trajectories.slate import load_cases

CASES = Path(__file__).parents[3] / "examples" / "trajectories" / "slate_cases.jsonl"
MODEL = "hosted_vllm/planner"
BY_QUERY = {case.query: case for case in load_cases(CASES).by_id.values()}


def reply(value: Any) -> Completion:
    usage = Usage(calls=1, prompt_tokens=100, completion_tokens=10)
    return Completion(text=json.dumps(value), finish_reason="stop", usage=usage, cost_usd=0.01)


def case_and_substep(request: Request) -> tuple[Any, str]:
    text = request.messages[-1]["content"]
    case = next(case for query, case in BY_QUERY.items() if query in text)
    return case, text.rpartition("Do substep ")[2].split()[0]


class Agent:
    """Knows the reference, but is torn at the first call: of five samples three are for no tool."""

    def __init__(self, *, torn: bool = True) -> None:
        self.torn = torn
        self.asked: Counter[str] = Counter()
        self.verified = 0

    def __call__(self, request: Request) -> Completion:
        text = request.messages[-1]["content"]
        if '"right"' in text:
            self.verified += 1
            return reply({"reason": "as scripted", "right": "no tool was called" not in text})
        case, substep = case_and_substep(request)
        self.asked[case.case_id] += 1
        step = next(each for each in case.substeps if each.step == substep)
        is_first = step == case.calls[0]
        if self.torn and is_first and request.sample % 5 < 3:
            return reply({"tool": None})
        return reply({"tool": step.tool, "arguments": step.arguments})


def run(client: ScriptedClient, **settings: Any) -> Branching:
    usual: dict[str, Any] = {"model": {"model": MODEL, "retries": 0}, "samples": 5}
    return branch(CASES, client=client, **(usual | settings))


def test_branching_mends_what_the_first_pass_got_wrong(tmp_path: Path) -> None:
    agent = Agent()
    branched = run(ScriptedClient(agent), out=tmp_path / "run")
    (counts,) = branched.counts.values()
    right = (counts.first_successes, counts.successes)
    assert (counts.cases, *right) == (len(BY_QUERY), 0, len(BY_QUERY))
    assert counts.branches == counts.cases  # the uncertain substep is the first to be tried
    assert counts.calls == agent.asked.total()
    assert counts.cost_usd == pytest.approx(0.01 * counts.calls)
    runs = [trajectory_of(row) for row in branched]
    assert Counter(each.setting for each in runs) == {
        "first-pass-egb-entropy-oracle": counts.cases,
        "egb-entropy-oracle": counts.cases,
    }
    graded = apbjudge.grade(branched, protocol="slate", cases=CASES)
    right = {(j.item_id, j.groups["setting"]): j.is_correct for j in graded.judgements}
    assert all(
        is_right == (setting == "egb-entropy-oracle") for (_, setting), is_right in right.items()
    )


def test_the_same_cases_are_a_benchmark_whose_episodes_are_runs_of_react() -> None:
    agents = [Agent(torn=False), Agent(torn=False)]
    played = apbjudge.simulate(CASES, model=MODEL, client=ScriptedClient(agents[0]))
    branched = run(ScriptedClient(agents[1]), method="react")
    assert [each.successes for each in played.counts.values()] == [len(BY_QUERY)]
    assert agents[0].asked == agents[1].asked
    steps = [sorted((row["case_id"], str(row["steps"])) for row in of) for of in (played, branched)]
    assert steps[0] == steps[1]


@pytest.mark.parametrize(("mode", "right"), [("gold", True), ("null", False)])
def test_without_their_plan_they_are_executed_in_the_sandbox(mode: str, right: bool) -> None:
    executed = apbjudge.execute("slate", options=(f"cases={CASES}",), mode=mode).executed
    assert [row["is_correct"] for row in executed] == [right] * len(BY_QUERY)


def test_a_judge_verifies_in_place_of_the_reference() -> None:
    agent = Agent()
    judge = {"model": "hosted_vllm/judge", "retries": 0}
    branched = run(ScriptedClient(agent), verifier="judge", judge=judge)
    (counts,) = branched.counts.values()
    assert agent.verified == 2 * counts.cases
    assert counts.accepted_wrong <= counts.cases - counts.successes


def test_what_cannot_be_used_is_said_before_a_call(tmp_path: Path) -> None:
    client = ScriptedClient(Agent())
    with pytest.raises(OptionError, match="--judge: expected a model with --verifier judge"):
        run(client, verifier="judge")
    with pytest.raises(OptionError, match="--max-candidates: expected at most 26 letters"):
        run(client, samples=0, labels="letters")
    bad = tmp_path / "cases.jsonl"
    bad.write_text('{"id": "a"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"cases\.jsonl:1: field query"):
        branch(bad, client=client, model=MODEL)
    assert not client.requests
