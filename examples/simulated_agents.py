"""Agents whose choices are known, and what branching does for them, exactly.

A simulated agent has a distribution over tools at each substep: one while all of its run is right,
and possibly another once it has gone astray. The plan is a chain in which every call needs the
output of the one before, so a run is right if and only if every choice is. Then expectations follow
by enumeration, without drawing anything, and have to agree with what the search does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import fsum, prod
from random import Random
from typing import Literal, NamedTuple

from apbjudge.agents.environments.branching.config import BranchConfig
from apbjudge.agents.environments.branching.distributions import (
    Candidate,
    Distribution,
    from_samples,
)
from apbjudge.agents.environments.branching.methods import branch_points, step_order
from apbjudge.agents.environments.branching.policy import (
    Decision,
    EstimatedDistribution,
    Reflection,
)
from apbjudge.agents.environments.plans import PlanAction, Situation
from apbjudge.records import Usage
from apbjudge.records.trajectories import ToolCall
from apbjudge.trajectories.slate import SlateCase

Shares = Mapping[str, float]
"""Probability of each tool; they sum to 1."""
Acting = Literal["greedy", "sampled"]
MOST_OUTCOMES = 200_000
"""Outcomes of a first pass up to which expectations are computed."""


@dataclass(frozen=True, slots=True)
class SimulatedStep:
    """How an agent chooses at one substep.

    Attributes:
        right: The tool of the reference.
        shares: While all substeps before were right.
        astray: Once one was wrong; None for the same.
    """

    right: str
    shares: Shares
    astray: Shares | None = None

    def at(self, *, is_right: bool) -> Shares:
        """The distribution after a run that was right so far, or was not."""
        return self.shares if is_right or self.astray is None else self.astray


def chain_case(steps: Sequence[SimulatedStep], case_id: str = "chain") -> SlateCase:
    """The case whose plan is that chain, for SLATE's simulator."""
    names = {tool for step in steps for tool in (step.right, *step.shares, *(step.astray or ()))}
    key = {"key": {"type": "string"}}
    places = [f"1.{i}" for i in range(1, len(steps) + 1)]
    inputs = ["start", *(f"OUTPUT_FROM_STEP_{place}.key" for place in places)]
    return SlateCase.model_validate(
        {
            "id": case_id,
            "query": "Follow the chain.",
            "plan": [
                {"step": place, "tool": step.right, "arguments": {"key": value}}
                for place, step, value in zip(places, steps, inputs, strict=False)
            ],
            "tools": [
                {"name": name, "arguments": key, "results": key, "default": {"key": "lost"}}
                for name in sorted(names)
            ],
            "outputs": {place: {"key": f"{case_id}/{place}"} for place in places},
        }
    )


class SimulatedPolicy:
    """An agent of known choices in the world of ``chain_case``; see ``Policy``.

    Args:
        steps: Its choices.
        random: What samples are drawn with.
        m: Samples by which it estimates its distribution; 0 for knowing it.
        acting: Whether ``act`` takes the likeliest tool, the first of equal ones, or draws one.
    """

    def __init__(
        self,
        steps: Sequence[SimulatedStep],
        *,
        random: Random,
        m: int = 0,
        acting: Acting = "sampled",
    ) -> None:
        self._steps, self._random, self._m = steps, random, m
        self._acting: Acting = acting

    async def distribution(self, situation: Situation) -> EstimatedDistribution:
        """Samples, or the known distribution itself."""
        shares = self._shares(situation)
        if not self._m:
            return EstimatedDistribution(_known(shares), Usage(calls=1))
        drawn = self._random.choices(list(shares), list(shares.values()), k=self._m)
        return EstimatedDistribution(
            from_samples([_action(tool, situation) for tool in drawn]), Usage(calls=self._m)
        )

    async def act(self, situation: Situation, sample: int = 0) -> Decision:
        """The likeliest tool, or one that is drawn."""
        del sample  # each draw is one of its own
        shares = self._shares(situation)
        if self._acting == "greedy":
            tool = max(shares, key=lambda name: shares[name])
        else:
            (tool,) = self._random.choices(list(shares), list(shares.values()))
        return Decision(_action(tool, situation), Usage(calls=1))

    async def complete(self, situation: Situation, tool: str | None) -> Decision:
        """A call of a tool."""
        return Decision(_action(tool or "", situation), Usage(calls=1))

    async def reflect(self, situation: Situation, sample: int = 0) -> Reflection:
        """Nothing: the agent learns from no run."""
        del situation, sample
        return Reflection("", Usage(calls=1))

    def _shares(self, situation: Situation) -> Shares:
        is_right = all(
            [call.name for call in past.calls] == [step.right]
            for past, step in zip(situation.history, self._steps, strict=False)
        )
        return self._steps[_position(situation)].at(is_right=is_right)


def _position(situation: Situation) -> int:
    return [line.step for line in situation.plan].index(situation.substep)


def _action(tool: str, situation: Situation) -> PlanAction:
    at = _position(situation)
    value = f"OUTPUT_FROM_STEP_{situation.plan[at - 1].step}.key" if at else "start"
    return PlanAction(ToolCall(tool, {"key": value}))


def _known(shares: Shares) -> Distribution:
    ranked = sorted((tool for tool in shares if shares[tool] > 0), key=lambda tool: -shares[tool])
    return Distribution(tuple(Candidate(tool, shares[tool]) for tool in ranked), "known")


# Expectations -------------------------------------------------------------------------------------


class Expectation(NamedTuple):
    """What happens on average.

    Attributes:
        first_pass: Chance that the first pass is right.
        success: Chance that the result is.
        branches: Mean number of branches run.
    """

    first_pass: float
    success: float
    branches: float


def expected(
    steps: Sequence[SimulatedStep],
    config: BranchConfig,
    *,
    m: int = 0,
    acting: Acting = "sampled",
) -> Expectation:
    """What ``branch_case`` does on average for a simulated agent, by enumeration.

    All outcomes of the first pass are gone through, and with the order ``random`` all orders.
    Branches are independent of each other given the first pass, since each draws anew.

    Args:
        steps: The agent's choices.
        config: The settings; the verifier is the oracle or none.
        m: See ``SimulatedPolicy``.
        acting: See ``SimulatedPolicy``.

    Raises:
        ValueError: If the verifier is a judge, the method has several whole runs or an open loop,
            or there are too many outcomes to go through.
    """
    if config.verifier == "judge":
        raise ValueError("expected: expected the verifier oracle or none, got judge")
    if config.method not in ("egb", "self-consistency", "react"):
        raise ValueError(f"expected: expected egb, self-consistency or react, got {config.method}")
    after = [1.0]  # chance that one action each gets the substeps from here to the end right
    for step in reversed(steps):
        after.append(after[-1] * _chance(step, acting))
    after.reverse()
    if config.method == "react":
        return Expectation(after[0], after[0], 0.0)
    totals = [
        (chance * is_right, chance * success, chance * branches)
        for chance, is_right, distributions in _first_passes(steps, m)
        for success, branches in [_search(steps, distributions, after, config, is_right=is_right)]
    ]
    return Expectation(*(fsum(column) for column in zip(*totals, strict=True)))


def _chance(step: SimulatedStep, acting: Acting) -> float:
    """The chance that one action is right after a run that was."""
    if acting == "sampled":
        return step.shares.get(step.right, 0.0)
    return float(max(step.shares, key=lambda tool: step.shares[tool]) == step.right)


def _outcomes(shares: Shares, m: int) -> list[tuple[float, Distribution]]:
    """The distributions that may be estimated, with their chances."""
    if not m:
        return [(1.0, _known(shares))]
    tools = [tool for tool in shares if shares[tool] > 0]
    if len(tools) ** m > MOST_OUTCOMES:
        raise ValueError(f"m: expected at most {MOST_OUTCOMES} outcomes of a step, got more")
    chances: dict[tuple[tuple[str | None, float], ...], float] = {}
    found: dict[tuple[tuple[str | None, float], ...], Distribution] = {}
    for drawn in product(tools, repeat=m):
        distribution = from_samples([PlanAction(ToolCall(tool)) for tool in drawn])
        key = tuple((each.tool, each.share) for each in distribution.candidates)
        found.setdefault(key, distribution)
        chances[key] = chances.get(key, 0.0) + prod(shares[tool] for tool in drawn)
    return [(chance, found[key]) for key, chance in chances.items()]


def _first_passes(
    steps: Sequence[SimulatedStep], m: int
) -> Iterator[tuple[float, bool, list[Distribution]]]:
    """All first passes: their chance, whether they are right, their distributions."""
    options = [{on: _outcomes(step.at(is_right=on), m) for on in (True, False)} for step in steps]
    if prod(max(map(len, option.values())) for option in options) > MOST_OUTCOMES:
        raise ValueError(f"steps: expected at most {MOST_OUTCOMES} first passes, got more")

    def walk(
        chance: float, past: list[Distribution], *, is_right: bool
    ) -> Iterator[tuple[float, bool, list[Distribution]]]:
        if len(past) == len(steps):
            yield chance, is_right, past
            return
        step = steps[len(past)]
        for share, distribution in options[len(past)][is_right]:
            still = is_right and distribution.candidates[0].tool == step.right
            yield from walk(chance * share, [*past, distribution], is_right=still)

    return walk(1.0, [], is_right=True)


def _search(
    steps: Sequence[SimulatedStep],
    distributions: Sequence[Distribution],
    after: Sequence[float],
    config: BranchConfig,
    *,
    is_right: bool,
) -> tuple[float, float]:
    """The chance of success and the mean number of branches after a first pass."""
    if is_right and config.verifier == "oracle":
        return 1.0, 0.0
    if config.order == "random":
        orders = list(permutations(range(len(steps))))
        if len(orders) > MOST_OUTCOMES:
            raise ValueError(f"steps: expected at most {MOST_OUTCOMES} orders, got more")
    else:
        orders = [tuple(step_order(distributions, config.order))]
    first_wrong = next(
        (i for i, of in enumerate(distributions) if of.candidates[0].tool != steps[i].right),
        len(steps),
    )
    successes: list[float] = []
    counts: list[float] = []
    for order in orders:
        failing, branches = 1.0, 0.0
        for point in branch_points(distributions, order, config):
            branches += failing if config.verifier == "oracle" else 1.0
            is_mended = point.step == first_wrong
            if is_mended and point.candidate.tool == steps[point.step].right:
                failing *= 1 - after[point.step + 1]
        successes.append(1 - failing)
        counts.append(branches)
    success = fsum(successes) / len(orders) if config.verifier == "oracle" else float(is_right)
    return success, fsum(counts) / len(orders)
