"""Reading rows: a JSONL file or rows in memory, perhaps joined with a file of cases."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

import orjson
from pydantic import ValidationError

from ..errors import InputError, InternalError, OptionError, PluginError, RowError, path_text
from ..jsonl import (
    Line,
    file_size,
    lost_number,
    object_of,
    parse_object,
    read_line_at,
    read_lines,
)
from ..records import row_error
from ..records.gaps import Gaps
from ..records.keys import short_key
from ..records.own_rows import RowReading
from ..records.rows import known, without_sample
from .attempts import KnownRow
from .shards import Piece, Shard

_MODEL_FIELDS = ("tested_model", "model_response")


@dataclass(frozen=True, slots=True)
class BadRow:
    """An unusable row, with its known properties.

    Attributes:
        place: Its place, such as ``cases.jsonl:3``; empty for its line of the rows.
    """

    line: int
    error: RowError
    digest: bytes
    offset: int
    item_id: str | None = None
    tested_model: str | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class FinishedRow:
    """A row that has a record and was therefore not parsed.

    Attributes:
        line: Its 1-based line.
        offset: Bytes of the input read so far.
        known: Its entry in the ledger.
    """

    line: int
    offset: int
    known: KnownRow


FinishedRows = Callable[[bytes], KnownRow | None]
"""Tells by the SHA-256 of a row as it came if its record is there; see ``RecordLog``."""


class RawRow(NamedTuple):
    """A row as read.

    Attributes:
        line: Its 1-based line.
        values: Its fields, those of its case included.
        digest: SHA-256 of the row as it came, and of its case, when joined.
        offset: Bytes of the input read so far.
        row: SHA-256 of the row alone.
        case: Index of its case in the file of cases; None when it was not joined.
    """

    line: int
    values: Mapping[str, Any]
    digest: bytes
    offset: int
    row: bytes
    case: int | None = None


class HasCase(Protocol):
    """Anything that belongs to a case."""

    @property
    def case_id(self) -> str:
        """The case."""
        ...


I = TypeVar("I", bound=HasCase)  # noqa: E741 - an item
R = TypeVar("R")


@dataclass(slots=True)
class RowSource:
    """Rows of a run, read one at a time; memory stays at one row.

    Attributes:
        rows: A JSONL file, or rows already in memory.
        cases: A JSONL file with the cases, joined on ``id``.
        only: Numbers of the lines to read, in the order in which to read them; None reads all,
            in the order of the file.
        shard: The part of the rows to read; None reads all.
        reading: Reading of rows and cases that are not in our own format.
        digest: SHA-256 of the rows read so far.
        gaps: Empty and unread fields of the rows read so far.
        rows_name: Name of the rows in the manifest.
    """

    rows: Path | Sequence[Mapping[str, Any]] | Iterable[Mapping[str, Any]]
    cases: Path | None = None
    only: Sequence[int] | None = None
    shard: Shard | None = None
    reading: RowReading = field(default_factory=RowReading)
    digest: Any = field(default_factory=hashlib.sha256)
    gaps: Gaps = field(default_factory=Gaps, init=False)
    rows_name: ClassVar[str] = "rows"

    def __iter__(self) -> Iterator[Any]:
        """Yields an entry for every row that is not blank."""
        raise NotImplementedError

    def entries(self, finished: FinishedRows) -> Iterator[Any]:
        """Yields the same, but finished rows unparsed, if the source can identify them."""
        return iter(self)

    @property
    def name(self) -> str:
        """Name of the input, for messages."""
        return (
            path_text(self.reading.origin_of(self.rows)) if isinstance(self.rows, Path) else "row"
        )

    @property
    def input(self) -> str:
        """The file of rows for the run's manifest; ``row`` for rows in memory."""
        rows = self.rows
        return path_text(self.reading.copied(rows, "rows")) if isinstance(rows, Path) else "row"

    def folder_of(self, rows: object) -> Path:
        """The folder of a file as it was named; the working directory for rows in memory."""
        return self.reading.origin_of(rows).parent if isinstance(rows, Path) else Path()

    @property
    def files(self) -> dict[str, Path | None]:
        """The input files by their names in the manifest; None for rows in memory."""
        rows = self.rows if isinstance(self.rows, Path) else None

        def named(path: Path) -> Path:
            origin = self.reading.origin_of(path)
            return origin if origin.is_file() else path

        return {self.rows_name: rows and named(rows), "cases": self.cases and named(self.cases)}

    @property
    def piece(self) -> Piece | None:
        """The lines of the file that are read; None for all."""
        return None if self.shard is None else self.shard.piece

    @property
    def input_sha256(self) -> str:
        """SHA-256 of the rows, all parts of them: of a piece as its index states it."""
        pieces = None if self.shard is None else self.shard.pieces
        return self.digest.hexdigest() if pieces is None else pieces.sha256

    @property
    def size(self) -> int:
        """Bytes of the file of rows, or of the piece; 0 when they are in memory."""
        if self.piece is not None:
            return self.piece.end - self.piece.start
        return file_size(self.rows) if isinstance(self.rows, Path) else 0

    def check(self) -> None:
        """Raises InputError if the file of rows can't be opened or is not the index's."""
        if not isinstance(self.rows, Path):
            if self.piece is not None:
                raise OptionError("--shard: expected I/N for rows in memory, got part of a file")
            return
        try:
            self.rows.open("rb").close()
        except OSError as error:
            raise InputError(f"{self.rows}: can't be read: {error.strerror}") from None
        pieces = None if self.shard is None else self.shard.pieces
        if pieces is not None and file_size(self.rows) != pieces.bytes:
            got = f"one of {file_size(self.rows)}"
            raise InputError(
                f"{path_text(self.rows)}: expected the file that the index divides, "
                f"{pieces.file} of {pieces.bytes} bytes, got {got}"
            )

    def row_keys(self) -> Iterator[tuple[str, str]]:
        """Yields id and tested model of every row that has both."""
        for row in self.raw_rows():
            item_id = known(row, "id", "item_id", "case_id")
            tested_model = known(row, "tested_model")
            if item_id is not None and tested_model is not None:
                yield item_id, tested_model

    def keep_rows(self) -> None:
        """Makes sure that the rows can be read more than once."""
        if not isinstance(self.rows, Path | list | tuple):
            self.rows = list(self.rows)

    def raw_rows(self) -> Iterator[Mapping[str, Any]]:
        """Yields every row that is an object, unread; they can be read again for the run."""
        self.keep_rows()
        if isinstance(self.rows, Path):
            lines = read_lines(self.rows, span=self.piece and self.piece.span)
            rows: Iterator[object] = (line.values for line in lines)
        else:
            rows = iter(self.rows)
        for values in rows:
            if isinstance(values, Mapping):
                yield cast("Mapping[str, Any]", values)

    def read_each(
        self,
        read: Callable[[RawRow], I],
        make: Callable[[I, RawRow], R],
        *,
        cases: Cases | None = None,
        skip: Callable[[Mapping[str, Any], int | None], bool] = lambda values, case: False,
        finished: Callable[[Line, bytes], R | None] = lambda line, row: None,
    ) -> Iterator[R | BadRow]:
        """Yields what is made of every row that is not blank, and of a row that can't be used why.

        Args:
            read: Gives the item of a row.
            make: Returns the value to yield.
            cases: The file of cases, if it has been read already.
            skip: Takes note of a row of another shard, by its own fields and the index of its
                case; returns whether it need not be read.
            finished: Gives what is yielded of a line, not parsed yet, and its SHA-256 where it need
                not be read.

        Raises:
            InputError: If a file can't be read or holds no row at all.
        """
        if self.only is None:
            self.digest = hashlib.sha256()  # of this reading, not of all there were
        if cases is None and self.cases:
            cases = Cases(self.cases, origin=self.reading.origin_of(self.cases))
        empty = True
        for line in self.lines():
            empty = False
            own = hashlib.sha256(line.raw)
            entry = finished(line, own.digest()) if line.parsed is None else None
            if entry is None:
                entry = self._entry(line, own, cases, read=read, make=make, skip=skip)
            if entry is not None:
                yield entry
        if empty:
            raise InputError(f"{self.name}: the file holds no rows")

    def _entry(
        self,
        line: Line,
        own: Any,
        cases: Cases | None,
        *,
        read: Callable[[RawRow], I],
        make: Callable[[I, RawRow], R],
        skip: Callable[[Mapping[str, Any], int | None], bool],
    ) -> R | BadRow | None:
        end = self.bytes_to(line)
        shard, values = None if self.piece else self.shard, line.exact
        is_held = None if shard is not None else True  # None while it is not known
        digest = own.copy()
        try:
            if isinstance(values, RowError):
                raise values  # noqa: TRY301 - it is reported as those below are
            at = cases.index(values) if cases else None
            if shard is not None:
                is_held = holds(shard, values, cases, at)
                if is_held is False and skip(values, at):
                    return None
            joined = cases.join_at(at, values, digest) if cases and at is not None else values
            row = RawRow(line.number, joined, digest.digest(), end, own.digest(), at)
            item = read(row)
            if shard is not None and is_held is None:
                is_held = shard.holds(item.case_id)
            return make(item, row) if is_held else None
        except Exception as error:  # noqa: BLE001 - one odd row must not cost the others
            bad = row_error_of(error)
        if shard is not None and is_held is None:
            is_held = shard.holds(f"line {line.number}")
        if not is_held:
            return None
        fields: Mapping[str, Any] = {} if isinstance(values, RowError) else values
        item_id, tested_model = known(fields, "id", "item_id"), known(fields, "tested_model")
        return BadRow(line.number, bad, digest.digest(), end, item_id, tested_model)

    def bytes_to(self, line: Line) -> int:
        """Bytes of the input, or of the piece, read with a line."""
        return line.offset + len(line.raw) - (self.piece.start if self.piece else 0)

    def lines(self) -> Iterator[Line]:
        """Yields the lines that are read; raises InputError if they are not those of the index."""
        if self.only is not None:
            yield from self._chosen(self.only)
        elif isinstance(self.rows, Path):
            piece = self.piece
            yield from read_lines(self.rows, digest=self.digest, span=piece and piece.span)
            if piece is not None and self.digest.hexdigest() != piece.sha256:
                raise InputError(f"{self.name}: the lines of part {self.shard} have changed")
        else:
            for number, values in enumerate(self.rows, start=1):
                raw, row = _dumped(values)
                self.digest.update(raw)
                yield Line(number, 0, raw, row)

    def _chosen(self, numbers: Sequence[int]) -> Iterator[Line]:
        """Some lines, in the order asked for: places are looked up once, then each is read."""
        wanted = set(numbers)
        if not isinstance(self.rows, Path):
            rows = {n: v for n, v in enumerate(self.rows, start=1) if n in wanted}
            for number in numbers:
                raw, row = _dumped(rows[number])
                yield Line(number, 0, raw, row)
            return
        offsets = {ln.number: ln.offset for ln in read_lines(self.rows) if ln.number in wanted}
        for number in numbers:
            raw = read_line_at(self.rows, offsets[number])
            yield Line(number, 0, raw, parse_object(raw))


def holds(
    shard: Shard,
    values: Mapping[str, Any],
    cases: Cases | None = None,
    case: int | None = None,
) -> bool | None:
    """True if a row is in a part, by the case that it names; None if only its item can tell."""
    if values.get("case_id") in (None, "") and cases is not None and case is not None:
        return bool(cases.in_shard[case])
    names = ("id", "item_id") if values.get("case_id") in (None, "") else ("case_id",)
    name = known(values, *names)
    return None if name is None else shard.holds(name)


def row_error_of(error: Exception) -> RowError:
    """The fault of a row, from an exception that was raised while it was read.

    Raises:
        PluginError, ModuleNotFoundError: Again, since no row is to blame for it.
    """
    if isinstance(error, PluginError | ModuleNotFoundError):
        raise error
    if isinstance(error, RowError):
        return error
    if isinstance(error, ValidationError):
        return row_error(error)
    if isinstance(error, RecursionError):
        return RowError("line", "JSON nested at most 250 levels deep", "deeper nesting")
    return InternalError(error)


def _dumped(values: object) -> tuple[bytes, dict[str, Any] | RowError]:
    """A row in memory as the line it would be."""
    try:
        raw = orjson.dumps(values)
    except orjson.JSONEncodeError as error:
        fault = lost_number(values)  # a long one of which Python would not write out
        raw = str(fault or repr(values)).encode(errors="backslashreplace")
        return raw, fault or RowError("row", "JSON values", str(error))
    if not isinstance(values, dict):
        return raw, RowError("row", "a dict", values)
    row = cast("dict[str, Any]", values)
    if b"null" in raw:  # as NaN is written too; alone in a field it is named where that is read
        nested = {name: value for name, value in row.items() if not isinstance(value, float)}
        return raw, lost_number(nested) or row
    return raw, row


class Cases:
    """A file of cases, indexed by id: 64-bit keys and offsets, never the cases themselves.

    Args:
        path: The file.
        shard: The part of the rows that is read; cases of all parts are available.
        origin: The file as named, if it is made from another.

    Attributes:
        path: The file as it was named.
        in_shard: For each case 1 if it is in the shard, else 0.

    Raises:
        InputError: If it can't be read or one of its rows is unusable.
    """

    def __init__(
        self, path: Path, shard: Shard | None = None, *, origin: Path | None = None
    ) -> None:
        self._file, self.path = path, origin or path
        self.in_shard = bytearray()
        self._indices: dict[int, int] = {}
        self._offsets, self._lines = array("Q"), array("Q")
        self._last: tuple[int, dict[str, Any], bytes] | None = None
        place = self.path
        for line in read_lines(path):
            if isinstance(values := line.exact, RowError):
                raise InputError(f"{place}:{line.number}: {values}")
            case_id = known(values, "id", "case_id")
            if case_id is None:
                expected = "a non-empty string of printable characters"
                error = RowError("id", expected, values.get("id"))
                raise InputError(f"{place}:{line.number}: {error}")
            key = short_key(case_id)
            if key in self._indices:
                raise InputError(f"{place}:{line.number}: field id: {case_id} occurs twice")
            self._indices[key] = len(self._offsets)
            self._offsets.append(line.offset)
            self._lines.append(line.number)
            cluster = known(values, "case_id") or case_id
            self.in_shard.append(shard is None or shard.holds(cluster))

    def __len__(self) -> int:
        return len(self._offsets)

    def line(self, index: int) -> int:
        """The 1-based line of a case."""
        return self._lines[index]

    def read(self, index: int) -> tuple[dict[str, Any], bytes]:
        """A case's fields and its line; raises RowError if it is no longer a JSON object."""
        if self._last is None or self._last[0] != index:
            raw = read_line_at(self._file, self._offsets[index])
            self._last = (index, object_of(raw), raw)
        return self._last[1:]

    def index(self, values: Mapping[str, Any]) -> int:
        """The case of a prediction.

        It is the one that ``case_id`` names, or else ``id``. A ``case_id`` may be the one that
        several cases share: then the case is the one of them that ``id`` names, perhaps with the
        number of a sample behind it (``CASE#2``).

        Raises:
            RowError: If there is no such case.
        """
        case_id, own_id = known(values, "case_id"), known(values, "id")
        if case_id is not None and own_id is not None:
            for name in dict.fromkeys((own_id, without_sample(own_id))):
                index = self._indices.get(short_key(name)) if name != case_id else None
                if index is not None and known(self.read(index)[0], "case_id") == case_id:
                    return index
        name = case_id or own_id
        index = self._indices.get(short_key(name)) if name else None
        if index is None:
            raise RowError("id", f"the id of a case in {self.path}", name)
        return index

    def join(self, values: Mapping[str, Any], digest: Any) -> dict[str, Any]:
        """The case's fields with the prediction's laid over them.

        Args:
            values: The prediction's row.
            digest: A running hash, updated with the case.

        Raises:
            RowError: If there is no such case.
        """
        return self.join_at(self.index(values), values, digest)

    def join_at(self, index: int, values: Mapping[str, Any], digest: Any) -> dict[str, Any]:
        """As ``join``, for a known case."""
        case, raw = self.read(index)
        digest.update(raw)
        own = {k: v for k, v in values.items() if v is not None}
        return {k: v for k, v in case.items() if k not in _MODEL_FIELDS} | own
