"""What a run may cost: money, calls, tokens, time. A budget stops a run; it never tears one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pydantic import Field

from ..errors import BudgetError
from ..records import Record, Usage
from .base import Clock, Completion


class Limits(Record):
    """Upper limits of one session of a run; None means none."""

    max_cost: float | None = Field(
        default=None,
        ge=0,
        description="US dollars, for all calls, failed and repeated ones included.",
    )
    max_calls: int | None = Field(default=None, ge=0, description="Calls, likewise.")
    max_tokens: int | None = Field(default=None, ge=0, description="Tokens sent and received.")
    max_seconds: float | None = Field(
        default=None, ge=0, description="Seconds from the first call."
    )


@dataclass(slots=True)
class Spent:
    """Known prices, answered calls of unknown price, calls made, tokens sent and received."""

    cost_usd: float = 0.0
    unpriced: int = 0
    calls: int = 0
    tokens: int = 0


class Budget:
    """Admits calls while the limits allow it.

    A call is admitted when what is spent, plus the dearest call so far for each call in flight and
    this one, stays within the limits. Until one call has shown its cost, only one is in flight
    where money or tokens are limited.

    Args:
        limits: The limits.
        clock: For ``max_seconds``.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.spent = Spent()
        self._limits = limits
        self._clock = clock
        self._start: float | None = None
        self._in_flight = 0
        self._dearest = (0.0, 0)
        self._known = limits.max_cost is None and limits.max_tokens is None
        self._first: asyncio.Event | None = None

    async def admit(self) -> None:
        """Counts a call that is about to be made.

        Raises:
            BudgetError: If it is not to be made.
        """
        while not self._known and self._in_flight:
            self._first = self._first or asyncio.Event()
            await self._first.wait()
        self._check()
        self._in_flight += 1
        self.spent.calls += 1

    def _check(self) -> None:
        limits, spent = self._limits, self.spent
        if limits.max_calls is not None and spent.calls >= limits.max_calls:
            raise BudgetError(f"max_calls: {limits.max_calls} calls are made")
        cost, tokens = self._dearest
        coming = self._in_flight + 1
        if limits.max_cost is not None:
            if spent.unpriced:
                raise BudgetError(f"max_cost: the price of {spent.unpriced} calls is not known")
            if spent.cost_usd + coming * cost > limits.max_cost:
                text = f"{spent.cost_usd:.6g} of {limits.max_cost:g} USD are spent"
                raise BudgetError(f"max_cost: {text}")
        if limits.max_tokens is not None and spent.tokens + coming * tokens > limits.max_tokens:
            raise BudgetError(f"max_tokens: {spent.tokens} of {limits.max_tokens} tokens are used")
        if limits.max_seconds is not None:
            self._start = self._clock.now() if self._start is None else self._start
            if self._clock.now() - self._start >= limits.max_seconds:
                raise BudgetError(f"max_seconds: {limits.max_seconds:g} s have passed")

    def settle(self, completion: Completion | None, *, lost: bool = False) -> None:
        """Counts how a call ended.

        Args:
            completion: The response, None when the call failed.
            lost: Whether it failed without an answer; it then costs as much as any before.
        """
        self._in_flight -= 1
        usage = completion.usage if completion else Usage()
        tokens = usage.prompt_tokens + usage.completion_tokens
        if completion is not None:
            self._known = True
            cost = completion.cost_usd
            self.spent.unpriced += cost is None
            self._dearest = (max(self._dearest[0], cost or 0.0), max(self._dearest[1], tokens))
            self.spent.cost_usd += cost or 0.0
        elif lost:
            self.spent.cost_usd += self._dearest[0]
            tokens = self._dearest[1]
        self.spent.tokens += tokens
        if self._first is not None:
            self._first.set()
            self._first = None
