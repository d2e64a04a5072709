"""Where items are read from: once to see which can be shown, then one at a time.

Unlike ``judge.Source`` this looks for no findings, which nobody here may see and which take most
of the time of reading, and it can go back to a row.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, RowError
from ..jsonl import object_of, read_line_at, read_lines
from ..judge.source import graded_by
from ..protocols import AUTO
from ..records import Item, Row
from ..records.keys import KeySet, short_key
from ..rubrics import Rubric
from ..runs.rows import Cases, row_error_of
from .queue import Place, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A row with what it was read from."""

    item: Item
    digest: bytes


class Shelf:
    """Reads predictions, joined with their cases.

    Args:
        predictions: A JSONL file.
        cases: A JSONL file of cases to be joined on ``id``, or None.
        protocol: A protocol's name, or ``auto``.
        rubric: The user's own rubric, or None for each protocol's default.
        data_roots: Folders that pictures are looked for in first.

    Attributes:
        name: The predictions, for messages.
        roots: Folders that pictures may lie in: ``data_roots`` and that of the cases, else that
            of the predictions.

    Raises:
        InputError: If the file of cases can't be read or one of its rows is unusable.
    """

    def __init__(
        self,
        predictions: Path,
        *,
        cases: Path | None = None,
        protocol: str = AUTO,
        rubric: Rubric | None = None,
        data_roots: Sequence[Path] = (),
    ) -> None:
        self.name = os.fsencode(predictions).decode(errors="backslashreplace")
        self._predictions = predictions
        self._cases = Cases(cases) if cases else None
        self._protocol = protocol
        self._rubric = rubric
        self.roots = (*data_roots, (cases or predictions).parent)

    def places(self, problem: Problem) -> list[Place]:
        """Reads all predictions and remembers where each usable row stands.

        Args:
            problem: Is given the complaint about each row that can't be shown.

        Raises:
            InputError: If the file can't be read or no row is usable.
        """
        found = list(self._places(problem))
        if not found:
            raise InputError(f"{self.name}: expected at least one row that can be shown, got none")
        return found

    def item(self, place: Place) -> Item:
        """The item at a place.

        Raises:
            InputError: If a file has changed since it was first read.
        """
        try:
            read = self._read(read_line_at(self._predictions, place.offset), place.line)
        except (OSError, RowError):
            read = None
        if read is None or read.digest != place.digest:
            raise InputError(f"{self.name}:{place.line}: the file has changed; start anew")
        return read.item

    def _places(self, problem: Problem) -> Iterator[Place]:
        seen = KeySet()
        for line in read_lines(self._predictions):
            try:
                if isinstance(line.values, RowError):
                    raise line.values
                read = self._read(line.raw, line.number)
                yield self._place(read, line.offset, seen)
            except RowError as error:
                problem(f"{self.name}:{line.number}: {error}")

    def _read(self, raw: bytes, number: int) -> _Read:
        digest = hashlib.sha256(raw)
        try:
            row = object_of(raw)
            if self._cases is not None:
                row = self._cases.join(row, digest)
            item = Row(row, number, parsed=True).to_item()
        except Exception as error:  # noqa: BLE001 - one odd row must not cost the others
            raise row_error_of(error) from None
        return _Read(item=item, digest=digest.digest())

    def _place(self, read: _Read, offset: int, seen: KeySet) -> Place:
        item = read.item
        if not seen.add(short_key(item.item_id, item.tested_model)):
            expected = "an id that occurs once per tested_model"
            raise RowError("id", expected, f"{item.item_id} again for {item.tested_model}")
        protocol, rubric = graded_by(item, self._protocol, self._rubric)
        return Place(
            item_id=item.item_id,
            tested_model=item.tested_model,
            rubric=rubric,
            protocol=protocol,
            offset=offset,
            line=item.line,
            digest=read.digest,
        )
