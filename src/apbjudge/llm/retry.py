"""The one retry layer: which failures are asked again, how often and how soon."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from ..errors import (
    CallTimeoutError,
    JudgeError,
    OutageError,
    RateLimitedError,
    TransportError,
    UnreachableError,
)
from .base import Clock

T = TypeVar("T")

LONGEST_WAIT_S = 60.0
EVEN_REFUSALS = 9
"""Up to so many refusals with 429 waits stay at four seconds: ``congestion`` sees to the load, and
a call that is refused by chance should not wait for long. After that they double on."""

REPEATS: Mapping[type[TransportError], float] = {
    OutageError: 0.0,  # the endpoint counts as dead: the next session may try again
    RateLimitedError: 5.0,  # 429: the endpoint is well, so patience costs nothing but time
    CallTimeoutError: 0.5,  # 408 or no answer in time: each one may have been charged for
    TransportError: 1.0,  # 5xx, broken connections, answers that are no answers
}
"""Repeats of a call after a failure that may pass, as a multiple of ``retries``.

Nothing else is repeated: a refusal, a prompt too long for the context, a wrong key, a rejected
request stay what they are.
"""


def repeats(error: JudgeError, retries: int) -> int:
    """The number of times that a call that failed this way may be repeated in all.

    Where nobody listened it is twice at least: nothing was sent, and it takes two more attempts to
    know (``endpoints.SILENT_FOR_S``).
    """
    if isinstance(error, UnreachableError):
        retries = max(2, retries)
    factor = next((REPEATS[kind] for kind in REPEATS if isinstance(error, kind)), 0.0)
    return -int(-retries * factor // 1)


def backoff_s(attempt: int, error: TransportError, rng: random.Random) -> float:
    """Seconds to wait before attempt ``attempt + 1``.

    Doubling from one second, half of it at random, at most a minute; after a 429 more slowly (see
    ``EVEN_REFUSALS``). An endpoint that asked for a certain time gets at least that.
    """
    doublings = attempt - 1
    if isinstance(error, RateLimitedError):
        doublings = max(min(doublings, 2), attempt - EVEN_REFUSALS + 2)
    wait = min(LONGEST_WAIT_S, 2.0 ** min(doublings, 16)) * (0.5 + rng.random() / 2)
    return max(wait, error.retry_after_s or 0.0)


async def with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    retries: int,
    deadline_s: float,
    clock: Clock,
    rng: random.Random,
) -> T:
    """Makes a call, and again after a failure that may pass.

    Args:
        call: Makes the call.
        retries: The measure of ``REPEATS``.
        deadline_s: Seconds for all attempts; none is begun that would have to wait beyond it.
        clock: Measures time and waits.
        rng: Source of the jitter.

    Raises:
        JudgeError: The last failure.
    """
    end = clock.now() + deadline_s
    attempt = 0
    while True:
        attempt += 1
        try:
            return await call()
        except TransportError as error:
            wait = backoff_s(attempt, error, rng)
            if attempt > repeats(error, retries) or clock.now() + wait > end:
                raise
        await clock.sleep(wait)
