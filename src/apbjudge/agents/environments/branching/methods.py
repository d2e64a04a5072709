"""Methods of carrying out a plan: which runs there are, how each acts, and which is the result.

The loop (``search``) is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any, ClassVar, NamedTuple

from ....records import Usage
from ....records.trajectories import Trajectory
from ..plans import PlanAction, Situation
from .config import BranchConfig, MethodName, Order
from .distributions import MIN_SHARE, Candidate, Distribution
from .policy import Decision, Policy


class BranchPoint(NamedTuple):
    """The beginning of a run: of the plan, or of a branch of the first run.

    Attributes:
        step: Position of the substep in the plan, from 0.
        rank: Place among the substep's alternatives, 1 for the likeliest.
        candidate: The alternative; None where the agent chooses.
    """

    step: int = 0
    rank: int = 0
    candidate: Candidate | None = None


@dataclass(frozen=True, slots=True)
class PlanRun:
    """One run of the plan: from its beginning, or a branch of the first run.

    Attributes:
        trajectory: The run.
        accepted: What the verifier said; None without one.
        reward: What the reference says, which a method does not see unless it is the verifier.
        usage: What the run took, with its verification.
        distributions: Of the choices made in it; None for each that was made without.
        start: Where it begins.
    """

    trajectory: Trajectory
    accepted: bool | None
    reward: float
    usage: Usage
    distributions: tuple[Distribution | None, ...]
    start: BranchPoint

    @property
    def substep(self) -> str:
        """The substep at which it begins."""
        return self.trajectory.steps[self.start.step].extra["substep"]

    @property
    def tool(self) -> str | None:
        """The alternative with which a branch begins; None for doing without."""
        return None if self.start.candidate is None else self.start.candidate.tool

    @property
    def is_success(self) -> bool:
        """True if the run is right by the reference, whatever the verifier said."""
        return self.trajectory.outcome is not None and bool(self.trajectory.outcome.is_success)

    def to_json(self, first: PlanRun) -> dict[str, Any]:
        """The record of a branch of the first run: all but the run itself."""
        candidate, distribution = self.start.candidate, first.distributions[self.start.step]
        return {
            "substep": self.substep,
            "rank": self.start.rank,
            "tool": self.tool,
            "share": None if candidate is None else candidate.share,
            "entropy": 0.0 if distribution is None else distribution.entropy,
            "accepted": self.accepted,
            "reward": self.reward,
            "usage": self.usage.model_dump(),
        }


class Method:
    """One run with one action a substep (ReAct); other methods override what they do otherwise.

    Args:
        policy: The agent.
        config: The settings.
        task: Id of the case.

    Attributes:
        branches: Whether the result may be another run than the first, and is a row of its own.
    """

    branches: ClassVar[bool] = False

    def __init__(self, policy: Policy, config: BranchConfig, task: str) -> None:
        self.policy, self.config, self.task = policy, config, task

    @property
    def setting(self) -> str:
        """The setting of the result's row."""
        return self.config.method

    def starts(self, runs: Sequence[PlanRun]) -> Iterator[BranchPoint]:
        """Yields where each run begins, until one is accepted.

        Args:
            runs: The runs so far; longer at every step.
        """
        del runs
        yield BranchPoint()

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The next action of the run that began at ``start``."""
        del start
        return await self.policy.act(situation)

    def result(self, runs: Sequence[PlanRun]) -> PlanRun:
        """The run that is returned: the one that was accepted, else the first."""
        return runs[-1] if runs[-1].accepted else runs[0]


class SelfConsistency(Method):
    """One run with the likeliest choice of each substep."""

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The likeliest action; nothing where no choice could be read."""
        del start
        distribution, usage = await self.policy.distribution(situation)
        if not distribution.candidates:
            return Decision(PlanAction(is_readable=False), usage, distribution)
        action, more, _ = await self._call(distribution.candidates[0], situation)
        return Decision(action, usage + more, distribution)

    async def _call(self, candidate: Candidate, situation: Situation) -> Decision:
        """The action that is a candidate: its stored call, or one that is asked for."""
        if candidate.action is not None:
            return Decision(candidate.action)
        return await self.policy.complete(situation, candidate.tool)


class EntropyGuided(SelfConsistency):
    """The run of self-consistency, then branches of it, each with one action a substep."""

    branches = True

    @property
    def setting(self) -> str:
        """The setting of the result's row."""
        return f"egb-{self.config.order}-{self.config.verifier}"

    def starts(self, runs: Sequence[PlanRun]) -> Iterator[BranchPoint]:
        """Yields the first run and its branches."""
        yield BranchPoint()
        distributions = runs[0].distributions
        steps = step_order(
            distributions, self.config.order, f"{self.config.branch_seed}/{self.task}"
        )
        yield from branch_points(distributions, steps, self.config)

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The likeliest action, or in a branch its alternative and then the agent's own actions."""
        if start.candidate is None:
            return await super().decide(situation, start)
        if len(situation.history) == start.step:
            return await self._call(start.candidate, situation)
        return await self.policy.act(situation)


METHODS: Mapping[MethodName, type[Method]] = {
    "egb": EntropyGuided,
    "self-consistency": SelfConsistency,
    "react": Method,
}
"""The methods of ``branch`` by name."""


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
