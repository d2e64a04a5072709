"""What an agent has to say of itself to be branched."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...records import Usage
from ..plans import Action, Situation
from .distributions import Distribution


class Estimate(NamedTuple):
    """A distribution, and what it took to estimate it."""

    distribution: Distribution
    usage: Usage = Usage()


class Decision(NamedTuple):
    """An action, and what it took to get it."""

    action: Action
    usage: Usage = Usage()


class Policy(Protocol):
    """An agent that carries out plans, one action a substep.

    Its answers depend on the situation alone; nothing is remembered from one call to the next.
    """

    async def distribution(self, situation: Situation) -> Estimate:
        """How its choice is distributed; says by its ``estimator`` how it was found out."""
        ...

    async def act(self, situation: Situation) -> Decision:
        """One action, as the agent acts without branching: its likeliest, or one sample."""
        ...

    async def complete(self, situation: Situation, tool: str | None) -> Decision:
        """An action with a tool that ``distribution`` named without a call of it."""
        ...
