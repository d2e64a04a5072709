"""Where calls go: several replicas of one judge, each with its own pace, health and format.

Each endpoint takes as many calls at once as it bears: the number grows while it is used up,
doubling at first, and is halved when the endpoint says that there are too many, and only then. An
endpoint that fails again and again is left alone and tried with a single call after a while.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ..errors import AccessError, JudgeError, OutageError, RateLimitedError, TransportError
from .base import Client, Format
from .clock import Clock

START = 32
"""Calls in flight to an endpoint before anything is known of it."""

STRIKES = 5
"""Failures in a row after which an endpoint is left alone."""

FIRST_REST_S = 2.0
LONGEST_REST_S = 60.0
CROWDED = 1.25
"""A replica takes requests of its prefixes up to this multiple of the least busy one's load."""


@dataclass(slots=True, eq=False)
class Endpoint:
    """One replica.

    Attributes:
        client: What reaches it.
        address: Its address, or None for the provider's own.
        most: Calls in flight at most.
        format: The strictest format it is known to take.
        allowed: Calls in flight it bears, as far as is known.
        flying: Calls in flight.
        closed: Why it refuses every call, or None.
    """

    client: Client
    address: str | None
    most: int
    format: Format = "json_schema"
    allowed: float = 0.0
    flying: int = 0
    closed: AccessError | None = None
    _opening: bool = True
    _cut_at: float = float("-inf")
    _paused_until: float = float("-inf")
    _strikes: int = 0
    _rest_s: float = FIRST_REST_S
    _rested_at: float = float("-inf")
    _down_since: float | None = None
    _failed_at: float = 0.0

    def __post_init__(self) -> None:
        self.allowed = float(min(START, self.most))

    def pause(self, now: float) -> float:
        """Seconds until it may be called again, 0 when it may be now."""
        return max(0.0, self._paused_until - now)

    @property
    def down_for(self) -> float:
        """Seconds over which it was seen to fail and never to answer, 0 while it is well."""
        return 0.0 if self._down_since is None else self._failed_at - self._down_since

    def has_room(self) -> bool:
        """Whether one more call may be in flight; one at a time while its health is in doubt."""
        limit = 1 if self._strikes >= STRIKES else int(self.allowed)
        return self.flying < limit

    def succeeded(self, now: float, wait_s: float | None) -> None:
        """Takes note of an answer."""
        self._is_well()
        if self.flying + 1 >= int(self.allowed):
            self.allowed = min(self.most, self.allowed + (1 if self._opening else 1 / self.allowed))
        if wait_s is not None:
            self._paused_until = max(self._paused_until, now + wait_s)

    def failed(self, error: JudgeError, begun: float, now: float) -> None:
        """Takes note of a failure."""
        if isinstance(error, RateLimitedError):
            self._is_well()
            self._slow_down(error, begun, now)
        elif isinstance(error, AccessError):
            self.closed = error
        elif isinstance(error, TransportError):
            self._strike(error, begun, now)
        else:
            self._is_well()  # it said no, but it spoke

    def _is_well(self) -> None:
        self._strikes = 0
        self._rest_s = FIRST_REST_S
        self._down_since = None

    def _slow_down(self, error: RateLimitedError, begun: float, now: float) -> None:
        self._paused_until = max(self._paused_until, now + (error.retry_after_s or 0.0))
        if begun < self._cut_at:
            return  # sent before the last cut: it says nothing new
        self._opening = False
        self._cut_at = now
        self.allowed = max(1.0, self.allowed / 2)

    def _strike(self, error: TransportError, begun: float, now: float) -> None:
        self._strikes += 1
        self._down_since = begun if self._down_since is None else self._down_since
        self._failed_at = now
        # Calls that were in flight when the rest began say nothing new.
        if self._strikes >= STRIKES and begun >= self._rested_at:
            self._rested_at = now
            rest = max(self._rest_s, error.retry_after_s or 0.0)
            self._paused_until = max(self._paused_until, now + rest)
            self._rest_s = min(LONGEST_REST_S, self._rest_s * 2)


class Router:
    """Finds an endpoint for a request, and makes it wait while there is none.

    Args:
        endpoints: The replicas, at least one.
        clock: Tells the time and waits.
        outage_s: Seconds without an answer from any endpoint after which calls are no longer held
            back but fail at once, so that a run ends when its endpoint has died for good.
    """

    def __init__(self, endpoints: Sequence[Endpoint], *, clock: Clock, outage_s: float) -> None:
        self.endpoints = endpoints
        self._clock = clock
        self._outage_s = outage_s
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._woken = 0  # of those that waited, and have not looked for a place yet

    async def enter(self, prefix: str, *, avoid: Endpoint | None = None) -> Endpoint:
        """Waits for an endpoint with room and takes a place on it.

        Args:
            prefix: What the request shares with others.
            avoid: An endpoint that is taken only where no other may be called now.

        Raises:
            AccessError: If every endpoint refuses every call.
            OutageError: If none has answered for too long.
        """
        try:
            while True:
                now = self._clock.now()
                rested = [e for e in self._living() if e.pause(now) == 0]
                rested = [e for e in rested if e is not avoid] or rested
                free = [e for e in rested if e.has_room()]
                if free:
                    endpoint = self._choose(free, prefix)
                    endpoint.flying += 1
                    return endpoint
                if rested:
                    await self._room()
                else:
                    await self._clock.sleep(min(e.pause(now) for e in self._living()) + 0.001)
        except BaseException:
            self._wake()  # whoever was woken and does not enter wakes the next
            raise

    def _living(self) -> list[Endpoint]:
        living = [e for e in self.endpoints if e.closed is None]
        if not living:
            raise AccessError(str(self.endpoints[0].closed))
        if all(e.down_for > self._outage_s for e in living):
            raise OutageError(f"no endpoint has answered for {self._outage_s:g} s")
        return living

    def _choose(self, free: list[Endpoint], prefix: str) -> Endpoint:
        least = min(free, key=lambda e: e.flying)
        if len(free) == 1 or not prefix:
            return least
        home = max(free, key=lambda e: _affinity(e.address or "", prefix))
        return home if home.flying <= least.flying * CROWDED + 2 else least

    async def _room(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            self._woken -= waiter.done() and not waiter.cancelled()

    def leave(self, endpoint: Endpoint) -> None:
        """Gives a place back, and wakes as many as there are places now."""
        endpoint.flying -= 1
        free = sum(max(0, int(e.allowed) - e.flying) for e in self.endpoints)
        for _ in range(min(max(1, free) - self._woken, len(self._waiting))):
            self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._woken += 1
                return


def _affinity(address: str, prefix: str) -> bytes:
    """Highest for the replica that a prefix belongs to, whichever others there are."""
    return blake2b(f"{address}\x00{prefix}".encode(), digest_size=8).digest()
