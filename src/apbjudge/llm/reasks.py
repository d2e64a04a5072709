"""Asking a model again where its reply can't be used: every re-ask of whatever caller is made here.

instructor runs them: it makes the call, validates the reply, and calls again. The call is one of
the caller's client, so that cache, budget, rate limits, retries and transport are those of any
other; words, form and validation are the caller's too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, field_validator

from ..errors import JudgeError
from .base import Completion

T = TypeVar("T")


async def ask_until(
    ask: Callable[[], Awaitable[Completion]],
    read: Callable[[Completion], T | None],
    *,
    reasks: int,
) -> T:
    """Asks a model until its reply can be used.

    A first reply that can be used takes the short way; instructor is imported where one can't.

    Args:
        ask: Makes the next call.
        read: What a reply comes to; None where the model is to be asked again, by what ``ask``
            sends next.
        reasks: How often at most ``read`` returns None.

    Raises:
        JudgeError: What ``ask`` and ``read`` raise.
    """
    if (result := read(await ask())) is not None:
        return result
    if not _instructor.cache_info().currsize:
        await asyncio.to_thread(_instructor)  # it takes a second, and calls are in flight
    patch, mode, model = _instructor()
    again = _Again(ask, read)
    create = patch(create=again.create, mode=mode)
    reply = await create(response_model=model, context={"again": again}, max_retries=reasks - 1)
    if isinstance(reply.result, JudgeError):
        raise reply.result
    return reply.result


@cache
def _instructor() -> tuple[Any, Any, Any]:
    """Its loop, its mode and, made once, the model of a reply."""
    from instructor import Mode, patch, response_schema

    return patch, Mode.JSON_SCHEMA, response_schema(_Reply)


@dataclass(slots=True)
class _Again(Generic[T]):
    """Calls as instructor makes them.

    Failures are results: instructor would log them, and wrap them.
    """

    ask: Callable[[], Awaitable[Completion]]
    read: Callable[[Completion], T | None]
    last: Completion | JudgeError | None = None

    async def create(self, **_: object) -> object:
        """The next reply, in the form in which instructor reads it."""
        try:
            self.last = await self.ask()
        except JudgeError as error:
            self.last = error
        message = SimpleNamespace(role="assistant", content="")
        return SimpleNamespace(choices=[SimpleNamespace(finish_reason="stop", message=message)])

    def result(self) -> object:
        """What the last reply comes to."""
        try:
            return self.read(self.last) if isinstance(self.last, Completion) else self.last
        except JudgeError as error:
            return error


class _Reply(BaseModel):
    """What instructor validates: that something came of a reply."""

    result: Any

    @classmethod
    def model_validate_json(cls, json_data: Any, *, context: Any = None, **_: Any) -> _Reply:
        """Reads the last reply by the caller's rules."""
        return cls.model_validate({"result": context["again"].result()})

    @field_validator("result")
    @classmethod
    def _is_usable(cls, value: object) -> object:
        if value is None:
            raise ValueError("the model is asked again")
        return value
