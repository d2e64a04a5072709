"""The one retry layer: which failures are asked again, how often and how soon."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..errors import JudgeError, TransportError

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

LONGEST_WAIT_S = 60.0


def backoff_s(attempt: int, asked_s: float | None, rng: random.Random) -> float:
    """Seconds to wait before attempt ``attempt + 1``.

    Doubling from one second, half of it at random, at most a minute; an endpoint that asked for
    a certain time gets at least that.
    """
    wait = min(LONGEST_WAIT_S, 2.0 ** min(attempt - 1, 16)) * (0.5 + rng.random() / 2)
    return max(wait, asked_s or 0.0)


async def with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    retries: int,
    sleep: Sleep = asyncio.sleep,
    rng: random.Random | None = None,
) -> T:
    """Makes a call, and again after a failure that may pass.

    Args:
        call: Makes the call.
        retries: How often it is made again at most.
        sleep: Waits; tests pass their own.
        rng: Source of the jitter.

    Raises:
        JudgeError: The last failure.
    """
    chance = rng or random.Random()  # noqa: S311 - jitter
    attempt = 0
    while True:
        attempt += 1
        try:
            return await call()
        except JudgeError as error:
            if not error.retryable or attempt > retries:
                raise
            asked = error.retry_after_s if isinstance(error, TransportError) else None
            await sleep(backoff_s(attempt, asked, chance))
