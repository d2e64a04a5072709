"""Calls through litellm: any provider it knows."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Any

from ..errors import CallTimeoutError
from ..records import Usage
from .base import Completion, Request
from .body import clean, count_of, format_arguments, logprob_arguments
from .failures import translate
from .logprobs import read_logprobs
from .quota import used_up_for
from .table import prices

_CALLS = count()


class LitellmClient:
    """One call of litellm a request. litellm is imported at the first one."""

    async def complete(self, request: Request) -> Completion:
        """Answers one request; see ``Client``."""
        litellm = load_litellm()
        try:
            async with asyncio.timeout(request.timeout_s):
                response = await litellm.acompletion(**_arguments(request), **_quietly(request))
            return _completion(response)
        except TimeoutError:
            raise CallTimeoutError(f"no answer within {request.timeout_s:g} s") from None
        except Exception as error:  # noqa: BLE001 - every failure is translated
            raise translate(error) from None

    async def close(self) -> None:
        """Closes litellm's shared connections."""
        if load_litellm.cache_info().currsize:
            await load_litellm().close_litellm_async_clients()


@lru_cache(maxsize=1)
def load_litellm() -> Any:
    """Imports litellm once, with everything off that phones home, chatters or takes time."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    is_wanted = "LITELLM_LOG" in os.environ
    os.environ.setdefault("LITELLM_LOG", "CRITICAL")
    import litellm

    if not is_wanted:  # else a program that logs everything would log every prompt
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    module: Any = litellm
    module.suppress_debug_info = True
    module.telemetry = False
    module.drop_params = True
    if gc.get_freeze_count():  # the program has asked for this already, and here is much more
        gc.freeze()
    return module


@lru_cache(maxsize=1)
def _quiet_log() -> Any:
    """A log of a call that keeps no books for callbacks: there are none.

    litellm makes such an object for every call, prices the call a second time for models without
    price and hands a summary to a thread. That takes half of a call's processor time.
    """
    from litellm.litellm_core_utils.litellm_logging import Logging

    base: Any = Logging

    def nothing(self: Any, *_: Any, **__: Any) -> None:
        pass

    async def nothing_later(self: Any, *_: Any, **__: Any) -> None:
        pass

    silent: dict[str, Any] = {
        "claim_async_success_log": nothing,
        "handle_sync_success_callbacks_for_async_calls": nothing,
        "failure_handler": nothing,
        "async_failure_handler": nothing_later,
        "response_cost_calculator": _cost_of_priced(base.response_cost_calculator),
    }
    return type("QuietLog", (base,), silent)


def _cost_of_priced(calculate: Callable[..., Any]) -> Callable[..., Any]:
    """Litellm's own calculation, for the models that its table has a price of."""

    def cost(self: Any, *args: Any, **kwargs: Any) -> Any:
        return calculate(self, *args, **kwargs) if prices(self.model).are_known else None

    return cost


def _quietly(request: Request) -> dict[str, Any]:
    call = f"apbjudge-{next(_CALLS)}"  # a random number for each is dear on some systems
    log = _quiet_log()(
        model=request.model,
        messages=request.messages,
        stream=False,
        call_type="acompletion",
        start_time=datetime.now(),  # noqa: DTZ005 - as litellm has it
        litellm_call_id=call,
        litellm_trace_id=call,
        function_id="",
        kwargs={},
    )
    return {"litellm_logging_obj": log, "litellm_call_id": call}


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
        **format_arguments(request.reply, request.format),
        **logprob_arguments(request),
    }
    if request.format == "tool":
        arguments["_skip_mcp_handler"] = True  # else litellm wants a package for tools of its own
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
        text=_text(message),
        finish_reason=str(getattr(choice, "finish_reason", None) or "none"),
        refusal=_refusal(message),
        usage=_usage(getattr(response, "usage", None)),
        cost_usd=_price(hidden.get("response_cost")),
        logprobs=read_logprobs(getattr(getattr(choice, "logprobs", None), "content", None)),
        wait_s=used_up_for(hidden.get("additional_headers")),
    )


def _text(message: Any) -> str:
    """The content; the arguments of the first tool call where there is no content."""
    if content := getattr(message, "content", None):
        return clean(content)
    calls: list[Any] = getattr(message, "tool_calls", None) or []
    return clean(getattr(calls[0].function, "arguments", None) or "") if calls else ""


def _price(cost: object) -> float | None:
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if 0 <= cost < 1e9 else None


def _refusal(message: Any) -> str | None:
    direct = getattr(message, "refusal", None)
    fields: dict[str, Any] = getattr(message, "provider_specific_fields", None) or {}
    refusal = direct or fields.get("refusal")
    return clean(refusal) if refusal else None


def _usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        prompt_tokens=count_of(getattr(usage, "prompt_tokens", None)),
        completion_tokens=count_of(getattr(usage, "completion_tokens", None)),
        cached_tokens=count_of(getattr(details, "cached_tokens", None)),
        calls=1,
    )
