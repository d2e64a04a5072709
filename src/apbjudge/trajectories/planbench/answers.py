"""Tests for a value in a text."""

from __future__ import annotations

import json
import re
from typing import Any

_MARKS = re.compile(r"[*_`\"']")
_BLANKS = re.compile(r"\s+")
_JOINED = "-.,:/"
"""A token is a run of letters and digits, or several such runs joined by one of these signs."""


def normalised(value: Any) -> str:
    """The value as the benchmark compares it: lower case, without marks and runs of blanks."""
    return _BLANKS.sub(" ", _MARKS.sub("", as_text(value).lower())).strip()


def as_text(value: Any) -> str:
    """A tool's value in the environment's form for comparing arguments; empty for None."""
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return str(value)


def contains(text: Any, value: Any) -> bool:
    """The benchmark's own test: ``1`` is in ``10``, and ``approved`` in ``not approved``."""
    part = normalised(value)
    return bool(part) and part in normalised(text)


def contains_token(text: Any, value: Any) -> bool:
    """The same for whole tokens only: ``2026-04`` is not in ``2026-04-16``."""
    part = normalised(value)
    if not part:
        return False
    bounded = rf"(?<!\w)(?<!\w[{_JOINED}]){re.escape(part)}(?![{_JOINED}]?\w)"
    return re.search(bounded, normalised(text)) is not None


def equals(text: Any, value: Any) -> bool:
    """True if the text is only the value, apart from marks, blanks and a full stop."""
    part = normalised(value)
    return bool(part) and normalised(text).removesuffix(".") == part.removesuffix(".")
