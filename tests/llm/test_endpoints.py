"""One replica: when it is left alone and when it is tried; its load is in test_congestion."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import (
    AccessError,
    CallTimeoutError,
    FormatUnsupportedError,
    JudgeError,
    RateLimitedError,
    RefusalError,
    TransportError,
    TruncatedError,
)
from apbjudge.llm.base import ScriptedClient
from apbjudge.llm.congestion import START
from apbjudge.llm.endpoints import FIRST_REST_S, LONGEST_REST_S, STRIKES, Endpoint

NOBODY = ScriptedClient(lambda request: "")


def endpoint(most: int = 1000) -> Endpoint:
    return Endpoint(client=NOBODY, address="http://127.0.0.1:1/v1", most=most)


def answered(replica: Endpoint, now: float = 0.0, wait_s: float | None = None) -> None:
    """One call comes back."""
    replica.succeeded(replica.begin(now), now, now, wait_s)


def failed(replica: Endpoint, error: JudgeError, begun: float, now: float) -> None:
    replica.failed(replica.begin(begun), error, begun, now)


def struck(replica: Endpoint, now: float, **more: Any) -> None:
    failed(replica, TransportError("down", **more), now, now)


@pytest.mark.parametrize(("most", "start"), [(1, 1), (5, 5), (32, 32), (1000, START)])
def test_a_new_endpoint_is_trusted_with_a_few_calls(most: int, start: int) -> None:
    replica = endpoint(most)
    assert replica.room == start
    replica.in_flight = start
    assert replica.room == 0


@pytest.mark.parametrize(
    "error",
    [
        JudgeError("bad request"),
        RefusalError("no"),
        TruncatedError("too long"),
        FormatUnsupportedError("no schemas"),
        TransportError("down"),
        CallTimeoutError("late"),
    ],
)
def test_only_rate_limits_lower_its_load(error: JudgeError) -> None:
    replica = endpoint()
    for moment in range(5 * START):
        failed(replica, error, float(moment), float(moment))
        answered(replica, float(moment))
    assert replica.window.size == START


@pytest.mark.parametrize("asked", [None, 0.0, 7.0])
def test_an_endpoint_is_left_alone_for_as_long_as_it_asks(asked: float | None) -> None:
    replica = endpoint()
    failed(replica, RateLimitedError("slowly", retry_after_s=asked), 0.0, 100.0)
    assert replica.pause(100.0) == (asked or 0.0)
    assert replica.pause(107.0) == 0.0
    other = endpoint()
    answered(other, 100.0, wait_s=asked)
    assert other.pause(100.0) == (asked or 0.0)


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    replica = endpoint()
    failed(replica, RateLimitedError("slowly", retry_after_s=60.0), 0.0, 0.0)
    failed(replica, RateLimitedError("slowly", retry_after_s=1.0), 0.0, 1.0)
    answered(replica, 2.0, wait_s=1.0)
    assert replica.pause(2.0) == 58.0


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


def test_an_endpoint_that_fails_and_asks_for_more_time_gets_it() -> None:
    replica = endpoint()
    for _ in range(STRIKES):
        struck(replica, 0.0, retry_after_s=45.0)
    assert replica.pause(0.0) == 45.0


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
    failed(replica, TransportError("down"), 100.0, 110.0)
    assert replica.down_for == 10.0
    failed(replica, TransportError("down"), 390.0, 400.0)
    assert replica.down_for == 300.0


def test_one_failure_long_ago_is_no_outage() -> None:
    replica = endpoint()
    failed(replica, TransportError("down"), 0.0, 0.0)
    assert replica.down_for == 0.0


def test_an_endpoint_that_refuses_every_call_is_closed_for_good() -> None:
    replica = endpoint()
    refusal = AccessError("no such key")
    failed(replica, refusal, 0.0, 0.0)
    answered(replica)
    assert replica.closed is refusal


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
