"""Whether a judge's endpoints can do what a run asks of them, before the run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ..errors import visible
from ..llm import Client
from ..llm.direct import DirectClient
from ..llm.litellm_client import LitellmClient
from ..llm.memory import Memory
from ..llm.probes import (
    LONGEST_WAIT_S,
    ContextFound,
    FormatsFound,
    KeyFound,
    LogprobsFound,
    ModelFound,
    PicturesFound,
    Target,
    find_key,
    probe_context,
    probe_formats,
    probe_logprobs,
    probe_model,
    probe_pictures,
)
from ..protocols import AUTO
from ..records import Record
from ..runs.event_loops import block_on
from . import JudgeSpec
from .dry_run import Forecast, forecast, longest_text
from .resources import cache_folder, transport_of
from .session import Rows

_NOT_ASKED = "not asked"
_GIVEN = "given"


class EndpointFound(Record):
    """What is known of one endpoint; None for what was not asked since the model is silent.

    Attributes:
        address: Its address, None for the provider's own.
        key: Whether there is a key.
        model: Whether the model answers.
        context: How long a prompt may be.
        formats: How replies can be asked for.
        logprobs: Whether probabilities of tokens are given.
        pictures: Whether the model sees.
    """

    address: str | None
    key: KeyFound
    model: ModelFound
    context: ContextFound
    formats: FormatsFound | None = None
    logprobs: LogprobsFound | None = None
    pictures: PicturesFound | None = None


class Checkup(Record):
    """What a judge can do.

    Attributes:
        judge: Its model.
        transport: ``direct`` or ``litellm``; ``given`` for a client of the caller's own.
        endpoints: One for each address; none for the static judge.
        plan: What grading the rows would take, None when there were no rows.
    """

    judge: str
    transport: str = "none"
    endpoints: tuple[EndpointFound, ...] = ()
    plan: Forecast | None = None

    @property
    def fits(self) -> bool | None:
        """Whether the longest prompt fits every context, None when that is not known."""
        return None if self.plan is None else self.plan.fits

    @property
    def works(self) -> bool:
        """Whether a run would: every model answers and the longest prompt is not too long."""
        return all(found.model.answers for found in self.endpoints) and self.fits is not False


def check_up(
    spec: JudgeSpec,
    *,
    rows: Rows | None = None,
    protocol: str = AUTO,
    cases: str | Path | None = None,
    rubric: str | None = None,
    data_root: str | Path | None = None,
    cache: bool | Path | None = None,
    client: Client | None = None,
) -> Checkup:
    """Asks every endpoint of a judge what it can do, with at most eight tiny calls each.

    The format of replies and the context are remembered for later runs and estimates.

    Args:
        spec: The judge.
        rows: What is to be graded, for the longest prompt; None leaves that out.
        protocol: As for ``grade``.
        cases: As for ``grade``.
        rubric: As for ``grade``.
        data_root: As for ``grade``.
        cache: As for ``grade``; what is learnt is remembered there.
        client: Answers in place of the network, which is then not used at all.

    Raises:
        OptionError: If an option, the rubric or the transport is unusable.
        InputError: If an input file as a whole is unusable.
    """
    folder = cache_folder(wanted=cache, client=client)
    options: dict[str, Any] = {"protocol": protocol, "cases": cases, "rubric": rubric}
    options["data_root"] = data_root
    plan = (
        forecast(rows, judge=spec, cache=folder or False, **options) if rows is not None else None
    )
    if spec.is_static:
        return Checkup(judge=spec.model, plan=plan)
    transport = transport_of(spec) if client is None else _GIVEN
    found = block_on(_ask_all(spec, client, direct=transport == "direct"))
    _remember(spec, found, Memory(folder))
    plan = _with_context(plan, found) if plan else None
    return Checkup(judge=spec.model, transport=transport, endpoints=found, plan=plan)


async def _ask_all(
    spec: JudgeSpec, given: Client | None, *, direct: bool
) -> tuple[EndpointFound, ...]:
    client = given or (DirectClient() if direct else LitellmClient())
    targets = [
        Target(
            client=client,
            model=spec.model,
            address=address,
            timeout_s=min(spec.timeout_s, LONGEST_WAIT_S),
            settings=spec.sampling(),
            network=given is None,
        )
        for address in spec.api_base or (None,)
    ]
    try:
        return tuple(await asyncio.gather(*map(_ask, targets)))
    finally:
        if given is None:
            await client.close()


async def _ask(target: Target) -> EndpointFound:
    """Asks an endpoint everything; nothing further of a model that does not answer."""
    key = find_key(target.model, target.address) if target.network else KeyFound()
    model = await probe_model(target)
    context = await probe_context(target)
    found = EndpointFound(address=target.address, key=key, model=model, context=context)
    if not model.answers:
        return found
    formats = await probe_formats(target)
    more = {
        "formats": formats,
        "logprobs": await probe_logprobs(target, formats.best or "text"),
        "pictures": await probe_pictures(target),
    }
    return found.model_copy(update=more)


def _remember(spec: JudgeSpec, endpoints: tuple[EndpointFound, ...], memory: Memory) -> None:
    for found in endpoints:
        facts: dict[str, Any] = {}
        if found.formats is not None and found.formats.best is not None:
            facts["format"] = found.formats.best
        if found.context.is_total:
            facts["context_tokens"] = found.context.tokens
        if facts:
            memory.note(spec.model, found.address, facts)


def _with_context(plan: Forecast, endpoints: tuple[EndpointFound, ...]) -> Forecast:
    """The plan, held against the shortest context that was found."""
    known = [found.context for found in endpoints if found.context.tokens is not None]
    if not known:
        return plan
    least = min(known, key=lambda context: context.tokens or 0)
    facts = {"context_tokens": least.tokens, "is_total": least.is_total}
    return plan.model_copy(update={"rates": plan.rates.model_copy(update=facts)})


def checkup_text(checkup: Checkup) -> str:
    """A check-up as aligned lines, each with its line end."""
    if not checkup.endpoints:
        lines = [f"{checkup.judge}: asks no model"]
    else:
        lines = [line for found in checkup.endpoints for line in _lines(checkup, found)]
    return "".join(f"{visible(line)}\n" for line in lines)


def _lines(checkup: Checkup, found: EndpointFound) -> list[str]:
    place = found.address or "the provider's own address"
    parts = {
        "key": _key_text(found) if checkup.transport != _GIVEN else "not looked for",
        "model": found.model.text + _listed_text(found.context),
        "replies": found.formats.text if found.formats else _NOT_ASKED,
        "logprobs": found.logprobs.text if found.logprobs else _NOT_ASKED,
        "pictures": found.pictures.text if found.pictures else _NOT_ASKED,
        "context": found.context.text,
    }
    if checkup.plan is not None:
        parts["context"] += f"; {longest_text(checkup.plan)}"
    head = f"{checkup.judge} at {place} ({checkup.transport} transport)"
    return [head, *(f"  {name:<10}{text}" for name, text in parts.items())]


def _key_text(found: EndpointFound) -> str:
    sent_none = found.key.is_set is False
    return "none needed, none sent" if sent_none and found.model.answers else found.key.text


def _listed_text(context: ContextFound) -> str:
    if context.is_listed is not False:
        return ""
    return f"; not in the endpoint's list: {', '.join(context.names)}"
