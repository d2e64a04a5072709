"""Structured replies: valid ones read at once, all others through instructor."""

from __future__ import annotations

from functools import lru_cache
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
        reply: The model that it must fit, strictly.

    Raises:
        ReplyError: ``unparsable``; the message names every fault, fit to be sent to the judge.
    """
    try:
        return reply.model_validate_json(text, strict=True)
    except ValidationError:
        return _read_with_instructor(text, reply)


def _read_with_instructor(text: str, reply: type[T]) -> T:
    """Any reply; instructor is imported only when it is needed."""
    from instructor import Mode
    from openai.types.chat import ChatCompletion, ChatCompletionMessage
    from openai.types.chat.chat_completion import Choice

    objects = [orjson.dumps(value) for value in json_values(text) if isinstance(value, dict)]
    content = objects[-1].decode() if objects else text
    message = ChatCompletionMessage(role="assistant", content=content)
    choice = Choice(index=0, finish_reason="stop", message=message, logprobs=None)
    response = ChatCompletion(
        id="", choices=[choice], created=0, model="", object="chat.completion"
    )
    try:
        parsed = _response_schema(reply).from_response(response, strict=True, mode=Mode.JSON_SCHEMA)
    except ValidationError as error:
        faults = (
            f"{'.'.join(map(str, e['loc'])) or 'reply'}: {e['msg']}"
            for e in error.errors(include_url=False, include_input=False)
        )
        raise ReplyError("; ".join(faults)[:500], raw=text) from None
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"no JSON object could be read: {error}"[:200], raw=text) from None
    return reply.model_validate(parsed.model_dump())


@lru_cache(maxsize=64)
def _response_schema(reply: type[BaseModel]) -> Any:
    """The reply model with instructor's ``from_response``."""
    from instructor import response_schema

    return response_schema(reply)
