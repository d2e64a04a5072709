"""The ledger of a run: to which record each row, as it came, led under which settings.

A row that comes again unchanged, under the same settings, leads to the record that it led to
before. The ledger tells which that is, so that neither the row nor its record is parsed to find it
finished. Whether the record is there is looked up among the records themselves, line by line: an
entry of the ledger that was never written, or is damaged, costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ..jsonl import Appender, read_lines
from ..records.keys import KeyMap

ATTEMPTS = "attempts.jsonl"
_EVERY = 128
_KEY_BYTES = 8


class Attempt(NamedTuple):
    """A row that need not be read again once it has a record.

    Attributes:
        row: SHA-256 of the row as it came.
        item: Key of its item and tested model, as ``short_key`` makes it.
        case: Index of its case in the file of cases; None if it was not joined.
        facts: Counts by its source, as JSON; a run has few different ones.
    """

    row: bytes
    item: int
    case: int | None
    facts: bytes


class KnownRow(NamedTuple):
    """An entry of the ledger, by its row.

    Attributes:
        key: Key of the record; see ``resume.record_key``.
        line_key: Key of the record's line.
        line: Line of the row, as the record has it.
        item: As in ``Attempt``; ``case`` and ``facts`` likewise.
    """

    key: int
    line_key: int
    line: int
    item: int
    case: int | None
    facts: bytes


class Attempts:
    """The ledger of a folder, of which it takes what was done under the settings of a session.

    Args:
        path: The file, created with the first attempt.
        settings: Digest of all that a record depends on besides its row; another digest is another
            session's.

    Attributes:
        records: Keys of each record and of its item, by the key of the record's line.

    Raises:
        InputError: If the file can't be read.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self._path, self._settings = path, settings
        self._rows, self.records = KeyMap(6), KeyMap(2)
        self._out: Appender | None = None
        facts: dict[bytes, int] = {}
        for entry in self._entries():
            try:
                names, case = ("key", "item", "record"), entry["case"]
                key, item, line_key = (int(entry[name], 16) for name in names)
                row = int(entry["row"][: 2 * _KEY_BYTES], 16)
                number = facts.setdefault(orjson.dumps(entry["facts"]), len(facts))
                at = 0 if case is None else case + 1
                self._rows.add(row, key, line_key, entry["line"], item, at, number)
                self.records.add(line_key, key, item)
            except (KeyError, TypeError, ValueError, OverflowError):  # damaged
                continue
        self._rows.sort(last_counts=True)
        self.records.sort(last_counts=True)
        self._texts = [*facts]

    def _entries(self) -> Iterator[dict[str, Any]]:
        """Yields the lines of the same settings; the caller has to check each."""
        for line in read_lines(self._path, any_format=True) if self._path.exists() else ():
            if isinstance(line.values, dict) and line.values.get("settings") == self._settings:
                yield line.values

    def of_row(self, row: bytes) -> KnownRow | None:
        """The last entry of a row by its SHA-256; None if there is none."""
        if (at := self._rows.index(int.from_bytes(row[:_KEY_BYTES], "big"))) is None:
            return None
        key, line_key, line, item, case, facts = self._rows.values(at)
        return KnownRow(key, line_key, line, item, case - 1 if case else None, self._texts[facts])

    def add(self, attempt: Attempt, *, key: int, line_key: int, line: int) -> None:
        """Takes note of a row, and of the record that it led to.

        Args:
            attempt: The row.
            key: Key of the record.
            line_key: Key of the record's line.
            line: Line of the row, as the record has it.
        """
        self._write(
            {
                "line": line,
                "row": attempt.row.hex(),
                "settings": self._settings,
                "key": _name(key),
                "record": _name(line_key),
                "item": _name(attempt.item),
                "case": attempt.case,
                "facts": orjson.Fragment(attempt.facts),
            }
        )

    def add_moved(self, moved: Mapping[int, tuple[int, int]]) -> None:
        """Takes note of records that were written anew, since their rows are on other lines now.

        Args:
            moved: By the key of a record's line before, that of its line now and the row's line.
        """
        if self._out is not None:
            self._out.flush()
        by_name = {_name(before): now for before, now in moved.items()}
        for entry in self._entries() if moved else ():
            if (now := by_name.get(str(entry.get("record")))) is not None:
                self._write({**entry, "record": _name(now[0]), "line": now[1]})

    def _write(self, entry: dict[str, Any]) -> None:
        if self._out is None:
            self._out = Appender(self._path, every=_EVERY)
        self._out.append(entry)

    def close(self) -> None:
        """Writes pending entries."""
        if self._out is not None:
            self._out.close()


def _name(key: int) -> str:
    """A key as text, since many readers round whole numbers of 64 bits."""
    return f"{key:016x}"
