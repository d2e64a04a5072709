"""Calls through litellm: any provider it knows."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from ..errors import AccessError, CallTimeoutError
from .base import Completion, Request
from .chat_format import completion_of, read_chat, shape_arguments
from .failures import translate
from .model_spec import ModelSpec
from .model_table import model_entry, model_prices
from .rate_limit_headers import used_up_for

_OPENAI = ("openai", "text-completion-openai", "aiohttp_openai")
"""Providers that are OpenAI."""
_UNREAD = "Invalid response object"
"""litellm's message for an answer that does not fit its own types, such as content in parts."""


class LitellmClient:
    """Makes one litellm call per request; litellm is imported at the first one."""

    async def complete(self, request: Request) -> Completion:
        """Answers one request; see ``Client``."""
        litellm = load_litellm()
        is_priced = _is_priced(request.model)
        seen: list[dict[str, Any]] = []
        try:
            if not request.api_base:
                _check_destination(request.model)
            async with asyncio.timeout(request.timeout_s):
                response = await litellm.acompletion(**_arguments(request), logger_fn=seen.append)
            return _completion(response, is_priced=is_priced)
        except TimeoutError:
            raise CallTimeoutError(f"no answer within {request.timeout_s:g} s") from None
        except Exception as error:  # noqa: BLE001 - every failure is translated
            answer = seen[-1].get("original_response") if _UNREAD in str(error) and seen else None
            if isinstance(answer, str):
                return read_chat(answer.encode(errors="replace"))
            raise translate(error) from None

    async def close(self) -> None:
        """Closes litellm's shared connections."""
        if load_litellm.cache_info().currsize:
            await load_litellm().close_litellm_async_clients()


@lru_cache(maxsize=1)
def load_litellm() -> Any:
    """Imports litellm once, without telemetry, messages and slow start-up work."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    is_log_requested = "LITELLM_LOG" in os.environ
    os.environ.setdefault("LITELLM_LOG", "CRITICAL")
    collects = gc.isenabled()
    gc.disable()  # the collector would take a third of the import's time
    try:
        import litellm
    finally:
        if collects:
            gc.enable()
    if not is_log_requested:  # a program that logs everything would log every prompt
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    # A pydantic warning on litellm's own types, when a call first needs one: the call would fail if
    # a program turns warnings into errors.
    warnings.filterwarnings("ignore", "Items? '.*' on TypedDict class", UserWarning)
    # litellm prepares a call in a thread: if the call is cancelled meanwhile, it never starts.
    never_begun = r"coroutine 'BaseLLMHTTPHandler\.async_completion' was never awaited"
    warnings.filterwarnings("ignore", never_begun, RuntimeWarning)
    module: Any = litellm
    module.suppress_debug_info = True
    module.telemetry = False
    module.drop_params = True
    if gc.get_freeze_count():  # the program already froze its objects; these are many more
        gc.freeze()
    return module


@lru_cache(maxsize=256)
def _is_priced(model: str) -> bool:
    """True if litellm's table has a price of a model.

    Other models are registered without a price: a failed search of the table would take a third of
    each call's processor time.
    """
    provider, slash, _ = model.partition("/")
    if slash and not model_entry(model):
        entry = {"litellm_provider": provider, "mode": "chat"}
        price = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        load_litellm().register_model({model: entry | price})
    return model_prices(model).are_known


@lru_cache(maxsize=256)
def _check_destination(model: str) -> None:
    """Refuses a model of a provider without a known address, which litellm would send to OpenAI."""
    litellm = load_litellm()
    named, slash, _ = model.partition("/")
    _, provider, _, address = litellm.get_llm_provider(model)
    falls_back = provider == "openai" or provider in litellm.openai_compatible_providers
    if slash and named not in _OPENAI and address is None and falls_back:
        raise AccessError(
            f"litellm has no address of {named} for {model} and would send it to OpenAI: correct "
            "the name, or give --api-base"
        )


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
        **shape_arguments(request),
    }
    if request.api_base:
        arguments["api_base"] = request.api_base
        provider = request.model.partition("/")[0]
        if provider in ("openai", "litellm_proxy", "xinference"):
            # the SDK requires one; litellm would send OpenAI's to the other two
            key = os.environ.get(f"{provider.upper()}_API_KEY")
            arguments["api_key"] = key or "none"
    return arguments


_NOWHERE = "http://127.0.0.1:9"


def body_of(model: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The body that litellm would send, obtained with a dummy key and address.

    Args:
        model: litellm model name, with provider.
        arguments: The arguments of the call, messages among them.

    Returns:
        The body; None if litellm does not state it.
    """
    litellm = load_litellm()
    call = {
        "model": model,
        "timeout": 1.0,
        "num_retries": 0,
        "max_retries": 0,
        "api_base": _NOWHERE,
        "api_version": "2024-10-21",
        **arguments,
    }
    kind = litellm.types.utils.CallTypes.completion
    body: Any = litellm.utils.return_raw_request(kind, call).get("raw_request_body")
    return cast("dict[str, Any]", body) if isinstance(body, dict) else None


def dropped_settings(spec: ModelSpec) -> tuple[str, ...] | None:
    """Settings that litellm does not send, since the provider does not accept them.

    Returns:
        Their names in order, ``max_tokens`` among them; None if litellm does not state the body.
    """
    settings = {"max_tokens": spec.max_reply_tokens, **spec.sampling()}

    def body(without: str = "") -> dict[str, Any] | None:
        sent = {name: value for name, value in settings.items() if name != without}
        return body_of(spec.model, {"messages": [{"role": "user", "content": "x"}], **sent})

    full = body()
    return None if full is None else tuple(name for name in settings if body(name) == full)


def _completion(response: Any, *, is_priced: bool) -> Completion:
    completion = completion_of(response.model_dump(warnings=False))
    # litellm documents this attribute for price and headers, despite its name
    hidden: dict[str, Any] = getattr(response, "_hidden_params", None) or {}
    update: dict[str, float | None] = {"wait_s": used_up_for(hidden.get("additional_headers"))}
    cost = hidden.get("response_cost") if is_priced and not completion.usage.unreported else None
    if isinstance(cost, int | float) and 0 <= cost < 1e9:
        update["cost_usd"] = float(cost)
    return completion.model_copy(update=update)
