"""The seam to the network: a request, a completion, and the one method between them."""

from __future__ import annotations

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
"""How a reply's form can be asked for, strictest first: an enforced JSON schema, a call of a tool
whose parameters are the reply, any JSON object, or the words of the prompt alone."""

TOP_LOGPROBS = 20
"""Alternatives asked for per token: as many as servers commonly give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a chat model.

    Attributes:
        model: litellm model name, with provider.
        messages: Chat messages.
        reply: Pydantic model of the reply, from which the schema is made.
        format: How the endpoint is asked to keep to that schema.
        max_tokens: Upper limit of the reply.
        api_base: Address of the endpoint, or None for the provider's own.
        timeout_s: Seconds until the call counts as hung.
        settings: Sampling settings and other parameters, passed on as they are.
        logprobs: Whether the probabilities of the reply's tokens are asked for.
        sample: Number of this reply among several to the same messages.
        prefix: What the request shares with others, such as a hash of the case; requests of one
            prefix go to the same replica.
    """

    model: str
    messages: list[dict[str, Any]]
    reply: type[BaseModel]
    format: Format = "json_schema"
    max_tokens: int = 2048
    api_base: str | None = None
    timeout_s: float = 120.0
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    logprobs: bool = False
    sample: int = 0
    prefix: str = ""

    def key(self, place: str = "") -> str:
        """Fingerprint of the request: 32 hex digits over all that may move the reply.

        Args:
            place: What else tells one model from another of the same name, such as an address.
        """
        schema = orjson.Fragment(schema_json(self.reply))
        content = [place, self.model, self.messages, schema]
        content += [self.max_tokens, self.settings, self.logprobs, self.sample]
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


@lru_cache(maxsize=64)
def schema_json(reply: type[BaseModel]) -> bytes:
    """The JSON schema of a reply model, as JSON with sorted keys."""
    return orjson.dumps(reply.model_json_schema(), option=orjson.OPT_SORT_KEYS)


class Completion(Record):
    """What came back.

    Attributes:
        text: The reply, possibly empty.
        finish_reason: ``stop``, ``length``, ``content_filter``, …, as litellm names them.
        refusal: What the model said when it declined, or None.
        usage: Tokens of this call.
        cost_usd: Price of this call, None when unknown.
        logprobs: Probabilities of the reply's tokens, empty when not asked for or not given.
        wait_s: Seconds until the endpoint takes more calls, when it said that it takes none now.
    """

    text: str
    finish_reason: str
    refusal: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    logprobs: tuple[TokenChoice, ...] = ()
    wait_s: float | None = None


class Client(Protocol):
    """Whatever can answer requests: a transport, the engine around it, or a scripted fake."""

    async def complete(self, request: Request) -> Completion:
        """Answers one request.

        Raises:
            JudgeError: One of its subclasses; no other exception leaves this method.
        """
        ...

    async def close(self) -> None:
        """Releases connections."""
        ...
