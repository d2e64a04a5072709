"""Event loops of our own, whether or not the caller is already inside one, and how they stop."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import TypeVar

from ..errors import PausedError

T = TypeVar("T")


class Stop:
    """A request to stop event loops, made by a signal handler or another thread.

    Attributes:
        is_cancelled: True if everything is cancelled at once.
        is_paused: True if nothing new begins, and what is in flight has some time to finish.
        ends_at: When that time is over, by ``time.monotonic``.
        watchers: The loops that take note of a request, each with what it calls.
    """

    def __init__(self) -> None:
        self.is_cancelled = self.is_paused = False
        self.watchers: list[tuple[asyncio.AbstractEventLoop, Callable[[], object]]] = []
        self.ends_at = math.inf

    def cancel(self) -> None:
        """Cancels the loops that run, and those that would begin later."""
        self.is_cancelled = True
        self._tell()

    def pause(self, grace_s: float) -> None:
        """Asks for a pause; what is in flight has so many seconds from now."""
        self.is_paused, self.ends_at = True, time.monotonic() + grace_s
        self._tell()

    def _tell(self) -> None:
        for loop, react in tuple(self.watchers):
            with suppress(RuntimeError):  # it was closed meanwhile
                loop.call_soon_threadsafe(react)

    def check(self) -> None:
        """Raises PausedError if a pause is requested."""
        if self.is_paused:
            raise PausedError("the run is paused; the same call continues it")

    @contextmanager
    def watched(self, react: Callable[[], object]) -> Generator[None]:
        """Calls back in the running loop, now and at each request."""
        watcher = asyncio.get_running_loop(), react
        self.watchers.append(watcher)
        try:
            react()
            yield
        finally:
            self.watchers.remove(watcher)

    @contextmanager
    def applied(self) -> Generator[None]:
        """Within it, the loops that are started here obey this request."""
        token = _STOP.set(self)
        try:
            yield
        finally:
            _STOP.reset(token)

    def obeyed(self, work: Callable[[], T]) -> T:
        """Does something whose loops obey this request."""
        if self.is_cancelled:
            raise asyncio.CancelledError
        with self.applied():
            return work()


_STOP: ContextVar[Stop | None] = ContextVar("stop", default=None)


@contextmanager
def signals_pause(stop: Stop, grace_s: float) -> Generator[None]:
    """Within it, SIGTERM and SIGHUP ask for a pause.

    A second one cancels the calls in flight, a third one kills the process. A signal that is
    ignored, as SIGHUP by nohup, stays ignored.
    """
    terminals = [fd for fd in (1, 2) if os.isatty(fd)]
    signals = [s for s in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) == signal.SIG_DFL]

    def pause(sign: int, frame: object) -> None:
        for fd in terminals:
            if not os.isatty(fd):  # it was closed: writing to it would end the run
                os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
        if stop.is_paused:
            listen(signal.SIG_DFL)
        stop.pause(0.0 if stop.is_paused else grace_s)
        if not stop.watchers:  # nothing is in flight
            stop.check()

    def listen(handler: signal.Handlers | Callable[[int, object], None]) -> None:
        for sign in signals:
            signal.signal(sign, handler)

    listen(pause)
    try:
        yield
    finally:
        listen(signal.SIG_DFL)


def current_stop() -> Stop:
    """The stop that loops started here obey."""
    return _STOP.get() or Stop()


_RUNNER: ContextVar[asyncio.Runner | None] = ContextVar("runner", default=None)


@contextmanager
def one_loop(runner: asyncio.Runner) -> Generator[None]:
    """Context in which this thread uses one event loop, whose connections can stay open."""
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def beside_any_loop(work: Callable[[], T]) -> T:
    """Does something that starts event loops, also from inside a notebook's running one.

    An exception that is raised here meanwhile, as by a notebook's *Interrupt*, cancels them, and
    passes on when they have ended.
    """
    if not _is_in_loop():
        return work()
    stop = Stop()
    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            return pool.submit(stop.obeyed, work).result()
        except BaseException:
            stop.cancel()
            raise


async def in_thread(work: Callable[[], T]) -> T:
    """Does something that blocks and starts event loops, while the running loop goes on.

    When it is cancelled it cancels those loops, and ends when they have ended.
    """
    stop, cancelled = Stop(), None
    here, loop = copy_context(), asyncio.get_running_loop()
    future = loop.run_in_executor(None, lambda: here.run(stop.obeyed, work))
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
            stop.cancel()
    if cancelled is not None:
        future.exception()  # else asyncio complains that nobody looked at it
        raise cancelled
    return future.result()


def block_on(work: Awaitable[T], *, is_idle: bool = False) -> T:
    """Waits for something to end, unless it is cancelled; see ``Stop``.

    Args:
        work: The work that is awaited.
        is_idle: True if nothing is lost when it is cut off, so that a pause does so at once.

    Raises:
        PausedError: If a pause cut it off.
    """

    async def main() -> T:
        stop, task = current_stop(), asyncio.current_task()

        def react() -> None:
            ends = stop.is_cancelled or (is_idle and stop.is_paused)
            if ends and task is not None and not task.cancelling():
                task.cancel()

        with stop.watched(react):
            try:
                return await work
            except asyncio.CancelledError:
                if is_idle:
                    stop.check()
                raise

    if (runner := _RUNNER.get()) is not None:
        return runner.run(main(), context=copy_context())
    if not _is_in_loop():
        return asyncio.run(main())
    return beside_any_loop(lambda: asyncio.run(main()))
