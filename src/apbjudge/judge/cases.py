"""A file of cases, which predictions name by id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError, RowError
from ..jsonl import object_of, read_line_at, read_lines
from ..records.keys import short_key
from .task import known

_MODEL_FIELDS = ("tested_model", "model_response")


class Cases:
    """A file of cases, indexed by id: 64-bit keys and offsets, never the cases themselves.

    Args:
        path: A JSONL file.

    Raises:
        InputError: If it can't be read or one of its rows is unusable.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[int, int] = {}
        self._last: tuple[int, dict[str, Any], bytes] | None = None
        for line in read_lines(path):
            if isinstance(line.values, RowError):
                raise InputError(f"{path}:{line.number}: {line.values}")
            case_id = known(line.values, "id", "case_id")
            if case_id is None:
                error = RowError("id", "a non-empty string", line.values.get("id"))
                raise InputError(f"{path}:{line.number}: {error}")
            key = short_key(case_id)
            if key in self._offsets:
                raise InputError(f"{path}:{line.number}: field id: {case_id} occurs twice")
            self._offsets[key] = line.offset

    def join(self, values: Mapping[str, Any], digest: Any) -> dict[str, Any]:
        """The case's fields with the prediction's laid over them.

        Args:
            values: The prediction's row.
            digest: A running hash, which takes in the case.

        Raises:
            RowError: If there is no such case.
        """
        case_id = known(values, "case_id", "id")
        offset = self._offsets.get(short_key(case_id)) if case_id else None
        if offset is None:
            raise RowError("id", f"the id of a case in {self._path}", case_id)
        if self._last is None or self._last[0] != offset:
            raw = read_line_at(self._path, offset)
            self._last = (offset, object_of(raw), raw)
        _, case, raw = self._last
        digest.update(raw)
        kept = {k: v for k, v in case.items() if k not in _MODEL_FIELDS}
        return kept | {k: v for k, v in values.items() if v is not None}
