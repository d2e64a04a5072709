"""The number of calls that an endpoint accepts at once, learnt from its refusals with 429.

Load grows gradually while calls are served, and is cut by a factor once some are refused. But a
refusal may be independent of load: some endpoints and gateways refuse a share of all calls, however
few there are. Only an experiment can distinguish the two. Calls are therefore counted in samples,
each at one load, and a sample after a cut is a trial: under a limit of calls per second its share
of refused calls falls; if refusals are independent of load, the share stays, and the load returns
to its former value. That conclusion is tested from time to time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

START = 32  # calls in flight to an unknown endpoint
SLOWEST_S = 2.0  # longest pause between two calls made here; an endpoint may ask for more
CATCH_UP_S = 0.002  # a call may start this late without delaying the next: timers are not exact
GROWTH = 1.05  # of the load with a sample without refusals
SMALLEST_SAMPLE, SMALLEST_TRIAL = 16, 32  # calls; at least as many as may be in flight
UNKNOWN_LATENCY_S = 1.0  # latency assumed until a call was served
LATENCIES = 64  # calls over which the latency is averaged
HOLD_ROUND_TRIPS = 8  # for which a load stays after a cut before more is tried
HIGHEST_SHARE = 0.75
"""A larger share of refused calls always counts as caused by the load."""
CALLS_BETWEEN_TRIALS = (64, 512)
"""After the first trial that found refusals independent of the load, and the limit of doubling."""


@dataclass(slots=True)
class LoadSample:
    """Calls that were made at one load.

    Attributes:
        size: Number of calls that belong to it.
        ended: Calls that were answered, were refused or failed otherwise.
        delayed: Calls that had to wait for the window, or filled it.
        first_at: Time at which the first started.
        last_at: Time at which the last started.
    """

    size: int
    started: int = 0
    ended: int = 0
    answered: int = 0
    refused: int = 0
    delayed: int = 0
    first_at: float = 0.0
    last_at: float = 0.0

    @property
    def is_full(self) -> bool:
        """True if the window limited the load, rather than the number of calls to make."""
        return 2 * self.delayed >= self.started

    @property
    def count(self) -> int:
        """Number of calls that are informative about the load."""
        return self.answered + self.refused

    @property
    def share(self) -> float:
        """Share of these calls that was refused, 0 to 1."""
        return self.refused / self.count

    def rate(self, latency_s: float) -> float:
        """Calls per second, over at least one round trip."""
        return self.started / max(1e-9, latency_s, self.last_at - self.first_at)

    def exceeds(self, share: float, deviations: float) -> bool:
        """True if more was refused than a share explains within a number of standard deviations."""
        return self.share > share + deviations * math.sqrt(share * (1 - share) / self.count)


@dataclass(frozen=True, slots=True)
class _Before:
    """The state before a trial: the window, calls per second and the share refused."""

    size: float
    rate: float
    share: float


class CongestionWindow:
    """The load on one endpoint: calls in flight, and the time between two starts.

    Args:
        most: Calls in flight at most.

    Attributes:
        size: Calls in flight that the endpoint accepts, as far as known. Below 1: one call at a
            time, with pauses. Once a call was refused, starts are spread evenly over a round trip.
        refused_share: Share of calls that is refused at any load; 0 while unknown.
    """

    def __init__(self, most: int) -> None:
        self.size = float(min(START, most))
        self.refused_share = 0.0
        self._most = most
        self._is_opening = True
        self._latency_s = UNKNOWN_LATENCY_S
        self._latencies = 0
        self._next_at = self._constant_until = float("-inf")
        self._delayed = 0  # calls that had to wait and have not started
        self._before: _Before | None = None  # while the sample is a trial
        self._until_trial, self._between_trials = 0, CALLS_BETWEEN_TRIALS[0]
        self._sample = self._new_sample()

    @property
    def heeds_pauses(self) -> bool:
        """True if the pause that a refusal asks for holds for all calls, not only the refused one.

        False if refusals are independent of the load, and while a lower load tests that.
        """
        return not self.refused_share and self._before is None

    @property
    def limit(self) -> int:
        """Calls in flight at most; a whole number, at least 1."""
        size = int(self.size) if self._is_opening else math.ceil(self.size - 1e-9)
        return max(1, min(self._most, size))

    def wait_s(self, now: float) -> float:
        """Seconds until the next call may start; 0 if it may start now."""
        return max(0.0, self._next_at - now)

    def reserve(self, now: float, *, was_full: bool = False) -> None:
        """Counts a call that starts.

        Args:
            now: The time.
            was_full: True if it waited because the window was full.
        """
        gap = 0.0 if self._is_opening else self._latency_s / self.size
        self._delayed += was_full or (gap > 0 and now - self._next_at < gap)
        self._next_at = max(self._next_at, now - CATCH_UP_S) + gap

    def begin(self, in_flight: int, now: float) -> LoadSample:
        """Counts a call that is made; returns the sample that it belongs to.

        Args:
            in_flight: Calls in flight, this one included.
            now: The time.
        """
        is_delayed, self._delayed = self._delayed > 0, max(0, self._delayed - 1)
        sample = self._sample
        if sample.started == sample.size:
            return LoadSample(0)  # further calls until its end count nowhere
        sample.first_at = sample.first_at if sample.started else now
        sample.last_at = now
        sample.started += 1
        sample.delayed += in_flight >= self.limit or is_delayed
        return sample

    def answered(self, sample: LoadSample, now: float, latency_s: float) -> None:
        """Counts a call that was served."""
        self._latencies = min(self._latencies + 1, LATENCIES)
        self._latency_s += (latency_s - self._latency_s) / self._latencies
        if sample is self._sample:
            sample.answered += 1
            if self._is_opening and sample.is_full:
                self.size = min(self._most, self.size + 1)
        self.ended(sample, now)

    def refused(self, sample: LoadSample, now: float) -> None:
        """Counts a call that was refused because of the number of calls."""
        sample.refused += 1
        self.ended(sample, now)

    def ended(self, sample: LoadSample, now: float) -> None:
        """Counts a call that ended, perhaps in a way that is not informative about the load."""
        if sample is not self._sample:
            return
        sample.ended += 1
        if sample.ended == sample.size:
            if sample.count:
                self._decide(sample, now)
            self._sample = self._new_sample()

    def _new_sample(self) -> LoadSample:
        smallest = SMALLEST_SAMPLE if self._before is None else SMALLEST_TRIAL
        return LoadSample(round(max(smallest, self.size)))

    def _decide(self, sample: LoadSample, now: float) -> None:
        """Draws the conclusion from a complete sample."""
        before, self._before = self._before, None
        self._until_trial -= sample.count
        if before is not None and self._is_independent(sample, before):
            self.size, self._is_opening = before.size, True
            self.refused_share = (sample.share + before.share) / 2
            self._until_trial = self._between_trials
            self._between_trials = min(2 * self._between_trials, CALLS_BETWEEN_TRIALS[1])
            return
        if before is not None:
            self._between_trials = CALLS_BETWEEN_TRIALS[0]
        is_due = self.refused_share > 0 and self._until_trial <= 0
        if is_due or sample.exceeds(self.refused_share, 2.5):
            self._cut(sample, now)
        elif not self._is_opening and sample.is_full and now > self._constant_until:
            self.size = min(self._most, self.size * GROWTH)

    def _is_independent(self, sample: LoadSample, before: _Before) -> bool:
        """True if the share refused in a trial is the one before, and no limit explains it."""
        fell_to = min(1.0, sample.rate(self._latency_s) / before.rate)
        limited = max(0.0, 1 - (1 - before.share) / fell_to)
        return (
            before.share < HIGHEST_SHARE
            and sample.share > (before.share + limited) / 2
            and not sample.exceeds(before.share, 2)
        )

    def _cut(self, sample: LoadSample, now: float) -> None:
        """Lowers the load, which starts a trial."""
        rate = sample.rate(self._latency_s)
        self._before = _Before(self.size, rate, sample.share)
        self._is_opening, self.refused_share = False, 0.0
        if not sample.is_full:  # fewer calls than allowed
            self.size = min(self.size, max(1.0, rate * self._latency_s))
        self.size *= max(0.25, min(0.8, 0.9 * (1 - sample.share)))
        self.size = max(self.size, self._latency_s / SLOWEST_S)
        self._constant_until = now + HOLD_ROUND_TRIPS * self._latency_s
