"""Replicas: their load, health and rest, and the choice among them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.errors import (
    AccessError,
    JudgeError,
    RateLimitedError,
    RefusalError,
    TransportError,
    UnreachableError,
)
from apbjudge.llm.base import ScriptedClient
from apbjudge.llm.congestion import START
from apbjudge.llm.endpoints import (
    FIRST_REST_S,
    LONGEST_REST_S,
    SILENT_FOR_S,
    STRIKES,
    Endpoint,
    Router,
)
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


def test_an_endpoint_that_fails_again_and_again_is_left_alone_and_tried_with_one_call() -> None:
    replica = endpoint()
    for strike in range(1, STRIKES + 1):
        assert replica.pause(0.0) == 0.0
        struck(replica, 0.0)
        assert (replica.pause(0.0) > 0) is (strike == STRIKES)
    assert replica.pause(0.0) == FIRST_REST_S
    assert replica.pause(FIRST_REST_S) == 0.0
    assert replica.room > 0
    replica.in_flight = 1
    assert replica.room == 0


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


def test_calls_that_fail_together_are_one_failed_trial() -> None:
    replica = endpoint()
    for _ in range(START):
        failed(replica, TransportError("down"), 0.0, 5.0)
    assert replica.pause(5.0) == FIRST_REST_S


def test_an_answer_ends_all_doubt() -> None:
    replica = endpoint()
    for _ in range(STRIKES + 3):
        struck(replica, 0.0)
    answered(replica, 400.0)
    assert replica.down_for == 0.0
    replica.in_flight = 5
    assert replica.room > 0
    for _ in range(STRIKES):
        struck(replica, 500.0)
    assert replica.pause(500.0) == FIRST_REST_S


@pytest.mark.parametrize(
    "said", [RateLimitedError("slowly"), JudgeError("bad request"), RefusalError("no")]
)
def test_an_endpoint_that_says_no_is_there(said: JudgeError) -> None:
    replica = endpoint()
    for moment in range(STRIKES):
        struck(replica, float(moment))
        failed(replica, said, float(moment), float(moment))
    assert replica.down_for == 0.0
    assert replica.pause(float(STRIKES)) == 0.0


def test_it_is_down_for_as_long_as_it_was_seen_to_fail() -> None:
    replica = endpoint()
    assert replica.down_for == 0.0
    failed(replica, TransportError("down"), 100.0, 100.0)
    assert replica.down_for == 0.0
    failed(replica, TransportError("down"), 100.0, 110.0)
    assert replica.down_for == 10.0
    failed(replica, TransportError("down"), 390.0, 400.0)
    assert replica.down_for == 300.0


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


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 4 * PATIENCE_S))


def test_calls_of_one_prefix_go_to_one_replica_and_prefixes_are_spread() -> None:
    homes = {}
    for prefix in map(str, range(60)):
        (homes[prefix],) = {*entered(router(replicas(3, most=50)), [prefix] * 2)}
    assert set(homes.values()) == {endpoint.address for endpoint in replicas(3)}
    assert min(Counter(homes.values()).values()) >= 8


def test_a_replica_that_goes_takes_only_its_own_prefixes_along() -> None:
    for prefix in map(str, range(40)):
        (home,) = entered(router(replicas(3)), [prefix])
        rest = [endpoint for endpoint in replicas(3) if endpoint.address != "http://host1/v1"]
        (later,) = entered(router(rest), [prefix])
        assert home in (later, "http://host1/v1")


def test_a_crowded_replica_gives_its_prefixes_away() -> None:
    places = Counter(entered(router(replicas(2, most=50)), ["one"] * 60))
    assert max(places.values()) <= 1.25 * min(places.values()) + 3


def test_a_resting_replica_is_left_out_until_it_has_rested() -> None:
    clock = VirtualClock()
    well, ill = replicas(2, most=50)
    for _ in range(STRIKES):
        failed(ill, TransportError("down"), clock.now(), clock.now())
    result = router([well, ill], clock)
    assert set(entered(result, [""] * 10)) == {well.address}
    assert clock.waits == []
    clock.time += 2.0
    assert Counter(entered(result, [""] * 10)) == {well.address: 9, ill.address: 1}


def test_a_closed_replica_is_never_called_again() -> None:
    clock = VirtualClock()
    well, ill = replicas(2, most=50)
    failed(ill, AccessError("no such key"), 0.0, 0.0)
    clock.time += 10_000.0
    assert set(entered(router([well, ill], clock), [str(n) for n in range(20)])) == {well.address}


def test_when_all_refuse_there_is_nothing_to_wait_for() -> None:
    endpoints = replicas(2)
    for endpoint in endpoints:
        failed(endpoint, AccessError("no such key"), 0.0, 0.0)
    with pytest.raises(AccessError, match="no such key"):
        entered(router(endpoints), [""])


def test_when_all_rest_the_first_to_have_rested_is_waited_for() -> None:
    clock = VirtualClock()
    late, soon = replicas(2)
    failed(late, RateLimitedError("slowly", retry_after_s=50.0), clock.now(), clock.now())
    failed(soon, RateLimitedError("slowly", retry_after_s=5.0), clock.now(), clock.now())
    assert entered(router([late, soon], clock), [""]) == [soon.address]
    assert sum(clock.waits) == pytest.approx(5.0, abs=0.01)


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


def test_where_nobody_ever_listened_there_is_nothing_to_wait_for() -> None:
    clock = VirtualClock()
    (endpoint,) = replicas(1)
    failed(endpoint, UnreachableError("refused"), clock.now(), clock.now())
    assert entered(router([endpoint], clock), [""]) == [endpoint.address]  # it may just be slow
    clock.time += SILENT_FOR_S
    failed(endpoint, UnreachableError("refused"), clock.now(), clock.now())
    with pytest.raises(AccessError, match="refused"):
        entered(router([endpoint], clock), [""])


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


@pytest.mark.parametrize("error", [AccessError("no such key"), None])
def test_everybody_who_waits_is_told_that_there_is_nothing_to_wait_for(
    error: AccessError | None,
) -> None:
    async def main() -> None:
        clock = VirtualClock()
        (endpoint,) = replicas(1, most=1)
        result = router([endpoint], clock)
        place = await result.enter("")
        waiting = [asyncio.create_task(result.enter("")) for _ in range(5)]
        await settled()
        if error is not None:
            failed(endpoint, error, clock.now(), clock.now())
        else:
            failed(endpoint, TransportError("down"), clock.now() - 400, clock.now())
        result.leave(place)
        await all_of(waiting)
        assert all(isinstance(task.exception(), JudgeError) for task in waiting)

    run(main())


def test_whoever_came_first_is_not_passed_for_ever() -> None:
    async def main() -> None:
        (endpoint,) = replicas(1, most=1)
        result = router([endpoint])
        place = await result.enter("")
        first = asyncio.create_task(result.enter(""))
        await settled()
        for _ in range(50):  # somebody who leaves and comes back at once, again and again
            result.leave(place)
            coming = asyncio.create_task(result.enter(""))
            await settled()
            if first.done():
                break
            place = await coming
        assert first.done()
        coming.cancel()

    run(main())


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
