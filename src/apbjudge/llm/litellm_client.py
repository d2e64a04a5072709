"""Calls through litellm: any provider, or an OpenAI-compatible server such as vLLM."""

from __future__ import annotations

import asyncio
import os
from functools import lru_cache
from typing import Any

from ..errors import CallTimeoutError
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
            return _completion(response)
        except TimeoutError:
            raise CallTimeoutError(f"no answer within {request.timeout_s:g} s") from None
        except Exception as error:  # noqa: BLE001 - every failure is translated
            raise translate(error) from None

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
        text=_clean(getattr(message, "content", None) or ""),
        finish_reason=str(getattr(choice, "finish_reason", None) or "none"),
        refusal=_refusal(message),
        usage=_usage(getattr(response, "usage", None)),
        cost_usd=_price(hidden.get("response_cost")),
    )


def _clean(text: object) -> str:
    """Text that UTF-8 can hold: half a surrogate pair becomes a question mark."""
    return str(text).encode(errors="replace").decode()


def _price(cost: object) -> float | None:
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if 0 <= cost < 1e9 else None


def _refusal(message: Any) -> str | None:
    direct = getattr(message, "refusal", None)
    fields: dict[str, Any] = getattr(message, "provider_specific_fields", None) or {}
    refusal = direct or fields.get("refusal")
    return _clean(refusal) if refusal else None


def _usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        prompt_tokens=_tokens(usage, "prompt_tokens"),
        completion_tokens=_tokens(usage, "completion_tokens"),
        cached_tokens=_tokens(details, "cached_tokens"),
        calls=1,
    )


def _tokens(usage: Any, name: str) -> int:
    """A count as an endpoint reports it; nonsense counts as 0."""
    count: Any = getattr(usage, name, None)
    return count if isinstance(count, int) and 0 <= count < 10**9 else 0
