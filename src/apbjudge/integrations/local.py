"""Runs parts in processes of this machine; each process runs one part after another."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import NamedTuple

from ..errors import OptionError, PausedError
from .parts import PAUSED, Ended, Part, run_in_worker

_STARTS = 3


class _Worker(NamedTuple):
    """A process in its own pool, since a killed process breaks its whole pool."""

    pool: ProcessPoolExecutor
    pid: int


def run_parts(parts: Sequence[Part], at_once: int) -> Generator[tuple[Part, Ended]]:
    """Runs parts; see ``scale.Engine``.

    Raises:
        OptionError: If no process can be started.
    """
    idle = [_started() for _ in range(min(at_once, len(parts)))]
    waiting, running = list(reversed(parts)), dict[Future[Ended], tuple[Part, _Worker]]()
    try:
        while waiting or running:
            while waiting and idle:  # queue none: a queued part can't be cancelled
                worker = idle.pop()
                try:
                    future = worker.pool.submit(_run, waiting[-1])
                except BrokenProcessPool:  # it was killed after its last part
                    idle.append(_started())
                else:
                    running[future] = waiting.pop(), worker
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                part, worker = running.pop(future)
                try:
                    ended = future.result()
                except BrokenProcessPool:
                    ended, worker = Ended(PAUSED, "its process was killed"), _started()
                idle.append(worker)
                yield part, ended
    finally:
        _end([*idle, *(worker for _, worker in running.values())])


def _end(workers: Sequence[_Worker]) -> None:
    """Ends processes once their parts are paused; a second request ends them at once."""
    try:
        _terminate(workers)
    except (KeyboardInterrupt, PausedError):
        _terminate(workers)
        raise


def _terminate(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGTERM)
    for worker in workers:
        worker.pool.shutdown()


def _started() -> _Worker:
    for _ in range(_STARTS):  # a process may be killed while it starts
        pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_begin)
        with suppress(BrokenProcessPool):
            return _Worker(pool, pool.submit(os.getpid).result())
    raise OptionError(
        "--engine local: a process could not be started; a script that calls scale does so below "
        'if __name__ == "__main__"'
    )


def _begin() -> None:
    """Initializes a process: it ignores Ctrl-C and watches its parent.

    Ctrl-C reaches all processes of a terminal; the parent then pauses the others.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    """Pauses this process's part when the parent dies; ``_run`` then ends the process."""
    if (parent := parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _run(part: Part) -> Ended:
    ended = run_in_worker(part)
    if (parent := parent_process()) is None or not parent.is_alive():
        os._exit(ended.code)  # no parent is left to end this process
    return ended
