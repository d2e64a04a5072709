"""Parts as processes of this machine, each of which does one part after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context

from .parts import PAUSED, Ended, Part, run_part


def run_parts(parts: Sequence[Part], at_once: int) -> Iterator[tuple[Part, Ended]]:
    """Runs parts; see ``scale.Engine``. Where a process is killed, all parts in flight end."""
    with ProcessPoolExecutor(min(at_once, len(parts)), mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run_part, part): part for part in parts}
        try:
            for future in as_completed(futures):
                try:
                    yield futures[future], future.result()
                except BrokenProcessPool:
                    yield futures[future], Ended(PAUSED, "a process was killed")
        except BaseException:  # it is stopped, or a part can't be run at all
            for child in active_children():
                child.terminate()  # which pauses its part
            pool.shutdown(cancel_futures=True)
            raise
