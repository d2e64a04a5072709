"""The engine: one request in, one reply out, whatever the network does in between.

A request goes through, in this order: the reply cache, the retries, the budget, the rate limit
(calls and tokens per minute), the choice of an endpoint, the transport. The engine is a ``Client``
around ``Client``s.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ..errors import (
    AccessError,
    FormatUnsupportedError,
    JudgeError,
    RateLimitedError,
    TransportError,
)
from ..records import Usage
from .base import (
    FORMATS,
    Clock,
    Completion,
    Format,
    MonotonicClock,
    Request,
    ToolCall,
    cache_key,
)
from .budget import Budget
from .cache import ReplyCache
from .endpoint_cache import EndpointCache
from .endpoints import Endpoint, Router
from .logprobs import TokenChoice
from .model_spec import ModelSpec
from .model_table import Prices
from .rate_limit import RateLimit
from .retry import with_retries
from .served import learn_served, place_of

_REUSED = Usage(reused=1)


@dataclass(slots=True, kw_only=True)
class Engine:
    """Answers requests through one or several endpoints.

    Attributes:
        endpoints: Where calls go.
        spec: Name of the model, rates, retries and time limits.
        prices: Override the transport's prices, where they are known.
        cache: Replies of earlier runs, or None.
        endpoint_cache: Properties of endpoints from earlier runs.
        lists_models: Whether endpoints are asked what they serve, once, before the first request.
        budget: Limits and what is spent so far; engines may share one.
    """

    endpoints: Sequence[Endpoint]
    spec: ModelSpec
    budget: Budget
    prices: Prices = field(default_factory=Prices)
    cache: ReplyCache | None = None
    endpoint_cache: EndpointCache = field(default_factory=lambda: EndpointCache(None))
    lists_models: bool = False
    clock: Clock = field(default_factory=MonotonicClock)
    rng: random.Random = field(default_factory=random.Random)
    _router: Router = field(init=False)
    _rate_limit: RateLimit = field(init=False)
    _place: _Place = field(init=False)
    _measured: _Measured = field(init=False)

    def __post_init__(self) -> None:
        self._router = Router(self.endpoints, clock=self.clock, outage_s=self.spec.outage_s)
        self._rate_limit = RateLimit(self.spec.rpm, self.spec.tpm, self.clock)
        self._measured = _Measured()
        self._place = _Place()

    def sharing(self, cache: ReplyCache | None) -> Engine:
        """This engine with another reply cache: endpoints, budget and rates are the same ones."""
        other = copy(self)
        other.cache = cache
        return other

    async def complete(self, request: Request) -> Completion:
        """Answers one request; see ``Client``. Its usage counts every call made for it."""
        place = self._place.name or await self._where()
        key = request.key(place) if self.cache else ""
        if (cached := self._cached(key, request)) is not None:
            return cached
        tally = _Tally()
        try:
            completion = await with_retries(
                lambda: self._attempt(request, tally),
                retries=self.spec.retries,
                deadline_s=self.spec.deadline_s,
                clock=self.clock,
                rng=self.rng,
            )
        except JudgeError as error:
            error.calls, error.lost = tally.calls, tally.lost
            raise
        if self.cache and is_cacheable(completion):
            self.cache.put(cache_key(key, tally.format), dump_completion(completion))
        if tally.calls == completion.usage.calls and not tally.lost:
            return completion
        usage = completion.usage.model_copy(update={"calls": tally.calls, "lost": tally.lost})
        return completion.model_copy(update={"usage": usage})

    async def _where(self) -> str:
        """The place by which replies are kept; see ``served``."""
        here = self._place
        async with here.lock:
            if here.name is None:
                addresses = [endpoint.address for endpoint in self.endpoints]
                asks = self.lists_models and (self.cache is not None or len(addresses) > 1)
                of = (self.spec.model, addresses, self.endpoint_cache)
                here.name = place_of(addresses, await learn_served(*of) if asks else {})
        return here.name

    def _cached(self, key: str, request: Request) -> Completion | None:
        """A reply obtained in the format that the request would be sent in now."""
        if self.cache is None:
            return None
        forms: set[Format] = {request.format_at(e.format) for e in self.endpoints}
        for form in sorted(forms, key=FORMATS.index):
            data = self.cache.get(cache_key(key, form))
            if data is not None and (completion := load_completion(data)) is not None:
                return completion
        return None

    async def _attempt(self, request: Request, tally: _Tally) -> Completion:
        """One attempt, once there is room for it."""
        reserved = await self._rate_limit.acquire(_characters(request))
        while True:
            endpoint = await self._router.enter(request.prefix, avoid=tally.failed_at)
            try:
                completion = await self._negotiate(endpoint, request, tally)
                break
            except AccessError:
                if all(e.closed for e in self.endpoints):
                    raise
            except TransportError as error:
                self._router.check_reachable()
                tally.failed_at = None if isinstance(error, RateLimitedError) else endpoint
                raise
            finally:
                self._router.leave(endpoint)
        usage = completion.usage
        self._rate_limit.correct(reserved, usage.prompt_tokens + usage.completion_tokens)
        return completion

    async def _negotiate(self, endpoint: Endpoint, request: Request, tally: _Tally) -> Completion:
        """Calls in the strictest format that the endpoint takes, and remembers which it is.

        Only refusals teach: a request that wants a looser format, or none, leaves what is known of
        the endpoint as it is.
        """
        first = request.format_at(endpoint.format)
        starts_at_known = first == endpoint.format
        for form in FORMATS[FORMATS.index(first) :]:
            tally.format = form
            sent = replace(request, api_base=endpoint.address, format=form)
            try:
                completion = await self._call(endpoint, sent, tally)
            except FormatUnsupportedError:
                if form == FORMATS[-1]:
                    raise
                continue
            if form != first and starts_at_known:
                endpoint.format = form
            return completion
        raise AssertionError("unreachable: the last format raises")

    async def _call(self, endpoint: Endpoint, request: Request, tally: _Tally) -> Completion:
        await self.budget.admit()
        tally.calls += 1
        start = self.clock.now()
        sample = endpoint.begin(start)
        completion: Completion | None = None
        lost = True  # unless an answer comes
        try:
            completion = await endpoint.client.complete(request)
        except BaseException as error:
            if isinstance(error, JudgeError):
                lost = isinstance(error, TransportError) and not error.answered
            endpoint.failed(sample, error, start, self.clock.now())
            raise
        else:
            now = self.clock.now()
            update: dict[str, float | None] = {"latency_s": now - start}
            if self.prices.are_known:
                update["cost_usd"] = self.prices.cost_usd(completion.usage)
            completion = completion.model_copy(update=update)
            endpoint.succeeded(sample, start, now, completion.wait_s)
            self._measured.add(now - start, _characters(request), completion.usage)
            return completion
        finally:
            tally.lost += completion is None and lost
            self.budget.settle(completion, lost=lost)

    async def close(self) -> None:
        """Closes the transports and writes what the cache still buffers."""
        for client in {id(e.client): e.client for e in self.endpoints}.values():
            await client.close()
        if self.cache is not None:
            self.cache.close()
        for endpoint in self.endpoints:
            properties = {"format": endpoint.format, **self._measured.means()}
            self.endpoint_cache.update(self.spec.model, endpoint.address, properties)


@dataclass(slots=True)
class _Place:
    """By what replies are kept, once it is known."""

    name: str | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Tally:
    """What one request took so far, the format sent last, and the endpoint that failed last."""

    calls: int = 0
    lost: int = 0
    format: Format = FORMATS[0]
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

    def means(self) -> dict[str, float]:
        """Means, under their names in the endpoint cache; none before the first answer."""
        if not self.calls or not self.characters:
            return {}
        means = {
            "latency_s": self.seconds / self.calls,
            "tokens_per_character": self.prompt_tokens / self.characters,
            "reply_tokens": self.reply_tokens / self.calls,
        }
        return {name: float(f"{mean:.4g}") for name, mean in means.items() if mean > 0}


def is_cacheable(completion: Completion) -> bool:
    """Whether the reply is finished; after a filter or an empty reply the next may differ."""
    has_content = completion.text or completion.tool_calls
    return bool(has_content) and completion.finish_reason in ("stop", "length", "tool_calls")


def dump_completion(completion: Completion) -> bytes:
    """A completion as it is cached: JSON, with what the call took."""
    logprobs = [[c.token, c.logprob, c.top] for c in completion.logprobs]
    calls = [[call.name, call.arguments, call.id] for call in completion.tool_calls]
    values = [completion.text, completion.finish_reason, logprobs, completion.served_model, calls]
    tokens = completion.usage.prompt_tokens + completion.usage.completion_tokens
    return orjson.dumps([*values, completion.refusal, tokens, completion.cost_usd or 0.0])


def load_completion(data: bytes) -> Completion | None:
    """A completion from the cache; None when the entry is not one of ours."""
    try:
        values: Any = orjson.loads(data)
        least: Any = [None, (), None, 0, 0.0]  # entries of older versions end early
        values += least[max(len(values) - 3, 0) :]
        text, reason, logprobs, served, calls, refusal, tokens, usd = values
        return Completion(
            text=text,
            finish_reason=reason,
            refusal=refusal,
            served_model=served,
            tool_calls=tuple(ToolCall(name=n, arguments=a, id=i) for n, a, i in calls),
            usage=_REUSED,
            cost_usd=0.0,
            earlier_tokens=tokens,
            earlier_usd=usd,
            logprobs=tuple(
                TokenChoice(token, logprob, tuple((t, p) for t, p in top))
                for token, logprob, top in logprobs
            ),
        )
    except (ValueError, TypeError):
        return None


def _characters(request: Request) -> int:
    total = len(orjson.dumps(request.tools)) if request.tools else 0
    for message in request.messages:
        content = message.get("content") or ""
        parts = [content] if isinstance(content, str) else [p.get("text", "") for p in content]
        total += sum(map(len, parts))
    return total
