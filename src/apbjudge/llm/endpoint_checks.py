"""Checks of an endpoint's abilities with a handful of tiny calls.

Servers may accept a parameter and ignore it. So the prompt does not mention the schema requested
here: a reply that fits it can only come from a server that enforces it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import CallTimeoutError, JudgeError, RateLimitedError, TransportError
from ..records import Record
from ..records.checks import Check, CheckOutcome
from ..records.loose_json import THINKING_TAG, as_object, objects_of
from .base import FORMATS, Client, Clock, Completion, Format, MonotonicClock, Request
from .chat_format import count_of
from .direct import get_json
from .failures import explained
from .litellm_client import load_litellm
from .model_spec import KEYS, ModelSpec
from .model_table import context_tokens

MAX_TOKENS = 64
LONGEST_WAIT_S = 30.0
LONGEST_FAILURE = 300
MAX_NAMES = 5
POLL_S = 5.0

RED_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAb0lEQVR4nO3PAQkAAAyEwO9feoshgnABdLep8QUNyPEF"
    "DcjxBQ3I8QUNyPEFDcjxBQ3I8QUNyPEFDcjxBQ3I8QUNyPEFDcjxBQ3I8QUNyPEFDcjxBQ3I8QUNyPEFDcjxBQ3I8QUN"
    "yPEFDcjxBQ3IPanc8OLDQitxAAAAAElFTkSuQmCC"
)
"""A red picture of 64 × 64 pixels in base64; some models refuse smaller ones."""

_RED = re.compile(r"\bred\b", re.IGNORECASE)
_PROMPT_WITHOUT_FORM = "Say hello."
_COLOUR = "Which colour is this picture? One word."
_CONTEXT_KEYS = ("max_model_len", "context_length", "max_context_length", "context_window")
_SILENT = f"no reply within {MAX_TOKENS} tokens"
_BEGINS_WITH_KEY = re.compile(r'\s*\{\s*"violet"')


class EndpointReport(Record):
    """The checks of one endpoint.

    Attributes:
        address: Its address, None for the provider's own.
        checks: key, model, thinking, replies, logprobs, pictures and context; ``thinking`` only if
            the model was seen to think.
        format: The strictest reply format that is enforced, else text; None if unclear.
        context_tokens: The longest prompt; None if unknown.
        is_total: True if the reply has to fit into ``context_tokens`` too.
    """

    address: str | None
    checks: tuple[Check, ...]
    format: Format | None = None
    context_tokens: int | None = None
    is_total: bool = False

    def check(self, name: str) -> Check:
        """The check with a name."""
        return next(check for check in self.checks if check.name == name)

    @property
    def works(self) -> bool:
        """True if the model answers."""
        return self.check("model").outcome == "passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The endpoint to check.

    Attributes:
        client: The transport, without retries.
        spec: The model; its sampling settings are sent, since the endpoint may refuse them.
        address: Address of the endpoint, or None for the provider's own.
        network: True if a network is available besides the client, for lists of models.
        clock: Measures time.
    """

    client: Client
    spec: ModelSpec
    address: str | None = None
    network: bool = True
    clock: Clock = field(default_factory=MonotonicClock)


class Violet(BaseModel):
    """A reply that no model gives by chance."""

    model_config = ConfigDict(extra="forbid", strict=True)

    violet: Literal[7]


async def check_endpoint(target: Target) -> EndpointReport:
    """Checks an endpoint with at most seven calls; two if the model does not answer."""
    model, reply = await _check_model(target)
    answers = model.outcome == "passed"
    key = Check(name="key", outcome="skipped", detail="not looked for")
    if target.network:
        key = _check_key(target, answers=answers)
    thinking: list[Check] = []
    if reply is not None and (seen := _thinking(reply)):
        help_text = f"{seen}: {THINKING_HELP}"
        thinking.append(Check(name="thinking", outcome="unclear", detail=help_text))
    form, abilities = None, list[Check]()
    if answers:
        form, replies = await _check_formats(target)
        abilities = [replies, await _check_logprobs(target, form or "text")]
        abilities.append(await _check_pictures(target))
    else:
        abilities = [
            Check(name=name, outcome="skipped", detail="not asked")
            for name in ("replies", "logprobs", "pictures")
        ]
    tokens, is_total, names = await _context(target)
    if names:
        listed = f"{model.detail}; not in the endpoint's list: {', '.join(names)}"
        model = model.model_copy(update={"detail": listed})
    return EndpointReport(
        address=target.address,
        checks=(key, model, *thinking, *abilities, context_check(tokens)),
        format=form,
        context_tokens=tokens,
        is_total=is_total,
    )


async def serves(target: Target, wait_s: float, note: Callable[[str], None]) -> bool:
    """Asks an endpoint until it answers, whatever the answer.

    Args:
        target: The endpoint, perhaps one that is still loading its model.
        wait_s: Seconds to wait for it.
        note: Called with a line after every attempt without an answer.

    Returns:
        False if there was no answer, or only a server's failure, for that long.
    """
    start, where = target.clock.now(), target.address or target.spec.model
    while isinstance(reply := await _ask(target, _PROMPT_WITHOUT_FORM), TransportError):
        spent, cause = target.clock.now() - start, _short(reply)
        note(f"{where}: no answer yet, {spent:.0f} of {wait_s:g} s waited ({cause})")
        if spent + POLL_S > wait_s:
            return False
        await target.clock.sleep(POLL_S)
    return True


def context_check(tokens: int | None, longest: str = "", *, fits: bool | None = True) -> Check:
    """The check of a context.

    Args:
        tokens: Its length; None if unknown.
        longest: The longest prompt, in words; empty without rows.
        fits: True if that prompt fits; None if unknown.
    """
    text = "not known" if tokens is None else f"{tokens:,} tokens"
    outcome: CheckOutcome = "unclear" if tokens is None else "passed"
    if fits is False:
        outcome = "failed"
    return Check(name="context", outcome=outcome, detail=f"{text}; {longest}" if longest else text)


def _check_key(target: Target, *, answers: bool) -> Check:
    """Checks that the variable of the provider's key is set; the key itself is never read."""
    own = KEYS.get(target.spec.model.partition("/")[0])
    if own is not None:
        missing = () if os.environ.get(own) else (own,)
    else:
        litellm = load_litellm()
        required = litellm.validate_environment(target.spec.model, api_base=target.address)
        missing = tuple(map(str, required["missing_keys"]))
    detail = f"{own} is set" if own else "none missing, as far as litellm knows"
    if missing:
        are_unset = f"none sent: {', '.join(missing)} is not set"
        detail = "none needed, none sent" if answers else are_unset
    return Check(
        name="key", outcome="failed" if missing and not answers else "passed", detail=detail
    )


async def _check_model(target: Target) -> tuple[Check, Completion | None]:
    """Makes two calls; the time of the second counts: libraries and connections are ready."""
    latency_s, reply = 0.0, None
    for _ in range(2):
        start = target.clock.now()
        reply = await _ask(target, _PROMPT_WITHOUT_FORM)
        if isinstance(reply, JudgeError):
            error = _short(explained(reply, target.spec, target.address))
            return Check(name="model", outcome="failed", detail=f"no answer: {error}"), None
        latency_s = target.clock.now() - start
    return Check(name="model", outcome="passed", detail=f"answers in {latency_s:.2f} s"), reply


THINKING_HELP = (
    "--params '{extra_body = {chat_template_kwargs = {enable_thinking = false}}}' turns it off, if "
    "the model's chat template can; vllm serve --reasoning-parser NAME (such as qwen3 or "
    "deepseek_r1) keeps it apart from the reply; else a larger --max-reply-tokens leaves room for "
    "both"
)


def _thinking(reply: Completion) -> str:
    """The sign in a reply that the model thinks before answering; empty without one."""
    if reply.reasoning:
        return "apart from the reply" if reply.reply_text.strip() else "no reply beside it"
    if THINKING_TAG.search(reply.text):
        return "within the reply (<think>)"
    is_cut_off = not reply.reply_text.strip() and reply.finish_reason == "length"
    return f"perhaps, {_SILENT}" if is_cut_off else ""


async def _check_formats(target: Target) -> tuple[Format | None, Check]:
    """Makes one call for each format except plain text; the first that is enforced will be used."""
    outcomes: dict[Format, str] = {}
    failures: list[str] = []
    for form in FORMATS[:-1]:
        prompt = _PROMPT_WITHOUT_FORM + (" (json)" if form == "json_object" else "")
        reply = await _ask(target, prompt, form=form)
        if problem := _problem("replies", reply):
            outcomes[form], _, cause = problem.detail.partition(": ")
            failures.append(cause)
            continue
        text, reason = cast("Completion", reply).reply_text, cast("Completion", reply).finish_reason
        if reason == "length" and _BEGINS_WITH_KEY.match(text):
            # the prompt does not mention this key: only a schema can explain it
            outcomes[form] = "unclear" if form == "json_object" else "enforced"
        else:
            outcomes[form] = "enforced" if _fits(text, form) else "ignored"
    enforced: list[Format] = [form for form in FORMATS[:-1] if outcomes[form] == "enforced"]
    fallback: Format | None = None if "unclear" in outcomes.values() else "text"
    best = enforced[0] if enforced else fallback
    detail = ", ".join(f"{form} {outcome}" for form, outcome in outcomes.items())
    detail += f": {best} will be used" if best else f": {FORMATS[0]} will be tried"
    detail += f" ({failures[0]})" if failures else ""
    return best, Check(name="replies", outcome="passed" if best else "unclear", detail=detail)


def _fits(text: str, form: Format) -> bool:
    """True if a reply, unchanged, has the requested form."""
    try:
        if form == "json_object":
            return isinstance(orjson.loads(text), dict)
        Violet.model_validate_json(text)
    except (orjson.JSONDecodeError, ValidationError):
        return False
    return True


async def _check_logprobs(target: Target, form: Format) -> Check:
    """Makes one call, in the format that a run would use."""
    reply = await _ask(target, _PROMPT_WITHOUT_FORM, form=form, logprobs=True)
    if problem := _problem("logprobs", reply):
        return problem
    tokens = cast("Completion", reply).logprobs
    if n := max((len(token.top) for token in tokens), default=0):
        return Check(name="logprobs", outcome="passed", detail=f"{n} alternatives per token")
    return Check(name="logprobs", outcome="failed", detail="ignored")


async def _check_pictures(target: Target) -> Check:
    """Makes one call with a red picture."""
    url = f"data:image/png;base64,{RED_PNG}"
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": _COLOUR}]
    reply = await _ask(target, parts)
    if problem := _problem("pictures", reply):
        return problem
    if _RED.search(cast("Completion", reply).text):
        return Check(name="pictures", outcome="passed", detail="sees them")
    detail = "takes them but did not name the colour of one"
    return Check(name="pictures", outcome="failed", detail=detail)


def _problem(name: str, reply: Completion | JudgeError) -> Check | None:
    """The check of a call that failed or returned no text; None for a reply.

    The model has just answered, so a failure counts as a refusal, unless it is slow or busy.
    """
    if isinstance(reply, JudgeError):
        if isinstance(reply, CallTimeoutError | RateLimitedError):
            return Check(name=name, outcome="unclear", detail=f"unclear: {_short(reply)}")
        return Check(name=name, outcome="failed", detail=f"refused: {_short(reply)}")
    if reply.reply_text.strip():
        return None
    return Check(name=name, outcome="unclear", detail=f"unclear: {_SILENT}")


async def _context(target: Target) -> tuple[int | None, bool, tuple[str, ...]]:
    """The context in tokens, True if the reply must fit too, and listed names without the model's.

    Source: the endpoint's list, else litellm's table; no model is called.
    """
    name = target.spec.model.partition("/")[2]
    models: list[dict[str, Any]] = []
    if target.address and target.network:
        models = objects_of((await _get(target, "/models")).get("data"))
    names = tuple(str(entry["id"]) for entry in models if "id" in entry)
    served: int | None = None
    candidates = [entry for entry in models if entry.get("id") == name] or models
    if len(candidates) == 1:  # a server with one model accepts any name for it
        (entry,) = candidates
        served = next((n for key in _CONTEXT_KEYS if (n := count_of(entry.get(key)))), None)
        if not served:  # llama.cpp: the context of one slot, or that of the training
            slots = as_object((await _get(target, "/props")).get("default_generation_settings"))
            trained = count_of((as_object(entry.get("meta")) or {}).get("n_ctx_train"))
            served = count_of((slots or {}).get("n_ctx")) or trained or None
    tokens = served or context_tokens(target.spec.model)
    return tokens, served is not None, () if name in names else names[:MAX_NAMES]


async def _get(target: Target, path: str) -> dict[str, Any]:
    """A JSON object from the endpoint; empty on any failure, since nothing depends on it."""
    base = (target.address or "").rstrip("/")
    url = f"{base.removesuffix('/v1') if path == '/props' else base}{path}"
    return await get_json(url, target.spec.model.partition("/")[0], _timeout_s(target)) or {}


async def _ask(
    target: Target, content: Any, *, form: Format = "text", logprobs: bool = False
) -> Completion | JudgeError:
    request = Request(
        model=target.spec.model,
        messages=[{"role": "user", "content": content}],
        reply=Violet,
        format=form,
        max_tokens=MAX_TOKENS,
        api_base=target.address,
        timeout_s=_timeout_s(target),
        settings=target.spec.sampling(),
        logprobs=logprobs,
    )
    try:
        return await target.client.complete(request)
    except JudgeError as error:
        return error


def _timeout_s(target: Target) -> float:
    return min(target.spec.timeout_s, LONGEST_WAIT_S)


def _short(error: JudgeError) -> str:
    text = str(error)
    return text if len(text) <= LONGEST_FAILURE else f"{text[: LONGEST_FAILURE - 1]}…"
