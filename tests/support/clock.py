"""Clocks for tests: one that takes waits down, and one that simulates waits side by side."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass
class VirtualClock:
    """Time that passes only when somebody waits; who waits at once waits together."""

    waits: list[float] = field(default_factory=list[float])
    time: float = 1000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        end = self.time + seconds
        await asyncio.sleep(0)
        self.time = max(self.time, end)


class _LeapingSelector(selectors.DefaultSelector):
    """Never waits: where nothing is ready, its time leaps to the moment that is awaited."""

    time = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout:
            self.time += timeout
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only in waits: hours in no time, everything in order."""

    def __init__(self) -> None:
        self._leaping = _LeapingSelector()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.time


class LoopClock:
    """The clock of the running loop, to be used within ``simulate``."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def simulate(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in simulated time; waits are exact and take none of the real one."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
