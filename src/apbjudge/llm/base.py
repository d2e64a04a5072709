"""A request, a completion, the client between them, and the clock; tests can replace them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, Protocol

import orjson
from pydantic import BaseModel

from ..records import Record, Usage
from .logprobs import TokenChoice

Format = Literal["json_schema", "tool", "json_object", "text"]
FORMATS: tuple[Format, ...] = ("json_schema", "tool", "json_object", "text")
"""Ways to ask for a reply's form, strictest first: an enforced JSON schema, a call of a tool whose
parameters are the reply, any JSON object, or only the words of the prompt."""

TOP_LOGPROBS = 20
"""Alternatives requested per token: the number that servers commonly allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a chat model.

    Attributes:
        model: litellm model name, with provider.
        messages: Chat messages in the form of the OpenAI protocol.
        reply: Pydantic model of the reply, from which the schema is made; None for plain text or
            tool calls.
        format: Strictest format in which the endpoint is asked to follow that schema.
        tools: Tools that the model may call, in the form of the OpenAI protocol; not together with
            ``reply``.
        tool_choice: ``auto``, ``none`` or ``required``; None leaves it to the provider.
        max_tokens: Upper limit of the reply.
        api_base: Address of the endpoint, or None for the provider's own.
        timeout_s: Seconds until the call counts as hung.
        settings: Sampling settings and other parameters, passed on as they are.
        logprobs: True if the probabilities of the reply's tokens are requested.
        sample: Number of this reply among several to the same messages.
        prefix: Text that the request shares with others, such as a hash of the case; requests with
            the same prefix go to the same replica.

    Raises:
        ValueError: If there are both ``reply`` and ``tools``.
    """

    model: str
    messages: list[dict[str, Any]]
    reply: type[BaseModel] | None = None
    format: Format = "json_schema"
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: Literal["auto", "none", "required"] | None = None
    max_tokens: int = 2048
    api_base: str | None = None
    timeout_s: float = 120.0
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    logprobs: bool = False
    sample: int = 0
    prefix: str = ""

    def __post_init__(self) -> None:
        if self.reply is not None and self.tools:
            raise ValueError("Request: expected reply or tools, got both")

    def format_at(self, endpoint_format: Format) -> Format:
        """The format to use at an endpoint that accepts ``endpoint_format`` and looser ones."""
        if self.reply is None:
            return "text"
        return FORMATS[max(FORMATS.index(self.format), FORMATS.index(endpoint_format))]

    def key(self, place: str = "") -> str:
        """Fingerprint, in 32 hex digits, of all that may change the reply apart from its form.

        Args:
            place: Text that distinguishes models of the same name, such as an address.
        """
        schema = orjson.Fragment(schema_json(self.reply)) if self.reply is not None else None
        content = [place, self.model, self.messages, schema]
        content += [self.max_tokens, self.settings, self.logprobs, self.sample]
        if self.tools:
            content += [self.tools, self.tool_choice]
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def cache_key(key: str, form: Format) -> str:
    """The key of a reply in the cache: the request's key with the format of the reply."""
    return key if form == FORMATS[0] else f"{key}-{form}"


@lru_cache(maxsize=64)
def schema_json(reply: type[BaseModel]) -> bytes:
    """The JSON schema of a reply model, as JSON with sorted keys."""
    return orjson.dumps(reply.model_json_schema(), option=orjson.OPT_SORT_KEYS)


class NativeCall(Record):
    """A call of one of the request's tools, as the model wrote it.

    Attributes:
        name: Name of the tool; empty if the model gave none.
        arguments: Text of the arguments; JSON unless the model made a mistake.
        id: The endpoint's id of the call, to which a tool message refers; empty if it gave none.
    """

    name: str
    arguments: str
    id: str = ""


class Completion(Record):
    """The response to a request.

    Attributes:
        text: The reply, possibly empty.
        reasoning: The model's thinking, as the endpoint reports it apart from the reply.
        tool_calls: Calls of tools, in order; a model may call one that the request does not have.
        finish_reason: ``stop``, ``length``, ``tool_calls``, ``content_filter``, …, in litellm's
            terms.
        refusal: The model's words when it declined, or None.
        served_model: Model name that the endpoint reports; None if it reports none.
        usage: Tokens of this call.
        cost_usd: Price of this call, None when unknown.
        latency_s: Seconds that the call took, as the engine measured them; None for a reply from
            the cache or of a client without an engine.
        logprobs: Probabilities of the reply's tokens, empty when not requested or not reported.
        wait_s: Seconds until the endpoint accepts more calls, if it reports that it accepts none
            now.
        assumed_tokens: Tokens that limits count in addition to ``usage``: for a reply from the
            cache those of the original call; if ``usage`` is unreported, an estimate.
        assumed_usd: US dollars that limits count in addition to ``cost_usd``, likewise; 0 if no
            price is known.
    """

    text: str
    finish_reason: str
    reasoning: str = ""
    tool_calls: tuple[NativeCall, ...] = ()
    refusal: str | None = None
    served_model: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    latency_s: float | None = None
    logprobs: tuple[TokenChoice, ...] = ()
    wait_s: float | None = None
    assumed_tokens: int = 0
    assumed_usd: float = 0.0

    @property
    def reply_text(self) -> str:
        """The text or, in the format ``tool``, the arguments of the call that is the reply.

        With several calls, it has all arguments, each on its own lines.
        """
        return self.text or "\n".join(call.arguments for call in self.tool_calls)


class Client(Protocol):
    """Anything that can answer requests: a transport, the engine around it, or a scripted fake."""

    async def complete(self, request: Request) -> Completion:
        """Answers one request.

        Raises:
            JudgeError: One of its subclasses; no other exception leaves this method.
        """
        ...

    async def close(self) -> None:
        """Releases connections."""
        ...


class ScriptedClient:
    """Answers from a script: for tests, examples and dry runs. Never the default.

    Args:
        script: Called with each request; returns the reply, as text or as a whole completion (for
            example with tool calls), or raises a JudgeError.

    Attributes:
        requests: The requests so far.

    Example:
        >>> client = ScriptedClient(lambda request: '{"reasoning": "…", "is_correct": true}')
    """

    def __init__(self, script: Callable[[Request], str | Completion]) -> None:
        self._script = script
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        """Answers one request; see ``Client``."""
        self.requests.append(request)
        answer = self._script(request)
        if isinstance(answer, Completion):
            return answer
        return Completion(text=answer, finish_reason="stop", usage=Usage(calls=1), cost_usd=0.0)

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


class Clock(Protocol):
    """Measures seconds and waits for them."""

    def now(self) -> float:
        """Seconds since a fixed moment; never decreases, even if the date is changed."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits for a number of seconds."""
        ...


class MonotonicClock:
    """The system's monotonic clock."""

    def now(self) -> float:
        """See ``Clock``."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """See ``Clock``."""
        await asyncio.sleep(seconds)
