"""The records of what a model wrote, or failed to write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...errors import RowError
from ...llm.resources import REPLIES
from ...prediction.worker import CALLS
from ...records import Usage
from ...records.loose_json import as_list, as_object
from ...records.run_folder import mapping
from ...runs.resume import BAD_INPUT, RecordKind
from .tasks import TASKS

WRITTEN = "written.jsonl"
FAILURES = "failures.jsonl"
REFUSED, CUT_OFF = "refused", "cut off"
"""Complaints about a reply beside those of its rules."""

Row = dict[str, Any]
"""A record as JSON values."""


def _checked(values: Mapping[str, Any] | RowError) -> Row:
    """A line of a file of texts or failures, if it is one that a run wrote."""
    if isinstance(values, RowError):
        raise values
    row = dict(values)
    is_bad = row.get("reason") == BAD_INPUT
    if not isinstance(row.get("id"), str) and not (is_bad and row.get("id") is None):
        raise RowError("id", "a string", row.get("id"))
    if not isinstance(row.get("fingerprint"), str):
        raise RowError("fingerprint", "a string", row.get("fingerprint"))
    if type(row.get("line")) is not int:
        raise RowError("line", "a whole number", row.get("line"))
    counts = mapping(row.get("usage"))
    if any(type(counts.get(name)) is not int for name in Usage.model_fields):
        raise RowError("usage", "counts of calls and tokens", row.get("usage"))
    if row.get("reason") is None:
        _check_text(row)
    return row | {"cost_usd": row.get("cost_usd")}


def _check_text(row: Row) -> None:
    for name in ("task", "kind", "model"):
        if not isinstance(row.get(name), str):
            raise RowError(name, "a string", row.get(name))
    if not isinstance(row.get("rejected"), str | None):
        raise RowError("rejected", "a complaint or null", row.get("rejected"))
    if as_list(row.get("attempts")) is None:
        raise RowError("attempts", "a list", row.get("attempts"))
    value = as_object(row.get("value")) or {}
    texts = [value.get(name) for name in _TEXTS.get(row["kind"], ())]
    is_whole = all(isinstance(text, str) and text for text in texts) and bool(
        texts or as_list(value.get("tools"))
    )
    if not row["rejected"] and not is_whole:
        raise RowError("value", f"what was written as {row['kind']}", row.get("value"))


_TEXTS: Mapping[str, tuple[str, ...]] = {
    "query": ("query",),
    "plan": ("plan",),
    "private": ("query", "removed"),
}


WRITING_RECORDS: RecordKind[Row] = RecordKind(
    name="text",
    file=WRITTEN,
    to_json=lambda row: row,
    check=_checked,
    place=("line",),
    retried=("transport", "timeout", "budget", "truncated", "unparsable", "error", BAD_INPUT),
    failures=FAILURES,
    figures=(FAILURES, TASKS),
    folders={
        f"{CALLS}/{REPLIES}": re.compile(r"replies\.db(-wal|-shm|-journal)?"),
        CALLS: re.compile(r"endpoints\.json"),
    },
)


def is_final(record: Mapping[str, Any], repairs: int) -> bool:
    """Whether a model that may be asked again so often would not be asked again for a record."""
    rejected = record["rejected"]
    return rejected in (None, REFUSED) or len(record["attempts"]) > repairs
