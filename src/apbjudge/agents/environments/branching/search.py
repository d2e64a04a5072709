"""Entropy-guided branching of one case (section 5 and appendix C of arXiv:2604.12126).

Phase 1 carries out the plan once: for each substep it estimates how the agent's choice is
distributed and takes the likeliest. If the run is not right, phase 2 goes back to the substeps, the
one of the highest entropy first, tries the alternatives by falling share, redoes the later substeps
with one action each, and ends with the first run that is right. If none is, the result is the first
pass. Entropy only ranks: there is no threshold.

What says that a run is right is the reference itself in the paper, which no user has in earnest;
see ``BranchConfig.verifier``. Compare with a random order to see whether *entropy* helps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import sha256
from operator import add
from random import Random
from typing import Any, NamedTuple

from ....records import Usage
from ....records.trajectories import Trajectory
from ..plans import PlanAction, PlanEnvironment
from .config import BranchConfig, Order
from .distributions import MIN_SHARE, Candidate, Distribution
from .policy import Decision, Policy


class Opinion(NamedTuple):
    """A judge's view of a run, and the usage of asking."""

    accepted: bool
    usage: Usage = Usage()


Judge = Callable[[Trajectory], Awaitable[Opinion]]
"""Says of a complete run whether it is right, without the reference."""
FIRST_PASS = "first-pass"  # noqa: S105
"""The setting of the row of the first pass; that of the result's row is the method."""


class BranchPoint(NamedTuple):
    """The beginning of a branch.

    Attributes:
        step: Position of the substep in the plan, from 0.
        rank: Place among the substep's alternatives, 1 for the likeliest.
        candidate: The alternative.
    """

    step: int
    rank: int
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch that was run.

    Attributes:
        substep: Where it leaves the first pass.
        rank: See ``BranchPoint``.
        tool: The alternative; None for doing without.
        share: Its share.
        entropy: Of the substep's distribution, in nats.
        accepted: What the verifier said; None without one.
        reward: What the reference says, which the search does not see unless it is the verifier.
        usage: What the branch took.
        trajectory: The run.
    """

    substep: str
    rank: int
    tool: str | None
    share: float
    entropy: float
    accepted: bool | None
    reward: float
    usage: Usage
    trajectory: Trajectory

    def to_json(self) -> dict[str, Any]:
        """The record: all but the run itself."""
        own = {name: getattr(self, name) for name in self.__slots__ if name != "trajectory"}
        return own | {"usage": self.usage.model_dump()}


@dataclass(frozen=True, slots=True)
class BranchResult:
    """Result of a case.

    Attributes:
        config: How it was run.
        first_pass: The run of phase 1.
        distributions: Of each of its substeps; None for ReAct, which estimates none.
        first_accepted: What the verifier said of it; None without one.
        first_usage: What phase 1 took.
        branches: Those run, in order.
        result: The run that is returned.
    """

    config: BranchConfig
    first_pass: Trajectory
    distributions: tuple[Distribution | None, ...]
    first_accepted: bool | None
    first_usage: Usage
    branches: tuple[Branch, ...]
    result: Trajectory

    @property
    def usage(self) -> Usage:
        """Usage of both phases."""
        return reduce(add, (branch.usage for branch in self.branches), self.first_usage)

    @property
    def is_first_success(self) -> bool:
        """True if the first pass is right by the reference, whatever the verifier said."""
        return self.first_pass.outcome is not None and bool(self.first_pass.outcome.is_success)

    @property
    def is_success(self) -> bool:
        """The same of the result."""
        return self.result.outcome is not None and bool(self.result.outcome.is_success)

    def rows(self, tested_model: str, *, trial: int | None = None) -> Iterator[Trajectory]:
        """The first pass and the result, as rows that ``grade --protocol slate`` takes.

        They are of two settings, so that they are graded side by side; without branching
        they are one. Steps of the first pass carry their distribution, which ``apbjudge entropy``
        reads; the result lists the branches.
        """
        rows = [(FIRST_PASS, self._first_row(), self.first_usage)]
        if self.config.method == "egb":
            setting = f"egb-{self.config.order}-{self.config.verifier}"
            rows.append((setting, self._result_row(), self.usage))
        else:
            rows = [(self.config.method, *rows[0][1:])]
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
        steps = [
            step
            if distribution is None
            else replace(step, extra={**step.extra, "distribution": distribution.to_json()})
            for step, distribution in zip(self.first_pass.steps, self.distributions, strict=True)
        ]
        return replace(self.first_pass, steps=tuple(steps))

    def _result_row(self) -> Trajectory:
        record = {
            "config": self.config.model_dump(),
            "unit": "nats",
            "first_accepted": self.first_accepted,
            "first_success": self.is_first_success,
            "branches": [branch.to_json() for branch in self.branches],
        }
        return replace(self.result, extra={**self.result.extra, "branching": record})


async def branch_case(
    task: str,
    policy: Policy,
    environment: PlanEnvironment,
    config: BranchConfig | None = None,
    *,
    judge: Judge | None = None,
) -> BranchResult:
    """Runs one case.

    Args:
        task: Its id.
        policy: The agent.
        environment: The environment, which serves no other case meanwhile.
        config: The settings.
        judge: The verifier where it is ``judge``.

    Raises:
        RowError: If there is no such task.
        JudgeError: What the policy or the judge raised.
        ValueError: If the verifier is ``judge`` and there is none.
    """
    config = config or BranchConfig()
    if (config.verifier == "judge") != (judge is not None):
        raise ValueError(f"judge: expected one for the verifier judge alone, got {judge!r}")
    search = _Search(policy, environment, config, judge)
    environment.reset(task)
    await search.first_pass()
    first, accepted = environment.trajectory(), await search.verify()
    first_usage = search.spent()
    branches: list[Branch] = []
    result = first
    if not accepted:
        steps = step_order(search.distributions, config.order, f"{config.branch_seed}/{task}")
        for point in branch_points(search.distributions, steps, config):
            branch = await search.branch(point)
            branches.append(branch)
            if branch.accepted:
                result = branch.trajectory
                break
    return BranchResult(
        config, first, tuple(search.distributions), accepted, first_usage, tuple(branches), result
    )


def branch_points(
    distributions: Sequence[Distribution | None], steps: Iterable[int], config: BranchConfig
) -> Iterator[BranchPoint]:
    """The branches that phase 2 runs unless one is right, in order and within both budgets.

    Args:
        distributions: Of each substep.
        steps: The positions of the substeps in the order in which they are branched.
        config: The budgets.
    """
    left = config.budget
    for step in steps:
        distribution = distributions[step]
        others = () if distribution is None else distribution.candidates[1:]
        some = [each for each in others if each.share >= MIN_SHARE]
        for rank, candidate in enumerate(some[: config.max_branches_per_step], start=1):
            if not left:
                return
            left -= 1
            yield BranchPoint(step, rank, candidate)


def step_order(
    distributions: Sequence[Distribution | None], order: Order, seed: str = ""
) -> list[int]:
    """The positions of the substeps in the order in which they are branched.

    Of equal entropies the earlier one comes first. Equal seeds give equal random orders.
    """
    steps = list(range(len(distributions)))
    if order == "entropy":
        entropies = [0.0 if each is None else each.entropy for each in distributions]
        steps.sort(key=lambda step: -entropies[step])
    elif order == "random":
        digest = sha256(seed.encode()).hexdigest()
        Random(digest).shuffle(steps)  # noqa: S311 - a draw, no secret
    return steps


class _Search:
    """The state of one case: the beginning of each substep, and the usage since the last call."""

    def __init__(
        self,
        policy: Policy,
        environment: PlanEnvironment,
        config: BranchConfig,
        judge: Judge | None,
    ) -> None:
        self._policy, self._environment = policy, environment
        self._config, self._judge = config, judge
        self._starts: list[Any] = []
        self._usage = Usage()
        self.distributions: list[Distribution | None] = []

    def spent(self) -> Usage:
        """Usage since the last call."""
        usage, self._usage = self._usage, Usage()
        return usage

    async def first_pass(self) -> None:
        """Carries out the plan once."""
        while (situation := self._environment.situation()) is not None:
            self._starts.append(self._environment.snapshot())
            if self._config.method == "react":
                self.distributions.append(None)
                action = self._paid(await self._policy.act(situation))
            else:
                distribution, usage = await self._policy.distribution(situation)
                self._usage += usage
                self.distributions.append(distribution)
                if distribution.candidates:
                    action = await self._action(distribution.candidates[0])
                else:
                    action = PlanAction(is_readable=False)
            self._environment.act(action)

    async def branch(self, point: BranchPoint) -> Branch:
        """Goes back to a substep, tries an alternative, and redoes what follows."""
        environment = self._environment
        environment.restore(self._starts[point.step])
        situation = environment.situation()
        substep = "" if situation is None else situation.substep
        environment.act(await self._action(point.candidate))
        while (situation := environment.situation()) is not None:
            environment.act(self._paid(await self._policy.act(situation)))
        distribution = self.distributions[point.step]
        accepted = await self.verify()
        return Branch(
            substep=substep,
            rank=point.rank,
            tool=point.candidate.tool,
            share=point.candidate.share,
            entropy=0.0 if distribution is None else distribution.entropy,
            accepted=accepted,
            reward=environment.score().reward,
            usage=self.spent(),
            trajectory=environment.trajectory(),
        )

    async def verify(self) -> bool | None:
        """The verifier's view of the run; None without a verifier."""
        match self._config.verifier:
            case "oracle":
                return self._environment.score().reward == 1.0
            case "judge" if self._judge is not None:
                accepted, usage = await self._judge(self._unmarked())
                self._usage += usage
                return accepted
            case _:
                return None

    def _unmarked(self) -> Trajectory:
        """The run without what only the reference says, for a judge."""
        run = self._environment.trajectory()
        hidden = [replace(step, extra={"substep": step.extra.get("substep")}) for step in run.steps]
        return replace(run, steps=tuple(hidden), outcome=None, extra={})

    async def _action(self, candidate: Candidate) -> PlanAction:
        if candidate.action is not None:
            return candidate.action
        situation = self._environment.situation()
        if situation is None:
            raise ValueError("a candidate: expected a substep to act for, got the end of the plan")
        return self._paid(await self._policy.complete(situation, candidate.tool))

    def _paid(self, decision: Decision) -> PlanAction:
        self._usage += decision.usage
        return decision.action
