"""The engine: one reply to each request, despite failures of the network.

A request passes, in this order: the reply cache, the retries, the budget, the rate limit (calls and
tokens per minute), the choice of an endpoint, the transport. The engine is a ``Client`` around
``Client``s.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from pydantic import ValidationError

from ..errors import (
    AccessError,
    FormatUnsupportedError,
    JudgeError,
    RateLimitedError,
    TransportError,
)
from .base import (
    FORMATS,
    Client,
    Clock,
    Completion,
    Format,
    MonotonicClock,
    Request,
    cache_key,
)
from .budget import Budget, Measured, tokens_of
from .cache import ReplyCache
from .endpoint_cache import EndpointCache
from .endpoints import Endpoint, Router
from .failures import explained
from .model_spec import ModelSpec
from .model_table import Prices
from .rate_limit import PICTURE_CHARACTERS, RateLimit
from .replicas import ReplicaWatch
from .retry import with_retries
from .served import learn_served, place_of


@dataclass(slots=True, kw_only=True)
class Engine:
    """Answers requests through one or several endpoints.

    Attributes:
        endpoints: Destinations of calls; they change as addresses come and go.
        spec: Name of the model, rates, retries and time limits.
        prices: Prices that override the transport's, if known.
        list_prices: Prices for estimates if ``prices`` are unknown.
        cache: Replies of earlier runs, or None.
        endpoint_cache: Properties of endpoints from earlier runs.
        endpoint_at: Makes an endpoint of a new address; None if addresses don't change.
        lists_models: True if endpoints are asked once for their models, before the first request.
        budget: Limits and the amounts spent so far; engines may share one.
        warn: Called at the end with the number of answers without usage, if any.
    """

    endpoints: list[Endpoint]
    spec: ModelSpec
    budget: Budget
    prices: Prices = field(default_factory=Prices)
    list_prices: Prices = field(default_factory=Prices)
    cache: ReplyCache | None = None
    endpoint_cache: EndpointCache = field(default_factory=lambda: EndpointCache(None))
    endpoint_at: Callable[[str | None], Endpoint] | None = None
    lists_models: bool = False
    clock: Clock = field(default_factory=MonotonicClock)
    rng: random.Random = field(default_factory=random.Random)
    warn: Callable[[str], None] = lambda message: None
    _router: Router = field(init=False)
    _rate_limit: RateLimit = field(init=False)
    _place: _EndpointPlace = field(init=False)
    _watch: ReplicaWatch | None = field(init=False, default=None)
    _measured: Measured = field(init=False)

    def __post_init__(self) -> None:
        self._router = Router(self.endpoints, clock=self.clock, outage_s=self.spec.outage_s)
        self._rate_limit = RateLimit(self.spec.rpm, self.spec.tpm, self.clock)
        self._measured = Measured(self.prices if self.prices.are_known else self.list_prices)
        facts = [self.endpoint_cache.get(self.spec.model, e.address) for e in self.endpoints]
        known = [fact.get("tokens_per_character") for fact in facts]
        if rates := [rate for rate in known if isinstance(rate, float) and 0 < rate < 9]:
            self._measured.per_character = max(rates)
        self._place = _EndpointPlace()
        if self.endpoint_at is not None:
            self._watch = ReplicaWatch(
                spec=self.spec,
                router=self._router,
                endpoint_at=self.endpoint_at,
                endpoint_cache=self.endpoint_cache,
                lists_models=self.lists_models,
                clock=self.clock,
                warn=self.warn,
            )

    @property
    def concurrency(self) -> int:
        """Largest number of calls in flight at the present endpoints."""
        each = self.spec.concurrency_per_endpoint
        return self.spec.max_concurrency if each is None else each * len(self.endpoints)

    def sharing(self, cache: ReplyCache | None) -> Engine:
        """This engine with another reply cache; endpoints, budget and rates are shared."""
        other = copy(self)
        other.cache = cache
        return other

    async def complete(self, request: Request) -> Completion:
        """Answers one request; see ``Client``. Its usage counts every call made for it."""
        if self._watch is not None:
            self._watch.start()
        place = self._place.name or await self._where()
        key = request.key(place) if self.cache else ""
        if (cached := self._cached(key, request)) is not None:
            return cached
        tally = _Tally(_characters(request))
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
        """The place under which replies are cached; see ``served``."""
        here = self._place
        while here.name is None:
            if here.asked is not None:  # wakes all waiting tasks at once, unlike a lock
                await here.asked.wait()
                continue
            here.asked = asyncio.Event()
            try:
                addresses = [endpoint.address for endpoint in self.endpoints]
                asks = self.lists_models and (self.cache is not None or len(addresses) > 1)
                of = (self.spec.model, addresses, self.endpoint_cache)
                here.name = place_of(addresses, await learn_served(*of) if asks else {})
            finally:
                here.asked.set()
                here.asked = None
        return here.name

    def _cached(self, key: str, request: Request) -> Completion | None:
        """A reply in the format in which the request would be sent now."""
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
        reserved = await self._rate_limit.acquire(tally.characters)
        while True:
            endpoint = await self._router.enter(request.prefix, avoid=tally.failed_at)
            try:
                completion = await self._negotiate(endpoint, request, tally)
                break
            except AccessError:
                if all(e.closed for e in self.endpoints):
                    raise
            except TransportError as error:
                if endpoint not in self.endpoints:  # it left meanwhile: not a failure of the others
                    continue
                self._router.check_reachable()
                tally.failed_at = None if isinstance(error, RateLimitedError) else endpoint
                raise
            finally:
                self._router.leave(endpoint)
        self._rate_limit.correct(reserved, tokens_of(completion.usage))
        return completion

    async def _negotiate(self, endpoint: Endpoint, request: Request, tally: _Tally) -> Completion:
        """Calls in the strictest format that the endpoint accepts, and remembers it.

        Only refusals change what is known of the endpoint: a request for a looser format, or none,
        does not.
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
        call = await self.budget.admit(self._measured, tally.characters, request.max_tokens)
        tally.calls += 1
        start = self.clock.now()
        sample = endpoint.begin(start)
        completion: Completion | None = None
        lost = True  # unless an answer comes
        try:
            completion = await endpoint.client.complete(request)
        except BaseException as error:
            if isinstance(error, JudgeError):
                explained(error, self.spec, endpoint.address)
                lost = isinstance(error, TransportError) and not error.answered
            endpoint.failed(sample, error, start, self.clock.now())
            raise
        else:
            now = self.clock.now()
            update: dict[str, Any] = {"latency_s": now - start}
            usage = completion.usage
            if not usage.prompt_tokens and completion.cost_usd is None:  # clients may lack it
                usage = update["usage"] = usage.model_copy(update={"unreported": 1})
            if self.prices.are_known:
                update["cost_usd"] = self.prices.cost_usd(usage)
            endpoint.succeeded(sample, start, now, completion.wait_s)
            completion = self._measured.add(completion.model_copy(update=update), call)
            return completion
        finally:
            tally.lost += completion is None and lost
            self.budget.record(call, completion, lost=lost)

    async def close(self) -> None:
        """Closes the transports and writes what the cache still buffers."""
        if self._watch is not None:
            self._watch.stop()
        for client in {id(e.client): e.client for e in self.endpoints}.values():
            await client.close()
        if self.cache is not None:
            self.cache.close()
        measured = self._measured
        if n := measured.unreported - measured.noted:
            measured.noted = measured.unreported
            self.warn(
                f"warning: {self.spec.model}: {n} answers stated no usage: their tokens and cost "
                "are unknown; limits count them by estimate"
            )
        for endpoint in self.endpoints:
            properties = {"format": endpoint.format, **measured.averages()}
            self.endpoint_cache.update(self.spec.model, endpoint.address, properties)


@dataclass(slots=True)
class _EndpointPlace:
    """The place under which replies are cached, once known; ``asked`` is set when it may be."""

    name: str | None = None
    asked: asyncio.Event | None = None


@dataclass(slots=True)
class _Tally:
    """The length of a request, its cost so far, its last format and its last failing endpoint."""

    characters: int
    calls: int = 0
    lost: int = 0
    format: Format = FORMATS[0]
    failed_at: Endpoint | None = None


def concurrency_of(client: Client, spec: ModelSpec) -> int:
    """Largest number of calls in flight with the client's present endpoints."""
    return client.concurrency if isinstance(client, Engine) else spec.max_concurrency


def is_cacheable(completion: Completion) -> bool:
    """True if the reply is complete; after a filter or an empty reply the next one may differ."""
    has_content = completion.text or completion.tool_calls or completion.reasoning
    return bool(has_content) and completion.finish_reason in ("stop", "length", "tool_calls")


def dump_completion(completion: Completion) -> bytes:
    """A completion in the form of the cache: JSON, with the usage of the call."""
    cost = completion.cost_usd
    values = {
        "text": completion.text,
        "finish_reason": completion.finish_reason,
        "reasoning": "" if completion.reply_text else completion.reasoning,
        "tool_calls": [call.model_dump() for call in completion.tool_calls],
        "refusal": completion.refusal,
        "served_model": completion.served_model,
        "usage": {"reused": 1},
        "cost_usd": 0.0,
        "logprobs": [[*choice] for choice in completion.logprobs],
        "assumed_tokens": tokens_of(completion.usage) + completion.assumed_tokens,
        "assumed_usd": completion.assumed_usd if cost is None else cost,
    }
    return orjson.dumps(values)


def load_completion(data: bytes) -> Completion | None:
    """A completion from the cache; None if the entry is not ours."""
    try:
        return Completion.model_validate_json(data)
    except ValidationError:
        return None


def _characters(request: Request) -> int:
    """Length of a prompt: its text, tools and calls of tools; see ``PICTURE_CHARACTERS``."""
    total = len(orjson.dumps(request.tools)) if request.tools else 0
    for message in request.messages:
        content = message.get("content") or ""
        if isinstance(content, str):
            total += len(content)
        else:
            total += sum(len(p["text"]) if "text" in p else PICTURE_CHARACTERS for p in content)
        if calls := message.get("tool_calls"):
            total += len(orjson.dumps(calls))
    return total
