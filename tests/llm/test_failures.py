"""Failures: what each one means, and which are repeated, how often and how soon."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import httpx
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
    UnreachableError,
)
from apbjudge.llm.failures import MEANINGS, failure_of, translate
from apbjudge.llm.litellm_client import load_litellm
from apbjudge.llm.retry import LONGEST_WAIT_S, backoff_s, repeats, with_retries
from tests.support.clock import VirtualClock

# What each failure means: every exception of the installed litellm, every class of status


litellm = load_litellm()
KNOWN = {
    name: value
    for name, value in vars(litellm.exceptions).items()
    if inspect.isclass(value) and issubclass(value, BaseException)
}
TELLING = {
    "Timeout": CallTimeoutError,
    "APIConnectionError": TransportError,
    "BudgetExceededError": AccessError,
    "ContextWindowExceededError": TruncatedError,
    "ContentPolicyViolationError": RefusalError,
    "UnsupportedParamsError": FormatUnsupportedError,
    "JSONSchemaValidationError": ReplyError,
}


def made(name: str, message: str = "it failed", **more: Any) -> Exception:
    """An exception of litellm, its arguments filled in by name."""
    values: dict[str, Any] = {
        "message": message,
        "status_code": 500,
        "response": httpx.Response(422, request=httpx.Request("POST", "http://127.0.0.1")),
        "request_data": {},
        "failures": [],
        "current_cost": 2.0,
        "max_budget": 1.0,
        **more,
    }
    parameters = inspect.signature(KNOWN[name].__init__).parameters.values()
    plain = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
    needed = [p.name for p in plain if p.default is p.empty or p.name in ("message", *more)]
    return KNOWN[name](**{key: values.get(key, key) for key in needed})


def test_every_exception_of_litellm_is_in_the_table() -> None:
    assert sorted(set(KNOWN) - set(MEANINGS)) == []


@pytest.mark.parametrize("name", KNOWN)
def test_every_exception_becomes_one_of_ours_with_a_short_message(name: str) -> None:
    ours = translate(made(name))
    assert isinstance(ours, JudgeError)
    assert 0 < len(str(ours)) <= 300
    assert "\n" not in str(ours)
    if name in TELLING:
        assert type(ours) is TELLING[name]


STATUSES = [
    *[(status, JudgeError) for status in (400, 413, 422)],
    *[(status, AccessError) for status in (401, 402, 403, 404)],
    *[(status, CallTimeoutError) for status in (408, 504)],
    *[(429, RateLimitedError)],
    *[(status, TransportError) for status in (405, 409, 418, 425, 500, 502, 503, 520, 524, 529)],
]


@pytest.mark.parametrize(("status", "expected"), STATUSES)
def test_the_status_decides_where_class_and_words_say_nothing(
    status: int, expected: type[JudgeError]
) -> None:
    assert type(translate(made("APIError", status_code=status))) is expected
    for body in ("", "busy", "[]", "null", '{"error": "busy"}', '{"error": {}}'):
        ours = failure_of(status, body, {})
        assert type(ours) is expected, body
        assert str(status) in str(ours)


MESSAGES = [
    ("This model's maximum context length is 4096 tokens", TruncatedError),
    ("the request exceeds the available context size, try increasing it", TruncatedError),
    ("response_format is not supported", FormatUnsupportedError),
    ("guided decoding is disabled on this server", FormatUnsupportedError),
    ("filtered by our content management policy", RefusalError),
    ("a field is unknown", JudgeError),
    ("API key not valid. Please pass a valid API key.", AccessError),
    ("The model `planer-7b` does not exist.", AccessError),
    ("model: planer:7b not found", AccessError),
    ("a tool's model was built, its schema is not found", JudgeError),
]


FORMS: list[Callable[[str], Any]] = [
    lambda m: {"error": {"message": m, "type": "BadRequestError", "param": None, "code": 400}},
    lambda m: {"object": "error", "message": m, "type": "BadRequestError", "code": 400},
    lambda m: {"error": m},
    lambda m: {"detail": m},
]
"""As OpenAI, older vLLM and others write an error."""


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_a_bad_request_is_told_by_its_words_in_any_form(
    message: str, expected: type[JudgeError]
) -> None:
    assert type(translate(made("BadRequestError", message))) is expected
    for form in FORMS:
        ours = failure_of(400, json.dumps(form(message)), {})
        assert type(ours) is expected
        assert message[:60] in str(ours)


def test_a_package_that_litellm_lacks_is_no_failure_that_passes() -> None:
    message = "Hosted_vllmException - No module named 'boto3.session'"
    ours = translate(made("APIConnectionError", message, response=None))
    assert type(ours) is AccessError
    assert "boto3.session" in str(ours)


def test_an_unknown_exception_counts_as_a_failure_that_may_pass() -> None:
    ours = translate(OSError("no route"))
    assert (type(ours), "OSError" in str(ours)) == (TransportError, True)


KEYS = ["sk-proj-Ab12Cd34Ef56Gh78", "AIzaSyA1b2C3d4E5f6G7h8", "Bearer A1b2C3d4.E5f6G7h8-i9"]


@pytest.mark.parametrize("key", KEYS)
def test_what_looks_like_a_key_is_masked(key: str) -> None:
    for text in ("{}", "api_key={} is wrong", "('{}')", "x:{},"):
        ours = translate(made("AuthenticationError", "Refused: " + text.format(key)))
        assert key.removeprefix("Bearer ") not in str(ours)
        assert "Refused" in str(ours)


# The one retry layer: bounded in number, bounded in time


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
    UnreachableError: [2, 2, 2, 3, 4],
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
def test_a_failure_that_stays_is_repeated_as_the_table_says(kind: type[JudgeError]) -> None:
    for retries, repeated in enumerate(TABLE[kind]):
        failures = [kind(str(n)) for n in range(100)]
        endpoint = Endpoint(failures)
        with pytest.raises(kind) as raised:
            endpoint.ask(retries)
        assert len(endpoint.begun) == repeated + 1
        assert raised.value is failures[repeated]
        assert len(endpoint.waits) == repeated


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
