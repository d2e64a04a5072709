"""Steps in the form of the page, from predictions, references, messages and logs.

A step has ``number`` (from 1; messages have none), ``source`` (its author), ``name``, ``kind``,
``text``, ``thought``, ``calls``, ``results`` (answers to calls) and further fields of a log. A call
has ``name``, ``arguments`` (or ``raw``, if they are not an object), ``reason``, ``error`` and
``unknown``: True if no tool has its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .values import View, present, safe


def step_view(calls: Iterable[View], *, number: int | None = None, **fields: Any) -> View:
    """A step; fields that are empty are left out."""
    return present(number=number, calls=[*calls], **fields)


def call_view(name: str, arguments: Any, **fields: Any) -> View:
    """A call with its arguments, which may be None."""
    return {"name": name, "arguments": safe(arguments), **present(**fields)}
