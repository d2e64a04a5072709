"""Anthropic's Messages protocol, converted from requests and to completions of the chat protocol.

litellm makes the body and reads the answer of a live call; this module does the rest for batches,
whose answers it does not read. Tests compare both with litellm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..records.loose_json import as_list, as_object, objects_of
from .base import Request
from .chat_format import shape_arguments, unusable
from .litellm_client import body_of

_JSON_TOOL = "json_tool_call"
"""The tool by which litellm gets JSON from models that accept no schema for the reply."""
_FINISHED = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def chat_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as a chat completion, so that ``completion_of`` reads it.

    Raises:
        TransportError: If it is not one.
    """
    if not isinstance(message.get("content"), list):
        raise unusable("the provider answered with JSON that is no message")
    texts: list[str] = []
    thinking: list[str] = []
    calls: list[dict[str, Any]] = []
    reason: object = message.get("stop_reason")
    for block in objects_of(message.get("content")):
        match block.get("type"):
            case "text":
                texts.append(str(block.get("text") or ""))
            case "thinking":
                thinking.append(str(block.get("thinking") or ""))
            case "tool_use" if block.get("name") == _JSON_TOOL:
                texts, reason = [json.dumps(block.get("input"))], "end_turn"
            case "tool_use":
                function = {"name": block.get("name"), "arguments": json.dumps(block.get("input"))}
                calls.append({"id": block.get("id"), "type": "function", "function": function})
            case _:
                pass
    answer = {
        "role": "assistant",
        "content": "".join(texts),
        "reasoning_content": "".join(thinking),
        "tool_calls": calls,
    }
    return {
        "model": message.get("model"),
        "choices": [{"message": answer, "finish_reason": _FINISHED.get(str(reason), reason)}],
        "usage": _usage(message.get("usage")),
    }


def _usage(usage: object) -> dict[str, Any]:
    """Tokens as the chat protocol counts them: prompt tokens include those of the prompt cache."""
    stated = as_object(usage) or {}
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sent = [stated.get(name) or 0 for name in names]
    return {
        "prompt_tokens": sum(sent) if all(isinstance(n, int) for n in sent) else None,
        "completion_tokens": stated.get("output_tokens"),
        "prompt_tokens_details": {"cached_tokens": sent[1]},
    }


def messages_maker(model: str) -> Callable[[Request], dict[str, Any]]:
    """A function that makes the body of a call, as litellm would send it.

    litellm is asked once for each form of request, which takes a thousand times as long as
    inserting the messages; it also inserts messages other than alternating texts and pictures.

    Args:
        model: litellm model name, with its provider.
    """
    templates: dict[str, dict[str, Any]] = {}

    def by_litellm(request: Request, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        arguments = {
            "messages": messages,
            "max_tokens": request.max_tokens,
            **request.settings,
            **shape_arguments(request),
        }
        return body_of(model, arguments) or {}

    def body(request: Request) -> dict[str, Any]:
        parts = _parts(request.messages)
        if parts is None:
            return by_litellm(request, request.messages)
        shape = (request.max_tokens, request.settings, shape_arguments(request))
        key = json.dumps(shape, sort_keys=True, default=str)
        if key not in templates:
            templates[key] = by_litellm(request, [{"role": "user", "content": "x"}])
        return {**templates[key], **parts}

    return body


def _parts(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The messages as litellm would write them; None if it would change more than their form."""
    system = [m for m in messages if m["role"] == "system"]
    turns = [m for m in messages if m["role"] != "system"]
    in_turn = [("user", "assistant")[n % 2] for n in range(len(turns))]
    blocks = [_blocks(message) for message in (*system, *turns)]
    if [turn["role"] for turn in turns] != in_turn or not all(blocks) or len(turns) % 2 == 0:
        return None
    texts = [block for of in blocks[: len(system)] for block in of]
    asked = [
        {"role": turn["role"], "content": of}
        for turn, of in zip(turns, blocks[len(system) :], strict=True)
    ]
    return {"messages": asked, **({"system": texts} if texts else {})}


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Content as blocks; empty if it has more than plain texts and pictures."""
    content = message.get("content")
    if message.keys() - {"role", "content"}:
        return []
    blocks: list[dict[str, Any]] = []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for part in (as_object(each) or {} for each in as_list(parts) or ()):
        url = str((as_object(part.get("image_url")) or {}).get("url", ""))
        head, _, data = url.partition(";base64,")
        kind, text = part.get("type"), part.get("text")
        if kind == "text" and isinstance(text, str) and text and text == text.rstrip():
            blocks.append({"type": "text", "text": text})
        elif kind == "image_url" and head.startswith("data:image/"):
            source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
            blocks.append({"type": "image", "source": source})
        else:
            return []
    return blocks
