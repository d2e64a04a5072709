"""The one retry layer: bounded in number, bounded in time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apbjudge.errors import (
    AccessError,
    BudgetError,
    CallTimeoutError,
    FormatUnsupportedError,
    JudgeError,
    PendingError,
    RateLimitedError,
    RefusalError,
    ReplyError,
    TransportError,
    TruncatedError,
)
from apbjudge.llm.retry import LONGEST_WAIT_S, backoff_s, repeats, with_retries
from tests.support.clock import VirtualClock

FINAL = [
    AccessError,
    BudgetError,
    FormatUnsupportedError,
    JudgeError,
    PendingError,
    RefusalError,
    ReplyError,
    TruncatedError,
]
TABLE: dict[type[JudgeError], list[int]] = {
    TransportError: [0, 1, 2, 3, 4],
    RateLimitedError: [0, 5, 10, 15, 20],
    CallTimeoutError: [0, 1, 1, 2, 2],
    **dict.fromkeys(FINAL, [0] * 5),
}
PASSING: list[Callable[[], TransportError]] = [
    lambda: TransportError("busy"),
    lambda: TransportError("busy", retry_after_s=5.0),
    lambda: TransportError("busy", retry_after_s=400.0),
    lambda: CallTimeoutError("late"),
    lambda: RateLimitedError("slowly"),
    lambda: RateLimitedError("slowly", retry_after_s=30.0),
]


class Endpoint:
    """Fails as told, one failure a call, each of which takes its time; answers 42 after that."""

    def __init__(self, failures: Sequence[Exception], call_s: float = 0.0) -> None:
        self.failures = failures
        self.call_s = call_s
        self.clock = VirtualClock()
        self.begun: list[float] = []

    @property
    def waits(self) -> list[float]:
        return self.clock.waits

    async def call(self) -> int:
        self.begun.append(self.clock.now())
        self.clock.time += self.call_s
        if len(self.begun) <= len(self.failures):
            raise self.failures[len(self.begun) - 1]
        return 42

    def ask(self, retries: int, deadline_s: float = 1e12) -> int:
        made = with_retries(
            self.call,
            retries=retries,
            deadline_s=deadline_s,
            clock=self.clock,
            rng=random.Random(7),
        )
        return asyncio.run(made)

    def outcome(self, retries: int, deadline_s: float) -> JudgeError | None:
        """The failure that is left; None for an answer."""
        try:
            assert self.ask(retries, deadline_s) == 42
        except JudgeError as error:
            return error
        return None


@pytest.mark.parametrize("kind", TABLE)
def test_the_kind_of_a_failure_says_how_often_it_is_repeated(kind: type[JudgeError]) -> None:
    assert [repeats(kind("it failed"), retries) for retries in range(5)] == TABLE[kind]


@pytest.mark.parametrize("kind", TABLE)
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_failure_that_stays_is_repeated_as_the_table_says(
    kind: type[JudgeError], retries: int
) -> None:
    failures = [kind(str(n)) for n in range(100)]
    endpoint = Endpoint(failures)
    with pytest.raises(kind) as raised:
        endpoint.ask(retries)
    calls = TABLE[kind][retries] + 1
    assert len(endpoint.begun) == calls
    assert raised.value is failures[calls - 1]
    assert len(endpoint.waits) == calls - 1


@given(
    attempt=st.integers(1, 5000),
    asked=st.none() | st.floats(0, 3600),
    kind=st.sampled_from([TransportError, RateLimitedError]),
    seed=st.integers(0, 2**32),
)
@example(attempt=1025, asked=None, kind=TransportError, seed=0)
@example(attempt=1025, asked=None, kind=RateLimitedError, seed=0)
@settings(max_examples=200)
def test_a_wait_doubles_up_to_a_minute_unless_more_was_asked_for(
    attempt: int, asked: float | None, kind: type[TransportError], seed: int
) -> None:
    full = full_wait(attempt, kind)
    wait = backoff_s(attempt, kind("busy", retry_after_s=asked), random.Random(seed))
    assert wait >= (asked or 0.0)
    assert full / 2 <= wait <= max(full, asked or 0.0)
    assert LONGEST_WAIT_S == 60.0


def full_wait(attempt: int, kind: type[TransportError]) -> float:
    """1, 2, 4, 8, … 60 seconds; after a 429 they stay at 4 for seven attempts."""
    if kind is RateLimitedError:
        attempt = min(attempt, 3) + max(0, attempt - 9)
    return min(60.0, 2.0 ** min(attempt - 1, 6))


@given(
    passing=st.lists(st.sampled_from(PASSING), max_size=8),
    final=st.none() | st.sampled_from(FINAL),
    retries=st.integers(0, 5),
    deadline_s=st.floats(0.1, 1000),
    call_s=st.floats(0, 50),
)
@settings(max_examples=150)
def test_calls_are_made_until_success_a_final_failure_the_limit_or_the_deadline(
    passing: list[Callable[[], TransportError]],
    final: type[JudgeError] | None,
    retries: int,
    deadline_s: float,
    call_s: float,
) -> None:
    failures = [*(make() for make in passing), *([final("no")] if final else [])]
    endpoint = Endpoint(failures, call_s)
    start = endpoint.clock.now()
    error = endpoint.outcome(retries, deadline_s)
    made = len(endpoint.begun)
    assert error is (failures[made - 1] if made <= len(failures) else None)
    for number, failure in enumerate(failures[: made - 1], start=1):
        assert number <= repeats(failure, retries)
    if isinstance(error, TransportError) and made <= repeats(error, retries):
        # Given up early, and only because the next wait would have gone beyond the deadline.
        longest = max(LONGEST_WAIT_S, error.retry_after_s or 0.0)
        assert endpoint.clock.now() - start + longest > deadline_s
    assert all(begun - start <= deadline_s for begun in endpoint.begun[1:])
    assert len(endpoint.waits) == made - 1


def test_no_attempt_is_begun_that_would_have_to_wait_beyond_the_deadline() -> None:
    endpoint = Endpoint([TransportError("busy", retry_after_s=100.0)] * 9)
    with pytest.raises(TransportError):
        endpoint.ask(8, deadline_s=250.0)
    assert endpoint.waits == [100.0, 100.0]


def test_a_wait_that_was_asked_for_is_kept_to() -> None:
    endpoint = Endpoint([TransportError("busy", retry_after_s=90.0), TransportError("busy")])
    assert endpoint.ask(2) == 42
    first, second = endpoint.waits
    assert first == 90.0
    assert 1.0 <= second <= 2.0


def test_endless_patience_never_overflows() -> None:
    endpoint = Endpoint([TransportError("down") for _ in range(1500)])
    assert endpoint.ask(10_000) == 42
    assert max(endpoint.waits) <= LONGEST_WAIT_S


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("x")])
def test_what_is_no_failure_of_a_judge_is_not_asked_again(error: Exception) -> None:
    endpoint = Endpoint([error])
    with pytest.raises(type(error)) as raised:
        endpoint.ask(5)
    assert raised.value is error
    assert len(endpoint.begun) == 1


def test_a_cancelled_call_stays_cancelled() -> None:
    calls: list[int] = []

    async def cancelled() -> None:
        calls.append(1)
        raise asyncio.CancelledError

    async def main() -> None:
        clock = VirtualClock()
        rng = random.Random(7)
        await with_retries(cancelled, retries=5, deadline_s=99.0, clock=clock, rng=rng)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert calls == [1]
