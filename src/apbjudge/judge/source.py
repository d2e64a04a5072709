"""Where rows come from: a predictions file, perhaps joined with a file of cases, or a list."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import ValidationError

from ..errors import InputError, RowError
from ..jsonl import Line, parse_object, read_line_at, read_lines
from ..protocols import AUTO, Protocol, get_protocol, protocol_of
from ..records import Item, Row, row_error
from ..records.keys import KeySet, short_key
from ..rubrics import Rubric
from .cases import Cases
from .task import BadRow, Entry, Task, known


@dataclass(slots=True)
class Source:
    """Reads rows, one at a time, and makes each a task or a bad row.

    Attributes:
        predictions: A JSONL file, or rows already in memory.
        protocol: A protocol's name, or ``auto``.
        rubric: The user's own rubric, or None for each protocol's default.
        cases: A JSONL file with the cases, joined on ``id``.
        only: Numbers of the lines to read, in the order in which to read them; None reads all,
            in the order of the file.
        finds: Whether code looks for findings, which takes most of the time of reading; without,
            tasks have none.
        data_roots: Folders that pictures are looked for in, before that of the cases or, without
            any, of the predictions.
        digest: SHA-256 of the predictions read so far.
    """

    predictions: Path | Sequence[Mapping[str, Any]] | Iterable[Mapping[str, Any]]
    protocol: str = AUTO
    rubric: Rubric | None = None
    cases: Path | None = None
    only: Sequence[int] | None = None
    finds: bool = True
    data_roots: Sequence[Path] = ()
    digest: Any = field(default_factory=hashlib.sha256)

    @property
    def name(self) -> str:
        """Name of the input, for messages."""
        if not isinstance(self.predictions, Path):
            return "row"
        return os.fsencode(self.predictions).decode(errors="backslashreplace")

    @property
    def size(self) -> int:
        """Bytes of the predictions file; 0 when the rows are in memory."""
        if not isinstance(self.predictions, Path):
            return 0
        try:
            return self.predictions.stat().st_size
        except OSError as error:
            raise InputError(f"{self.predictions}: can't be read: {error.strerror}") from None

    @property
    def roots(self) -> tuple[Path, ...]:
        """The data folders, which files named by the rows must not leave."""
        anchor = self.cases or self.predictions
        return (*self.data_roots, anchor.parent if isinstance(anchor, Path) else Path())

    def __iter__(self) -> Iterator[Entry]:
        """Yields an entry for every row that is not blank.

        Raises:
            InputError: If a file can't be read or holds no row at all.
        """
        if self.only is None:
            self.digest = hashlib.sha256()  # of this reading, not of all there were
        cases = Cases(self.cases) if self.cases else None
        seen = KeySet()
        empty = True
        for line in self._lines():
            empty = False
            digest = hashlib.sha256(line.raw)
            yield self._entry(line, cases, seen, digest)
        if empty:
            raise InputError(f"{self.name}: the file holds no rows")

    def _lines(self) -> Iterator[Line]:
        if self.only is not None:
            yield from self._chosen(self.only)
        elif isinstance(self.predictions, Path):
            yield from read_lines(self.predictions, digest=self.digest)
        else:
            for number, values in enumerate(self.predictions, start=1):
                raw, row = _dumped(values)
                self.digest.update(raw)
                yield Line(number, 0, raw, row)

    def _chosen(self, numbers: Sequence[int]) -> Iterator[Line]:
        """Some lines, in the order asked for: places are looked up once, then each is read."""
        wanted = set(numbers)
        if not isinstance(self.predictions, Path):
            rows = {n: v for n, v in enumerate(self.predictions, start=1) if n in wanted}
            for number in numbers:
                raw, row = _dumped(rows[number])
                yield Line(number, 0, raw, row)
            return
        lines = read_lines(self.predictions)
        offsets = {line.number: line.offset for line in lines if line.number in wanted}
        for number in numbers:
            raw = read_line_at(self.predictions, offsets[number])
            yield Line(number, 0, raw, parse_object(raw))

    def _entry(self, line: Line, cases: Cases | None, seen: KeySet, digest: Any) -> Entry:
        values = line.values
        end = line.offset + len(line.raw)
        if isinstance(values, RowError):
            return BadRow(line.number, values, digest.digest(), end)
        try:
            joined = cases.join(values, digest) if cases else values
            return self._task(joined, line.number, seen, digest.digest(), end)
        except Exception as error:  # noqa: BLE001 - one odd row must not cost the others
            bad = complaint_of(error)
        item_id, tested_model = known(values, "id", "item_id"), known(values, "tested_model")
        return BadRow(line.number, bad, digest.digest(), end, item_id, tested_model)

    def _task(
        self, values: Mapping[str, Any], number: int, seen: KeySet, digest: bytes, end: int
    ) -> Task:
        item = Row(values, number, parsed=isinstance(self.predictions, Path)).to_item()
        key = short_key(item.item_id, item.tested_model)
        if not seen.add(key):
            expected = "an id that occurs once per tested_model"
            raise RowError("id", expected, f"{item.item_id} again for {item.tested_model}")
        protocol, rubric = graded_by(item, self.protocol, self.rubric)
        findings = protocol.find(item, rubric) if self.finds else ()
        return Task(item, protocol, rubric, findings, digest, end)


def graded_by(item: Item, name: str, own: Rubric | None) -> tuple[Protocol, Rubric]:
    """The protocol and the rubric of an item.

    Args:
        item: The item.
        name: A protocol's name, or ``auto``.
        own: The user's own rubric, or None. With ``auto`` it serves the items whose shape and
            form it has.

    Raises:
        RowError: If the protocol needs what the item lacks.
    """
    protocol = protocol_of(item) if name == AUTO else get_protocol(name)
    if own is not None and name == AUTO:
        own = own if (own.shape, own.form) == (protocol.shape, item.form) else None
    rubric = protocol.rubric_for(item, own)
    protocol.admit(item)
    return protocol, rubric


def complaint_of(error: Exception) -> RowError:
    """What was wrong with a row, of whatever was raised while it was read."""
    if isinstance(error, RowError):
        return error
    if isinstance(error, ValidationError):
        return row_error(error)
    if isinstance(error, RecursionError):
        return RowError("line", "JSON nested at most 250 levels deep", "deeper nesting")
    return RowError("row", "a row that can be read", f"{type(error).__name__}: {error}")


def _dumped(values: object) -> tuple[bytes, dict[str, Any] | RowError]:
    """A row in memory as the line it would be."""
    try:
        raw = orjson.dumps(values)
    except orjson.JSONEncodeError as error:
        raw = repr(values).encode(errors="backslashreplace")
        return raw, RowError("row", "JSON values", str(error))
    if not isinstance(values, dict):
        return raw, RowError("row", "a dict", values)
    return raw, cast("dict[str, Any]", values)
