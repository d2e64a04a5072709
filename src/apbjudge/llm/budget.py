"""Limits of a run: money, calls, tokens, time. A budget stops a run cleanly."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from ..errors import BudgetError
from ..records import Usage
from .base import Clock, Completion
from .limits import Limits
from .model_table import Prices
from .rate_limit import CHARACTERS_PER_TOKEN


def tokens_of(usage: Usage) -> int:
    """Tokens sent and received."""
    return usage.prompt_tokens + usage.completion_tokens


@dataclass(slots=True)
class Measured:
    """Usage of one model's calls so far, to estimate the next one.

    Attributes:
        prices: Prices of the model.
        per_character: Tokens per character of a prompt: the highest ratio of any call. Before the
            first answer that states its usage, the mean of earlier runs, or a quarter.
        longest_reply: The longest reply so far in tokens; None before the first. A reply without
            stated tokens counts by its length.
        dearest_usd: Highest price of a call so far, for models with unknown prices.
        calls: Number of answers.
        seconds: Total time of these calls.
        unreported: Answers that stated no usable usage, of which ``noted`` were reported to the
            user. The sums below are of the others.
    """

    prices: Prices = field(default_factory=Prices)
    per_character: float = 1 / CHARACTERS_PER_TOKEN
    longest_reply: int | None = None
    dearest_usd: float = 0.0
    calls: int = 0
    seconds: float = 0.0
    unreported: int = 0
    noted: int = 0
    characters: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0

    def add(self, completion: Completion, call: BudgetedCall) -> Completion:
        """Counts the answer to a call.

        Returns:
            The answer, with an estimate of what it does not state, which limits count.
        """
        usage, cost = completion.usage, completion.cost_usd
        reply, update = usage.completion_tokens, dict[str, Any]()
        self.calls += 1
        self.seconds += completion.latency_s or 0.0
        if usage.unreported:
            self.unreported += 1
            words = len(completion.text) + sum(len(c.arguments) for c in completion.tool_calls)
            reply = ceil(words * self.per_character)
        else:
            ratio = usage.prompt_tokens / max(1, call.characters)
            self.per_character = max(self.per_character, ratio) if self.characters else ratio
            self.characters += call.characters
            self.prompt_tokens += usage.prompt_tokens
            self.reply_tokens += reply
        self.longest_reply = max(self.longest_reply or 0, reply)
        self.dearest_usd = max(self.dearest_usd, cost or 0.0)
        if usage.unreported:
            update["assumed_usd"], update["assumed_tokens"] = self.may_take(call)
        elif cost is None and (assumed := self.prices.cost_usd(usage)):
            update["assumed_usd"] = assumed
        return completion.model_copy(update=update) if update else completion

    def may_take(self, call: BudgetedCall, reply: int | None = None) -> tuple[float, int]:
        """US dollars and tokens that a call may take, as far as known before it is made.

        Args:
            call: The call.
            reply: Tokens of its reply; None for those of the longest so far, or its limit before
                the first reply.
        """
        if reply is None:
            reply = call.max_tokens if self.longest_reply is None else self.longest_reply
        prompt, prices = ceil(call.characters * self.per_character), self.prices
        if prices.input is None or prices.output is None:
            return self.dearest_usd, prompt + reply
        return (prompt * prices.input + reply * prices.output) / 1e6, prompt + reply

    def averages(self) -> dict[str, float]:
        """Averages, under their names in the endpoint cache; none before the first answer."""
        averages = {"latency_s": self.seconds / self.calls} if self.calls else {}
        if self.characters:
            averages["tokens_per_character"] = self.prompt_tokens / self.characters
            averages["reply_tokens"] = self.reply_tokens / (self.calls - self.unreported)
        return {name: float(f"{mean:.4g}") for name, mean in averages.items() if mean > 0}


@dataclass(slots=True)
class Spent:
    """The amounts that the limits count.

    Attributes:
        cost_usd: Prices, and estimates if none is stated.
        tokens: Tokens sent and received, and estimates likewise.
        calls: Calls made.
        estimated: Calls that count by estimate: answers without usage, calls without answer.
        unpriced: Answered calls whose price can't be estimated either.
    """

    cost_usd: float = 0.0
    tokens: int = 0
    calls: int = 0
    estimated: int = 0
    unpriced: int = 0


@dataclass(slots=True, eq=False)
class BudgetedCall:
    """A call that waits or is in flight.

    Attributes:
        model: The calls of its model so far.
        characters: Length of its prompt.
        max_tokens: Upper limit of its reply.
        most: Upper limits of its US dollars and tokens.
    """

    model: Measured
    characters: int
    max_tokens: int
    most: tuple[float, int] = (0.0, 0)


class Budget:
    """Admits calls while the limits allow it, in order of arrival.

    Calls run concurrently as long as the limits hold even if each has the longest possible reply
    (``max_tokens``). Otherwise a call waits until no other is in flight, and is made alone if it
    stays within the limits with a reply as long as the longest so far; if not, it is refused. The
    first call of a model, which shows the number of tokens of its prompts, is made before the
    others; its reply can't be estimated, so only the prompt has to fit. Several models may share a
    budget.

    Args:
        limits: The limits.
        clock: For ``max_seconds``.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.spent = Spent()
        self._limits = limits
        self._clock = clock
        self._start: float | None = None
        self._counts_tokens = limits.max_cost is not None or limits.max_tokens is not None
        self._in_flight: set[BudgetedCall] = set()
        self._waiting: deque[BudgetedCall] = deque()
        self._change: asyncio.Event | None = None

    async def admit(self, model: Measured, characters: int, max_tokens: int) -> BudgetedCall:
        """Counts a call before it is made; may wait until others have ended.

        Args:
            model: The calls of its model so far.
            characters: Length of its prompt.
            max_tokens: Upper limit of its reply.

        Raises:
            BudgetError: If it must not be made.
        """
        call = BudgetedCall(model, characters, max_tokens)
        if self._counts_tokens:
            self._waiting.append(call)
            try:
                while self._waiting[0] is not call or not self._has_room(call):
                    self._change = self._change or asyncio.Event()
                    await self._change.wait()
            finally:
                self._waiting.remove(call)
                self._wake()
        self._check_calls_and_time()
        self._in_flight.add(call)
        self.spent.calls += 1
        return call

    def _wake(self) -> None:
        if self._change is not None:
            self._change.set()
            self._change = None

    def _check_calls_and_time(self) -> None:
        limits, calls = self._limits, self.spent.calls
        if limits.max_calls is not None and calls >= limits.max_calls:
            raise BudgetError(f"max_calls: {limits.max_calls} calls are made")
        if limits.max_seconds is not None:
            self._start = self._clock.now() if self._start is None else self._start
            if self._clock.now() - self._start >= limits.max_seconds:
                raise BudgetError(f"max_seconds: {limits.max_seconds:g} s have passed")

    def _has_room(self, call: BudgetedCall) -> bool:
        """True if a call may be made now; raises BudgetError if waiting would not help."""
        limits, model, spent = self._limits, call.model, self.spent
        is_first = model.longest_reply is None
        if is_first and any(each.model is model for each in self._in_flight):
            return False
        coming = model.may_take(call, 0 if is_first else None)
        call.most = model.may_take(call, max(call.max_tokens, model.longest_reply or 0))
        if limits.max_cost is not None and spent.unpriced:
            raise BudgetError(f"max_cost: the price of {spent.unpriced} calls is not known")
        used = (spent.cost_usd, spent.tokens)
        named = ("max_cost", limits.max_cost, "USD"), ("max_tokens", limits.max_tokens, "tokens")
        has_room = True
        for at, (name, limit, unit) in enumerate(named):
            if limit is None:
                continue
            if used[at] + coming[at] > limit:
                text = f"{name}: {used[at]:.9g} of {limit:.9g} {unit} are used"
                if spent.estimated:
                    text += f", {spent.estimated} of {spent.calls} calls by estimate"
                raise BudgetError(f"{text}; this call may take {coming[at]:.3g}")
            reserved = sum(each.most[at] for each in self._in_flight)
            has_room &= used[at] + reserved + call.most[at] <= limit
        return has_room or not self._in_flight

    def record(
        self, call: BudgetedCall, completion: Completion | None, *, lost: bool = False
    ) -> None:
        """Counts the end of a call.

        Args:
            call: As ``admit`` returned it.
            completion: The response; None if the call failed.
            lost: True if it failed without an answer; the most that it may have taken then counts.
        """
        model, spent = call.model, self.spent
        self._in_flight.remove(call)
        if completion is not None:
            usage, cost = completion.usage, completion.cost_usd
            spent.tokens += tokens_of(usage) + completion.assumed_tokens
            spent.cost_usd += completion.assumed_usd if cost is None else cost
            spent.estimated += bool(usage.unreported)
            spent.unpriced += cost is None and not model.prices.are_known
        elif lost:
            cost, tokens = model.may_take(call)
            spent.tokens += tokens
            spent.cost_usd += cost
            spent.estimated += 1
        self._wake()
