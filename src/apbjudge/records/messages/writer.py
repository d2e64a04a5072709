"""Messages written back in the form of OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..loose_json import json_text
from .model import Message


def openai_messages(
    message: Message, field: str, *, is_extended: bool = False
) -> Iterator[dict[str, Any]]:
    """A message, and the results of its calls, in OpenAI's form.

    Calls by a user are in ``tool_calls`` of the user's message, as in τ²; unprompted output of an
    environment is a tool's message without ``tool_call_id``. Results that are values are written as
    JSON.

    Args:
        message: The message.
        field: Name of the field that an error names.
        is_extended: True if arguments stay values, reasoning is in ``thought`` and failed results
            have ``is_error``, as in our own rows.

    Raises:
        RowError: If a value is nested too deeply (about 250 levels) for JSON to be written.
    """
    if message.role != "tool":
        row: dict[str, Any] = {"role": message.role, "content": message.text}
        if message.speaker:
            row["name"] = message.speaker
        if is_extended and message.reasoning:
            row["thought"] = message.reasoning
        if message.calls:
            row["content"] = message.text or None
            row["tool_calls"] = [
                {
                    **({"id": call.call_id} if call.call_id or not is_extended else {}),
                    "type": "function",
                    "function": {"name": call.name, "arguments": of},
                }
                for call in message.calls
                for of in (call.arguments if is_extended else json_text(call.arguments, field),)
            ]
        yield row
    elif message.text:
        yield {"role": "tool", "content": message.text}
    for of in message.results:
        facts = {"tool_call_id": of.call_id, "name": of.name}
        facts |= {"is_error": of.is_error} if is_extended else {}
        stated = {name: value for name, value in facts.items() if value}
        is_nothing = of.content is None and not is_extended
        yield {
            "role": "tool",
            **stated,
            "content": "" if is_nothing else json_text(of.content, field),
        }
