"""Replicas: their load, health and rest, and the choice among them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.errors import (
    JudgeError,
    RateLimitedError,
    TransportError,
    UnreachableError,
)
from apbjudge.llm.base import ScriptedClient
from apbjudge.llm.endpoints import LONGEST_REST_S, SILENT_FOR_S, STRIKES, Endpoint, Router
from tests.support.clock import VirtualClock

# One replica: when it is left alone and when it is tried; its load is in test_congestion


def endpoint(most: int = 1000) -> Endpoint:
    return Endpoint(client=NO_CLIENT, address="http://127.0.0.1:1/v1", most=most)


def answered(replica: Endpoint, now: float = 0.0, wait_s: float | None = None) -> None:
    """One call comes back."""
    replica.succeeded(replica.begin(now), now, now, wait_s)


def failed(replica: Endpoint, error: JudgeError, begun: float, now: float) -> None:
    replica.failed(replica.begin(begun), error, begun, now)


def struck(replica: Endpoint, now: float, **more: Any) -> None:
    failed(replica, TransportError("down", **more), now, now)


@pytest.mark.parametrize("asked", [None, 7.0])
def test_an_endpoint_is_left_alone_for_as_long_as_it_asks(asked: float | None) -> None:
    replica = endpoint()
    failed(replica, RateLimitedError("slowly", retry_after_s=asked), 0.0, 100.0)
    failed(replica, RateLimitedError("slowly", retry_after_s=asked and 1.0), 0.0, 100.0)
    assert replica.pause(100.0) == (asked or 0.0)
    assert replica.pause(107.0) == 0.0
    other = endpoint()
    answered(other, 100.0, wait_s=asked)
    assert other.pause(100.0) == (asked or 0.0)


def test_each_failed_trial_doubles_the_rest_up_to_a_minute() -> None:
    replica = endpoint()
    now = 0.0
    for _ in range(STRIKES):
        struck(replica, now)
    rests = [replica.pause(now)]
    for _ in range(7):
        now += replica.pause(now)
        struck(replica, now)
        rests.append(replica.pause(now))
    assert rests == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert LONGEST_REST_S == 60.0


EVENTS = st.sampled_from(["answer", "limit", "strike", "no", "patience"])


@given(events=st.lists(st.tuples(EVENTS, st.floats(0, 100)), max_size=60), most=st.integers(1, 200))
def test_whatever_happens_some_call_is_allowed_and_some_time_it_may_be_made(
    events: list[tuple[str, float]], most: int
) -> None:
    replica = endpoint(most)
    now = 0.0
    for event, passed in events:
        now += passed
        if event == "answer":
            answered(replica, now)
        else:
            errors = {
                "limit": RateLimitedError("slowly", retry_after_s=9.0),
                "strike": TransportError("down"),
                "no": JudgeError("bad request"),
                "patience": TransportError("down", retry_after_s=3600.0),
            }
            failed(replica, errors[event], max(0.0, now - 1), now)
        assert 0 < replica.window.size <= most
        assert replica.room > 0
        assert 0 <= replica.pause(now) <= 3600.0 + 1e-6
        assert replica.pause(now + 3600.0) <= 1e-6
        assert 0 <= replica.down_for <= now + 1


# Where calls go, and that nobody who waits for a place is forgotten


NO_CLIENT = ScriptedClient(lambda request: "")
PATIENCE_S = 30.0


def replicas(count: int, most: int = 4) -> list[Endpoint]:
    addresses = (f"http://host{n}/v1" for n in range(count))
    return [Endpoint(client=NO_CLIENT, address=address, most=most) for address in addresses]


def router(endpoints: Sequence[Endpoint], clock: VirtualClock | None = None) -> Router:
    return Router(endpoints, clock=clock or VirtualClock(), outage_s=300.0)


def entered(found: Router, prefixes: Sequence[str]) -> list[str | None]:
    """Addresses of the places that are taken one after the other, none of which is given back."""

    async def main() -> list[str | None]:
        return [(await found.enter(prefix)).address for prefix in prefixes]

    return asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


async def all_of(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Waits for all; fails when one is forgotten."""
    _, waiting = await asyncio.wait(tasks, timeout=PATIENCE_S)
    assert not waiting


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 4 * PATIENCE_S))


@pytest.mark.parametrize(("seen_s", "dead"), [(300.0, False), (300.5, True)])
def test_after_an_outage_calls_fail_at_once(seen_s: float, dead: bool) -> None:
    clock = VirtualClock()
    (endpoint,) = replicas(1)
    failed(endpoint, TransportError("down"), clock.now(), clock.now())
    clock.time += seen_s
    failed(endpoint, TransportError("down"), clock.now(), clock.now())
    result = router([endpoint], clock)
    if dead:
        with pytest.raises(TransportError, match="no endpoint has answered for 300 s"):
            entered(result, [""])
        assert clock.waits == []
    else:
        assert entered(result, [""]) == [endpoint.address]


@pytest.mark.parametrize("first", [None, TransportError("HTTP 500"), RateLimitedError("slowly")])
def test_an_endpoint_that_once_answered_may_come_back(first: JudgeError | None) -> None:
    clock = VirtualClock()
    (endpoint,) = replicas(1)
    if first is None:
        endpoint.succeeded(None, clock.now(), clock.now(), None)
    else:
        failed(endpoint, first, clock.now(), clock.now())
    for _ in range(3):
        clock.time += SILENT_FOR_S
        failed(endpoint, UnreachableError("refused"), clock.now(), clock.now())
    assert entered(router([endpoint], clock), [""]) == [endpoint.address]


ENDINGS = st.sampled_from(["answer", "answer", "limit", "strike", "no", "wait"])


@given(
    count=st.integers(1, 3),
    most=st.integers(1, 3),
    endings=st.lists(ENDINGS, min_size=1, max_size=20),
    cancelled=st.sets(st.integers(0, 29), max_size=8),
    seed=st.integers(0, 1000),
)
@settings(max_examples=80)
def test_whatever_happens_everybody_gets_a_place_and_no_replica_gets_too_many(
    count: int, most: int, endings: list[str], cancelled: set[int], seed: int
) -> None:
    """Thirty callers, endpoints that answer, fail, complain and ask for time, some who give up."""
    rng = random.Random(seed)
    clock = VirtualClock()
    endpoints = replicas(count, most)
    result = router(endpoints, clock)
    script = iter(endings)

    async def caller(number: int) -> None:
        endpoint = await result.enter(str(number % 3))
        try:
            assert endpoint.in_flight <= most
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
            _end(endpoint, next(script, "answer"), clock)
        finally:
            result.leave(endpoint)

    async def main() -> None:
        tasks = [asyncio.create_task(caller(number)) for number in range(30)]
        for number in sorted(cancelled):
            for _ in range(rng.randrange(3)):
                await asyncio.sleep(0)
            tasks[number].cancel()
        await all_of(tasks)
        assert all(task.cancelled() or task.exception() is None for task in tasks)
        assert [endpoint.in_flight for endpoint in endpoints] == [0] * count

    run(main())


def _end(endpoint: Endpoint, ending: str, clock: VirtualClock) -> None:
    now = clock.now()
    errors: dict[str, JudgeError] = {
        "limit": RateLimitedError("slowly", retry_after_s=3.0),
        "strike": TransportError("down"),
        "no": JudgeError("bad request"),
    }
    if ending in errors:
        failed(endpoint, errors[ending], now, now)
    else:
        endpoint.succeeded(endpoint.begin(now), now, now, 2.0 if ending == "wait" else None)


def test_callers_come_in_turn_and_a_busy_window_grows() -> None:
    """As a loop asks that begins a row for each that ended: all in flight end in one batch.

    A newcomer that took the place of a woken caller would leave it waiting till the last row, and
    the window, whose calls then never seem to wait, at its first size.
    """
    limits: list[int] = []

    async def main() -> None:
        (replica,) = replicas(1, most=256)
        found, order = router([replica]), list[int]()
        rows = iter(range(4000))
        flights: list[asyncio.Task[None]] = []
        ends: list[asyncio.Event] = []

        async def call(number: int) -> None:
            entered_at = await found.enter("")
            order.append(number)
            sample, end = entered_at.begin(0.0), asyncio.Event()
            ends.append(end)
            await end.wait()
            entered_at.succeeded(sample, 0.0, 0.05, None)
            found.leave(entered_at)

        def start(count: int) -> None:
            flights.extend(asyncio.create_task(call(n)) for n in islice(rows, count))

        start(256)
        while len(order) < 4000 or ends:
            await asyncio.sleep(0)
            landed, ends[:] = ends[:8], ends[8:]
            for end in landed:
                end.set()
            start(len(landed))
            limits.append(replica.window.limit)
        await all_of(flights)
        assert max(abs(place - number) for place, number in enumerate(order)) < 16

    run(main())
    assert limits[0] == 32
    assert max(limits) == 256
