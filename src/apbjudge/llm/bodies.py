"""The bodies of calls that are written down: what litellm would send, without sending it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import orjson
from pydantic import BaseModel

from ..errors import OptionError
from .base import Format, Request
from .body import chat_body, format_arguments, logprob_arguments
from .direct import serves_exactly
from .failures import translate
from .litellm_client import load_litellm

_NOWHERE = "http://127.0.0.1:9"
_ROLES = ("system", "user", "assistant")


def provider_of(model: str) -> tuple[str, str]:
    """Provider and name of a model; without provider litellm says whose it is."""
    provider, slash, name = model.partition("/")
    if slash:
        return provider, name
    try:
        found = load_litellm().get_llm_provider(model)
    except Exception as error:  # noqa: BLE001 - every failure is translated
        raise OptionError(f"--judge {model}: {translate(error)}") from None
    return str(found[1]), str(found[0])


def body_maker(model: str) -> Callable[[Request], dict[str, Any]]:
    """What makes the body of a batch line for a model.

    Servers that speak the OpenAI protocol get what ``chat_body`` makes; for models whose
    parameters litellm renames, litellm is asked once per form of request, with a key and an
    address that lead nowhere.
    """
    provider, name = provider_of(model)

    def body(request: Request) -> dict[str, Any]:
        plain = chat_body(request, name)
        # litellm itself turns OpenAI's words into Google's when it uploads
        exact = provider == "vertex_ai" or serves_exactly(
            f"{provider}/{name}", api_base=True, params=request.settings
        )
        template = None if exact else _template_of(f"{provider}/{name}", request)
        return plain if template is None else _spliced(template, request.messages)

    return body


def _spliced(template: Mapping[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The template with other messages; roles that litellm renames are renamed."""
    roles = dict(zip(_ROLES, (m["role"] for m in template["messages"]), strict=True))
    renamed = [m | {"role": roles.get(m["role"], m["role"])} for m in messages]
    return {**template, "messages": renamed}


def _template_of(model: str, request: Request) -> Mapping[str, Any] | None:
    settings = orjson.dumps(request.settings, option=orjson.OPT_SORT_KEYS)
    form = (request.reply, request.format)
    return _template(model, form, request.max_tokens, settings, logprobs=request.logprobs)


@lru_cache(maxsize=1024)
def _template(
    model: str,
    form: tuple[type[BaseModel], Format],
    max_tokens: int,
    settings: bytes,
    *,
    logprobs: bool,
) -> Mapping[str, Any] | None:
    """What litellm would send, but for the messages; None when it does not say.

    Returns:
        The body, whose messages are one of each of _ROLES, in that order.
    """
    litellm = load_litellm()
    reply, kind = form
    blank = Request(model=model, messages=[], reply=reply, format=kind, logprobs=logprobs)
    arguments: dict[str, Any] = {
        "model": model,
        "messages": [{"role": role, "content": "x"} for role in _ROLES],
        "max_tokens": max_tokens,
        "timeout": 1.0,
        "num_retries": 0,
        "max_retries": 0,
        "api_base": _NOWHERE,
        "api_version": "2024-10-21",
        "_skip_mcp_handler": True,  # as in acompletion; else tools need a library we don't have
        **orjson.loads(settings),
        **format_arguments(reply, kind),
        **logprob_arguments(blank),
    }
    call = litellm.types.utils.CallTypes.completion
    body: Any = litellm.utils.return_raw_request(call, arguments).get("raw_request_body")
    if not isinstance(body, dict):
        return None
    found = cast("dict[str, Any]", body)
    extra: dict[str, Any] = found.pop("extra_body", None) or {}
    return {**found, **extra} if len(found.get("messages", ())) == len(_ROLES) else None
