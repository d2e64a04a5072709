"""Which dialect a list of messages is in, and how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..loose_json import as_list, as_object, objects_of
from .shapes import is_item, kind_of, parts_of, role_of

_LOOKED_AT = 20
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(
        "tool_use tool_result thinking redacted_thinking server_tool_use mcp_tool_use".split(),
        "anthropic",
    ),
    **dict.fromkeys(("input_text", "output_text", "message"), "responses"),
    **dict.fromkeys(("tool-call", "tool-result"), "vercel"),
}
"""Dialects by the type of a part of ``content``."""


class Dialect(NamedTuple):
    """What a list of messages was recognised as.

    Attributes:
        name: ``openai``, ``responses``, ``anthropic``, ``bedrock``, ``gemini``, ``otel``,
            ``vercel``, ``vercel-ui``, ``pydantic-ai``, ``langchain``, ``sharegpt`` or ``inspect``;
            empty where no message is one. Messages that several dialects share are ``openai``'s.
        score: Mean over the first 20 messages: 1 where the role or type is known and the content
            has something that is read, or none at all; 0.5 where only the role is; else 0.
    """

    name: str
    score: float


def recognised(value: object) -> Dialect:
    """The dialect of a list of messages; a score of 0 where a value is none."""
    messages = (as_list(value) or [])[:_LOOKED_AT]
    names: Counter[str] = Counter()
    score = 0.0
    for message in map(as_object, messages):
        if message is None or not (name := _name_of(message)):
            continue
        names[name] += 1
        parts = parts_of(message)
        is_read = not parts or any(
            (block := as_object(part)) is None or kind_of(block) != "unread" for part in parts
        )
        score += 1 if is_read else 0.5
    marked = [name for name, _ in names.most_common() if name != "openai"]
    return Dialect(next(iter([*marked, *names]), ""), score / max(1, len(messages)))


def is_message(value: object) -> bool:
    """Whether a JSON value is a message or an item of a conversation, by its role or type."""
    message = as_object(value) or {}
    return is_item(message.get("type")) or role_of(message) is not None


def _name_of(message: Mapping[str, Any]) -> str:
    """The dialect of a message; empty where it is none."""
    if not is_message(message):
        return ""
    if not message.get("role"):
        unlike = ("value", "sharegpt"), ("kind", "pydantic-ai"), ("content", "langchain")
        named = next((name for key, name in unlike if key in message), "langchain")
        return "responses" if is_item(message.get("type")) else named
    blocks = [of for of in map(as_object, parts_of(message) or ()) if of is not None]
    types = [str(of.get("type", "")) for of in blocks]
    if isinstance(message.get("parts"), list):
        is_ui = any("text" in of or "toolCallId" in of or "state" in of for of in blocks)
        return "gemini" if not any(types) else "vercel-ui" if is_ui else "otel"
    if blocks and not any(types):
        return "bedrock"
    calls = objects_of(message.get("tool_calls"))
    if any(isinstance(call.get("function"), str) for call in calls):
        return "inspect"
    return next((_TYPES[kind] for kind in types if kind in _TYPES), "openai")
