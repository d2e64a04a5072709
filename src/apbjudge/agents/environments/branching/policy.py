"""Interface of an agent that can be branched."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ....records import Usage
from ..plans import PlanAction, Situation
from .distributions import Distribution


class EstimatedDistribution(NamedTuple):
    """A distribution, and the usage of its estimation."""

    distribution: Distribution
    usage: Usage = Usage()


class Decision(NamedTuple):
    """An action, its usage, and the distribution that it was taken from; None without one."""

    action: PlanAction
    usage: Usage = Usage()
    distribution: Distribution | None = None


class Reflection(NamedTuple):
    """Rules for the next attempt, and the usage of asking for them."""

    text: str
    usage: Usage = Usage()


class Policy(Protocol):
    """An agent that carries out plans, one action a substep.

    Its answers depend only on the situation and the number of the sample: calls share no state.
    """

    async def distribution(self, situation: Situation) -> EstimatedDistribution:
        """The distribution of the agent's choice; ``estimator`` states its source."""
        ...

    async def act(self, situation: Situation, sample: int = 0) -> Decision:
        """One action, as the agent acts without branching: its likeliest, or one sample.

        Args:
            situation: All that the agent knows.
            sample: Number of the sample, if the same situation occurs in several runs.
        """
        ...

    async def complete(self, situation: Situation, tool: str | None) -> Decision:
        """An action with a tool that ``distribution`` named without a call of it."""
        ...

    async def reflect(self, situation: Situation, sample: int = 0) -> Reflection:
        """A reflection on a failed run, which is the situation's history; empty for none."""
        ...
