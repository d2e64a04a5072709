"""The methods of ``apbjudge branch`` side by side, on the cases of the examples.

The agent is scripted: at each substep it does what the reference does, or errs by a draw that its
sample alone decides, more often at one substep of each plan. Asked why a run failed, it names the
substep that went wrong first, and errs there no more in the attempts after it. Figures made with it
say what a method takes and how the parts fit together, and nothing about any model:

    python examples/branch_methods.py --out runs/branch-methods

The folder gets the grades of each method, of which ``apbjudge report`` makes tables and figures.
The clock is a virtual one: calls come one after the other, and take a millisecond for each token
that is sent and 20 for each that is returned.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from unittest.mock import patch

import apbjudge
from apbjudge.agents.environments.branching.config import MethodName
from apbjudge.agents.environments.branching.run import branch
from apbjudge.llm.base import Completion, MonotonicClock, Request, ScriptedClient
from apbjudge.records import Usage
from apbjudge.statistics import Estimate
from apbjudge.trajectories.slate import PlanStep, SlateCase, load_cases

CASES = Path(__file__).parent / "trajectories" / "slate_cases.jsonl"
METHODS: Sequence[MethodName] = (
    "direct",
    "react",
    "self-consistency",
    "self-consistency-plan",
    "reflexion",
    "egb",
)
HARD, EASY = 0.55, 0.04
"""Shares of samples that err, at one substep of each plan and at the others."""


class Agent:
    """A scripted agent with a clock.

    Attributes:
        now: Seconds of all calls so far.
    """

    def __init__(self, cases: Sequence[SlateCase]) -> None:
        self._cases = cases
        self.now = 0.0

    def __call__(self, request: Request) -> Completion:
        """The reply to a request about a substep or a run."""
        text = str(request.messages[-1]["content"])
        case = next(case for case in self._cases if case.query in text)
        if "state rules for the next attempt" in text:
            answer = f"Substep {self._first_wrong(case, text)} went wrong. Do it as the plan says."
        else:
            answer = self._action(case, text, request.sample)
        usage = Usage(
            calls=1,
            prompt_tokens=sum(len(str(each["content"])) for each in request.messages) // 4,
            completion_tokens=len(answer) // 4,
        )
        self.now += (usage.prompt_tokens + 20 * usage.completion_tokens) / 1000
        return Completion(text=answer, finish_reason="stop", usage=usage, cost_usd=0.0)

    def _action(self, case: SlateCase, text: str, sample: int) -> str:
        substep = text.rpartition("Do substep ")[2].split()[0]
        step = next(each for each in case.substeps if each.step == substep)
        random = Random(f"{case.case_id} {substep} {sample}")
        rate = HARD if step == hard_step(case) else EASY
        tool = step.tool
        if random.random() < rate and f"Substep {substep} went wrong" not in text:
            others = [None, *(each.name for each in case.tools)]
            tool = random.choice([name for name in others if name != step.tool])
        return json.dumps({"tool": tool, "arguments": step.arguments if tool else {}})

    def _first_wrong(self, case: SlateCase, text: str) -> str:
        """The first substep of a run at which not the reference's tool was called."""
        done = re.split(r"^Substep ([0-9.]+): ", text, flags=re.MULTILINE)
        for substep, what in zip(done[1::2], done[2::2], strict=True):
            step = next(each for each in case.substeps if each.step == substep)
            called = re.search(r'"tool": "(\w+)"', what)
            if (called and called[1]) != step.tool:
                return substep
        return case.substeps[-1].step


def hard_step(case: SlateCase) -> PlanStep:
    """The substep of a plan at which the agent errs more often."""
    number = int(sha256(case.case_id.encode()).hexdigest(), 16)
    return case.calls[number % len(case.calls)]


def printed(of: Estimate, scale: int = 1, digits: int = 1) -> str:
    """A value with its interval over cases."""
    value, *ends = (f"{scale * (x or 0):,.{digits}f}" for x in (of.value, of.low, of.high))
    return f"{value} [{', '.join(ends)}]"


def main() -> None:
    parser = argparse.ArgumentParser(description="Methods of branch with a scripted agent.")
    parser.add_argument("--out", type=Path, default=Path("runs/branch-methods"))
    options = parser.parse_args()
    agent = Agent([*load_cases(CASES).by_id.values()])
    model = {"model": "scripted/agent", "max_concurrency": 1}
    print(f"{'method':23}{'success, %':17}{'calls':20}{'tokens in':27}{'tokens out':17}seconds")
    for method in METHODS:
        with patch.object(MonotonicClock, "now", lambda _: agent.now):
            run = branch(CASES, client=ScriptedClient(agent), model=model, method=method)
        graded = apbjudge.grade(run, protocol="slate", cases=CASES, out=options.out / method)
        *_, result = sorted(graded.summary.groups, key=lambda group: "seconds" in group.metrics)
        of = result.metrics
        print(
            f"{method:23}{printed(of['execution success'], 100, 0):17}"
            f"{printed(of['model calls']):20}{printed(of['input tokens'], digits=0):27}"
            f"{printed(of['output tokens'], digits=0):17}{printed(of['seconds'])}"
        )


if __name__ == "__main__":
    main()
