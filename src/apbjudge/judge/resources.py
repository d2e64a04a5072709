"""From a judge's settings to something that answers: transport, endpoints, prices, cache."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import OptionError
from ..llm import Client
from ..llm.base import FORMATS, Format
from ..llm.budget import Budget, Limits
from ..llm.cache import ReplyCache, default_cache_folder
from ..llm.clock import Clock, MonotonicClock
from ..llm.direct import KEYS, DirectClient, serves_exactly
from ..llm.endpoints import Endpoint
from ..llm.engine import Engine
from ..llm.litellm_client import LitellmClient
from ..llm.memory import Memory
from ..llm.prices import Prices
from ..llm.table import prices as table_prices
from ..llm.table import sees as table_says
from . import JudgeSpec
from .llm_judge import LLMJudge

REPLIES = "replies"
"""Folder of the reply cache within the cache folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a session has at hand, beside the judge's own settings.

    Attributes:
        client: Answers in place of the network; None for the real thing.
        limits: What the session may take.
        budget: The same with what is spent so far, where several judges share it.
        cache: Folder of the caches, or None for none.
        clock: Tells the time and waits.
        rng: Source of jitter.
        warn: Told once of anything that goes wrong beside the judging itself.
    """

    client: Client | None = None
    limits: Limits = field(default_factory=Limits)
    budget: Budget | None = None
    cache: Path | None = None
    clock: Clock = field(default_factory=MonotonicClock)
    rng: random.Random = field(default_factory=random.Random)
    warn: Callable[[str], None] = lambda message: None


def shared_resources(
    *,
    client: Client | None,
    limits: Limits,
    cache: bool | Path | None,
    warn: Callable[[str], None],
) -> Resources:
    """What the judges of one session share: they spend one budget.

    Args:
        client: See ``Resources``.
        limits: See ``Resources``.
        cache: See ``cache_folder``.
        warn: See ``Resources``.
    """
    return Resources(
        client=client,
        limits=limits,
        budget=Budget(limits, MonotonicClock()),
        cache=cache_folder(wanted=cache, client=client),
        warn=warn,
    )


def cache_folder(*, wanted: bool | Path | None, client: Client | None) -> Path | None:
    """The folder of the caches; a client of the caller's own is not cached unless asked for."""
    if isinstance(wanted, Path):
        return wanted
    if wanted is None:
        wanted = client is None
    return default_cache_folder() if wanted else None


def open_cache(*, warn: Callable[[str], None]) -> ReplyCache:
    """The reply cache that runs use."""
    return ReplyCache(default_cache_folder() / REPLIES, warn=warn)


def clear_caches(*, warn: Callable[[str], None]) -> int:
    """Removes all replies and forgets all endpoints; returns how many replies there were."""
    cache = open_cache(warn=warn)
    removed = cache.clear()
    cache.close()
    Memory(default_cache_folder()).forget()
    return removed


def transport_of(spec: JudgeSpec) -> str:
    """``direct`` or ``litellm``.

    Raises:
        OptionError: If ``direct`` is asked for where it can't serve.
    """
    provider = spec.model.partition("/")[0]
    if spec.transport == "direct":
        if not spec.api_base or provider not in KEYS:
            known = ", ".join(KEYS)
            raise OptionError(
                f"--transport direct: expected --api-base and a model of {known}, got {spec.model}"
            )
        return "direct"
    exact = serves_exactly(spec.model, api_base=bool(spec.api_base), params=spec.sampling())
    # litellm prices the models of its table
    if spec.transport == "auto" and exact and not table_prices(spec.model).are_known:
        return "direct"
    return "litellm"


def prices_of(spec: JudgeSpec) -> Prices:
    """The prices that the user gave, else those of litellm's table."""
    own = Prices(input=spec.price_input, output=spec.price_output, cached=spec.price_cached)
    if (own.input is None) != (own.output is None):
        raise OptionError("--config price_input and price_output: expected both or neither")
    return own if own.are_known else table_prices(spec.model)


def make_engine(spec: JudgeSpec, resources: Resources) -> Engine:
    """The engine of a judge.

    Raises:
        OptionError: If the transport can't serve, or money is limited and prices are not known.
    """
    direct = transport_of(spec) == "direct"
    client = resources.client or (DirectClient() if direct else LitellmClient())
    prices = prices_of(spec)
    if resources.limits.max_cost is not None and resources.client is None and not prices.are_known:
        raise OptionError(
            f"--max-cost: the price of {spec.model} is not known; give --config price_input=… and "
            "--config price_output=… in US dollars per million tokens"
        )
    own = spec.price_input is not None
    memory = Memory(resources.cache)
    return Engine(
        endpoints=[_endpoint(spec, client, memory, base) for base in spec.api_base or (None,)],
        model=spec.model,
        limits=resources.limits,
        shared=resources.budget,
        prices=prices if own or direct else Prices(),
        cache=_replies(resources),
        memory=memory,
        retries=spec.retries,
        deadline_s=spec.deadline_s,
        outage_s=spec.outage_s,
        rpm=spec.rpm,
        tpm=spec.tpm,
        clock=resources.clock,
        rng=resources.rng,
    )


def _endpoint(spec: JudgeSpec, client: Client, memory: Memory, base: str | None) -> Endpoint:
    known = memory.recall(spec.model, base).get("format")
    form: Format = known if known in FORMATS else FORMATS[0]
    return Endpoint(client=client, address=base, most=spec.max_concurrency, format=form)


def make_judge(spec: JudgeSpec, roots: Sequence[Path], resources: Resources) -> LLMJudge:
    """The model judge of a run; no library of a provider is imported before the first call.

    Args:
        spec: The judge.
        roots: Folders that pictures may lie in.
        resources: What the session has at hand.
    """
    return make_judges([(spec, resources)], roots)[0]


def make_judges(
    wanted: Sequence[tuple[JudgeSpec, Resources]], roots: Sequence[Path]
) -> list[LLMJudge]:
    """Model judges that ask the same endpoint: they share its addresses, limits and pace.

    Args:
        wanted: Each judge's settings, which differ in what is asked and not in who is, and what it
            has at hand, which differs in the cache alone; at least one.
        roots: Folders that pictures may lie in.
    """
    first, resources = wanted[0]
    engine = make_engine(first, resources)
    sees = is_shown_pictures(first, known=resources.client is None)
    engines = {resources.cache: engine}
    for _, other in wanted[1:]:
        if other.cache not in engines:
            engines[other.cache] = engine.sharing(_replies(other))
    return [LLMJudge(spec, engines[m.cache], roots=roots, sees=sees) for spec, m in wanted]


def _replies(resources: Resources) -> ReplyCache | None:
    return ReplyCache(resources.cache / REPLIES, warn=resources.warn) if resources.cache else None


def is_shown_pictures(spec: JudgeSpec, *, known: bool = True) -> bool:
    """Whether a judge is sent pictures.

    Args:
        spec: The judge.
        known: Whether litellm's table can be trusted to know the model.
    """
    auto = spec.vision == "auto" and spec.images and known
    return spec.vision == "yes" or (auto and table_says(spec.model))
