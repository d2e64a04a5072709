"""Calls that hang are cut off once they hang; all others have all the time that they need.

A short time-out of real time races against good answers on a busy machine, a long one is a wait
for nothing. Here the transport's own time-out fires, as soon as the server has the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from unittest.mock import patch

from apbjudge.llm import Completion, Request
from apbjudge.llm.direct import DirectClient
from apbjudge.llm.litellm_client import LitellmClient
from tests.support.server import ChatServer, Seen, text_of

Complete = Callable[[Any, Request], Awaitable[Completion]]


class _Cutter:
    """Knows the time-out of each call under way by the text that is asked about."""

    def __init__(self) -> None:
        self._text: ContextVar[str] = ContextVar("text", default="")
        self._running: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = {}
        self._timeout = asyncio.timeout

    def timeout(self, delay: float | None) -> asyncio.Timeout:
        """Stands in for ``asyncio.timeout``; the outermost of a call is the transport's own."""
        made = self._timeout(delay)
        if text := self._text.get():
            self._running.setdefault(text, (asyncio.get_running_loop(), made))
        return made

    def watched(self, complete: Complete) -> Complete:
        """The same method of a transport, with its time-out known while a call is under way."""

        async def watch(client: Any, request: Request) -> Completion:
            text = text_of(request.messages)
            before = self._text.set(text)
            try:
                return await complete(client, request)
            finally:
                self._text.reset(before)
                self._running.pop(text, None)

        return watch

    def cut(self, seen: Seen) -> None:
        """Ends the time of the call that this request belongs to."""
        if (result := self._running.get(seen.text)) is not None:
            loop, made = result
            loop.call_soon_threadsafe(self._end, seen.text, made)

    def _end(self, text: str, made: asyncio.Timeout) -> None:
        if text in self._running and self._running[text][1] is made:
            made.reschedule(0.0)


@contextmanager
def hurried(server: ChatServer) -> Iterator[None]:
    """Cuts off what the server lets hang or trickle.

    Calls that are under way at the same time must differ in their text.
    """
    cutter = _Cutter()
    server.hung = cutter.cut
    with (
        patch.object(asyncio, "timeout", cutter.timeout),
        patch.object(DirectClient, "complete", cutter.watched(DirectClient.complete)),
        patch.object(LitellmClient, "complete", cutter.watched(LitellmClient.complete)),
    ):
        yield
