"""How many calls an endpoint takes at once, learnt from the calls that it refuses with 429.

A refusal says that there are too many calls, or nothing about load at all: some endpoints and
gateways refuse a share of all calls, however few there are. Only an experiment can tell the two
apart. Calls are therefore counted in samples, each at one load, and a sample with refusals is
followed by one at a lower load. Two explanations compete for what the last samples show: a limit
of calls per second, above which the rest is refused, and one share that is refused at every load.
Under the first, the load stays just below the limit, and more is tried now and then. Under the
second less load would gain nothing: it goes back to where it was, and the conclusion is tested from
time to time.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

START = 32  # calls in flight to an endpoint before anything is known of it
SLOWEST_S = 2.0  # longest pause between two calls made here; an endpoint may ask for more
CATCH_UP_S = 0.002  # so late a call may start without delaying the next: timers are not exact
SMALLEST_SAMPLE, LARGEST_SAMPLE = 8, 32
GROWTH = 0.05  # of the load with a sample, where more than the known limit is tried
DOUBLED_AFTER = 3  # samples without refusals beyond the limit after which growth doubles
UNKNOWN_LATENCY_S = 1.0  # the latency until a call was served
LATENCIES = 64  # calls over which the latency is averaged
HISTORY = 12  # samples that show what the refusals depend on
FEWEST_REFUSING = 3  # samples of these that must have refusals

EVIDENCE = 4.0
MAX_LOSS = 4.0
"""Difference of log-likelihoods that decides, and the most that one sample adds to it: an endpoint
that was quiet before takes a burst of calls that says nothing of what it takes in the long run."""

HIGHEST_SHARE = 0.75
"""A larger share of refused calls always counts as caused by the load."""

CALLS_BETWEEN_TESTS = 256
HOLD_ROUND_TRIPS = 8
HOLD_PAUSES = 10
"""How long a load stays just below the known limit before more is tried, in round trips and in
multiples of the time that a refusal costs: a test of the limit takes at most a tenth of the time.
"""


@dataclass(slots=True)
class LoadSample:
    """Calls that were made at one load."""

    window: float  # under which they were made
    size: int  # calls that belong to it
    started: int = 0
    ended: int = 0
    answered: int = 0
    refused: int = 0  # for their number
    delayed: int = 0  # calls that had to wait for the window, or filled it
    first_at: float = 0.0  # when the first was started
    last_at: float = 0.0

    @property
    def is_full(self) -> bool:
        """Whether it was the window that limited the load, and not how many calls there were."""
        return 2 * self.delayed >= self.started

    def rate(self, latency_s: float) -> float:
        """Calls per second, over a round trip at least; of a part that tells little, as allowed."""
        if self.started < self.size:
            return self.window / max(1e-9, latency_s)
        return self.started / max(1e-9, latency_s, self.last_at - self.first_at)

    @property
    def count(self) -> int:
        """Calls that say something about the load."""
        return self.answered + self.refused

    @property
    def share(self) -> float:
        """Share of these that was refused, 0 to 1."""
        return self.refused / self.count if self.count else 0.0

    def loss(self, share: float) -> float:
        """How much less likely its refusals are under a share than under the best one, in nats."""
        share = max(0.01, min(0.99, share))
        loss = 0.0
        for n, p in ((self.refused, share), (self.answered, 1 - share)):
            if n:
                loss += n * math.log(n / self.count / p)
        return min(MAX_LOSS, loss)

    def exceeds(self, share: float) -> bool:
        """Whether more calls were refused than a share that is always refused explains."""
        if not share:
            return self.refused > 0
        spread = math.sqrt(self.count * share * (1 - share))
        return self.refused > self.count * share + 2.5 * spread


class CongestionWindow:
    """The load that one endpoint is given: calls in flight, and the time between two starts.

    Args:
        most: Calls in flight at most.

    Attributes:
        size: Calls in flight that the endpoint takes as far as is known. Below 1: one call, with
            pauses between. Once a call was refused, starts are spread evenly over a round trip.
        refused_share: Share of the calls that is refused whatever the load, 0 while none is known.
    """

    def __init__(self, most: int) -> None:
        self.size = float(min(START, most))
        self.refused_share = 0.0
        self._most = most
        self._is_opening = True
        self._latency_s: float | None = None
        self._latencies = 0
        self._refusal_s: float | None = None
        self._next_at = float("-inf")
        self._sample = self._new_sample()
        self._is_used = False
        self._full_at = float("-inf")  # when as many calls as allowed were last in flight
        self._history: deque[LoadSample] = deque(maxlen=HISTORY)
        self._is_reduced = False  # the last sample had refusals
        self._limit = math.inf  # the size that the endpoint bears, as far as is known
        self._beyond = 0  # samples without refusals beyond the limit
        self._held_until = float("-inf")
        self._pause_s = 0.0
        self._tested: float | None = None  # the size to go back to after a test
        self._until_test = CALLS_BETWEEN_TESTS

    @property
    def heeds_pauses(self) -> bool:
        """Whether a pause that a refusal asks for holds for all calls, not for the refused alone.

        Not where refusals have nothing to do with the load, nor while a lower load tests that.
        """
        if self.refused_share:
            return False
        return not self._is_reduced or self._history[-1].share > HIGHEST_SHARE

    @property
    def limit(self) -> int:
        """Calls in flight at most; a whole number, at least 1."""
        whole = int(self.size) if self._is_opening else math.ceil(self.size - 1e-9)
        return max(1, min(self._most, whole))

    def wait_s(self, now: float) -> float:
        """Seconds until the next call may start, 0 when it may start now."""
        return max(0.0, self._next_at - now)

    def reserve(self, now: float) -> None:
        """Counts a call that starts."""
        gap = self._gap_s()
        self._is_used = gap > 0 and now - self._next_at < gap
        self._next_at = max(self._next_at, now - CATCH_UP_S) + gap

    def _gap_s(self) -> float:
        if self._is_opening and self._tested is None:
            return 0.0
        latency_s = UNKNOWN_LATENCY_S if self._latency_s is None else self._latency_s
        return latency_s / self.size

    def begin(self, in_flight: int, now: float) -> LoadSample | None:
        """Counts a call that is made; returns the sample that it belongs to.

        Args:
            in_flight: Calls in flight, this one included.
            now: The time.
        """
        self._conclude_early(now)
        if in_flight >= self.limit:
            self._is_used, self._full_at = True, now
        sample, delayed = self._sample, self._is_used
        self._is_used = False
        if sample.started == sample.size:
            return None
        if not sample.started:
            sample.first_at = now
        sample.started += 1
        sample.last_at = now
        sample.delayed += delayed
        return sample

    def answered(self, sample: LoadSample | None, now: float, latency_s: float) -> None:
        """Counts a call that was served."""
        self._latencies = min(self._latencies + 1, LATENCIES)
        known = self._latency_s or 0.0
        self._latency_s = known + (latency_s - known) / self._latencies
        if self._is_opening and self._full_at >= now - latency_s:
            self.size = min(self._most, self.size + 1)
        if sample is not None:
            sample.answered += 1
            self._end(sample, now)

    def refused(
        self, sample: LoadSample | None, now: float, latency_s: float, pause_s: float
    ) -> None:
        """Counts a call that was refused, and the pause that was asked for."""
        self._pause_s = pause_s
        known = self._refusal_s
        self._refusal_s = latency_s if known is None else known + (latency_s - known) / 8
        if sample is not None:
            sample.refused += 1
            if sample is self._sample and self._is_settled:
                sample.ended = sample.size
                sample.answered = sample.size - sample.refused
                self._conclude(sample, now)
            else:
                self._end(sample, now)

    def failed(self, sample: LoadSample | None, now: float) -> None:
        """Counts a call that failed otherwise, which says nothing about the load."""
        if sample is not None:
            self._end(sample, now)

    @property
    def _is_settled(self) -> bool:
        """Whether the limit is known: then refusals are heeded before the sample is complete."""
        return not self._is_reduced and self._limit < math.inf

    def _end(self, sample: LoadSample, now: float) -> None:
        sample.ended += 1
        if sample is self._sample and sample.ended == sample.size:
            self._conclude(sample, now)

    def _conclude_early(self, now: float) -> None:
        """Takes calls for served that would have been refused by now: refusals come fast."""
        sample = self._sample
        if self._refusal_s is None or sample.started < sample.size:
            return
        if now > sample.last_at + 2 * self._refusal_s:
            sample.answered += sample.size - sample.ended
            sample.ended = sample.size
            self._conclude(sample, now)

    def _conclude(self, sample: LoadSample, now: float) -> None:
        if sample.count:
            self._decide(sample, now)
        self._sample = self._new_sample()

    def _new_sample(self) -> LoadSample:
        smallest = SMALLEST_SAMPLE if self.size >= 1 else SMALLEST_SAMPLE // 2
        return LoadSample(self.size, round(max(smallest, min(LARGEST_SAMPLE, self.size))))

    def _decide(self, sample: LoadSample, now: float) -> None:
        """Draws the conclusion from a whole sample."""
        self._until_test -= sample.count
        if self._history or sample.refused:
            self._history.append(sample)
        if self._tested is not None:
            self._end_test(sample, self._tested)
        elif sample.exceeds(self.refused_share):
            self._reduce(sample, now)
        else:
            self._grow(sample, now)
        lowest = (UNKNOWN_LATENCY_S if self._latency_s is None else self._latency_s) / SLOWEST_S
        self.size = min(float(self._most), max(self.size, lowest, 1e-3))

    def _end_test(self, sample: LoadSample, before: float) -> None:
        """A quarter of the load: if clearly fewer were refused, load is the cause after all."""
        self._tested, self._until_test = None, CALLS_BETWEEN_TESTS
        expected = sample.count * self.refused_share
        if sample.refused < expected - 2 * math.sqrt(expected * (1 - self.refused_share)):
            self._limit = before * (1 - self.refused_share)
            self.refused_share = 0.0
            self._is_opening = False
        else:
            self.size = before

    def _reduce(self, sample: LoadSample, now: float) -> None:
        """Less load; or more again, when refusals turn out not to depend on it."""
        self._is_opening = False
        self.refused_share = 0.0
        latency_s = self._latency_s or 0.0
        if self._is_independent():
            self.refused_share = self._pooled()
            self.size = max(sample.window for sample in self._history)
            self._limit = math.inf
            self._is_opening, self._is_reduced = True, False
            self._history.clear()
            self._until_test = CALLS_BETWEEN_TESTS
            return
        if latency_s and not sample.is_full:  # the load was lower than allowed
            self.size = min(self.size, max(1.0, sample.rate(latency_s) * latency_s))
        served = 1 - sample.share
        was_served = not self._is_reduced or self._history[-2].answered
        # Where nothing was served for a while, that says nothing about the limit.
        self._limit = self.size * served if sample.answered and was_served else math.inf
        self._is_reduced = True
        self._beyond = 0
        self._held_until = now + max(HOLD_ROUND_TRIPS * latency_s, HOLD_PAUSES * self._pause_s)
        self.size *= max(0.25, min(0.8, 0.9 * served))

    def _pooled(self) -> float:
        refused = sum(sample.refused for sample in self._history)
        return refused / sum(sample.count for sample in self._history)

    def _is_independent(self) -> bool:
        """Whether one share explains what was refused better than a limit of calls per second."""
        refusing = [sample for sample in self._history if sample.refused]
        if len(refusing) < FEWEST_REFUSING or self._pooled() > HIGHEST_SHARE:
            return False
        rates = {id(sample): sample.rate(self._latency_s or 0.0) for sample in self._history}

        def loss(limit: float) -> float:
            return sum(sample.loss(1 - limit / rates[id(sample)]) for sample in self._history)

        limited = min(loss(rates[id(sample)] * (1 - sample.share)) for sample in refusing)
        share = self._pooled()
        return limited - sum(sample.loss(share) for sample in self._history) > EVIDENCE

    def _grow(self, sample: LoadSample, now: float) -> None:
        """More load, as far as the last sample used what it was allowed."""
        self._is_reduced = False
        if self.refused_share and self._until_test <= 0:
            latency_s = self._latency_s or 0.0
            self._tested = self.size
            self.size = min(self.size, sample.rate(latency_s) * latency_s or self.size) / 4
        elif self._is_opening or not sample.is_full:
            return
        elif self.size < 0.9 * self._limit:
            self.size = min(2 * self.size, 0.95 * self._limit)
        elif now >= self._held_until:
            self.size *= 1 + min(1.0, GROWTH * 2 ** (self._beyond // DOUBLED_AFTER))
            self._beyond += 1
