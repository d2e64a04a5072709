"""The records of texts that a model wrote or failed to write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....errors import RowError
from ....records.loose_json import as_list, as_object
from ...prediction.worker import asking_records
from ...prediction.writing import REFUSED
from .config import KEYS

WRITTEN = "written.jsonl"
TASKS = "tasks.jsonl"

_LISTS = ("tools", "messages")
"""Keys of texts that are lists."""

Row = dict[str, Any]
"""A record as JSON values."""


def _check_text(row: Row) -> None:
    for name in ("task", "kind", "model"):
        if not isinstance(row.get(name), str):
            raise RowError(name, "a string", row.get(name))
    if not isinstance(row.get("rejected"), str | None):
        raise RowError("rejected", "a complaint or null", row.get("rejected"))
    if as_list(row.get("attempts")) is None:
        raise RowError("attempts", "a list", row.get("attempts"))
    value, keys = as_object(row.get("value")) or {}, KEYS.get(row["kind"], ())
    kinds = {name: list if name in _LISTS else str for name in keys}
    parts = {name: value.get(name) for name in keys}
    is_complete = bool(keys) and all(
        part and isinstance(part, kinds[name]) for name, part in parts.items()
    )
    if not row["rejected"] and not is_complete:
        raise RowError("value", f"what was written as {row['kind']}", row.get("value"))


WRITING_RECORDS = asking_records("text", WRITTEN, ids=("id",), check=_check_text, figures=(TASKS,))


def is_final(record: Mapping[str, Any], repairs: int) -> bool:
    """True if a model that may be asked again so often would not be asked again for a record."""
    rejected = record["rejected"]
    return rejected in (None, REFUSED) or len(record["attempts"]) > repairs
