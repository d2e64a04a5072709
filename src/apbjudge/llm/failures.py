"""Failures of calls, translated into our errors: one table, one function."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from typing import Any, cast

import orjson

from ..errors import (
    AccessError,
    CallTimeoutError,
    FormatUnsupportedError,
    JudgeError,
    RateLimitedError,
    RefusalError,
    ReplyError,
    TransportError,
    TruncatedError,
    UnreachableError,
    visible,
)
from .model_spec import KEYS, SERVERS, ModelSpec
from .rate_limit_headers import retry_after, used_up_for

Meaning = type[JudgeError]

_NAMES: Mapping[Meaning, str] = {
    # repeated
    CallTimeoutError: "Timeout",
    RateLimitedError: "RateLimitError CallerCredentialRateLimitError",
    TransportError: "InternalServerError ServiceUnavailableError BadGatewayError "
    "APIConnectionError APIError APIResponseValidationError OpenAIError MidStreamFallbackError "
    "MockException",
    # no call of this run can succeed
    AccessError: "AuthenticationError CallerCredentialAuthenticationError PermissionDeniedError "
    "NotFoundError PaymentRequiredError BudgetExceededError LiteLLMUnknownProvider "
    "ModelNotMappedError UnsupportedEndpointError EndpointNotSupportedByModelError",
    # this item can't be judged
    TruncatedError: "ContextWindowExceededError",
    RefusalError: "ContentPolicyViolationError RejectedRequestError BlockedPiiEntityError "
    "GuardrailRaisedException ModifyResponseException SensitiveDataRouteException",
    JudgeError: "ImageFetchError VectorStoreSearchError BadRequestError InvalidRequestError "
    "MalformedRequestFieldError UnprocessableEntityError",
    FormatUnsupportedError: "UnsupportedParamsError",
    ReplyError: "JSONSchemaValidationError",
}
MEANINGS: Mapping[str, Meaning] = {
    name: meaning for meaning, names in _NAMES.items() for name in names.split()
}
"""Meanings by name of a litellm exception; a test compares them with the installed litellm.

``TransportError`` and its kinds are repeated (as often as ``retry.REPEATS`` allows),
``FormatUnsupportedError`` is repeated in a less strict format, ``AccessError`` ends the run, the
others leave the item unscored.
"""

_BY_STATUS: Mapping[int, Meaning] = {
    **dict.fromkeys((401, 402, 403, 404), AccessError),
    **dict.fromkeys((408, 504), CallTimeoutError),
    429: RateLimitedError,
}
_CLIENT_ERRORS = (400, 413, 422)
_MAY_PASS = frozenset({"transport", "timeout", "budget", "infrastructure", "error"})
_REJECTED = frozenset(
    {*(f"HTTP {status}" for status in _CLIENT_ERRORS)}
    | {name for name, meaning in MEANINGS.items() if meaning is JudgeError}
)
_ABOUT_FORMAT = re.compile(
    r"response_format|json_schema|json_object|structured[ _]output|tool_choice|"
    r"tool[ -]call|not support tools|guided[ _](?:json|decoding|grammar|regex)",
    re.IGNORECASE,
)
_ABOUT_LENGTH = re.compile(
    r"context[ _](?:length|window|size)|maximum context|too long", re.IGNORECASE
)
_ABOUT_CONTENT = re.compile(
    r"content[ _]policy|content[ _]filter|content management policy|safety system|moderation",
    re.IGNORECASE,
)
_NO_PICTURES = re.compile(r"image input is not supported", re.IGNORECASE)
"""llama.cpp's answer to a picture, with the status of a failed server."""

_ABOUT_MONEY = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Timeout): ?)+")
_WRONG_KEY = (
    r"\bAPI[ _-]?key\b[^.]{0,40}\b(?:invalid|not valid|incorrect|expired)"
    r"|\b(?:invalid|incorrect|expired) API[ _-]?key"
)
_ABOUT_ACCESS = re.compile(
    rf"LLM Provider NOT provided|{_WRONG_KEY}|invalid model (?:name|id)|not a valid model\b"
    r"|\b(?:unknown|no such) model\b|model_not_found"
    r"|\bmodel:? (?:[`'\"]?[\w./:@-]+[`'\"]? )?(?:does not exist|(?:is |was )?not found)",
    re.IGNORECASE,
)
"""A wrong key or model, which some endpoints answer with the status of a bad request."""
_NO_PACKAGE = re.compile(r"No module named '\w")
_NO_KEY = re.compile(
    r"missing credentials|missing .{0,40}key|(?:key|credential)[^.]*must be (?:set|provided)",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"\bBearer\s+\S+|\b(?:sk|pk|key|hf|gsk|xai)[-_][-_A-Za-z0-9]{8,}|AIza[-_A-Za-z0-9]{8,}|\b[0-9A-Fa-f]{32,}\b"
    r"|(?<=://)[^/\s\"']+(?=@)"  # in any address, such as a proxy's
    r"|(?i:(?<=key=)|(?<=token=)|(?<=secret=)|(?<=password=)|(?<=sig=))[^&\s\"')]+"
)
_NEVER_SENT = re.compile(r"cannot connect|connect call failed|refused|resolve", re.IGNORECASE)
_NO_CONNECTION = frozenset({"ClientConnectorError", "ClientConnectorDNSError"})
"""Names of such exceptions in aiohttp; httpx's ConnectError may be a broken connection."""
_DEEPEST_CAUSE = 12
_SILENT = "no answer in time"
_KEY_NAMES = ("_API_KEY", "_TOKEN", "_SECRET", "_ACCESS_KEY")


_KEY_NAME = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b")
_REFUSED_KEY = "^HTTP 401|AuthenticationError"
_NO_CHAT = "not JSON|no chat completion|Unable to get json|no 'choices'|Invalid response object"
_ADVICE: Mapping[Meaning, Mapping[str, str]] = {
    AccessError: {
        "Provider NOT provided|no address of": (
            "{model} names no provider that is known: write PROVIDER/MODEL, such as openai/{name}, "
            "or for a server of your own hosted_vllm/{name} with --api-base"
        ),
        f"{_NO_KEY.pattern}|^no key: ": (
            "the provider needs an API key and none was sent: set {key} in the environment"
        ),
        f"^HTTP 402|PaymentRequired|{_ABOUT_MONEY.pattern}": (
            "the account has no credit or quota left: add credit, or use another account's key"
        ),
        "^HTTP 403|PermissionDenied": (
            "the key may not use {model}: grant its project access, or put another key into {key}"
        ),
        f"{_REFUSED_KEY}|{_WRONG_KEY}": (
            "the endpoint does not accept the key: correct {key}; expired, or another provider's?"
        ),
        "model": "the endpoint does not know the model {name}: correct its name{models}",
        "^HTTP 404|NotFoundError": "there are no chat completions at {address}: {path}",
    },
    UnreachableError: {
        "DNSError|not known|getaddrinfo|resolution": (
            "the host in {address} is unknown: correct its name, or check network, VPN and proxy"
        ),
        "": "nobody answers at {address}: {start}",
    },
    TruncatedError: {
        "": (
            "prompt and reply are longer than the model's context: lower --max-reply-tokens, or "
            "serve the model with a longer context (vllm serve --max-model-len)"
        )
    },
    RateLimitedError: {
        "": (
            "too many requests or tokens a minute for this account: set --rpm or --tpm to its "
            "limits, or lower --max-concurrency"
        )
    },
    CallTimeoutError: {
        "": (
            "the endpoint was too slow: raise --timeout-s, or lower --max-concurrency, since a "
            "busy server answers late"
        )
    },
    FormatUnsupportedError: {
        "": (
            "the endpoint takes neither structured replies nor tool calls: take another model, or "
            "serve it with them (vllm serve --enable-auto-tool-choice --tool-call-parser NAME)"
        )
    },
    TransportError: {
        _NO_CHAT: "{address} answers, but not as an OpenAI-compatible server: {path}",
        r"^HTTP 503|ServiceUnavailable|\bloading\b": (
            "the server is loading or overloaded: wait for it with apbjudge doctor --wait 300, or "
            "lower --max-concurrency"
        ),
    },
}
"""Cause and advice by kind of a failure and a part of its text; the first match counts."""


def explained(error: JudgeError, spec: ModelSpec, address: str | None) -> JudgeError:
    """A failure of a call with the likely cause, advice and then its own text.

    Args:
        error: From ``translate``, ``failure_of`` or an unusable answer; changed in place.
        spec: The model that was called.
        address: Its address; None for the provider's own.
    """
    raw, model = str(error), spec.model
    provider, _, name = model.partition("/")
    named = _KEY_NAME.search(raw)
    key = KEYS.get(provider) or (named[0] if named else "")
    is_sent = not key or os.environ.get(key) or "api_key" in spec.params
    start = (
        "start the server or correct --api-base; apbjudge doctor --wait 300 waits for one that is "
        "loading"
    )
    text = raw if is_sent or not re.search(_REFUSED_KEY, raw) else f"no key: {raw}"
    for pattern, advice in _ADVICE.get(type(error), {}).items():
        if re.search(pattern, text, re.IGNORECASE):
            own = advice.format(
                model=model,
                name=name or model,
                key=key or "the provider's API key",
                address=address or "the provider's address",
                path=_path_hint(provider, address),
                start=start if address else "check network, VPN and proxy",
                models=f"; apbjudge doctor --judge {model}@{address} lists them" if address else "",
            )
            if own not in raw:
                error.args = (f"{fit_to_show(own)} ({raw})",)
            break
    return error


def translate(error: Exception) -> JudgeError:
    """Turns an exception of a call into ours.

    Args:
        error: An exception that litellm raised.

    Returns:
        Ours, with a message for users: short, and without anything that looks like a key.
    """
    if isinstance(error, JudgeError):
        return error
    status = getattr(error, "status_code", None)
    is_bare = type(error).__name__ == "APIError" and status in _BY_STATUS
    name = f"HTTP {status}" if is_bare else type(error).__name__
    text = f"{name}: {_PREFIXES.sub('', str(error)) or _SILENT}"
    text = fit_to_show(text)
    ours = _error(_meaning(error, text), text, _headers(error))
    if type(ours) is TransportError and not _headers(error):
        if _NEVER_SENT.search(text) or _is_refused(error):
            return UnreachableError(text)
        ours.answered = False
    return ours


def _is_refused(error: BaseException) -> bool:
    """True if a refused connection, or an unknown host, caused an exception."""
    cause: BaseException | None = error
    for _ in range(_DEEPEST_CAUSE):
        if cause is None:
            break
        refused = isinstance(cause, ConnectionRefusedError | socket.gaierror)
        if refused or type(cause).__name__ in _NO_CONNECTION:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def failure_of(status: int, body: str, headers: Any) -> JudgeError:
    """The failure that an HTTP answer other than 200 means.

    Args:
        status: The HTTP status.
        body: The answer's text.
        headers: Its headers.
    """
    text = fit_to_show(f"HTTP {status}: {_error_message(body)}")
    if status in _CLIENT_ERRORS:
        return _error(_of_client_error(text, JudgeError), text, headers)
    if _NO_PICTURES.search(text):
        return JudgeError(text)
    meaning = _BY_STATUS.get(status, TransportError)
    return _error(_unless_money(meaning, text), text, headers)


def may_pass(reason: str, detail: str) -> bool:
    """True if the same call may succeed later; False if the endpoint rejected the request.

    Args:
        reason: Reason why there is no answer.
        detail: Text of the failure, as from ``translate`` and ``failure_of``.
    """
    return reason in _MAY_PASS and detail.partition(":")[0] not in _REJECTED


def _path_hint(provider: str, address: str | None) -> str:
    """A hint for an address without an API."""
    usual = SERVERS.get(provider, ("", ""))[1]
    if not address or "/v1" in address or not (usual.endswith("/v1") or provider == "openai"):
        return "correct --api-base, which mostly ends in /v1"
    return f"the address lacks /v1, try --api-base {address.rstrip('/')}/v1"


def _error(meaning: Meaning, text: str, headers: Any) -> JudgeError:
    if issubclass(meaning, TransportError):
        wait_s = retry_after(headers)
        if wait_s is None and issubclass(meaning, RateLimitedError):
            wait_s = used_up_for(headers)  # some servers send the limit's reset instead
        return meaning(text, retry_after_s=wait_s)
    return meaning(text)


def _error_message(body: str) -> str:
    """The message in an error's body; the body itself if it has another form."""
    try:
        error = cast("dict[str, Any]", orjson.loads(body))["error"]
        parts = [error["message"], error.get("code"), error.get("type")]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return body[:1000] or _SILENT
    return " ".join(str(part) for part in parts if part)


def _unless_money(meaning: Meaning, text: str) -> Meaning:
    """AccessError for an empty account, which some providers report as too many requests."""
    return AccessError if meaning is RateLimitedError and _ABOUT_MONEY.search(text) else meaning


def _meaning(error: Exception, text: str) -> Meaning:
    names = (cls.__name__ for cls in type(error).__mro__)
    named = next((MEANINGS[name] for name in names if name in MEANINGS), None)
    status: object = getattr(error, "status_code", None)
    if named is None:
        if isinstance(error, TimeoutError):
            return CallTimeoutError
        named = TransportError  # its status counts, as for errors about files and batches
    if named in (TruncatedError, RefusalError):
        return named
    if isinstance(status, int) and status in _BY_STATUS:
        return _unless_money(_BY_STATUS[status], text)
    if status in _CLIENT_ERRORS:
        return _of_client_error(text, named)
    is_missing = _NO_PACKAGE.search(text) or _NO_KEY.search(text)
    if named is TransportError and is_missing and not _headers(error):
        return AccessError  # a key or a package, which litellm reports as a server's error
    return named


def _of_client_error(text: str, named: Meaning) -> Meaning:
    for pattern, meaning in (
        (_ABOUT_ACCESS, AccessError),
        (_ABOUT_LENGTH, TruncatedError),
        (_ABOUT_CONTENT, RefusalError),
        (_ABOUT_FORMAT, FormatUnsupportedError),
    ):
        if pattern.search(text):
            return meaning
    return JudgeError if issubclass(named, TransportError) else named


def fit_to_show(message: str) -> str:
    """A message for users: 300 characters, one line, nothing that looks like a key."""
    text = message.partition("Traceback (most recent call last)")[0]
    for name, value in os.environ.items():
        if name.endswith(_KEY_NAMES) and len(value) >= 6:
            text = text.replace(value, "[key]")
    return visible(" ".join(_KEY.sub("[key]", text).split()))[:300]


def _headers(error: Exception) -> Any:
    """The headers of the endpoint's answer; None without one."""
    response: Any = getattr(error, "response", None)
    return getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None)
