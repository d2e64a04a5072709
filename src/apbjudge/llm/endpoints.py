"""Endpoints of a model: several replicas, each with its own load, health and format.

``congestion`` learns the load of an endpoint. An endpoint that fails repeatedly rests, and is then
tried with a single call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from ..errors import (
    AccessError,
    JudgeError,
    OutageError,
    RateLimitedError,
    TransportError,
    UnreachableError,
)
from .base import Client, Clock, Format
from .congestion import CongestionWindow, LoadSample

STRIKES = 5
"""Failures in a row after which an endpoint rests."""

FIRST_REST_S = 2.0
LONGEST_REST_S = 60.0
SILENT_FOR_S = 1.0
"""Seconds of failed attempts after which an endpoint that never listened counts as missing."""
MAX_IMBALANCE = 1.25
"""A replica accepts requests of its prefixes up to this multiple of the least load."""


@dataclass(slots=True, eq=False)
class Endpoint:
    """One replica."""

    client: Client
    address: str | None  # None for the provider's own
    most: int  # calls in flight
    format: Format = "json_schema"  # the strictest that it is known to accept
    in_flight: int = 0
    closed: AccessError | None = None  # reason why it refuses every call
    missing: UnreachableError | None = None  # the last failure, while nobody ever listened there
    window: CongestionWindow = field(init=False)
    _paused_until: float = float("-inf")
    _strikes: int = 0
    _rest_s: float = FIRST_REST_S
    _rested_at: float = float("-inf")
    _down_since: float | None = None
    _failed_at: float = 0.0
    _was_reached: bool = False

    def __post_init__(self) -> None:
        self.window = CongestionWindow(self.most)

    def pause(self, now: float) -> float:
        """Seconds until it may be called again; 0 if it may be called now."""
        return max(0.0, self._paused_until - now, self.window.wait_s(now))

    def start_call(self, now: float, *, was_full: bool = False) -> None:
        """Counts a call before it is made; ``was_full``: true if it waited for a place."""
        self.in_flight += 1
        self.window.reserve(now, was_full=was_full)

    @property
    def room(self) -> int:
        """The number of calls that may be added; one at a time while it keeps failing."""
        limit = 1 if self._strikes >= STRIKES else self.window.limit
        return max(0, limit - self.in_flight)

    @property
    def down_for(self) -> float:
        """Seconds during which it only failed; 0 while it works."""
        return 0.0 if self._down_since is None else self._failed_at - self._down_since

    def begin(self, now: float) -> LoadSample:
        """Counts a call that is made now; returns the sample to report its end with."""
        return self.window.begin(self.in_flight, now)

    def succeeded(self, sample: LoadSample, begun: float, now: float, wait_s: float | None) -> None:
        """Counts an answer."""
        self._recover()
        self.window.answered(sample, now, now - begun)
        if wait_s is not None:
            self._paused_until = max(self._paused_until, now + wait_s)

    def failed(self, sample: LoadSample, error: BaseException, begun: float, now: float) -> None:
        """Counts a failure, or a call that was given up."""
        if isinstance(error, RateLimitedError):
            self._recover()
            if self.window.heeds_pauses:
                self._paused_until = max(self._paused_until, now + (error.retry_after_s or 0.0))
            self.window.refused(sample, now)
            return
        self.window.ended(sample, now)
        if isinstance(error, AccessError):
            self.closed = error
        elif isinstance(error, TransportError):
            self._strike(error, begun, now)
        elif isinstance(error, JudgeError):
            self._recover()  # a refusal is an answer

    @property
    def is_missing(self) -> bool:
        """True if nobody ever listened there, in any attempt."""
        return self.missing is not None and self.down_for >= SILENT_FOR_S

    def _recover(self) -> None:
        self._was_reached, self.missing = True, None
        self._strikes = 0
        self._rest_s = FIRST_REST_S
        self._down_since = None

    def _strike(self, error: TransportError, begun: float, now: float) -> None:
        self._strikes += 1
        if not isinstance(error, UnreachableError):
            self._was_reached, self.missing = True, None
        elif not self._was_reached:
            self.missing = error
        self._down_since = begun if self._down_since is None else self._down_since
        self._failed_at = now
        # Calls that were in flight when the rest began are not informative.
        if self._strikes >= STRIKES and begun >= self._rested_at:
            self._rested_at = now
            rest = max(self._rest_s, error.retry_after_s or 0.0)
            self._paused_until = max(self._paused_until, now + rest)
            self._rest_s = min(LONGEST_REST_S, self._rest_s * 2)


class Router:
    """Chooses an endpoint for a request, which waits while there is none.

    Args:
        endpoints: The replicas, at least one; ``replace`` changes them.
        clock: Measures time and waits.
        outage_s: Seconds without an answer from any endpoint after which calls no longer wait but
            fail at once, so that a run ends if its endpoint does not recover.
    """

    def __init__(self, endpoints: list[Endpoint], *, clock: Clock, outage_s: float) -> None:
        self.endpoints = endpoints
        self._clock = clock
        self._outage_s = outage_s
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._woken = 0  # tasks that were woken and have not looked for a place yet
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = float("inf")

    def replace(self, endpoints: Sequence[Endpoint]) -> None:
        """Replaces the endpoints with others, at least one."""
        self.endpoints[:] = endpoints
        self._wake_for_places(self._clock.now())

    async def enter(self, prefix: str, *, avoid: Endpoint | None = None) -> Endpoint:
        """Waits for an endpoint with room and takes a place on it.

        Args:
            prefix: See ``Request``.
            avoid: An endpoint that is chosen only if no other may be called now.

        Raises:
            AccessError: If every endpoint refuses every call.
            OutageError: If none has answered for too long.
        """
        was_full = False
        try:
            while True:
                now = self._clock.now()
                rested = [e for e in self._living() if e.pause(now) == 0]
                rested = [e for e in rested if e is not avoid] or rested
                free = [e for e in rested if e.room]
                # woken tasks keep their places, or they would wait forever
                if free and (was_full or sum(e.room for e in free) > self._woken):
                    endpoint = self._choose(free, prefix)
                    endpoint.start_call(now, was_full=was_full)
                    self._wake_for_places(now)
                    return endpoint
                was_full = was_full or bool(rested)
                await self._turn(now)
        except BaseException:
            self._wake()  # a woken task that does not enter wakes the next
            raise

    def _living(self) -> list[Endpoint]:
        living = [e for e in self.endpoints if e.closed is None]
        if not living:
            raise AccessError(str(self.endpoints[0].closed))
        self.check_reachable()
        if all(e.down_for > self._outage_s for e in living):
            raise OutageError(f"no endpoint has answered for {self._outage_s:g} s")
        return living

    def check_reachable(self) -> None:
        """Raises AccessError if nobody ever listened at any endpoint: waiting is useless."""
        if all(e.is_missing for e in self.endpoints):
            others = len(self.endpoints) - 1
            more = f"; nor does any of the {others} other addresses answer" if others else ""
            raise AccessError(f"{self.endpoints[0].missing}{more}")

    def _choose(self, free: list[Endpoint], prefix: str) -> Endpoint:
        least = min(free, key=lambda e: e.in_flight)
        if len(free) == 1 or not prefix:
            return least
        home = max(free, key=lambda e: _affinity(e.address or "", prefix))
        return home if home.in_flight <= least.in_flight * MAX_IMBALANCE + 2 else least

    async def _turn(self, now: float) -> None:
        """Waits until there may be a place: one was released, or a pause is over."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._update_alarm(now)  # wakes nobody: a task that avoids an endpoint would loop
        try:
            await waiter
        finally:
            self._woken -= waiter.done() and not waiter.cancelled()

    def leave(self, endpoint: Endpoint) -> None:
        """Releases a place, and wakes as many tasks as there are places now."""
        endpoint.in_flight -= 1
        if not self._waiting:
            return
        if all(e.closed or e.down_for > self._outage_s for e in self.endpoints):
            self._wake()  # to raise: there is nothing to wait for
        self._wake_for_places(self._clock.now())

    def _wake_for_places(self, now: float) -> None:
        """Wakes as many tasks as there are places, and sets the alarm for the others."""
        places = sum(e.room for e in self.endpoints if e.closed is None and e.pause(now) == 0)
        for _ in range(min(places - self._woken, len(self._waiting))):
            self._wake()
        if self._waiting and not places:
            self._update_alarm(now)

    def _update_alarm(self, now: float) -> None:
        pauses = [e.pause(now) for e in self.endpoints if e.closed is None and e.room]
        if pauses and 0 < min(pauses) < self._alarm_at - now:
            self._set_alarm(now + min(pauses))

    def _set_alarm(self, at: float) -> None:
        """Sets one timer for all waiting tasks: most of many timers for one place are useless."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        self._alarm = asyncio.create_task(self._ring())

    async def _ring(self) -> None:
        while (wait := self._alarm_at - self._clock.now()) > 0:
            await self._clock.sleep(wait)
        self._alarm, self._alarm_at = None, float("inf")
        self._wake_for_places(self._clock.now())

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._woken += 1
                return


def _affinity(address: str, prefix: str) -> bytes:
    """A rank that is highest for the replica of a prefix, independent of other replicas."""
    return blake2b(f"{address}\x00{prefix}".encode(), digest_size=8).digest()
