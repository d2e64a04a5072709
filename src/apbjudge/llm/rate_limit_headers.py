"""Headers in which an endpoint asks for a pause: Retry-After and remaining rate limits."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

LONGEST_S = 3600.0
_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-", "llm_provider-x-ratelimit-")
_SPAN = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def retry_after(headers: Any) -> float | None:
    """Seconds that the endpoint asked to wait, 0 to 3600; None if it did not.

    Reads ``retry-after-ms``, then both forms of ``Retry-After``, seconds and a date.
    """
    get = getattr(headers, "get", None)
    if get is None:
        return None
    exact = _number(str(get("retry-after-ms") or ""))
    if exact is not None and (wait := _plausible(exact / 1000)) is not None:
        return wait
    value = get("retry-after")
    if not isinstance(value, str | int | float):
        return None
    seconds = _number(str(value))
    if seconds is None:
        try:
            seconds = _until(parsedate_to_datetime(str(value)))
        except (ValueError, TypeError, OverflowError):
            return None
    return _plausible(seconds)


def used_up_for(headers: Any) -> float | None:
    """Seconds until an exhausted rate limit is reset; None if none is exhausted."""
    get = getattr(headers, "get", None)
    if get is None:
        return None
    for kind in ("requests", "tokens"):
        for prefix in _PREFIXES:
            remaining = get(f"{prefix}remaining-{kind}") or get(f"{prefix}{kind}-remaining")
            if str(remaining) != "0":
                continue
            reset = get(f"{prefix}reset-{kind}") or get(f"{prefix}{kind}-reset")
            seconds = _plausible(_span(str(reset)) if reset else None)
            return 1.0 if seconds is None else seconds
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _span(text: str) -> float | None:
    """Seconds from ``12``, ``6m0s``, ``88ms`` or a moment in ISO form."""
    if (seconds := _number(text)) is not None:
        return seconds
    parts = _SPAN.findall(text)
    if parts and "".join(n + u for n, u in parts) == text:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        return _until(datetime.fromisoformat(text))
    except ValueError:
        return None


def _until(moment: datetime) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _plausible(seconds: float | None) -> float | None:
    return seconds if seconds is not None and 0 <= seconds <= LONGEST_S else None
