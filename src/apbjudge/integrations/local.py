"""Parts as processes of this machine, each of which does one part after another."""

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
    """A process; in a pool of its own, since a killed one ends all of a pool."""

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
            while waiting and idle:  # no more than that: what a pool has queued can't be taken back
                worker = idle.pop()
                try:
                    future = worker.pool.submit(_run, waiting[-1])
                except BrokenProcessPool:  # it was killed behind its last part
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
    """Ends processes when their parts are paused, or at once on a second request."""
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
    for _ in range(_STARTS):  # one may be killed as it begins
        pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_begin)
        with suppress(BrokenProcessPool):
            return _Worker(pool, pool.submit(os.getpid).result())
    raise OptionError(
        "--engine local: a process could not be started; a script that calls scale does so below "
        'if __name__ == "__main__"'
    )


def _begin() -> None:
    """Sets the signals of a process.

    Ctrl-C reaches all processes of a terminal; the first one pauses the others.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    """Pauses the part of a process whose parent was killed; see ``_run`` for its end."""
    if (parent := parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _run(part: Part) -> Ended:
    ended = run_in_worker(part)
    if (parent := parent_process()) is None or not parent.is_alive():
        os._exit(ended.code)  # nobody would ever end it
    return ended
