"""The ledger of a run: which rows, as they came, were worked on under which settings.

A row that comes again unchanged, under the same settings, leads to the record that it led to
before. The ledger tells which that is, so that nothing needs to be made of the row to find it
finished. Whether the record is there is looked up among the records themselves: a line of the
ledger that was never written, or is damaged, costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import RowError
from ..jsonl import Appender, read_lines
from ..records.keys import KeyMap, short_key
from .resume import record_key

ATTEMPTS = "attempts.jsonl"
_EVERY = 128


class Attempts:
    """The ledger of a folder, of which it takes what was done under the settings of a session.

    Args:
        path: The file, created with the first attempt.
        settings: Digest of all that a record depends on besides its row; another digest is another
            session's.

    Raises:
        InputError: If the file can't be read.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self._path, self._settings = path, settings
        self._records = KeyMap()
        self._out: Appender | None = None
        for line in read_lines(path, any_format=True) if path.exists() else ():
            row = line.values
            if isinstance(row, RowError) or row.get("settings") != settings:
                continue
            try:
                self._records.add(self._key(row["row"], row), record_key(row))
            except (KeyError, TypeError):  # damaged
                continue
        self._records.sort()

    def _key(self, row: str, fields: Mapping[str, Any]) -> int:
        return short_key(self._settings, row, fields["item_id"], fields["tested_model"])

    def record_of(self, row: bytes, item_id: str, tested_model: str) -> int | None:
        """The key of the record that a row led to; None where it was not worked on.

        Args:
            row: SHA-256 of the row as it came, and of its case.
            item_id: Its item.
            tested_model: Its tested model, which may be named outside the row.
        """
        names = {"item_id": item_id, "tested_model": tested_model}
        at = self._records.index(self._key(row.hex(), names))
        return None if at is None else self._records.value(at)

    def add(self, row: bytes, fields: Mapping[str, Any]) -> None:
        """Takes note of a row and the fields of its record that its key is made of."""
        if self._out is None:
            self._out = Appender(self._path, every=_EVERY)
        names = ("line", "item_id", "tested_model", "fingerprint")
        of_record = {name: fields[name] for name in names}
        self._out.append({**of_record, "row": row.hex(), "settings": self._settings})

    def close(self) -> None:
        """Writes what is pending."""
        if self._out is not None:
            self._out.close()
