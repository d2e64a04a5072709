"""Calls through litellm: any provider, or an OpenAI-compatible server such as vLLM."""

from __future__ import annotations

import asyncio
import os
from functools import lru_cache
from typing import Any

from ..records import Usage
from .base import Completion, Request
from .failures import translate
from .replies import schema_arguments


class LitellmClient:
    """The client that reaches the network. litellm is imported at the first call."""

    async def complete(self, request: Request) -> Completion:
        """Answers one request; see ``Client``."""
        litellm = load_litellm()
        try:
            async with asyncio.timeout(request.timeout_s + 5):
                response = await litellm.acompletion(**_arguments(request))
        except Exception as error:  # noqa: BLE001 - every failure is translated
            raise translate(error) from None
        return _completion(response)

    async def close(self) -> None:
        """Closes litellm's shared connections."""
        litellm = load_litellm()
        await litellm.close_litellm_async_clients()


def sees(model: str) -> bool:
    """Whether litellm's model table says that a model takes pictures."""
    litellm = load_litellm()
    try:
        return bool(litellm.supports_vision(model))
    except Exception:  # noqa: BLE001 - a model the table does not know
        return False


@lru_cache(maxsize=1)
def load_litellm() -> Any:
    """Imports litellm once, with everything off that phones home or chatters."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "CRITICAL")
    import litellm

    module: Any = litellm
    module.suppress_debug_info = True
    module.telemetry = False
    module.drop_params = True
    return module


def _arguments(request: Request) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": request.model,
        "messages": request.messages,
        "max_tokens": request.max_tokens,
        "timeout": request.timeout_s,
        # The one retry layer is ours.
        "num_retries": 0,
        "max_retries": 0,
        **request.settings,
    }
    if request.structured:
        arguments |= schema_arguments(request.reply)
    if request.api_base:
        arguments["api_base"] = request.api_base
        if request.model.startswith("openai/") and not os.environ.get("OPENAI_API_KEY"):
            arguments.setdefault("api_key", "none")  # the SDK insists on one; local servers don't
    return arguments


def _completion(response: Any) -> Completion:
    choice = response.choices[0] if response.choices else None
    message = choice.message if choice is not None else None
    hidden: dict[str, Any] = getattr(response, "_hidden_params", None) or {}
    return Completion(
        text=getattr(message, "content", None) or "",
        finish_reason=str(getattr(choice, "finish_reason", None) or "none"),
        refusal=_refusal(message),
        usage=_usage(getattr(response, "usage", None)),
        cost_usd=hidden.get("response_cost"),
    )


def _refusal(message: Any) -> str | None:
    direct = getattr(message, "refusal", None)
    fields: dict[str, Any] = getattr(message, "provider_specific_fields", None) or {}
    refusal = direct or fields.get("refusal")
    return str(refusal) if refusal else None


def _usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        prompt_tokens=getattr(usage, "prompt_tokens", 0) or 0,
        completion_tokens=getattr(usage, "completion_tokens", 0) or 0,
        cached_tokens=getattr(details, "cached_tokens", 0) or 0,
        calls=1,
    )
