"""Repeated questions to a model whose reply can't be used, for all callers.

instructor runs them: it makes the call, validates the reply, and calls again. The call goes through
the caller's client, so that cache, budget, rate limits, retries and transport apply as to any
other; wording, form and validation are the caller's too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeVar

from pydantic import BaseModel, field_validator

from .base import Completion

T = TypeVar("T")


async def ask_until(
    ask: Callable[[], Awaitable[Completion]],
    read: Callable[[Completion], T | None],
    *,
    reasks: int,
) -> T:
    """Asks a model until its reply can be used.

    instructor is imported only if the first reply can't be used.

    Args:
        ask: Makes the next call.
        read: Reads the result of a reply; None if the model has to be asked again, with what
            ``ask`` sends next.
        reasks: Largest number of further questions.

    Raises:
        Exception: What ``ask`` and ``read`` raise.
    """
    if (result := read(await ask())) is not None:
        return result
    if not _instructor.cache_info().currsize:
        await asyncio.to_thread(_instructor)  # it takes a second while calls are in flight
    patch, mode, model = _instructor()
    last: Completion | Exception | None = None

    async def create(**_: object) -> object:
        """The next reply. A failure counts as one: instructor would log and wrap it."""
        nonlocal last
        try:
            last = await ask()
        except Exception as error:  # noqa: BLE001 - it is raised again below
            last = error
        return _ANSWER

    def result_of_last() -> T | Exception | None:
        try:
            return read(last) if isinstance(last, Completion) else last
        except Exception as error:  # noqa: BLE001 - it is raised again below
            return error

    reply = await patch(create=create, mode=mode)(
        response_model=model, context={"result": result_of_last}, max_retries=reasks - 1
    )
    if isinstance(reply.result, Exception):
        raise reply.result
    return reply.result


_MESSAGE = SimpleNamespace(role="assistant", content="")
_ANSWER = SimpleNamespace(choices=[SimpleNamespace(finish_reason="stop", message=_MESSAGE)])
"""An answer in instructor's form; the reply itself is passed separately."""


class _Reply(BaseModel):
    """The value that instructor validates: the result of a reply, which must not be None."""

    result: Any

    @classmethod
    def model_validate_json(cls, json_data: Any, *, context: Any = None, **_: Any) -> _Reply:
        """Reads the last reply by the caller's rules."""
        return cls.model_validate({"result": context["result"]()})

    @field_validator("result")
    @classmethod
    def _is_usable(cls, value: object) -> object:
        if value is None:
            raise ValueError("the model is asked again")
        return value


@cache
def _instructor() -> tuple[Any, Any, Any]:
    """The loop and mode of instructor and, made once, the model of a reply."""
    from instructor import Mode, patch, response_schema

    return patch, Mode.JSON_SCHEMA, response_schema(_Reply)
