"""Structured replies: valid ones read at once, all others through instructor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from ..errors import ReplyError
from ..records import json_values

T = TypeVar("T", bound=BaseModel)


def read_reply(text: str, reply: type[T]) -> T:
    """Reads a judge's reply: JSON alone, in a fence or amid prose (the last object counts).

    Args:
        text: The reply's text.
        reply: What it must be.

    Raises:
        ReplyError: ``unparsable``; the message says what is wrong, fit to be told to the judge.
    """
    try:
        return reply.model_validate_json(text, strict=True)
    except ValidationError:
        return _read_with_care(text, reply)


def _read_with_care(text: str, reply: type[T]) -> T:
    """Any reply, through instructor, which is imported only when it is needed."""
    from instructor import Mode
    from instructor.processing import response as processing

    process: Callable[..., Any] = getattr(processing, "process_response")  # noqa: B009 - untyped
    try:
        found = process(
            _as_response(last_object(text)),
            response_model=reply,
            stream=False,
            mode=Mode.JSON_SCHEMA,
            strict=True,
        )
    except ValidationError as error:
        raise ReplyError(_complaints(error), raw=text) from None
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"no JSON object could be read: {error}"[:200], raw=text) from None
    return reply.model_validate(found.model_dump())


def last_object(text: str) -> str:
    """The last JSON object of a reply as JSON; the reply itself when it holds none."""
    objects = [orjson.dumps(value) for value in json_values(text) if isinstance(value, dict)]
    return objects[-1].decode() if objects else text


def _as_response(text: str) -> Any:
    """The text in the response type that instructor reads; its own import, not litellm's."""
    from openai.types.chat import ChatCompletion, ChatCompletionMessage
    from openai.types.chat.chat_completion import Choice

    message = ChatCompletionMessage(role="assistant", content=text)
    choice = Choice(index=0, finish_reason="stop", message=message, logprobs=None)
    return ChatCompletion(id="", choices=[choice], created=0, model="", object="chat.completion")


def _complaints(error: ValidationError) -> str:
    parts = (
        f"{'.'.join(map(str, e['loc'])) or 'reply'}: {e['msg']}"
        for e in error.errors(include_url=False, include_input=False)
    )
    return "; ".join(parts)[:500]
