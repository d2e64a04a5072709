"""What a slow or broken labelling server does to a page's calls, switched on and off by a test.

It is done at the server and not at the browser: a browser may let a call through that it was asked
to hold, and a test that waits for that call would wait for ever.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from apbjudge.labelling.server import API
from tests.support.server import PATIENCE_S

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Fault = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]


class Held:
    """The first of some calls waits until the block ends; those after it go through.

    Attributes:
        n_calls: How many have come so far.
    """

    def __init__(self) -> None:
        self.n_calls = 0
        self._has_come = threading.Event()
        self._may_go = threading.Event()

    def wait(self) -> None:
        """Until the call is there, not carried out yet."""
        assert self._has_come.wait(PATIENCE_S), "the page has not made the call"

    def let_go(self) -> None:
        """Lets it be carried out."""
        self._may_go.set()

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.n_calls += 1
        if self.n_calls == 1:
            self._has_come.set()
            assert await asyncio.to_thread(self._may_go.wait, PATIENCE_S)
        return await handler(request)


async def dropped(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The connection ends before the call is carried out."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


class Faults:
    """The faults that a server has now, by the name of the call."""

    def __init__(self) -> None:
        self._now: dict[str, Fault] = {}

    @contextmanager
    def at(self, call: str, fault: Fault) -> Iterator[None]:
        """Calls of that name meet the fault until the block ends."""
        self._now[call] = fault
        try:
            yield
        finally:
            del self._now[call]

    @contextmanager
    def hold(self, call: str) -> Iterator[Held]:
        """Holds the first such call back until the block ends, which waits for it to come."""
        held = Held()
        try:
            with self.at(call, held):
                yield held
                held.wait()
        finally:
            held.let_go()

    def middleware(self) -> Fault:
        """What the server's application asks before each call."""

        @web.middleware
        async def asked(request: web.Request, handler: Handler) -> web.StreamResponse:
            fault = self._now.get(request.path.removeprefix(API))
            return await (fault(request, handler) if fault else handler(request))

        return asked
