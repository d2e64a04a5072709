"""What each failure of a call means: one table, one function."""

from __future__ import annotations

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

_ABOUT_FORMAT = re.compile(r"response_format|json_schema|guided|structured output|grammar", re.I)
_ABOUT_LENGTH = re.compile(r"context length|maximum context|context window|too long", re.I)
_ABOUT_KEY = re.compile(r"api[_ ]key|credential", re.I)
_KEY = re.compile(r"\b(?:sk|key|pk|AIza|gsk|xai)[-_A-Za-z0-9]{8,}")
_CLIENT_ERRORS = (400, 413, 422)


def translate(error: Exception) -> JudgeError:
    """Turns an exception of a call into ours.

    Args:
        error: An exception that litellm raised.

    Returns:
        Ours, with a message fit for a user: short, and with nothing that looks like a key.
    """
    text = _message(error)
    status = getattr(error, "status_code", None)
    if isinstance(error, JudgeError):
        return error
    meaning = next(
        (MEANINGS[c.__name__] for c in type(error).__mro__ if c.__name__ in MEANINGS), None
    )
    if meaning is None:
        meaning = CallTimeoutError if isinstance(error, TimeoutError) else TransportError
    if status in _CLIENT_ERRORS and meaning not in (TruncatedError, RefusalError):
        meaning = _by_text(text, meaning)
    if meaning is TransportError and _ABOUT_KEY.search(text) and status in (None, 500):
        meaning = AccessError  # litellm reports a key that is not set as a server error
    if meaning is TransportError:
        return TransportError(text, retry_after_s=retry_after(error))
    return meaning(text)


def _by_text(text: str, meaning: Meaning) -> Meaning:
    if _ABOUT_LENGTH.search(text):
        return TruncatedError
    if _ABOUT_FORMAT.search(text):
        return FormatUnsupportedError
    return JudgeError if issubclass(meaning, TransportError) else meaning


def _message(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return _KEY.sub("[key]", text)[:300]


def retry_after(error: Exception) -> float | None:
    """Seconds that the endpoint asked to wait (``Retry-After``), None when it did not."""
    response: Any = getattr(error, "response", None)
    headers: Any = getattr(response, "headers", None) or getattr(error, "headers", None)
    get: Callable[[str], Any] | None = getattr(headers, "get", None)
    value = get("retry-after") if get else None
    try:
        seconds = float(value) if value is not None else None
    except ValueError:
        return None
    return seconds if seconds is not None and 0 <= seconds <= 3600 else None
