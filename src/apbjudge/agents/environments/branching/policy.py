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
    """An action, its usage, and the distribution that it was taken from, where there is one."""

    action: PlanAction
    usage: Usage = Usage()
    distribution: Distribution | None = None


class Reflection(NamedTuple):
    """Rules for the next attempt, and the usage of asking for them."""

    text: str
    usage: Usage = Usage()


class Policy(Protocol):
    """An agent that carries out plans, one action a substep.

    Its answers depend on the situation and the number of the sample alone; nothing is remembered
    from one call to the next.
    """

    async def distribution(self, situation: Situation) -> EstimatedDistribution:
        """The distribution of its choice; ``estimator`` states its source."""
        ...

    async def act(self, situation: Situation, sample: int = 0) -> Decision:
        """One action, as the agent acts without branching: its likeliest, or one sample.

        Args:
            situation: All that the agent knows.
            sample: Number of the sample, where the same situation is met in several runs.
        """
        ...

    async def complete(self, situation: Situation, tool: str | None) -> Decision:
        """An action with a tool that ``distribution`` named without a call of it."""
        ...

    async def reflect(self, situation: Situation, sample: int = 0) -> Reflection:
        """A reflection on a failed run, the history of the situation; empty for none."""
        ...
