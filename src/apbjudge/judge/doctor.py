"""Checks before a run that a judge's endpoints can do what the run needs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from ..document.display import Shown
from ..errors import visible
from ..llm import Client
from ..llm.endpoint_cache import EndpointCache
from ..llm.endpoint_checks import EndpointReport, Target, check_endpoint, serves
from ..llm.model_spec import ModelSpec
from ..llm.resources import addresses_of, cache_folder, make_client, transport_of
from ..records import Record
from ..runs.event_loops import block_on
from .config import GradeConfig, JudgeSpec
from .dry_run import Forecast, forecast, forecast_text, longest_text
from .source import Rows

T = TypeVar("T")


class Checkup(Shown, Record):
    """The capabilities of a judge or a tested model.

    Attributes:
        judge: Its model.
        transport: ``direct`` or ``litellm``; ``given`` for a client of the caller's own.
        endpoints: One for each address; none for the static judge.
        plan: What grading the rows would take, None when there were no rows.
    """

    judge: str
    transport: str = "none"
    endpoints: tuple[EndpointReport, ...] = ()
    plan: Forecast | None = None

    @property
    def fits(self) -> bool | None:
        """True if the longest prompt fits every context; None when that is not known."""
        return None if self.plan is None else self.plan.fits

    @property
    def works(self) -> bool:
        """True if a run would work: every model answers and the longest prompt is not too long."""
        return all(endpoint.works for endpoint in self.endpoints) and self.fits is not False

    def _printed(self) -> str:
        return doctor_text(self)


def check_up(
    spec: JudgeSpec,
    rows: Rows | None = None,
    config: GradeConfig | None = None,
    *,
    client: Client | None = None,
    **settings: Any,
) -> Checkup:
    """Asks every endpoint of a judge what it can do, with at most seven tiny calls each.

    The format of replies and the context are cached for later runs and estimates. ``rows`` are
    what is to be graded, for the longest prompt; ``config``, or its fields one by one, says how.
    ``client`` answers in place of the network, which is then not used at all.
    """
    config = config or GradeConfig(**settings)
    folder = cache_folder(wanted=config.cache, client=client)
    changes = {"judge": (spec,), "cache": folder or False, "out": None}
    plan = forecast(rows, config.model_copy(update=changes)) if rows is not None else None
    if spec.is_static:
        return Checkup(judge=spec.model, plan=plan)
    return check_model(spec, plan, folder=folder, client=client)


def check_model(
    spec: ModelSpec, plan: Forecast | None, *, folder: Path | None, client: Client | None = None
) -> Checkup:
    """Asks every endpoint of a model; see ``check_up``.

    Args:
        spec: The model.
        plan: What the run would take, for the longest prompt; None without.
        folder: Folder of the caches, or None for none.
        client: Answers in place of the network.
    """
    transport = transport_of(spec) if client is None else "given"
    endpoints = block_on(_check_each(spec, client, check_endpoint))
    for endpoint in endpoints:
        properties: dict[str, Any] = {"format": endpoint.format} if endpoint.format else {}
        if endpoint.is_total:
            properties["context_tokens"] = endpoint.context_tokens
        EndpointCache(folder).update(spec.model, endpoint.address, properties)
    known = [endpoint for endpoint in endpoints if endpoint.context_tokens is not None]
    if plan and known:
        least = min(known, key=lambda endpoint: endpoint.context_tokens or 0)
        context = {"context_tokens": least.context_tokens, "is_total": least.is_total}
        plan = plan.model_copy(update={"rates": plan.rates.model_copy(update=context)})
    return Checkup(judge=spec.model, transport=transport, endpoints=endpoints, plan=plan)


def wait_for(spec: ModelSpec, wait_s: float, note: Callable[[str], None]) -> bool:
    """Waits until every endpoint of a model answers; see ``endpoint_checks.serves``."""
    return all(block_on(_check_each(spec, None, lambda target: serves(target, wait_s, note))))


async def _check_each(
    spec: ModelSpec, own_client: Client | None, check: Callable[[Target], Awaitable[T]]
) -> tuple[T, ...]:
    client = own_client or make_client(spec)
    targets = [
        Target(client=client, spec=spec, address=address, network=own_client is None)
        for address in addresses_of(spec, own_client)
    ]
    try:
        return tuple(await asyncio.gather(*map(check, targets)))
    finally:
        if own_client is None:
            await client.close()


def doctor_text(checkup: Checkup) -> str:
    """A check-up, and what grading the rows would take where there are any."""
    plan = "" if checkup.plan is None else forecast_text(checkup.plan)
    return checkup_text(checkup) + plan


def checkup_text(checkup: Checkup) -> str:
    """A check-up as aligned lines, each with its line end."""
    lines = [] if checkup.endpoints else [f"{checkup.judge}: asks no model"]
    for endpoint in checkup.endpoints:
        address = endpoint.address or "the provider's own address"
        lines.append(f"{checkup.judge} at {address} ({checkup.transport} transport)")
        lines += [f"  {check.name:<10}{check.detail}" for check in endpoint.checks]
        if checkup.plan is not None:
            lines[-1] += f"; {longest_text(checkup.plan)}"
    return "".join(f"{visible(line)}\n" for line in lines)
