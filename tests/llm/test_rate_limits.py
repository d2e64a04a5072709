"""Rates that are kept to, and headers that ask to wait, in every form and all nonsense."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict

from apbjudge.errors import TransportError
from apbjudge.llm import rate_limit_headers
from apbjudge.llm.failures import failure_of
from apbjudge.llm.rate_limit import BURST_S, CHARACTERS_PER_TOKEN, USUAL_REPLY_TOKENS, RateLimit
from apbjudge.llm.rate_limit_headers import LONGEST_S, retry_after, used_up_for
from tests.support.clock import VirtualClock

# Calls and tokens per minute: the rate is kept to in every stretch of time, and used up


RATE = st.floats(1, 6000)


def starts(
    limit: RateLimit, clock: VirtualClock, pauses: list[float], characters: int
) -> list[float]:
    """When calls that are made one after the other, with pauses between, may begin."""

    async def main() -> list[float]:
        begun: list[float] = []
        for pause in pauses:
            clock.time += pause
            await limit.acquire(characters)
            begun.append(clock.now())
        return begun

    return asyncio.run(main())


@given(rpm=RATE, pauses=st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.5, 30.0]), max_size=40))
def test_no_stretch_of_time_holds_more_calls_than_the_rate_allows(
    rpm: float, pauses: list[float]
) -> None:
    clock = VirtualClock()
    begun = starts(RateLimit(rpm, None, clock), clock, pauses, 0)
    for first in range(len(begun)):
        for last in range(first, len(begun)):
            allowed = (begun[last] - begun[first] + BURST_S) * rpm / 60 + 1
            assert last - first + 1 <= allowed + 1e-6


@given(rpm=RATE, count=st.integers(2, 60))
def test_who_has_calls_to_make_makes_them_at_the_rate(rpm: float, count: int) -> None:
    clock = VirtualClock()
    begun = starts(RateLimit(rpm, None, clock), clock, [0.0] * count, 0)
    interval = 60 / rpm
    assert begun[-1] - begun[0] <= (count - 1) * interval + 1e-6
    assert all(after - before <= interval + 1e-6 for before, after in pairwise(begun))


def test_calls_side_by_side_are_spread_like_calls_in_a_row() -> None:
    async def main() -> list[float]:
        await asyncio.gather(*(limit.acquire(0) for _ in range(12)))
        return clock.waits

    clock = VirtualClock()
    limit = RateLimit(60.0, None, clock)
    assert asyncio.run(main()) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(("used", "full"), [(0, 24.0), (500, 30.0), (1000, 60.0)])
def test_an_estimate_is_replaced_by_what_the_call_used(used: int, full: float) -> None:
    """At 1000 tokens a minute; a call that told nothing keeps its estimate."""

    async def main() -> None:
        clock.time += BURST_S
        estimate = await limit.acquire(0)
        assert estimate == USUAL_REPLY_TOKENS == 400
        limit.correct(estimate, used)
        await limit.acquire(0)

    clock = VirtualClock()
    limit = RateLimit(None, 1000.0, clock)
    asyncio.run(main())

    assert clock.waits == [pytest.approx(full - BURST_S)]


def test_the_slower_of_two_rates_counts() -> None:
    clock = VirtualClock()
    size = 600 * CHARACTERS_PER_TOKEN
    begun = starts(RateLimit(60.0, 6000.0, clock), clock, [0.0] * 10, size)
    assert begun[-1] - begun[-2] == pytest.approx(10.0)


# What headers say about waiting, in every form that servers write it, and all nonsense


NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
KINDS = ("requests", "tokens")
NAMES = [
    *(f"x-ratelimit-{{}}-{kind}" for kind in KINDS),
    *(f"llm_provider-x-ratelimit-{{}}-{kind}" for kind in KINDS),
    *(f"anthropic-ratelimit-{kind}-{{}}" for kind in KINDS),
]


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noon on the first of March."""

    class Noon(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return NOW

    monkeypatch.setattr(rate_limit_headers, "datetime", Noon)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("3601", None),
        ("-1", None),
        ("1e400", None),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 13:00:30 +0100", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 14:00:00 GMT", None),
        ("Sat, 01 Jan 0001 00:00:00 +2359", 0.0),
    ],
)
def test_the_time_that_is_asked_for_is_read_and_bounded(value: str, seconds: float | None) -> None:
    for make in (dict[str, str], httpx.Headers, CIMultiDict[str]):
        assert retry_after(make({"retry-after": value})) == seconds


SPANS = [
    ("12", 12.0),
    ("88ms", 0.088),
    ("6m0s", 360.0),
    ("1m30.5s", 90.5),
    ("2026-03-01T12:00:45Z", 45.0),
    ("2026-03-01T12:00:45", 45.0),
    ("2026-03-01T11:00:00Z", 0.0),
]
NONSENSE = ["", "-3", "2h", "9d", "2026-13-01T00:00:00Z"]


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_that_is_used_up_is_waited_for_and_no_other(name: str) -> None:
    left, reset = name.format("remaining"), name.format("reset")
    assert used_up_for({left: "0"}) == 1.0
    for text, seconds in [*SPANS, *((text, 1.0) for text in NONSENSE)]:
        assert used_up_for({left: "0", reset: text}) == pytest.approx(seconds), text
    for remaining in ("1", "1999", "", "many", "-1"):
        assert used_up_for({left: remaining, reset: "10s"}) is None
    other = {"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "1s"}
    if "tokens" in name:
        assert used_up_for({**other, left: "0", reset: "20s"}) == 20.0


WORDS = st.text(max_size=40) | st.text(
    st.sampled_from("0123456789.:-+TZ smhdGMTMarSun,eE_"), max_size=40
)


@given(value=WORDS, name=st.sampled_from(NAMES))
@example(value="0001-01-01T00:00:00+23:59", name=NAMES[0])
@example(value="9999-12-31T23:59:59-23:59", name=NAMES[0])
@example(value="9" * 5000 + "d", name=NAMES[0])
def test_whatever_a_header_holds_is_a_time_within_an_hour_or_nothing(value: str, name: str) -> None:
    asked = retry_after({"retry-after": value})
    assert asked is None or 0 <= asked <= LONGEST_S
    wait = used_up_for({name.format("remaining"): "0", name.format("reset"): value})
    assert wait is not None
    assert 0 <= wait <= LONGEST_S


@pytest.mark.parametrize(("value", "seconds"), [("1500.5", 1.5005), ("-1", 9.0), ("nan", 9.0)])
def test_milliseconds_are_read_before_seconds(value: str, seconds: float) -> None:
    assert retry_after({"retry-after-ms": value, "retry-after": "9"}) == seconds


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"retry-after": "7", "x-ratelimit-remaining-requests": "0"}, 7.0),
        (429, {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        (429, {"x-ratelimit-remaining-tokens": "8", "x-ratelimit-reset-tokens": "6m0s"}, None),
        (503, {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, None),
    ],
)
def test_a_refusal_may_tell_when_its_limit_is_reset(
    status: int, headers: dict[str, str], seconds: float | None
) -> None:
    error = failure_of(status, "slowly", headers)
    assert isinstance(error, TransportError)
    assert error.retry_after_s == seconds
