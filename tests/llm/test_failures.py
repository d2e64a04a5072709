"""What each failure means: every exception of the installed litellm, every class of status."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

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
from apbjudge.llm.failures import MEANINGS, retry_after, translate
from apbjudge.llm.litellm_client import load_litellm

litellm = load_litellm()
KNOWN = {
    name: value
    for name, value in vars(litellm.exceptions).items()
    if inspect.isclass(value) and issubclass(value, BaseException)
}
TELLING = {
    "Timeout": CallTimeoutError,
    "RateLimitError": TransportError,
    "InternalServerError": TransportError,
    "ServiceUnavailableError": TransportError,
    "BadGatewayError": TransportError,
    "APIConnectionError": TransportError,
    "AuthenticationError": AccessError,
    "PermissionDeniedError": AccessError,
    "NotFoundError": AccessError,
    "BudgetExceededError": AccessError,
    "ContextWindowExceededError": TruncatedError,
    "ContentPolicyViolationError": RefusalError,
    "BadRequestError": JudgeError,
    "UnprocessableEntityError": JudgeError,
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


def test_only_failures_that_may_pass_are_asked_again() -> None:
    again = {name for name in TELLING if translate(made(name)).retryable}
    expected = {name for name, ours in TELLING.items() if issubclass(ours, TransportError)}
    assert again == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *[(status, JudgeError) for status in (400, 413, 422)],
        *[(status, AccessError) for status in (401, 402, 403, 404)],
        *[(status, TransportError) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)],
    ],
)
def test_the_status_decides_where_the_class_says_nothing(
    status: int, expected: type[JudgeError]
) -> None:
    ours = translate(made("APIError", status_code=status))
    assert isinstance(ours, expected)
    assert ours.retryable is (expected is TransportError)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("This model's maximum context length is 4096 tokens", TruncatedError),
        ("the prompt is too long: 9000 tokens > 4096 maximum", TruncatedError),
        ("input exceeds the context window", TruncatedError),
        ("response_format is not supported", FormatUnsupportedError),
        ("Invalid parameter: json_schema", FormatUnsupportedError),
        ("guided decoding is disabled on this server", FormatUnsupportedError),
        ("a field is unknown", JudgeError),
    ],
)
def test_a_bad_request_is_told_by_its_words(message: str, expected: type[JudgeError]) -> None:
    assert type(translate(made("BadRequestError", message))) is expected


@pytest.mark.parametrize("error", [TimeoutError(), TimeoutError("late")])
def test_a_bare_timeout_says_what_it_is(error: TimeoutError) -> None:
    ours = translate(error)
    assert type(ours) is CallTimeoutError
    assert len(str(ours).removeprefix("TimeoutError:").strip()) > 0


@pytest.mark.parametrize(
    "error",
    [OSError("no route"), ConnectionResetError(104, "reset"), ValueError("odd"), RuntimeError()],
)
def test_an_unknown_exception_counts_as_a_failure_that_may_pass(error: Exception) -> None:
    ours = translate(error)
    assert type(ours) is TransportError
    assert type(error).__name__ in str(ours)


def test_our_own_errors_go_through_unchanged() -> None:
    ours = RefusalError("no")
    assert translate(ours) is ours


KEYS = [
    "sk-proj-Ab12Cd34Ef56Gh78",
    "sk-ant-api03-Ab12Cd34_Ef56-Gh78",
    "AIzaSyA1b2C3d4E5f6G7h8",
    "gsk_A1b2C3d4E5f6G7h8",
    "xai-A1b2C3d4E5f6G7h8",
    "Bearer A1b2C3d4.E5f6G7h8-i9",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("text", ["{}", "key={}", "api_key={} is wrong", "('{}')", "x:{},"])
def test_what_looks_like_a_key_is_masked(key: str, text: str) -> None:
    ours = translate(made("AuthenticationError", "Refused: " + text.format(key)))
    assert key.removeprefix("Bearer ") not in str(ours)
    assert "Refused" in str(ours)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("0.25", 0.25),
        ("3600", 3600.0),
        ("3601", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_seconds_and_bounded(value: str, seconds: float | None) -> None:
    headers = httpx.Headers({"Retry-After": value})
    responding: Any = SimpleNamespace(response=SimpleNamespace(headers=headers))
    assert retry_after(responding) == seconds


@pytest.mark.parametrize("error", [ValueError(), made("RateLimitError"), made("Timeout")])
def test_without_the_header_nothing_is_asked_for(error: Exception) -> None:
    assert retry_after(error) is None
