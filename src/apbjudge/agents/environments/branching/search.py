"""Entropy-guided branching of one case (section 5 and appendix C of arXiv:2604.12126).

The loop serves the methods that it is compared with too; see ``methods``.

Phase 1 carries out the plan once: for each substep it estimates how the agent's choice is
distributed and takes the likeliest. If the run is not right, phase 2 goes back to the substeps, the
one of the highest entropy first, tries the alternatives by falling share, redoes the later substeps
with one action each, and ends with the first run that is right. If none is, the result is the first
pass. Entropy only ranks: there is no threshold.

What says that a run is right is the reference itself in the paper, which no user has in earnest;
see ``BranchConfig.verifier``. Compare with a random order to see whether *entropy* helps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from ....records import Usage
from ....records.trajectories import Trajectory
from ....trajectories.comparison import TextPair, UncomparedTexts
from ..plans import PastSteps, PlanAction, PlanEnvironment, Situation
from .config import BranchConfig
from .corrections import Correction, correction
from .distributions import Distribution
from .methods import METHODS, Method, PlanRun
from .policy import Policy


class Opinion(NamedTuple):
    """A judge's view of a run, and the usage of asking."""

    accepted: bool | None
    usage: Usage = Usage()


Judge = Callable[[Trajectory], Awaitable[Opinion]]
"""Says of a complete run whether it is right, without the reference."""
Comparison = Callable[[TextPair], Awaitable[Usage]]
"""Finds out whether two texts mean the same and tells the environment; returns the usage."""
Recall = Callable[[Situation], tuple[PastSteps, ...]]
"""Remembered actions for a situation, see ``Situation.memory``."""
FIRST_PASS = "first-pass"  # noqa: S105
"""Prefix of the first pass's setting, before the setting of the result, which is the method's."""


@dataclass(frozen=True, slots=True)
class BranchResult:
    """Result of a case.

    Attributes:
        method: Method of the run.
        runs: The first pass, and the runs after it in order.
        result: The run that is returned.
    """

    method: Method
    runs: tuple[PlanRun, ...]
    result: PlanRun

    @property
    def first(self) -> PlanRun:
        """The first pass."""
        return self.runs[0]

    @property
    def branches(self) -> tuple[PlanRun, ...]:
        """The runs after the first pass."""
        return self.runs[1:]

    @property
    def usage(self) -> Usage:
        """Usage of all runs."""
        return sum((run.usage for run in self.runs), Usage())

    @property
    def is_first_success(self) -> bool:
        """True if the first pass is right by the reference, whatever the verifier said."""
        return self.first.is_success

    @property
    def is_success(self) -> bool:
        """The same of the result."""
        return self.result.is_success

    @property
    def correction(self) -> Correction | None:
        """The correction, if the result is right and the first pass wrong; else None."""
        if self.is_first_success or not self.is_success:
            return None
        return correction(self.first.trajectory, self.result.trajectory)

    def rows(self, tested_model: str, *, trial: int | None = None) -> Iterator[Trajectory]:
        """The first pass and the result, as rows that ``grade --protocol slate`` takes.

        They are of two settings, so that they are graded side by side; without branching
        they are one. Steps of the first pass carry their distribution, which ``apbjudge entropy``
        reads; the result lists the branches.
        """
        rows = [(self.method.setting, self._first_row(), self.first.usage)]
        if self.method.branches:
            rows = [(f"{FIRST_PASS}-{self.method.setting}", *rows[0][1:])]
            rows.append((self.method.setting, self._result_row(), self.usage))
        for setting, run, usage in rows:
            yield replace(
                run,
                trajectory_id=run.case_id if trial is None else f"{run.case_id}#{trial}",
                tested_model=tested_model,
                trial=trial,
                setting=setting,
                usage={name: float(count) for name, count in usage.model_dump().items()},
            )

    def _first_row(self) -> Trajectory:
        run = self.first.trajectory
        steps = [
            step
            if distribution is None
            else replace(step, extra={**step.extra, "distribution": distribution.to_json()})
            for step, distribution in zip(run.steps, self.first.distributions, strict=True)
        ]
        return replace(run, steps=tuple(steps))

    def _result_row(self) -> Trajectory:
        record = {
            "config": self.method.config.model_dump(include=set(BranchConfig.model_fields)),
            "unit": "nats",
            "first_accepted": self.first.accepted,
            "first_success": self.is_first_success,
            **self.method.record(self.runs),
            "branches": [branch.to_json(self.first) for branch in self.branches],
        }
        run = self.result.trajectory
        return replace(run, extra={**run.extra, "branching": record})


async def branch_case(
    task: str,
    policy: Policy,
    environment: PlanEnvironment,
    config: BranchConfig | None = None,
    *,
    judge: Judge | None = None,
    compare: Comparison | None = None,
    recall: Recall | None = None,
) -> BranchResult:
    """Runs one case.

    Args:
        task: Its id.
        policy: The agent.
        environment: The environment, which serves no other case meanwhile.
        config: The settings.
        judge: The verifier where it is ``judge``.
        compare: Compares texts where the environment asks for it.
        recall: The agent's memory of other cases; None for none.

    Raises:
        RowError: If there is no such task.
        JudgeError: If the policy or the judge raised it.
        ValueError: If the verifier is ``judge`` and there is none.
    """
    config = config or BranchConfig()
    if (config.verifier == "judge") != (judge is not None):
        raise ValueError(f"judge: expected one for the verifier judge alone, got {judge!r}")
    method = METHODS[config.method](policy, config, task)
    environment.reset(task)
    snapshots = [environment.snapshot()]  # one before each substep of the first run
    runs: list[PlanRun] = []
    for start in method.starts(runs):
        environment.restore(snapshots[start.step])
        usage, distributions = Usage(), list[Distribution | None]()
        if (situation := _situation(environment, recall)) is not None:
            usage += await method.prepare(situation, runs)
        while (situation := _situation(environment, recall)) is not None:
            action, cost, distribution = await method.decide(situation, start)
            usage += cost
            distributions.append(distribution)
            usage += await _carry_out(environment, action, compare)
            if not runs:
                snapshots.append(environment.snapshot())
        trajectory, reward = environment.trajectory(), environment.score().reward
        accepted = None
        if method.asks_verifier:
            accepted, cost = await _opinion(trajectory, reward, config, judge)
            usage += cost
        final = environment.final_outputs()
        run = PlanRun(trajectory, accepted, reward, usage, tuple(distributions), start, final)
        runs.append(run)
        if accepted:
            break
    return BranchResult(method, tuple(runs), method.result(runs))


def _situation(environment: PlanEnvironment, recall: Recall | None) -> Situation | None:
    """The next decision with what the agent remembers; None at the end of the plan."""
    situation = environment.situation()
    if situation is None or recall is None:
        return situation
    return replace(situation, memory=recall(situation))


async def _carry_out(
    environment: PlanEnvironment, action: PlanAction, compare: Comparison | None
) -> Usage:
    """Carries out an action after the comparisons that it needs, and returns their usage."""
    usage = Usage()
    while True:
        try:
            environment.act(action)
        except UncomparedTexts as question:
            if compare is None:
                raise
            usage += await compare(question.pair)
        else:
            return usage


async def _opinion(
    run: Trajectory, reward: float, config: BranchConfig, judge: Judge | None
) -> Opinion:
    """The verifier's view of a run; a judge sees nothing that only the reference says."""
    if judge is None:
        return Opinion(reward == 1.0 if config.verifier == "oracle" else None)
    hidden = [replace(step, extra={"substep": step.extra.get("substep")}) for step in run.steps]
    return await judge(replace(run, steps=tuple(hidden), outcome=None, extra={}))
