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
from ..protocols import AUTO, get_protocol, protocol_of
from ..records import Row, row_error
from ..rubrics import Rubric
from .keys import KeySet
from .task import BadRow, Entry, Task, known, short_key

_MODEL_FIELDS = ("tested_model", "model_response")


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
        data_root: Folder that pictures may lie in; None for that of the cases or predictions.
        digest: SHA-256 of the predictions read so far.
    """

    predictions: Path | Sequence[Mapping[str, Any]] | Iterable[Mapping[str, Any]]
    protocol: str = AUTO
    rubric: Rubric | None = None
    cases: Path | None = None
    only: Sequence[int] | None = None
    data_root: Path | None = None
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
    def root(self) -> Path:
        """The data folder, which files named by the rows must not leave."""
        if self.data_root is not None:
            return self.data_root
        anchor = self.cases or self.predictions
        return anchor.parent if isinstance(anchor, Path) else Path()

    def __iter__(self) -> Iterator[Entry]:
        """Yields an entry for every row that is not blank.

        Raises:
            InputError: If a file can't be read or holds no row at all.
        """
        if self.only is None:
            self.digest = hashlib.sha256()  # of this reading, not of all there were
        cases = _Cases(self.cases) if self.cases else None
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

    def _entry(self, line: Line, cases: _Cases | None, seen: KeySet, digest: Any) -> Entry:
        values = line.values
        end = line.offset + len(line.raw)
        if isinstance(values, RowError):
            return BadRow(line.number, values, digest.digest(), end)
        try:
            joined = cases.join(values, digest) if cases else values
            return self._task(joined, line.number, seen, digest.digest(), end)
        except RowError as error:
            bad = error
        except ValidationError as error:
            bad = row_error(error)
        except RecursionError:
            bad = RowError("line", "JSON nested at most 250 levels deep", "deeper nesting")
        except Exception as error:  # noqa: BLE001 - one odd row must not cost the others
            bad = RowError("row", "a row that can be read", f"{type(error).__name__}: {error}")
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
        protocol = protocol_of(item) if self.protocol == AUTO else get_protocol(self.protocol)
        rubric = protocol.rubric_for(item, self._own_rubric(protocol.shape, item.form))
        protocol.admit(item)
        return Task(item, protocol, rubric, protocol.find(item, rubric), digest, end)

    def _own_rubric(self, shape: str, form: str) -> Rubric | None:
        """With ``auto``, the user's rubric serves the rows whose shape and form it has."""
        if self.rubric is None or self.protocol != AUTO:
            return self.rubric
        return self.rubric if (self.rubric.shape, self.rubric.form) == (shape, form) else None


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


class _Cases:
    """A file of cases, indexed by id: 64-bit keys and offsets, never the cases themselves."""

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
        """The case's fields with the prediction's laid over them."""
        case_id = known(values, "case_id", "id")
        offset = self._offsets.get(short_key(case_id)) if case_id else None
        if offset is None:
            raise RowError("id", f"the id of a case in {self._path}", case_id)
        if self._last is None or self._last[0] != offset:
            raw = read_line_at(self._path, offset)
            case = parse_object(raw)
            if isinstance(case, RowError):
                raise case
            self._last = (offset, case, raw)
        _, case, raw = self._last
        digest.update(raw)
        kept = {k: v for k, v in case.items() if k not in _MODEL_FIELDS}
        return kept | {k: v for k, v in values.items() if v is not None}
