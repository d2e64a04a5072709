"""What an endpoint can do, found out with a handful of tiny calls.

Servers that take a parameter need not heed it. So a schema is asked for that the prompt says
nothing of: a reply that fits it can only come from a server that enforces it.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import CallTimeoutError, JudgeError, RateLimitedError
from ..records import Record
from .base import FORMATS, Client, Completion, Format, Request
from .body import count_of
from .clock import Clock, MonotonicClock
from .direct import KEYS
from .litellm_client import load_litellm
from .swatch import red_png
from .table import context_tokens

MAX_TOKENS = 64
LONGEST_WAIT_S = 30.0
LONGEST_FAILURE = 160
MAX_LIST_BYTES = 4 * 2**20
MOST_NAMES = 5

Outcome = Literal["enforced", "ignored", "refused", "unclear"]

_RED = re.compile(r"\bred\b", re.IGNORECASE)
_HELLO = "Say hello."
_COLOUR = "Which colour is this picture? One word."
_LENGTHS = ("max_model_len", "context_length", "max_context_length", "context_window")
"""How servers that tell a model's context call it."""

_SILENT = f"no reply within {MAX_TOKENS} tokens"


class Probe(BaseModel):
    """A reply that no model gives by chance."""

    model_config = ConfigDict(extra="forbid", strict=True)

    violet: Literal[7]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is probed.

    Attributes:
        client: The transport, without retries.
        model: litellm model name.
        address: Address of the endpoint, or None for the provider's own.
        timeout_s: Seconds until a call counts as hung.
        settings: The judge's sampling settings: they may be what the endpoint refuses.
        network: Whether there is one beside the client, so that lists of models can be had.
        clock: Tells the time.
    """

    client: Client
    model: str
    address: str | None = None
    timeout_s: float = LONGEST_WAIT_S
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    network: bool = True
    clock: Clock = field(default_factory=MonotonicClock)


class KeyFound(Record):
    """Whether the provider's key is there; the key itself is never looked at.

    Attributes:
        names: Variables that hold it, or those of them that are missing.
        is_set: None when it is not known what the provider needs, or nothing of it is missing.
    """

    names: tuple[str, ...] = ()
    is_set: bool | None = None

    @property
    def text(self) -> str:
        """One sentence."""
        names = ", ".join(self.names)
        if self.is_set is None:
            return "none missing, as far as litellm knows"
        return f"{names} is set" if self.is_set else f"none sent: {names} is not set"


class ModelFound(Record):
    """Whether the model answers.

    Attributes:
        latency_s: Seconds of a tiny call, None when there was no answer.
        failure: Why there was none.
    """

    latency_s: float | None = None
    failure: str | None = None

    @property
    def answers(self) -> bool:
        """Whether it does."""
        return self.failure is None

    @property
    def text(self) -> str:
        """One sentence."""
        if self.latency_s is None:
            return f"no answer: {self.failure}"
        return f"answers in {self.latency_s:.2f} s"


class FormatsFound(Record):
    """What becomes of each way to ask for a reply's form.

    Attributes:
        outcomes: By format; plain text is not among them.
        failures: Why formats were refused or are unclear.
    """

    outcomes: dict[Format, Outcome]
    failures: dict[Format, str] = {}

    @property
    def best(self) -> Format | None:
        """The strictest format that is enforced, else text; None when that is not certain."""
        for form in FORMATS:
            if self.outcomes.get(form) == "enforced":
                return form
        return None if "unclear" in self.outcomes.values() else "text"

    @property
    def text(self) -> str:
        """One sentence."""
        said = ", ".join(f"{form} {outcome}" for form, outcome in self.outcomes.items())
        reason = next(iter(self.failures.values()), None)
        used = f"{self.best} will be used" if self.best else f"{FORMATS[0]} will be tried"
        return f"{said}: {used}" + (f" ({reason})" if reason else "")


class LogprobsFound(Record):
    """Whether probabilities of tokens are reported.

    Attributes:
        outcome: What became of the wish for them.
        alternatives: Most alternatives at a token.
        failure: Why they were refused or are unclear.
    """

    outcome: Literal["given", "ignored", "refused", "unclear"]
    alternatives: int = 0
    failure: str | None = None

    @property
    def text(self) -> str:
        """One sentence."""
        if self.outcome == "given":
            return f"{self.alternatives} alternatives per token"
        return f"{self.outcome}: {self.failure}" if self.failure else self.outcome


class PicturesFound(Record):
    """Whether the model sees.

    Attributes:
        outcome: ``sees``; ``blind`` where a picture was taken and its colour not named.
        failure: Why pictures were refused or it is unclear.
    """

    outcome: Literal["sees", "blind", "refused", "unclear"]
    failure: str | None = None

    @property
    def text(self) -> str:
        """One sentence."""
        if self.outcome == "sees":
            return "sees them"
        if self.outcome == "blind":
            return "takes them but did not name the colour of one"
        return f"{self.outcome}: {self.failure}"


class ContextFound(Record):
    """How long a prompt may be, and whether the endpoint lists the model.

    Attributes:
        tokens: None when not known.
        is_total: Whether the reply has to fit too.
        is_listed: None when there is no list.
        names: Some names of the list, when the model's is not among them.
    """

    tokens: int | None = None
    is_total: bool = False
    is_listed: bool | None = None
    names: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One sentence."""
        return "not known" if self.tokens is None else f"{self.tokens:,} tokens"


def find_key(model: str, address: str | None = None) -> KeyFound:
    """Looks whether the variable of a model's provider is set."""
    name = KEYS.get(model.partition("/")[0])
    if name is not None:
        return KeyFound(names=(name,), is_set=bool(os.environ.get(name)))
    found: dict[str, Any] = load_litellm().validate_environment(model, api_base=address)
    missing = tuple(map(str, found["missing_keys"]))
    return KeyFound(names=missing, is_set=False if missing else None)


async def probe_model(target: Target) -> ModelFound:
    """Two calls; the time of the second counts, when libraries and connections are there."""
    latency_s = 0.0
    for _ in range(2):
        begun = target.clock.now()
        reply = await _ask(target, _HELLO)
        if isinstance(reply, JudgeError):
            return ModelFound(failure=_short(reply))
        latency_s = target.clock.now() - begun
    return ModelFound(latency_s=latency_s)


async def probe_formats(target: Target) -> FormatsFound:
    """One call for each format but plain text."""
    outcomes: dict[Format, Outcome] = {}
    failures: dict[Format, str] = {}
    for form in FORMATS[:-1]:
        prompt = f"{_HELLO} (json)" if form == "json_object" else _HELLO
        reply = await _ask(target, prompt, form=form)
        if isinstance(reply, JudgeError):
            outcomes[form], failures[form] = _outcome(reply), _short(reply)
        elif not reply.text.strip():
            outcomes[form], failures[form] = "unclear", _SILENT
        elif reply.finish_reason == "length" and _BEGUN.match(reply.text):
            # nothing in the prompt speaks of this key: only a schema can have brought it about
            outcomes[form] = "unclear" if form == "json_object" else "enforced"
        else:
            outcomes[form] = "enforced" if _fits(reply.text, form) else "ignored"
    return FormatsFound(outcomes=outcomes, failures=failures)


_BEGUN = re.compile(r'\s*\{\s*"violet"')


def _fits(text: str, form: Format) -> bool:
    """Whether a reply, as it is, keeps to what was asked for."""
    try:
        if form == "json_object":
            return isinstance(orjson.loads(text), dict)
        Probe.model_validate_json(text)
    except (orjson.JSONDecodeError, ValidationError):
        return False
    return True


async def probe_logprobs(target: Target, form: Format) -> LogprobsFound:
    """One call, in the format that a run would use."""
    reply = await _ask(target, _HELLO, form=form, logprobs=True)
    if isinstance(reply, JudgeError):
        return LogprobsFound(outcome=_outcome(reply), failure=_short(reply))
    if not reply.text.strip():
        return LogprobsFound(outcome="unclear", failure=_SILENT)
    alternatives = max((len(choice.top) for choice in reply.logprobs), default=0)
    return LogprobsFound(outcome="given" if alternatives else "ignored", alternatives=alternatives)


async def probe_pictures(target: Target) -> PicturesFound:
    """One call with a picture that is red all over."""
    url = f"data:image/png;base64,{base64.b64encode(red_png()).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": _COLOUR}]
    reply = await _ask(target, parts)
    if isinstance(reply, JudgeError):
        return PicturesFound(outcome=_outcome(reply), failure=_short(reply))
    if not reply.text.strip():
        return PicturesFound(outcome="unclear", failure=_SILENT)
    return PicturesFound(outcome="sees" if _RED.search(reply.text) else "blind")


async def probe_context(target: Target) -> ContextFound:
    """What the endpoint says of its models, else what litellm's table says; no model is called."""
    name = target.model.partition("/")[2]
    listed = await _models(target) if target.address and target.network else []
    names = tuple(str(entry["id"]) for entry in listed if "id" in entry)
    is_listed = name in names if names else None
    others = names[:MOST_NAMES] if is_listed is False else ()
    tokens = await _served_tokens(target, listed, name)
    return ContextFound(
        tokens=tokens or context_tokens(target.model),
        is_total=tokens is not None,
        is_listed=is_listed,
        names=others,
    )


async def _served_tokens(target: Target, listed: list[dict[str, Any]], name: str) -> int | None:
    """The context of a model as its server has it; a server of one model gives any name to it."""
    own = [entry for entry in listed if entry.get("id") == name]
    if len(found := own or listed) != 1:
        return None
    said = next((n for key in _LENGTHS if (n := count_of(found[0].get(key)))), 0)
    trained = count_of(_dict(found[0].get("meta")).get("n_ctx_train"))
    return said or await _slot_tokens(target) or trained or None


async def _models(target: Target) -> list[dict[str, Any]]:
    """The endpoint's list of models, empty where there is none."""
    data = (await _get(target, "/models")).get("data")
    entries = cast("list[Any]", data) if isinstance(data, list) else []
    return [entry for entry in map(_dict, entries) if entry]


def _key_header(model: str) -> dict[str, str]:
    key = os.environ.get(KEYS.get(model.partition("/")[0], ""))
    return {"Authorization": f"Bearer {key}"} if key else {}


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


async def _slot_tokens(target: Target) -> int:
    """What llama.cpp gives to one call: the context of one of its slots; 0 when it is silent."""
    found = await _get(target, "/props")
    return count_of(_dict(found.get("default_generation_settings")).get("n_ctx"))


async def _get(target: Target, path: str) -> dict[str, Any]:
    """A JSON object from the endpoint; empty on any failure, since nothing depends on it."""
    import aiohttp

    base = (target.address or "").rstrip("/")
    url = f"{base.removesuffix('/v1') if path == '/props' else base}{path}"
    try:
        async with (
            asyncio.timeout(target.timeout_s),
            aiohttp.ClientSession(trust_env=True) as session,
            session.get(url, headers=_key_header(target.model), allow_redirects=False) as answer,
        ):
            data = b""
            async for part in answer.content.iter_chunked(1 << 16):
                data += part
                if len(data) > MAX_LIST_BYTES:
                    return {}
            return _dict(orjson.loads(data)) if answer.status == 200 else {}
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return {}


async def _ask(
    target: Target, content: Any, *, form: Format = "text", logprobs: bool = False
) -> Completion | JudgeError:
    request = Request(
        model=target.model,
        messages=[{"role": "user", "content": content}],
        reply=Probe,
        format=form,
        max_tokens=MAX_TOKENS,
        api_base=target.address,
        timeout_s=target.timeout_s,
        settings=target.settings,
        logprobs=logprobs,
    )
    try:
        return await target.client.complete(request)
    except JudgeError as error:
        return error


def _outcome(error: JudgeError) -> Literal["refused", "unclear"]:
    """A model that has just answered refuses what fails, unless it is slow or busy."""
    return "unclear" if isinstance(error, CallTimeoutError | RateLimitedError) else "refused"


def _short(error: JudgeError) -> str:
    text = str(error)
    return text if len(text) <= LONGEST_FAILURE else f"{text[: LONGEST_FAILURE - 1]}…"
