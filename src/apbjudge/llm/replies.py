"""Structured replies through instructor: the schema that is asked for, the reply that is read."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from ..errors import ReplyError
from ..records import json_values

T = TypeVar("T", bound=BaseModel)


@lru_cache(maxsize=64)
def schema_arguments(reply: type[BaseModel]) -> dict[str, Any]:
    """The call arguments that ask an endpoint to enforce a reply model's JSON schema."""
    from instructor import Mode
    from instructor.processing.response import handle_response_model

    _, arguments = handle_response_model(reply, mode=Mode.JSON_SCHEMA, messages=[])
    return {"response_format": arguments["response_format"]}


def read_reply(text: str, reply: type[T]) -> T:
    """Reads a judge's reply: JSON alone, in a fence or amid prose (the last object counts).

    Args:
        text: The reply's text.
        reply: What it must be.

    Raises:
        ReplyError: ``unparsable``; the message says what is wrong, fit to be told to the judge.
    """
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
