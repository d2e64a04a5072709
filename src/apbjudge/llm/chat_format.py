"""Requests and completions in the form of the OpenAI chat protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import orjson
from pydantic import BaseModel

from ..errors import TransportError
from ..records import Usage
from .base import TOP_LOGPROBS, Completion, Format, NativeCall, Request
from .failures import failure_of
from .logprobs import read_logprobs

TOOL_NAME = "give_verdict"

MAX_ANSWER_BYTES = 32 * 2**20
"""Largest answer in bytes: its record has to fit into a line (``jsonl.MAX_LINE_BYTES``)."""


def chat_body(request: Request, model: str) -> dict[str, Any]:
    """The body of a chat-completions call, as litellm would send it.

    Args:
        request: The request.
        model: Name of the model as the endpoint knows it, without provider.
    """
    settings = dict(request.settings)
    extra = _dict(settings.pop("extra_body", None))
    return {
        "model": model,
        "messages": request.messages,
        "max_tokens": request.max_tokens,
        **settings,
        **shape_arguments(request),
        **extra,
    }


def shape_arguments(request: Request) -> dict[str, Any]:
    """The arguments for a reply's form, for tools and for token probabilities."""
    arguments: dict[str, Any] = {}
    if request.reply is not None:
        arguments |= format_arguments(request.reply, request.format)
    if request.tools:
        arguments["tools"] = list(request.tools)
        if request.tool_choice is not None:
            arguments["tool_choice"] = request.tool_choice
    if request.logprobs:
        arguments |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    return arguments


@lru_cache(maxsize=64)
def format_arguments(reply: type[BaseModel], form: Format) -> dict[str, Any]:
    """The arguments that ask an endpoint to follow a reply model's schema.

    Those of ``json_schema`` equal instructor's, whose import takes longer than a thousand calls.
    """
    if form == "text":
        return {}
    if form == "json_object":
        return {"response_format": {"type": "json_object"}}
    schema = reply.model_json_schema()
    if form == "json_schema":
        named = {"name": reply.__name__, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    # litellm removes this key for some servers, in place
    parameters = {k: v for k, v in schema.items() if k != "additionalProperties"}
    function = {"name": TOOL_NAME, "description": "Gives the verdict.", "parameters": parameters}
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": TOOL_NAME}},
    }


def read_chat(data: bytes) -> Completion:
    """Reads the body of a successful response; see ``completion_of``.

    Raises:
        JudgeError: If it is not a chat completion, or reports a failure.
    """
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = _lenient(data)
    return completion_of(_dict(body))


def unusable(message: str) -> TransportError:
    """The failure of an answer that is not a completion: the endpoint may have charged for it."""
    return TransportError(message, answered=False)


def _lenient(data: bytes) -> object:
    """Parses JSON with half a surrogate pair, NaN or a byte-order mark, as some servers send it."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise unusable("the endpoint answered with something that is not JSON") from None


def completion_of(body: Mapping[str, Any]) -> Completion:
    """A completion from the JSON of a chat completion.

    Raises:
        JudgeError: If it is not one, or reports a failure.
    """
    if error := _dict(body.get("error")):
        code = error.get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        raise failure_of(status, json.dumps(body), {})
    choice, message = _choice(body)
    reason = clean(choice.get("finish_reason") or ("none" if choice else NO_CHOICES))
    # litellm puts some providers' refusals there
    fields = _dict(message.get("provider_specific_fields"))
    refusal = message.get("refusal") or fields.get("refusal")
    text, calls, reasoning = _content(message), _tool_calls(message), _reasoning(message)
    if len(text) + len(reasoning) + sum(len(call.arguments) for call in calls) > MAX_ANSWER_BYTES:
        raise unusable(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
    return Completion(
        text=text,
        reasoning=reasoning,
        tool_calls=calls,
        finish_reason=_FINISHED.get(reason.lower(), reason),
        refusal=clean(refusal) if refusal else None,
        served_model=clean(body["model"]) if body.get("model") else None,
        usage=_usage(body.get("usage"), has_content=bool(text or calls)),
        logprobs=read_logprobs(_dict(choice.get("logprobs")).get("content")),
    )


NO_CHOICES = "no choices"
"""Finish reason if the endpoint answered without any choice."""


def _choice(body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first choice and its message; both empty if there is no choice."""
    choices = _list(body.get("choices"))
    first = _dict(choices[0]) if choices else {}
    has_message = isinstance(first.get("message"), dict) or not choices
    if not isinstance(body.get("choices"), list) or not has_message:
        raise unusable("the endpoint answered with JSON that is no chat completion")
    return first, _dict(first.get("message"))


_FINISHED = {
    "max_tokens": "length",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "safety": "content_filter",
    "recitation": "content_filter",
}


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if content is not None and not isinstance(content, str | list):
        raise unusable("the endpoint answered with content that is no text")
    return _text_of(cast("object", content), thinking=False)


def _reasoning(message: dict[str, Any]) -> str:
    """The model's thinking in a message, under any of its usual names."""
    fields = (message.get(name) for name in ("reasoning_content", "reasoning"))
    stated = (_text_of(field, thinking=False) for field in fields)
    return next(filter(None, stated), "") or _text_of(message.get("content"), thinking=True)


def _text_of(content: object, *, thinking: bool) -> str:
    """Content as text: a text, or its parts that are (or are not) the model's thinking."""
    if isinstance(content, str):
        return "" if thinking else clean(content)
    texts: list[str] = []
    for part in _list(content):
        known = _dict(part)
        kind = known.get("type")
        if (kind in ("thinking", "reasoning")) == thinking:
            own = known.get("text") or known.get(str(kind)) if known else part
            inner = [own] if isinstance(own, str) else [_dict(p).get("text") for p in _list(own)]
            texts += (clean(text) for text in inner if isinstance(text, str))
    return "".join(texts)


def _tool_calls(message: dict[str, Any]) -> tuple[NativeCall, ...]:
    """The calls as reported; arguments as an object become JSON text."""
    calls: list[NativeCall] = []
    for call in map(_dict, _list(message.get("tool_calls"))):
        function = _dict(call.get("function"))
        arguments = function.get("arguments") or ""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        name, call_id = clean(function.get("name") or ""), clean(call.get("id") or "")
        calls.append(NativeCall(name=name, arguments=clean(text), id=call_id))
    return tuple(calls)


def clean(text: object) -> str:
    """Text that UTF-8 can hold: half a surrogate pair becomes a question mark."""
    return str(text).encode(errors="replace").decode()


def _usage(usage: object, *, has_content: bool) -> Usage:
    """Usage as stated; unreported if a part of it is missing or impossible.

    litellm writes 0 if the endpoint stated nothing, and no prompt has 0 tokens.
    """
    counts = _dict(usage)
    prompt, reply = (count_of(counts.get(f"{part}_tokens")) for part in ("prompt", "completion"))
    if not prompt or (has_content and not reply):
        return Usage(calls=1, unreported=1)
    cached = count_of(_dict(counts.get("prompt_tokens_details")).get("cached_tokens"))
    return Usage(
        prompt_tokens=prompt, completion_tokens=reply, cached_tokens=min(cached, prompt), calls=1
    )


def count_of(count: object) -> int:
    """A count as an endpoint reports it; nonsense counts as 0."""
    if isinstance(count, bool) or not isinstance(count, int):
        return 0
    return count if 0 <= count < 10**9 else 0


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
