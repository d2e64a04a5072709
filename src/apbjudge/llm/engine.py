"""The engine: one request in, one reply out, whatever the network does in between.

A request goes through, in this order: the reply cache, the retries, the budget, the pace (calls and
tokens per minute), the choice of an endpoint, the transport. It is a ``Client`` around ``Client``s.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import orjson

from ..errors import (
    AccessError,
    FormatUnsupportedError,
    JudgeError,
    RateLimitedError,
    TransportError,
)
from ..records import Usage
from .base import FORMATS, Completion, Request
from .budget import Budget, Limits
from .cache import ReplyCache
from .clock import Clock, MonotonicClock
from .endpoints import Endpoint, Router
from .logprobs import TokenChoice
from .memory import Memory
from .pace import Pace
from .prices import Prices
from .retry import with_retries

WORTH_KEEPING = ("stop", "length", "tool_calls")
"""How a reply ends that is kept; a filter or an empty reply may be another's next time."""


@dataclass(slots=True, kw_only=True)
class Engine:
    """Answers requests through one or several endpoints.

    Attributes:
        endpoints: Where calls go.
        model: The judge's model, under which the endpoints are remembered.
        memory: What is known of endpoints from earlier runs.
        limits: What the session may take.
        prices: Overrides what the transport knows of prices, where they are given.
        cache: Replies of earlier runs, or None.
        retries: The measure of how often a failed call is repeated (``retry.REPEATS``).
        deadline_s: Seconds after the first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoints count as dead.
        rpm: Calls per minute, None for no limit.
        tpm: Tokens per minute, likewise.
        clock: Tells the time and waits.
        rng: Source of jitter.
        shared: A budget that other engines draw on too, in place of ``limits``.
        budget: What is spent so far.
    """

    endpoints: Sequence[Endpoint]
    model: str = ""
    memory: Memory = field(default_factory=lambda: Memory(None))
    limits: Limits = field(default_factory=Limits)
    prices: Prices = field(default_factory=Prices)
    cache: ReplyCache | None = None
    retries: int = 4
    deadline_s: float = 900.0
    outage_s: float = 300.0
    rpm: float | None = None
    tpm: float | None = None
    clock: Clock = field(default_factory=MonotonicClock)
    rng: random.Random = field(default_factory=random.Random)
    shared: Budget | None = None
    budget: Budget = field(init=False)
    _router: Router = field(init=False)
    _pace: Pace = field(init=False)
    _place: str = field(init=False)
    _measured: _Measured = field(init=False)

    def __post_init__(self) -> None:
        self.budget = self.shared or Budget(self.limits, self.clock)
        self._router = Router(self.endpoints, clock=self.clock, outage_s=self.outage_s)
        self._pace = Pace(self.rpm, self.tpm, self.clock)
        self._measured = _Measured()
        self._place = place_of([e.address for e in self.endpoints])

    def sharing(self, cache: ReplyCache | None) -> Engine:
        """This engine with another reply cache: endpoints, budget and pace are the same ones.

        Args:
            cache: Replies of earlier runs, or None.
        """
        other = copy(self)
        other.cache = cache
        return other

    async def complete(self, request: Request) -> Completion:
        """Answers one request; see ``Client``. Its usage counts every call made for it."""
        key = request.key(self._place) if self.cache else ""
        if (kept := self._kept(key)) is not None:
            return kept
        tally = _Tally()
        try:
            completion = await with_retries(
                lambda: self._attempt(request, tally),
                retries=self.retries,
                deadline_s=self.deadline_s,
                clock=self.clock,
                rng=self.rng,
            )
        except JudgeError as error:
            error.calls, error.lost = tally.calls, tally.lost
            raise
        self._keep(key, completion)
        if tally.calls == completion.usage.calls and not tally.lost:
            return completion
        counted = completion.usage.model_copy(update={"calls": tally.calls, "lost": tally.lost})
        return completion.model_copy(update={"usage": counted})

    async def _attempt(self, request: Request, tally: _Tally) -> Completion:
        """One attempt, once there is room for it."""
        taken = await self._pace.take(_characters(request))
        while True:
            endpoint = await self._router.enter(request.prefix, avoid=tally.failed_at)
            try:
                completion = await self._in_some_format(endpoint, request, tally)
                break
            except AccessError:
                if all(e.closed for e in self.endpoints):
                    raise
            except TransportError as error:
                tally.failed_at = None if isinstance(error, RateLimitedError) else endpoint
                raise
            finally:
                self._router.leave(endpoint)
        usage = completion.usage
        self._pace.correct(taken, usage.prompt_tokens + usage.completion_tokens)
        return completion

    async def _in_some_format(
        self, endpoint: Endpoint, request: Request, tally: _Tally
    ) -> Completion:
        """Asks in the strictest format that the endpoint takes, and remembers which it is."""
        first = max(FORMATS.index(endpoint.format), FORMATS.index(request.format))
        *strict, last = FORMATS[first:]
        for form in strict:
            asked = replace(request, api_base=endpoint.address, format=form)
            try:
                completion = await self._call(endpoint, asked, tally)
            except FormatUnsupportedError:
                continue
            endpoint.format = form
            return completion
        asked = replace(request, api_base=endpoint.address, format=last)
        completion = await self._call(endpoint, asked, tally)
        endpoint.format = last
        return completion

    async def _call(self, endpoint: Endpoint, request: Request, tally: _Tally) -> Completion:
        await self.budget.admit()
        tally.calls += 1
        begun = self.clock.now()
        sample = endpoint.begin(begun)
        completion: Completion | None = None
        lost = True  # unless an answer comes
        try:
            completion = self._priced(await endpoint.client.complete(request))
        except BaseException as error:
            if isinstance(error, JudgeError):
                lost = isinstance(error, TransportError) and not error.answered
            endpoint.failed(sample, error, begun, self.clock.now())
            raise
        else:
            now = self.clock.now()
            endpoint.succeeded(sample, begun, now, completion.wait_s)
            self._measured.add(now - begun, _characters(request), completion.usage)
            return completion
        finally:
            tally.lost += completion is None and lost
            self.budget.settle(completion, lost=lost)

    def _priced(self, completion: Completion) -> Completion:
        if not self.prices.are_known:
            return completion
        cost = self.prices.cost_usd(completion.usage)
        return completion.model_copy(update={"cost_usd": cost})

    def _kept(self, key: str) -> Completion | None:
        data = self.cache.get(key) if self.cache else None
        return read_kept(data) if data is not None else None

    def _keep(self, key: str, completion: Completion) -> None:
        if self.cache and completion.text and completion.finish_reason in WORTH_KEEPING:
            self.cache.put(key, kept(completion))

    async def close(self) -> None:
        """Closes the transports and writes what the cache still holds back."""
        for client in {id(e.client): e.client for e in self.endpoints}.values():
            await client.close()
        if self.cache is not None:
            self.cache.close()
        for endpoint in self.endpoints:
            facts = {"format": endpoint.format, **self._measured.facts()}
            self.memory.note(self.model, endpoint.address, facts)


@dataclass(slots=True)
class _Tally:
    """What one request took so far, and the endpoint that failed it last."""

    calls: int = 0
    lost: int = 0
    failed_at: Endpoint | None = None


@dataclass(slots=True)
class _Measured:
    """What calls took, for later estimates."""

    calls: int = 0
    seconds: float = 0.0
    characters: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0

    def add(self, seconds: float, characters: int, usage: Usage) -> None:
        self.calls += 1
        self.seconds += seconds
        self.characters += characters
        self.prompt_tokens += usage.prompt_tokens
        self.reply_tokens += usage.completion_tokens

    def facts(self) -> dict[str, float]:
        """Means, under the names they are remembered by; nothing before the first answer."""
        if not self.calls or not self.characters:
            return {}
        means = {
            "latency_s": self.seconds / self.calls,
            "tokens_per_character": self.prompt_tokens / self.characters,
            "reply_tokens": self.reply_tokens / self.calls,
        }
        return {name: float(f"{mean:.4g}") for name, mean in means.items() if mean > 0}


def place_of(addresses: Sequence[str | None]) -> str:
    """What tells one model from another of the same name: where it is served."""
    return " ".join(sorted(address or "" for address in addresses))


def kept(completion: Completion) -> bytes:
    """A completion as it is kept in the cache: JSON, nothing of what the call cost."""
    logprobs = [[c.token, c.logprob, c.top] for c in completion.logprobs]
    return orjson.dumps([completion.text, completion.finish_reason, logprobs])


_REUSED = Usage(reused=1)


def read_kept(data: bytes) -> Completion | None:
    """A completion from the cache; None when the entry is not one of ours."""
    try:
        text, reason, logprobs = orjson.loads(data)
        return Completion(
            text=text,
            finish_reason=reason,
            usage=_REUSED,
            cost_usd=0.0,
            logprobs=tuple(
                TokenChoice(token, logprob, tuple((t, p) for t, p in top))
                for token, logprob, top in logprobs
            ),
        )
    except (ValueError, TypeError):
        return None


def _characters(request: Request) -> int:
    total = 0
    for message in request.messages:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [p.get("text", "") for p in content]
        total += sum(map(len, parts))
    return total
