"""The seam to the network: a request, a completion, and the one method between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from ..records import Record, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a chat model.

    Attributes:
        model: litellm model name, with provider.
        messages: Chat messages.
        reply: Pydantic model of the reply, from which the schema is made.
        structured: Whether the endpoint is asked to enforce that schema.
        max_tokens: Upper limit of the reply.
        api_base: Address of the endpoint, or None for the provider's own.
        timeout_s: Seconds until the call counts as hung.
        settings: Sampling settings and other parameters, passed on as they are.
    """

    model: str
    messages: list[dict[str, Any]]
    reply: type[BaseModel]
    structured: bool = True
    max_tokens: int = 2048
    api_base: str | None = None
    timeout_s: float = 120.0
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


class Completion(Record):
    """What came back.

    Attributes:
        text: The reply, possibly empty.
        finish_reason: ``stop``, ``length``, ``content_filter``, …, as litellm names them.
        refusal: What the model said when it declined, or None.
        usage: Tokens of this call.
        cost_usd: Price of this call, None when unknown.
    """

    text: str
    finish_reason: str
    refusal: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None


class Client(Protocol):
    """Whatever can answer requests: litellm, or a scripted fake."""

    async def complete(self, request: Request) -> Completion:
        """Answers one request.

        Raises:
            JudgeError: One of its subclasses; no other exception leaves this method.
        """
        ...

    async def close(self) -> None:
        """Releases connections."""
        ...
