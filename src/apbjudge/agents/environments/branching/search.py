"""Entropy-guided branching of one case (section 5 and appendix C of arXiv:2604.12126).

The loop also runs the methods that it is compared with; see ``methods``.

Phase 1 carries out the plan once: for each substep, it estimates the distribution of the agent's
choice and takes the likeliest. If the run is not accepted, phase 2 goes back to the substeps, the
one with the highest entropy first, tries the alternatives in descending order of share, repeats the
later substeps with one action each, and ends with the first accepted run. If there is none, the
result is the first pass. Entropy only ranks: there is no threshold.

In the paper, the reference itself decides if a run is right, but real tasks have none; see
``BranchConfig.verifier``. Compare with a random order to measure the effect of *entropy*.
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
"""Decides, without the reference, if a complete run is right."""
Comparison = Callable[[TextPair], Awaitable[Usage]]
"""Compares the meaning of two texts, stores the answer for the environment, returns the usage."""
Recall = Callable[[Situation], tuple[PastSteps, ...]]
"""Remembered actions for a situation, see ``Situation.memory``."""
FIRST_PASS = "first-pass"  # noqa: S105
"""Prefix of the first pass's setting; the method's setting, that of the result, follows it."""


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
        """True if the result is right by the reference, whatever the verifier said."""
        return self.result.is_success

    @property
    def correction(self) -> Correction | None:
        """The correction, if the result is right and the first pass wrong; else None."""
        if self.is_first_success or not self.is_success:
            return None
        return correction(self.first.trajectory, self.result.trajectory)

    def rows(self, tested_model: str, *, trial: int | None = None) -> Iterator[Trajectory]:
        """The first pass and the result, as rows that ``grade --protocol slate`` takes.

        They have two settings, so that they are graded side by side; methods without branches have
        one row. Steps of the first pass have their distribution, which ``apbjudge entropy`` reads;
        the result lists the branches.
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
        task: Id of the case.
        policy: The agent.
        environment: The environment, which serves no other case meanwhile.
        config: The settings.
        judge: The verifier; None unless ``config.verifier`` is ``judge``.
        compare: Compares texts if the environment asks for it.
        recall: The agent's memory of other cases; None for none.

    Raises:
        RowError: If there is no such task.
        JudgeError: If the policy or the judge raised it.
        ValueError: If the verifier is ``judge`` and ``judge`` is None, or the reverse.
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
    """The next decision, with the units of the agent's memory; None at the end of the plan."""
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
    """The verifier's opinion on a run; a judge sees nothing that depends on the reference."""
    if judge is None:
        return Opinion(reward == 1.0 if config.verifier == "oracle" else None)
    hidden = [replace(step, extra={"substep": step.extra.get("substep")}) for step in run.steps]
    return await judge(replace(run, steps=tuple(hidden), outcome=None, extra={}))
