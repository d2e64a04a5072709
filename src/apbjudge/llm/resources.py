"""Makes a client from a model's settings: transport, endpoints, prices, cache."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

from ..config import Config
from ..errors import OptionError
from ..locks import Claiming
from .base import FORMATS, Client, Clock, Format, MonotonicClock
from .budget import Budget
from .cache import DATABASE, CacheStats, ReplyCache, default_cache_folder
from .cache_segments import SegmentCache, segments_in
from .direct import DirectClient, serves_exactly
from .endpoint_cache import EndpointCache
from .endpoints import Endpoint
from .engine import Engine
from .limits import CacheKind, Limits, StoreConfig
from .litellm_client import LitellmClient
from .model_spec import KEYS, SERVERS, ModelSpec
from .model_table import Prices, model_prices, supports_vision
from .pool import current_pool
from .scripted import NOTE, SCRIPTED, ScriptedModel
from .served import place_of, served_before

REPLIES = "replies"
"""Folder of the reply cache within the cache folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The resources of a session, apart from a model's own settings.

    Attributes:
        client: Answers in place of the network; None for real calls.
        limits: Limits of the session.
        budget: The limits with the amounts spent so far, if several models share them.
        cache: Folder of the caches, or None for none.
        cache_kind: Kind of storage of replies.
        claiming: Settings of claims on folders of runs.
        is_durable: True if each reply is on disk before it is used, so that a kill loses none; if
            not, several are written together.
        clock: Measures time and waits.
        rng: Source of jitter.
        warn: Called with each problem other than those of requests.
    """

    client: Client | None = None
    limits: Limits = field(default_factory=Limits)
    budget: Budget | None = None
    cache: Path | None = None
    cache_kind: CacheKind = "sqlite"
    claiming: Claiming = field(default_factory=Claiming)
    is_durable: bool = False
    clock: Clock = field(default_factory=MonotonicClock)
    rng: random.Random = field(default_factory=random.Random)
    warn: Callable[[str], None] = lambda message: None

    def open_cache(self) -> ReplyCache | None:
        """The reply cache; None without one."""
        if self.cache is None:
            return None
        every = 1 if self.is_durable else 64
        make = partial(reply_cache, self.cache, self.cache_kind, every=every, warn=self.warn)
        pool = current_pool()
        key = (self.cache, self.cache_kind, every)
        return make() if pool is None else pool.cache(key, make, self.warn)


def shared_resources(
    *,
    client: Client | None,
    limits: Limits,
    cache: bool | Path | None,
    warn: Callable[[str], None],
) -> Resources:
    """Resources of all models of one session, which share a budget; see ``Resources``.

    Args:
        client: Answers in place of the network.
        limits: Limits of the session, or all its settings.
        cache: See ``cache_folder``.
        warn: Called with each problem.

    Raises:
        OptionError: If the settings name a self-hosted server without an address.
    """
    if client is None:
        check_access(_models(limits), warn)
    stores = limits if isinstance(limits, StoreConfig) else StoreConfig()
    return Resources(
        client=client,
        limits=limits,
        budget=Budget(limits, MonotonicClock()),
        cache=cache_folder(wanted=cache, client=client),
        cache_kind=stores.cache_kind,
        claiming=Claiming(by=stores.claim, take_over=stores.take_over),
        warn=warn,
    )


def _models(settings: Config) -> Iterable[ModelSpec]:
    """The models that settings name, in whichever field."""
    for _, value in settings:
        several = cast("tuple[object, ...]", value if isinstance(value, tuple) else (value,))
        yield from (each for each in several if isinstance(each, ModelSpec))


def check_access(
    models: Iterable[ModelSpec], warn: Callable[[str], None] = lambda message: None
) -> None:
    """Refuses a self-hosted server without an address, before any other model is asked.

    Args:
        models: The models of a session.
        warn: Called with each address that comes from the environment, and each name that is not a
            model's.

    Raises:
        OptionError: If one has no address.
    """
    for spec in models:
        if spec.model == SCRIPTED:
            warn(f"note: {NOTE}")
        address, is_stated = spec.addresses[0], spec.api_base or spec.api_base_file is not None
        if address and not is_stated:
            variable, _ = SERVERS[spec.model.partition("/")[0]]
            warn(f"note: {spec.model} is asked at {address}, from {variable}")


def addresses_of(spec: ModelSpec, client: Client | None) -> tuple[str | None, ...]:
    """The addresses of a model; the caller's own client needs none."""
    return spec.addresses if client is None else spec.stated_addresses or (None,)


def cache_folder(*, wanted: bool | Path | None, client: Client | None) -> Path | None:
    """The folder of the caches; the caller's own client is cached only on request."""
    if isinstance(wanted, Path):
        return wanted
    if wanted is None:
        wanted = client is None
    return default_cache_folder() if wanted else None


def reply_cache(
    folder: Path, kind: CacheKind, *, every: int = 64, warn: Callable[[str], None]
) -> ReplyCache:
    """The reply cache in a folder of caches; see ``ReplyCache``."""
    if kind == "segments":
        return SegmentCache(folder / REPLIES, every=every, warn=warn)
    return ReplyCache(folder / REPLIES, every=every, warn=warn)


def has_replies(folder: Path, kind: CacheKind) -> bool:
    """True if a folder of caches already has a reply cache of a kind."""
    replies = folder / REPLIES
    return bool(segments_in(replies)) if kind == "segments" else (replies / DATABASE).exists()


def cache_stats(*, warn: Callable[[str], None] = warnings.warn) -> CacheStats:
    """Counts the cached replies; calls ``warn`` if the cache can't be used."""
    each = [cache.stats() for cache in _all_caches(warn)]
    return CacheStats(each[0].folder, sum(of.entries for of in each), sum(of.bytes for of in each))


def cache_clear(*, warn: Callable[[str], None] = warnings.warn) -> int:
    """Removes all replies and properties of endpoints; returns the number of replies."""
    removed = sum(cache.clear() for cache in _all_caches(warn))
    EndpointCache(default_cache_folder()).clear()
    return removed


def _all_caches(warn: Callable[[str], None]) -> Iterator[ReplyCache]:
    """The existing reply caches of runs, of each kind."""
    folder = default_cache_folder()
    kinds: tuple[CacheKind, ...] = ("sqlite", "segments")
    for kind in kinds:
        if kind == "sqlite" or has_replies(folder, kind):
            with closing(reply_cache(folder, kind, warn=warn)) as cache:
                yield cache


def transport_of(spec: ModelSpec) -> str:
    """``direct``, ``litellm`` or, if no model is asked, ``scripted``.

    Raises:
        OptionError: If ``direct`` is requested but can't serve.
    """
    if spec.model == SCRIPTED:
        return "scripted"
    provider = spec.model.partition("/")[0]
    if spec.transport == "direct":
        if not spec.stated_addresses or provider not in KEYS:
            known = ", ".join(KEYS)
            raise OptionError(
                f"--transport direct: expected --api-base and a model of {known}, got {spec.model}"
            )
        return "direct"
    exact = serves_exactly(spec.model, api_base=bool(spec.stated_addresses), params=spec.sampling())
    # litellm prices the models of its table
    if spec.transport == "auto" and exact and not model_prices(spec.model).are_known:
        return "direct"
    return "litellm"


def make_client(spec: ModelSpec) -> Client:
    """A new client of the transport that serves a model.

    Raises:
        OptionError: If the transport can't serve.
    """
    match transport_of(spec):
        case "scripted":
            return ScriptedModel()
        case "direct":
            return DirectClient()
        case _:
            return LitellmClient()


def prices_of(spec: ModelSpec, *, batched: bool = False) -> Prices:
    """The prices that the user gave, else those of litellm's table.

    Args:
        spec: The model.
        batched: True if calls go through the provider's batch interface.

    Raises:
        OptionError: If one of the two prices is missing.
    """
    if spec.model == SCRIPTED:
        return Prices(input=0.0, output=0.0)
    own = Prices(input=spec.price_input, output=spec.price_output, cached=spec.price_cached)
    if (own.input is None) != (own.output is None):
        raise OptionError("--price-input, --price-output: expected both or neither")
    return own if own.are_known else model_prices(spec.model, batched=batched)


def known_format(spec: ModelSpec, address: str | None, cache: Path | None) -> Format:
    """The strictest reply format that an endpoint accepted in earlier runs, else the strictest."""
    known = EndpointCache(cache).get(spec.model, address).get("format")
    return FORMATS[FORMATS.index(known)] if known in FORMATS else FORMATS[0]


def known_place(spec: ModelSpec, cache: Path | None) -> str:
    """The place of a model's replies, as far as earlier runs know it; see ``served``."""
    of = (spec.model, spec.addresses, EndpointCache(cache))
    return place_of(spec.addresses, served_before(*of))


def make_engine(spec: ModelSpec, resources: Resources) -> Engine:
    """The engine of a model; no provider's library is imported before the first call.

    Raises:
        OptionError: If the transport can't serve, or money is limited and prices are unknown.
    """
    direct = transport_of(spec) == "direct"
    client = resources.client or make_client(spec)
    prices = prices_of(spec)
    for name in ("max_cost", "max_episode_cost"):
        is_limited = getattr(resources.limits, name, None) is not None
        if is_limited and resources.client is None and not prices.are_known:
            raise OptionError(
                f"--{name.replace('_', '-')}: the price of {spec.model} is not known; give "
                "--price-input and --price-output in US dollars per million tokens"
            )

    def endpoint_at(address: str | None) -> Endpoint:
        form = known_format(spec, address, resources.cache)
        most = spec.concurrency_per_endpoint or spec.max_concurrency
        return Endpoint(client=client, address=address, most=most, format=form)

    return Engine(
        endpoints=[endpoint_at(address) for address in addresses_of(spec, resources.client)],
        endpoint_at=endpoint_at if spec.api_base_file is not None else None,
        spec=spec,
        budget=resources.budget or Budget(resources.limits, resources.clock),
        prices=prices if spec.price_input is not None or direct else Prices(),
        list_prices=prices,
        cache=None if spec.model == SCRIPTED else resources.open_cache(),
        endpoint_cache=EndpointCache(resources.cache),
        lists_models=resources.client is None,
        clock=resources.clock,
        rng=resources.rng,
        warn=resources.warn,
    )


def can_see(spec: ModelSpec, *, known: bool = True) -> bool:
    """True if a model takes pictures.

    Args:
        spec: The model.
        known: True if litellm's table is expected to know the model.
    """
    auto = spec.vision == "auto" and known
    return spec.vision == "yes" or (
        auto and (spec.model == SCRIPTED or supports_vision(spec.model))
    )
