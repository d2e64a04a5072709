"""The only retry layer: the failures after which a call is repeated, the number and the delays."""

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
"""Up to this number of refusals with 429, waits stay at four seconds: ``congestion`` reduces the
load, and a call refused by chance should not wait for long. After that they double again."""

REPEATS: Mapping[type[TransportError], float] = {
    OutageError: 0.0,  # the endpoint counts as down: the next session may try again
    RateLimitedError: 5.0,  # 429: the endpoint works, so patience costs only time
    CallTimeoutError: 0.5,  # 408 or no answer in time: each call may have been charged
    TransportError: 1.0,  # 5xx, broken connections, unusable answers
}
"""Repeats of a call after a temporary failure, as a multiple of ``retries``.

Nothing else is repeated: a refusal, a prompt too long for the context, a wrong key and a rejected
request would fail again.
"""


def repeats(error: JudgeError, retries: int) -> int:
    """The total number of times that a call with this failure may be repeated.

    At least 2 if nobody listened: nothing was sent, and two more attempts are needed to be sure
    (``endpoints.SILENT_FOR_S``).
    """
    if isinstance(error, UnreachableError):
        retries = max(2, retries)
    factor = next((REPEATS[kind] for kind in REPEATS if isinstance(error, kind)), 0.0)
    return -int(-retries * factor // 1)


def backoff_s(attempt: int, error: TransportError, rng: random.Random) -> float:
    """Seconds to wait before attempt ``attempt + 1``.

    It doubles from one second, half of it random, to at most a minute; more slowly after a 429 (see
    ``EVEN_REFUSALS``). If an endpoint asked for a certain time, it is at least that.
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
    """Makes a call, and repeats it after temporary failures.

    Args:
        call: Makes the call.
        retries: The unit of ``REPEATS``.
        deadline_s: Seconds for all attempts; none begins that would have to wait beyond it.
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
