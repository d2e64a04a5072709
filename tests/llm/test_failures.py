"""What each failure means: every exception of the installed litellm, every class of status."""

from __future__ import annotations

import inspect
import json
from typing import Any

import httpx
import pytest

from apbjudge.errors import (
    AccessError,
    CallTimeoutError,
    FormatUnsupportedError,
    JudgeError,
    RateLimitedError,
    RefusalError,
    ReplyError,
    TransportError,
    TruncatedError,
)
from apbjudge.llm.failures import MEANINGS, failure_of, translate
from apbjudge.llm.litellm_client import load_litellm
from apbjudge.llm.retry import repeats

litellm = load_litellm()
KNOWN = {
    name: value
    for name, value in vars(litellm.exceptions).items()
    if inspect.isclass(value) and issubclass(value, BaseException)
}
TELLING = {
    "Timeout": CallTimeoutError,
    "RateLimitError": RateLimitedError,
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
    again = {name for name in TELLING if repeats(translate(made(name)), 4) > 0}
    expected = {name for name, ours in TELLING.items() if issubclass(ours, TransportError)}
    assert again == expected


STATUSES = [
    *[(status, JudgeError) for status in (400, 413, 422)],
    *[(status, AccessError) for status in (401, 402, 403, 404)],
    *[(status, CallTimeoutError) for status in (408, 504)],
    *[(429, RateLimitedError)],
    *[(status, TransportError) for status in (405, 409, 418, 425, 500, 502, 503, 520, 524, 529)],
]


@pytest.mark.parametrize(("status", "expected"), STATUSES)
def test_the_status_decides_where_the_class_says_nothing(
    status: int, expected: type[JudgeError]
) -> None:
    assert type(translate(made("APIError", status_code=status))) is expected


@pytest.mark.parametrize(("status", "expected"), STATUSES)
@pytest.mark.parametrize("body", ["", "busy", "[]", "null", '{"error": "busy"}', '{"error": {}}'])
def test_the_status_of_an_answer_decides_where_its_words_say_nothing(
    status: int, expected: type[JudgeError], body: str
) -> None:
    ours = failure_of(status, body, {})
    assert type(ours) is expected
    assert str(status) in str(ours)


MESSAGES = [
    ("This model's maximum context length is 4096 tokens", TruncatedError),
    ("the prompt is too long: 9000 tokens > 4096 maximum", TruncatedError),
    ("input exceeds the context window", TruncatedError),
    ("the request exceeds the available context size, try increasing it", TruncatedError),
    ("response_format is not supported", FormatUnsupportedError),
    ("Invalid parameter: json_schema", FormatUnsupportedError),
    ("guided decoding is disabled on this server", FormatUnsupportedError),
    ("this model does not support tool calls", FormatUnsupportedError),
    ("filtered by our content management policy", RefusalError),
    ("a field is unknown", JudgeError),
]


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_a_bad_request_is_told_by_its_words(message: str, expected: type[JudgeError]) -> None:
    assert type(translate(made("BadRequestError", message))) is expected


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
@pytest.mark.parametrize(
    "form",
    [
        lambda m: {"error": {"message": m, "type": "BadRequestError", "param": None, "code": 400}},
        lambda m: {"object": "error", "message": m, "type": "BadRequestError", "code": 400},
        lambda m: {"error": m},
        lambda m: {"detail": m},
    ],
    ids=["openai", "vllm", "a string", "detail"],
)
def test_the_words_of_an_answer_are_found_in_any_form(
    form: Any, message: str, expected: type[JudgeError]
) -> None:
    ours = failure_of(400, json.dumps(form(message)), {})
    assert type(ours) is expected
    assert message[:60] in str(ours)


def test_an_empty_account_is_not_waited_for() -> None:
    error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    assert type(failure_of(429, json.dumps({"error": error}), {})) is AccessError


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_an_answer_that_asks_for_patience_says_for_how_long(status: int) -> None:
    ours = failure_of(status, "", {"retry-after": "7"})
    assert isinstance(ours, TransportError)
    assert ours.retry_after_s == 7.0
    plain = failure_of(status, "", {})
    assert isinstance(plain, TransportError)
    assert plain.retry_after_s is None


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


@pytest.mark.parametrize("error", [ValueError(), made("RateLimitError"), made("Timeout")])
def test_without_the_header_nothing_is_asked_for(error: Exception) -> None:
    ours = translate(error)
    assert isinstance(ours, TransportError)
    assert ours.retry_after_s is None


def test_the_header_of_an_exception_is_read() -> None:
    response = httpx.Response(429, request=httpx.Request("POST", "http://127.0.0.1"))
    response.headers["Retry-After"] = "11"
    error: Any = made("RateLimitError")
    error.response = response
    ours = translate(error)
    assert isinstance(ours, RateLimitedError)
    assert ours.retry_after_s == 11.0
