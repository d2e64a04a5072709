"""Methods of carrying out a plan: their runs, the actions of each run, and the resulting run.

The loop (``search``) is the same for all methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from random import Random
from typing import Any, ClassVar, NamedTuple

from ....records import Usage
from ....records.trajectories import Trajectory
from ..plans import FinalOutputs, PlanAction, Situation
from .config import BranchConfig, MethodName, Order
from .distributions import MIN_SHARE, Candidate, Distribution
from .policy import Decision, Policy

MOST_REFLECTIONS = 3
"""Number of latest reflections that an attempt is shown (1 to 3 in the paper of Reflexion)."""


class BranchPoint(NamedTuple):
    """The beginning of a run: of the plan, or of a branch of the first run.

    Attributes:
        step: Position of the substep in the plan, from 0.
        rank: Place among the substep's alternatives, from 1, the likeliest; 0 without one.
        candidate: The alternative; None if the agent chooses.
        attempt: Number of the run from the beginning of the plan, from 0.
    """

    step: int = 0
    rank: int = 0
    candidate: Candidate | None = None
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class PlanRun:
    """One run of the plan: from its beginning, or a branch of the first run.

    Attributes:
        trajectory: The run.
        accepted: Answer of the verifier; None without a verifier.
        reward: Reward by the reference; methods see it only if the reference is the verifier.
        usage: Usage of the run, including its verification.
        distributions: Distribution of each choice; None for a choice made without one.
        start: Beginning of the run.
        final: Final outputs; None if one is missing.
    """

    trajectory: Trajectory
    accepted: bool | None
    reward: float
    usage: Usage
    distributions: tuple[Distribution | None, ...]
    start: BranchPoint
    final: FinalOutputs | None = None

    @property
    def substep(self) -> str:
        """The substep at which the run begins."""
        return self.trajectory.steps[self.start.step].extra["substep"]

    @property
    def tool(self) -> str | None:
        """The tool with which a branch begins; None for no tool."""
        return None if self.start.candidate is None else self.start.candidate.tool

    @property
    def is_success(self) -> bool:
        """True if the run is right by the reference, whatever the verifier said."""
        return self.trajectory.outcome is not None and bool(self.trajectory.outcome.is_success)

    def to_json(self, first: PlanRun) -> dict[str, Any]:
        """The record of a run after the first: its beginning and its result."""
        candidate, distribution = self.start.candidate, first.distributions[self.start.step]
        start: dict[str, Any] = {"attempt": self.start.attempt}
        if candidate is not None:
            start = {
                "substep": self.substep,
                "rank": self.start.rank,
                "tool": self.tool,
                "share": candidate.share,
                "entropy": 0.0 if distribution is None else distribution.entropy,
            }
        return {
            **start,
            "accepted": self.accepted,
            "reward": self.reward,
            "usage": self.usage.model_dump(),
        }


class Method:
    """One run with one action a substep (ReAct); base class of the other methods.

    Args:
        policy: The agent.
        config: The settings.
        task: Id of the case.

    Attributes:
        branches: True if the result may be another run than the first, and has its own row.
        asks_verifier: True if runs are verified, and the first accepted one ends the case.
    """

    branches: ClassVar[bool] = False
    asks_verifier: ClassVar[bool] = True

    def __init__(self, policy: Policy, config: BranchConfig, task: str) -> None:
        self.policy, self.config, self.task = policy, config, task

    @property
    def setting(self) -> str:
        """The setting of the result's row."""
        return self.config.method

    def starts(self, runs: Sequence[PlanRun]) -> Iterator[BranchPoint]:
        """Yields the beginning of each run, until one is accepted.

        Args:
            runs: The runs so far; the caller appends each run.
        """
        del runs
        yield BranchPoint()

    async def prepare(self, situation: Situation, runs: Sequence[PlanRun]) -> Usage:
        """Prepares a run, and returns the usage.

        Args:
            situation: The run's first situation.
            runs: The runs before it.
        """
        del situation, runs
        return Usage()

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The next action of the run that began at ``start``."""
        return await self.policy.act(situation, start.attempt)

    def record(self, runs: Sequence[PlanRun]) -> dict[str, Any]:
        """The method's own fields of the record of a case."""
        del runs
        return {}

    def result(self, runs: Sequence[PlanRun]) -> PlanRun:
        """The resulting run: the accepted one, else the first."""
        return runs[-1] if runs[-1].accepted else runs[0]


class Direct(Method):
    """One run in open loop: no request shows results of earlier calls.

    The calls are executed one by one, which has the same effect as executing them at the end, as
    the agent never sees a result.
    """

    @property
    def setting(self) -> str:
        """The setting of the result's row, which marks its rates of outputs as open-loop."""
        return "direct-open-loop"

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The next action, chosen without the history."""
        return await super().decide(replace(situation, history=(), is_open_loop=True), start)


class PlanVote(Method):
    """Whole runs with one action a substep; the most frequent final outputs win.

    No verifier is asked: the result does not depend on the reference.
    """

    branches, asks_verifier = True, False

    def starts(self, runs: Sequence[PlanRun]) -> Iterator[BranchPoint]:
        """Yields the runs, all from the beginning of the plan."""
        for attempt in range(self.config.most_runs):
            yield BranchPoint(attempt=attempt)

    def record(self, runs: Sequence[PlanRun]) -> dict[str, Any]:
        """Number of runs that voted, and of those that agree with the result."""
        results = [run.final for run in runs]
        return {"votes": len(winners(results)), "voters": len(results) - results.count(None)}

    def result(self, runs: Sequence[PlanRun]) -> PlanRun:
        """The first run with the most frequent final outputs; without any, the first run."""
        return runs[next(iter(winners([run.final for run in runs])), 0)]


class Reflexion(Method):
    """Runs until one is accepted, each after a reflection on the one before (Reflexion)."""

    branches = True

    def __init__(self, policy: Policy, config: BranchConfig, task: str) -> None:
        super().__init__(policy, config, task)
        self._reflections: list[str] = []

    @property
    def setting(self) -> str:
        """The setting of the result's row."""
        return f"reflexion-{self.config.verifier}"

    def starts(self, runs: Sequence[PlanRun]) -> Iterator[BranchPoint]:
        """Yields the attempts."""
        for attempt in range(self.config.most_runs):
            yield BranchPoint(attempt=attempt)

    async def prepare(self, situation: Situation, runs: Sequence[PlanRun]) -> Usage:
        """Asks for a reflection on the previous run, if there is one."""
        if not runs:
            return Usage()
        failed = replace(
            self._informed(situation), substep="", history=runs[-1].trajectory.steps, memory=()
        )
        text, usage = await self.policy.reflect(failed, len(runs) - 1)
        self._reflections.append(text)
        return usage

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The next action, given the latest reflections."""
        return await super().decide(self._informed(situation), start)

    def record(self, runs: Sequence[PlanRun]) -> dict[str, Any]:
        """Number of attempts, and the reflections between them."""
        return {"attempts": len(runs), "reflections": list(self._reflections)}

    def _informed(self, situation: Situation) -> Situation:
        latest = [text for text in self._reflections if text][-MOST_REFLECTIONS:]
        return replace(situation, reflections=tuple(latest))


class SelfConsistency(Method):
    """One run with the likeliest choice of each substep."""

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The likeliest action; an unreadable one if no choice could be read."""
        del start
        distribution, usage = await self.policy.distribution(situation)
        if not distribution.candidates:
            return Decision(PlanAction(is_readable=False), usage, distribution)
        action, more, _ = await self._call(distribution.candidates[0], situation)
        return Decision(action, usage + more, distribution)

    async def _call(self, candidate: Candidate, situation: Situation) -> Decision:
        """The action of a candidate: its stored call, or one that the policy completes."""
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
        """The likeliest action; in a branch, its alternative, then the agent's own actions."""
        if start.candidate is None:
            return await super().decide(situation, start)
        if len(situation.history) == start.step:
            return await self._call(start.candidate, situation)
        return await self.policy.act(situation)


METHODS: Mapping[MethodName, type[Method]] = {
    "egb": EntropyGuided,
    "self-consistency": SelfConsistency,
    "react": Method,
    "direct": Direct,
    "self-consistency-plan": PlanVote,
    "reflexion": Reflexion,
}
"""The methods of ``branch`` by name."""


def winners(results: Sequence[FinalOutputs | None]) -> list[int]:
    """The positions of the most frequent final outputs; of ties, those that occur first.

    Args:
        results: Final outputs of each run; runs without them do not vote.
    """
    groups: list[list[int]] = []
    for at, result in enumerate(results):
        if result is None:
            continue
        for group in groups:
            first = results[group[0]] or ()
            if all(one.is_same(other) for one, other in zip(first, result, strict=True)):
                group.append(at)
                break
        else:
            groups.append([at])
    return max(groups, key=len, default=list[int]())


def branch_points(
    distributions: Sequence[Distribution | None], steps: Iterable[int], config: BranchConfig
) -> Iterator[BranchPoint]:
    """The branches that phase 2 may run, in order and within both budgets.

    Args:
        distributions: Distribution of each substep.
        steps: Positions of the substeps, in the order of branching.
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
    """The positions of the substeps, in the order of branching.

    Of equal entropies, the earlier substep comes first. Equal seeds give equal random orders.
    """
    steps = list(range(len(distributions)))
    if order == "entropy":
        entropies = [0.0 if each is None else each.entropy for each in distributions]
        steps.sort(key=lambda step: -entropies[step])
    elif order == "random":
        digest = sha256(seed.encode()).hexdigest()
        Random(digest).shuffle(steps)  # noqa: S311 - a draw, no secret
    return steps
