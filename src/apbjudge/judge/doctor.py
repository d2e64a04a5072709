"""Checks before a run that a judge's endpoints can do what the run needs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..config import STATIC
from ..document.display import Shown
from ..errors import visible
from ..llm import Client
from ..llm.endpoint_cache import EndpointCache
from ..llm.endpoint_checks import EndpointReport, Target, check_endpoint, serves
from ..llm.model_spec import ModelSpec
from ..llm.resources import (
    addresses_of,
    cache_folder,
    check_access,
    make_client,
    transport_of,
)
from ..protocols import AUTO, get_protocol
from ..records import Record
from ..records.checks import checks_text
from ..runs.event_loops import block_on
from .config import GradeConfig, JudgeSpec
from .dry_run import Forecast, forecast, forecast_text, with_longest
from .source import Rows

T = TypeVar("T")


class Checkup(Shown, Record):
    """The capabilities of a judge or a tested model.

    Attributes:
        judge: Its model.
        transport: ``direct`` or ``litellm``; ``given`` for a client of the caller's own.
        endpoints: One for each address; none for the static judge.
        plan: Estimate of grading the rows; None without rows.
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
        plan = "" if self.plan is None else forecast_text(self.plan)
        return checkup_text(self) + plan


@dataclass(frozen=True, slots=True)
class ModelsToCheck:
    """The models that ``doctor`` checks.

    Attributes:
        specs: Their settings.
        check: Checks one of them.
        client: Answers in place of the network.
    """

    specs: Sequence[ModelSpec]
    check: Callable[[Any], Checkup]
    client: Client | None = None

    def all_answer(self, wait_s: float | None, note: Callable[[str], None]) -> bool:
        """Checks the access to the models and waits for them; false if one does not answer.

        Raises:
            OptionError: If a model's access is unusable.
        """
        if self.client is not None:
            return True
        check_access(self.specs)
        asked = (spec for spec in self.specs if spec.model != STATIC and wait_s is not None)
        return all(
            all(block_on(_check_each(spec, None, lambda target: serves(target, wait_s or 0, note))))
            for spec in asked
        )


def judges_of(
    rows: Rows | None, options: Mapping[str, Any], client: Client | None = None
) -> ModelsToCheck:
    """The judges that options name, which are checked for ``rows``; see ``check_up``."""
    config = GradeConfig.of(options, escalate=None)
    if config.protocol != AUTO:
        get_protocol(config.protocol)
    return ModelsToCheck(
        config.judge, lambda spec: check_up(spec, rows, config, client=client), client
    )


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
        plan: Estimate of the run, for the longest prompt; None without one.
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


def checkup_text(checkup: Checkup) -> str:
    """A check-up as aligned lines, each with its line end."""
    text = "" if checkup.endpoints else f"{visible(checkup.judge)}: asks no model\n"
    for endpoint in checkup.endpoints:
        address = endpoint.address or "the provider's own address"
        text += visible(f"{checkup.judge} at {address} ({checkup.transport} transport)") + "\n"
        *checks, context = endpoint.checks
        if checkup.plan is not None:
            context = with_longest(endpoint.context_tokens, checkup.plan)
        text += checks_text([*checks, context], indent="  ")
    return text
