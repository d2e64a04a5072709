"""The one retry layer: bounded in number, bounded in time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apbjudge.errors import (
    AccessError,
    CallTimeoutError,
    FormatUnsupportedError,
    JudgeError,
    RefusalError,
    ReplyError,
    TransportError,
    TruncatedError,
)
from apbjudge.llm.retry import LONGEST_WAIT_S, backoff_s, with_retries

ASKED = st.none() | st.floats(0, 3600)
PASSING: list[Callable[[], JudgeError]] = [
    lambda: TransportError("busy"),
    lambda: TransportError("busy", retry_after_s=5.0),
    lambda: CallTimeoutError("late"),
]
FINAL: list[Callable[[], JudgeError]] = [
    lambda: AccessError("no"),
    lambda: RefusalError("no"),
    lambda: TruncatedError("no"),
    lambda: FormatUnsupportedError("no"),
    lambda: ReplyError("no"),
    lambda: JudgeError("no"),
]


class Endpoint:
    """Fails as told, one failure a call, and answers 42 after that."""

    def __init__(self, failures: list[Exception]) -> None:
        self.failures = failures
        self.calls = 0
        self.waits: list[float] = []

    async def call(self) -> int:
        self.calls += 1
        if self.calls <= len(self.failures):
            raise self.failures[self.calls - 1]
        return 42

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def ask(self, retries: int) -> int:
        rng = random.Random(7)
        return asyncio.run(with_retries(self.call, retries=retries, sleep=self.sleep, rng=rng))


@given(attempt=st.integers(1, 5000), asked=ASKED, seed=st.integers(0, 2**32))
@example(attempt=1025, asked=None, seed=0)
@settings(deadline=None, max_examples=200)
def test_a_wait_doubles_up_to_a_minute_unless_more_was_asked_for(
    attempt: int, asked: float | None, seed: int
) -> None:
    full = float(min(60, 2 ** (attempt - 1)))
    wait = backoff_s(attempt, asked, random.Random(seed))
    assert wait >= (asked or 0.0)
    assert full / 2 <= wait <= max(full, asked or 0.0)
    assert LONGEST_WAIT_S == 60.0


@given(
    passing=st.lists(st.sampled_from(PASSING), max_size=6),
    final=st.none() | st.sampled_from(FINAL),
    retries=st.integers(0, 5),
)
@settings(deadline=None, max_examples=60)
def test_calls_are_made_until_success_a_final_failure_or_the_limit(
    passing: list[Callable[[], JudgeError]],
    final: Callable[[], JudgeError] | None,
    retries: int,
) -> None:
    failures: list[Exception] = [make() for make in [*passing, *([final] if final else [])]]
    endpoint = Endpoint(failures)
    expected = min(len(passing), retries) + 1
    if len(passing) > retries or final is not None:
        with pytest.raises(JudgeError) as raised:
            endpoint.ask(retries)
        assert raised.value is failures[expected - 1]
    else:
        assert endpoint.ask(retries) == 42
    assert endpoint.calls == expected <= retries + 1
    assert len(endpoint.waits) == expected - 1


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
    assert endpoint.calls == 1


def test_a_cancelled_call_stays_cancelled() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        await with_retries(cancelled, retries=5)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
