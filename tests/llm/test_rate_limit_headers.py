"""What headers say about waiting, in every form that servers write it, and all nonsense."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict

from apbjudge.errors import TransportError
from apbjudge.llm import rate_limit_headers
from apbjudge.llm.failures import failure_of
from apbjudge.llm.rate_limit_headers import LONGEST_S, retry_after, used_up_for

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


@pytest.mark.parametrize("make", [dict, httpx.Headers, CIMultiDict])
@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("0.25", 0.25),
        ("3600", 3600.0),
        ("3601", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        ("", None),
        ("soon", None),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 13:00:30 +0100", 30.0),
        ("Sun, 01 Mar 2026 12:00:30", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 14:00:00 GMT", None),
        ("Sun, 99 Mar 2026 12:00:30 GMT", None),
        ("Sat, 01 Jan 0001 00:00:00 +2359", 0.0),
    ],
)
def test_the_time_that_is_asked_for_is_read_and_bounded(
    make: Any, value: str, seconds: float | None
) -> None:
    assert retry_after(make({"retry-after": value})) == seconds


@pytest.mark.parametrize("headers", [None, {}, [], "retry-after: 7", 7])
def test_without_headers_nothing_is_asked_for(headers: Any) -> None:
    assert retry_after(headers) is None
    assert used_up_for(headers) is None


SPANS = [
    ("12", 12.0),
    ("12.5", 12.5),
    ("88ms", 0.088),
    ("1s", 1.0),
    ("6m0s", 360.0),
    ("1m30.5s", 90.5),
    ("1h", 3600.0),
    ("2026-03-01T12:00:45Z", 45.0),
    ("2026-03-01T12:00:45", 45.0),
    ("2026-03-01T13:00:45+01:00", 45.0),
    ("2026-03-01T11:00:00Z", 0.0),
]
NONSENSE = [
    "",
    "soon",
    "1x",
    "1s and a bit",
    "-3",
    "2h",
    "9d",
    "inf",
    "nan",
    "2026-13-01T00:00:00Z",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("reset", "seconds"), [*SPANS, *((text, 1.0) for text in NONSENSE)])
def test_a_limit_that_is_used_up_is_waited_for(name: str, reset: str, seconds: float) -> None:
    headers = {name.format("remaining"): "0", name.format("reset"): reset}
    assert used_up_for(headers) == pytest.approx(seconds)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("remaining", ["1", "1999", "", "many", "-1"])
def test_a_limit_that_is_not_used_up_is_not_waited_for(name: str, remaining: str) -> None:
    headers = {name.format("remaining"): remaining, name.format("reset"): "10s"}
    assert used_up_for(headers) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_without_a_reset_is_waited_for_a_moment(name: str) -> None:
    assert used_up_for({name.format("remaining"): "0"}) == 1.0


def test_tokens_are_looked_at_when_requests_are_left() -> None:
    headers = {"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "1s"}
    headers |= {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20s"}
    assert used_up_for(headers) == 20.0


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


@given(seconds=st.integers(-5000, 5000), hours=st.integers(-12, 12))
def test_a_date_is_the_same_moment_in_every_zone(seconds: int, hours: int) -> None:
    then = (NOW + timedelta(seconds=seconds)).astimezone(timezone(timedelta(hours=hours)))
    expected = max(0, seconds) if seconds <= LONGEST_S else None
    assert retry_after({"retry-after": format_datetime(then)}) == expected


@pytest.mark.parametrize("make", [dict, httpx.Headers, CIMultiDict])
@pytest.mark.parametrize(
    ("value", "seconds"),
    [("250", 0.25), ("1500.5", 1.5005), ("-1", 9.0), ("nan", 9.0), ("soon", 9.0), ("", 9.0)],
)
def test_milliseconds_are_read_before_seconds(make: Any, value: str, seconds: float) -> None:
    assert retry_after(make({"retry-after-ms": value, "retry-after": "9"})) == seconds


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
