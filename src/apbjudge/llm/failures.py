"""What each failure of a call means: one table, one function."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import (
    AccessError,
    CallTimeoutError,
    FormatUnsupportedError,
    JudgeError,
    RefusalError,
    ReplyError,
    TransportError,
    TruncatedError,
)

Meaning = type[JudgeError]

MEANINGS: Mapping[str, Meaning] = {
    # asked again
    "Timeout": CallTimeoutError,
    "RateLimitError": TransportError,
    "InternalServerError": TransportError,
    "ServiceUnavailableError": TransportError,
    "BadGatewayError": TransportError,
    "APIConnectionError": TransportError,
    "APIError": TransportError,
    "APIResponseValidationError": TransportError,
    "OpenAIError": TransportError,
    "MidStreamFallbackError": TransportError,
    "MockException": TransportError,
    # of this run no call can succeed
    "AuthenticationError": AccessError,
    "PermissionDeniedError": AccessError,
    "NotFoundError": AccessError,
    "PaymentRequiredError": AccessError,
    "BudgetExceededError": AccessError,
    "LiteLLMUnknownProvider": AccessError,
    "ModelNotMappedError": AccessError,
    # this item can't be judged
    "ContextWindowExceededError": TruncatedError,
    "ContentPolicyViolationError": RefusalError,
    "RejectedRequestError": RefusalError,
    "BlockedPiiEntityError": RefusalError,
    "GuardrailRaisedException": RefusalError,
    "ModifyResponseException": RefusalError,
    "SensitiveDataRouteException": RefusalError,
    "ImageFetchError": JudgeError,
    "VectorStoreSearchError": JudgeError,
    "BadRequestError": JudgeError,
    "InvalidRequestError": JudgeError,
    "UnprocessableEntityError": JudgeError,
    "UnsupportedParamsError": FormatUnsupportedError,
    "JSONSchemaValidationError": ReplyError,
}
"""Name of a litellm exception to what it means; a test holds it against the installed litellm.

``TransportError`` and ``CallTimeoutError`` are asked again, ``FormatUnsupportedError`` once
without the schema, ``AccessError`` ends the run, the others leave the item unscored.
"""

_BY_STATUS: Mapping[int, Meaning] = {
    401: AccessError,
    402: AccessError,
    403: AccessError,
    404: AccessError,
    408: CallTimeoutError,
    429: TransportError,
}
_CLIENT_ERRORS = (400, 413, 422)
_ABOUT_FORMAT = re.compile(
    r"response_format|json_schema|structured[ _]output|guided[ _](?:json|decoding|grammar|regex)",
    re.IGNORECASE,
)
_ABOUT_LENGTH = re.compile(r"context length|maximum context|context window|too long", re.IGNORECASE)
_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Timeout): ?)+")
_NO_PROVIDER = re.compile(r"LLM Provider NOT provided", re.IGNORECASE)
_NO_KEY = re.compile(
    r"missing credentials|missing .{0,40}key|(?:key|credential)[^.]*must be (?:set|provided)",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"\bBearer\s+\S+|\b(?:sk|pk|key|hf|gsk|xai)[-_][-_A-Za-z0-9]{8,}|AIza[-_A-Za-z0-9]{8,}|\b[0-9A-Fa-f]{32,}\b"
)
_KEY_NAMES = ("_API_KEY", "_TOKEN", "_SECRET", "_ACCESS_KEY")


def translate(error: Exception) -> JudgeError:
    """Turns an exception of a call into ours.

    Args:
        error: An exception that litellm raised.

    Returns:
        Ours, with a message fit for a user: short, and with nothing that looks like a key.
    """
    if isinstance(error, JudgeError):
        return error
    text = _message(error)
    meaning = _meaning(error, text)
    if meaning is TransportError:
        return TransportError(text, retry_after_s=retry_after(error))
    return meaning(text)


def _meaning(error: Exception, text: str) -> Meaning:
    names = (cls.__name__ for cls in type(error).__mro__)
    named = next((MEANINGS[name] for name in names if name in MEANINGS), None)
    if named is None:
        return CallTimeoutError if isinstance(error, TimeoutError) else TransportError
    if named in (TruncatedError, RefusalError):
        return named
    status: object = getattr(error, "status_code", None)
    if isinstance(status, int) and status in _BY_STATUS:
        return _BY_STATUS[status]
    if status in _CLIENT_ERRORS:
        return _of_client_error(text, named)
    if named is TransportError and not _headers(error) and _NO_KEY.search(text):
        return AccessError  # litellm reports a key that is not set as a server's error
    return named


def _of_client_error(text: str, named: Meaning) -> Meaning:
    if _NO_PROVIDER.search(text):
        return AccessError
    if _ABOUT_LENGTH.search(text):
        return TruncatedError
    if _ABOUT_FORMAT.search(text):
        return FormatUnsupportedError
    return JudgeError if issubclass(named, TransportError) else named


def _message(error: Exception) -> str:
    said = _PREFIXES.sub("", str(error)) or "no answer in time"
    text = f"{type(error).__name__}: {said}".partition("Traceback (most recent call last)")[0]
    for name, value in os.environ.items():
        if name.endswith(_KEY_NAMES) and len(value) >= 6:
            text = text.replace(value, "[key]")
    return " ".join(_KEY.sub("[key]", text).split())[:300]


def _headers(error: Exception) -> Any:
    """The headers of the endpoint's answer, None when there was none."""
    response: Any = getattr(error, "response", None)
    return getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None)


def retry_after(error: Exception) -> float | None:
    """Seconds that the endpoint asked to wait (``Retry-After``), None when it did not."""
    get: Callable[[str], Any] | None = getattr(_headers(error), "get", None)
    value = get("retry-after") if get else None
    try:
        seconds = float(value) if value is not None else None
    except (TypeError, ValueError):
        return None
    return seconds if seconds is not None and 0 <= seconds <= 3600 else None
