"""Time, as one thing that tests can replace: a clock that only goes forward, and a way to wait."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Tells seconds that pass and waits for them."""

    def now(self) -> float:
        """Seconds since some moment; never goes back, whatever happens to the date."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        ...


class MonotonicClock:
    """The system's monotonic clock."""

    def now(self) -> float:
        """See ``Clock``."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """See ``Clock``."""
        await asyncio.sleep(seconds)
