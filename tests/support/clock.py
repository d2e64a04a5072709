"""A clock that a test moves: waiting takes no time and is taken down."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


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
