"""Methods of carrying out a plan: which runs there are, how each acts, and which is the result.

The loop (``search``) is the same for all of them.
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
"""Reflections that an attempt is shown, the latest ones (1 to 3 in the paper of Reflexion)."""


class BranchPoint(NamedTuple):
    """The beginning of a run: of the plan, or of a branch of the first run.

    Attributes:
        step: Position of the substep in the plan, from 0.
        rank: Place among the substep's alternatives, 1 for the likeliest.
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
        accepted: Answer of the verifier; None without one.
        reward: Reward by the reference, which a method sees only if it is the verifier.
        usage: Usage of the run, including its verification.
        distributions: Of the choices made in it; None for each that was made without.
        start: Its first substep.
        final: Its final outputs; None if one is missing.
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
        """The record of a run after the first: where it begins and how it ended."""
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
    """One run with one action a substep (ReAct); other methods override what they do otherwise.

    Args:
        policy: The agent.
        config: The settings.
        task: Id of the case.

    Attributes:
        branches: True if the result may be another run than the first, and is a row of its own.
        asks_verifier: True if runs are verified, and the first that is right ends the case.
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
        """Yields where each run begins, until one is accepted.

        Args:
            runs: The runs so far; longer at every step.
        """
        del runs
        yield BranchPoint()

    async def prepare(self, situation: Situation, runs: Sequence[PlanRun]) -> Usage:
        """Does what comes before a run, and returns what it took.

        Args:
            situation: The first of the run.
            runs: The runs before it.
        """
        del situation, runs
        return Usage()

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The next action of the run that began at ``start``."""
        return await self.policy.act(situation, start.attempt)

    def record(self, runs: Sequence[PlanRun]) -> dict[str, Any]:
        """The method's own part of the record of a case, besides its runs."""
        del runs
        return {}

    def result(self, runs: Sequence[PlanRun]) -> PlanRun:
        """The run that is returned: the one that was accepted, else the first."""
        return runs[-1] if runs[-1].accepted else runs[0]


class Direct(Method):
    """One run in open loop: no request shows what earlier calls returned.

    The calls are executed one by one, which is the same as at the end: nothing that they return
    reaches the agent.
    """

    @property
    def setting(self) -> str:
        """The setting of the result's row, which marks its rates of outputs as those of no loop."""
        return "direct-open-loop"

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The next action, chosen without the history."""
        return await super().decide(replace(situation, history=(), is_open_loop=True), start)


class PlanVote(Method):
    """Whole runs with one action a substep; the most frequent final outputs win.

    No verifier is asked: the result is found without the reference.
    """

    branches, asks_verifier = True, False

    def starts(self, runs: Sequence[PlanRun]) -> Iterator[BranchPoint]:
        """Yields the runs, all from the beginning of the plan."""
        for attempt in range(self.config.most_runs):
            yield BranchPoint(attempt=attempt)

    def record(self, runs: Sequence[PlanRun]) -> dict[str, Any]:
        """The runs that voted, and those of them that agree with the result."""
        results = [run.final for run in runs]
        return {"votes": len(winners(results)), "voters": len(results) - results.count(None)}

    def result(self, runs: Sequence[PlanRun]) -> PlanRun:
        """The first run with the most frequent final outputs; the first of all without any."""
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
        """Asks for a reflection on the run before, if there is one."""
        if not runs:
            return Usage()
        failed = replace(
            self._informed(situation), substep="", history=runs[-1].trajectory.steps, memory=()
        )
        text, usage = await self.policy.reflect(failed, len(runs) - 1)
        self._reflections.append(text)
        return usage

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The next action, after the latest reflections."""
        return await super().decide(self._informed(situation), start)

    def record(self, runs: Sequence[PlanRun]) -> dict[str, Any]:
        """The attempts, and the reflections between them."""
        return {"attempts": len(runs), "reflections": list(self._reflections)}

    def _informed(self, situation: Situation) -> Situation:
        latest = [text for text in self._reflections if text][-MOST_REFLECTIONS:]
        return replace(situation, reflections=tuple(latest))


class SelfConsistency(Method):
    """One run with the likeliest choice of each substep."""

    async def decide(self, situation: Situation, start: BranchPoint) -> Decision:
        """The likeliest action; nothing if no choice could be read."""
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
    "direct": Direct,
    "self-consistency-plan": PlanVote,
    "reflexion": Reflexion,
}
"""The methods of ``branch`` by name."""


def winners(results: Sequence[FinalOutputs | None]) -> list[int]:
    """The positions of the most frequent final outputs; of equally frequent ones the first seen.

    Args:
        results: Of each run; those without final outputs do not vote.
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
