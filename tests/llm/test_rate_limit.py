"""Calls and tokens per minute: the rate is kept to in every stretch of time, and used up."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.llm.rate_limit import BURST_S, CHARACTERS_PER_TOKEN, USUAL_REPLY_TOKENS, RateLimit
from tests.support.clock import VirtualClock

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


@given(tpm=st.floats(1000, 1e6), sizes=st.lists(st.integers(0, 40_000), max_size=30))
def test_no_stretch_of_time_holds_more_tokens_than_the_rate_allows(
    tpm: float, sizes: list[int]
) -> None:
    async def main() -> list[tuple[float, int]]:
        taken: list[tuple[float, int]] = []
        for size in sizes:
            tokens = await limit.acquire(size)
            taken.append((clock.now(), tokens))
        return taken

    clock = VirtualClock()
    limit = RateLimit(None, tpm, clock)
    taken = asyncio.run(main())
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            allowed = (taken[last][0] - taken[first][0] + BURST_S) * tpm / 60
            # The last call may begin before what it takes has flowed by.
            assert sum(tokens for _, tokens in taken[first:last]) <= allowed + 1e-3


@given(rpm=RATE, count=st.integers(2, 60))
def test_who_has_calls_to_make_makes_them_at_the_rate(rpm: float, count: int) -> None:
    clock = VirtualClock()
    begun = starts(RateLimit(rpm, None, clock), clock, [0.0] * count, 0)
    interval = 60 / rpm
    assert begun[-1] - begun[0] <= (count - 1) * interval + 1e-6
    assert all(after - before <= interval + 1e-6 for before, after in pairwise(begun))


def test_after_a_quiet_hour_no_more_than_a_short_burst_goes_at_once() -> None:
    clock = VirtualClock()
    limit = RateLimit(60.0, None, clock)
    starts(limit, clock, [0.0], 0)
    begun = starts(limit, clock, [3600.0, *[0.0] * 20], 0)
    assert sum(at == begun[0] for at in begun) == int(BURST_S) + 1


def test_calls_side_by_side_are_spread_like_calls_in_a_row() -> None:
    async def main() -> list[float]:
        await asyncio.gather(*(limit.acquire(0) for _ in range(12)))
        return clock.waits

    clock = VirtualClock()
    limit = RateLimit(60.0, None, clock)
    assert asyncio.run(main()) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_without_a_rate_nothing_waits() -> None:
    clock = VirtualClock()
    begun = starts(RateLimit(None, None, clock), clock, [0.0] * 100, 10**6)
    assert set(begun) == {begun[0]}
    assert clock.waits == []


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
