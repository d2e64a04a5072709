"""Calls and tokens per minute: spreads calls over time so that a limit is never met."""

from __future__ import annotations

from .base import Clock

BURST_S = 5.0
"""Seconds' worth of calls that may be made at once after a pause."""

USUAL_REPLY_TOKENS = 400
CHARACTERS_PER_TOKEN = 4
PICTURE_CHARACTERS = 1500 * CHARACTERS_PER_TOKEN
"""Length of a picture in limits: the cost in large models of one of about a megapixel."""


class RateLimit:
    """Lets calls through at no more than a given rate.

    Args:
        rpm: Requests per minute, None for no limit.
        tpm: Tokens per minute, sent and received, None for no limit.
        clock: Measures time and waits.
    """

    def __init__(self, rpm: float | None, tpm: float | None, clock: Clock) -> None:
        self._requests = _Stream(rpm, clock) if rpm else None
        self._tokens = _Stream(tpm, clock) if tpm else None
        self._clock = clock

    async def acquire(self, characters: int) -> int:
        """Waits until a call with a prompt of some length may be made.

        Returns:
            The tokens that count for it until ``correct`` is called.
        """
        tokens = characters // CHARACTERS_PER_TOKEN + USUAL_REPLY_TOKENS
        waits = [self._requests.take(1) if self._requests else 0.0]
        waits.append(self._tokens.take(tokens) if self._tokens else 0.0)
        if max(waits) > 0:
            await self._clock.sleep(max(waits))
        return tokens

    def correct(self, reserved: int, used: int) -> None:
        """Replaces an estimate by the tokens that a call used."""
        if self._tokens and used:
            self._tokens.take(used - reserved)


class _Stream:
    """Units that flow at a rate; ``take`` returns the seconds to wait for them."""

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self._interval = 60.0 / per_minute
        self._clock = clock
        self._next_at = clock.now() - BURST_S

    def take(self, units: float) -> float:
        now = self._clock.now()
        start = max(self._next_at, now - BURST_S)
        self._next_at = start + units * self._interval
        return max(0.0, start - now)
