"""Rows of a CSV, Parquet or Arrow file, read so that a broken one affects no other."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from ..errors import InputError, RowError, needs, shorten, visible
from ..jsonl import open_buffered, other_encoding
from .json_stream import read_whole
from .loose_json import as_list, as_object

TABLE_SUFFIXES = (".csv", ".tsv")
"""Suffixes of files that are read as tables, whatever their content."""

DELIMITERS = (",", ";", "\t")
MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_LINES = 10_000
"""Limit of lines in a quoted cell; beyond it, its quote counts as never closed."""

_BATCH = 1024
"""Rows of a Parquet file that are in memory at once."""

_BOM = b"\xef\xbb\xbf"

Header = Mapping[str, int]


def read_table(
    path: Path, columns: Iterable[str], *, needed: str
) -> Iterator[tuple[int, dict[str, str] | RowError]]:
    """Yields the rows of a CSV file (RFC 4180) with a header line.

    Texts that ``text_cell`` escaped come back as they were. The file is UTF-8, with or without a
    byte order mark; the header decides between commas, semicolons and tabs. Letter case in names of
    columns and spaces around names and cells do not count. Lines without content are skipped.

    Args:
        path: The file.
        columns: Names of the columns that are read.
        needed: The column that must be there.

    Yields:
        Number of the row's first line, 1-based, and its nonempty cells by the name of the column;
        or the error of the row.

    Raises:
        InputError: If the file can't be read or has no usable header.
    """
    reader = _TableReader(_lines(path))
    delimiter, width, header = _header(path, reader, columns, needed)
    reader.header(delimiter)
    for number, cells in _records(reader, delimiter, width):
        yield number, cells if isinstance(cells, RowError) else _values(cells, header)


def read_cells(path: Path) -> Iterator[tuple[int, dict[str, str] | RowError]]:
    """Yields the rows of a CSV file with all of its columns, each cell unchanged.

    Columns without a name are called by their number. Otherwise as ``read_table``.

    Raises:
        InputError: If the file can't be read, or its first line is not a header or has a name
            twice.
    """
    reader = _TableReader(_lines(path))
    delimiter, header = _widest_header(path, reader)
    reader.header(delimiter)
    names = [name or f"column {number}" for number, name in enumerate(header, start=1)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        got = f"{names.count(twice)} of {visible(twice)}"
        raise InputError(f"{path}: field line: expected every column once, got {got}")
    for number, cells in _records(reader, delimiter, len(names)):
        is_row = not isinstance(cells, RowError)
        yield number, dict(zip(names, cells, strict=True)) if is_row else cells


def column_names(path: Path) -> list[str]:
    """Names of the columns of a CSV file, split at the delimiter that gives the most.

    Raises:
        InputError: If the file can't be read or its first line is not a header.
    """
    return [name for name in _widest_header(path, _TableReader(_lines(path)))[1] if name]


def _widest_header(path: Path, reader: _TableReader) -> tuple[str, list[str]]:
    """The delimiter that gives most columns, and their names; the header has to be read again."""
    return _widest(path, list(_headers(path, reader, "a header")))


def _records(
    reader: _TableReader, delimiter: str, width: int
) -> Iterator[tuple[int, list[str] | RowError]]:
    """The records that are not blank, or their errors, each with its first line."""
    while (record := reader.record(delimiter)) is not None:
        if isinstance(record.cells, RowError):
            yield record.number, record.cells
        elif not any(cell.strip() for cell in record.cells):
            continue
        elif len(record.cells) == width:
            yield record.number, record.cells
        else:
            reader.read_anew()
            got = f"{len(record.cells)} cells"
            yield record.number, RowError("line", f"{width} cells, as the header has", got)


def _values(cells: Sequence[str], header: Header) -> dict[str, str]:
    row = {name: _unescaped(cells[at]).strip() for name, at in header.items()}
    return {name: cell for name, cell in row.items() if cell}


# Formulas ----------------------------------------------------------------------------------------

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?|-", re.ASCII)


def text_cell(value: Any) -> Any:
    """A cell of a CSV file that a spreadsheet does not take for a formula.

    Text from data that begins like one (``=``, ``+``, ``-``, ``@``, tab, carriage return) gets an
    apostrophe in front; ``read_table`` takes it away again. Numbers, also as text, and a lone dash
    stay as they are.
    """
    is_formula = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if is_formula else value


def printed_cell(value: Any) -> Any:
    """A cell as ``text_cell`` makes it, in which what can't be printed is escaped.

    A carriage return in a name would begin a row of its own.
    """
    return text_cell(visible(value) if isinstance(value, str) else value)


def _unescaped(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


# The header --------------------------------------------------------------------------------------


def _header(
    path: Path, reader: _TableReader, columns: Iterable[str], needed: str
) -> tuple[str, int, Header]:
    """Delimiter, number of columns, and places of the columns that are read.

    The header has to be read again.
    """
    known = {name.lower(): name for name in columns}
    tried = list(_headers(path, reader, f"a header with {needed}"))
    for delimiter, record in tried:
        if isinstance(record.cells, RowError):
            continue
        names = [known.get(cell.strip().lower(), "") for cell in record.cells]
        if needed not in names:
            continue
        if twice := next((name for name in names if name and names.count(name) > 1), None):
            where, got = f"{path}:{record.number}", f"{names.count(twice)} of {twice}"
            raise InputError(f"{where}: field line: expected every column once, got {got}")
        return delimiter, len(names), {name: names.index(name) for name in names if name}
    listed = shorten(", ".join(_widest(path, tried)[1]))
    raise InputError(f"{path}: expected a column {needed} in the header, got {listed}")


def _headers(path: Path, reader: _TableReader, expected: str) -> Iterator[tuple[str, _Record]]:
    """The header as each of the delimiters splits it; the reader stays at its beginning."""
    for delimiter in DELIMITERS:
        record = reader.header(delimiter)
        if record is None:
            raise InputError(f"{path}: expected {expected}, got an empty file")
        reader.rewind()
        yield delimiter, record


def _widest(path: Path, tried: Sequence[tuple[str, _Record]]) -> tuple[str, list[str]]:
    """The delimiter that gives the most columns, and their names."""
    widest: tuple[str, list[str]] = DELIMITERS[0], []
    fault: InputError | None = None
    for delimiter, record in tried:
        if isinstance(record.cells, RowError):
            fault = InputError(f"{path}:{record.number}: {record.cells}")
        else:
            cells = [cell.strip() for cell in record.cells]
            widest = max(widest, (delimiter, cells), key=lambda each: len(each[1]))
    if fault is not None and len(widest[1]) < 2:
        raise fault
    return widest


# Lines and records -------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A line with its end; ``fault`` says why its text can't be used."""

    number: int
    text: str
    fault: RowError | None = None


class _Record(NamedTuple):
    number: int
    cells: list[str] | RowError


def _lines(path: Path) -> Iterator[_Line]:
    try:
        with open_buffered(path) as file:
            if format_ := other_encoding(file.peek()):
                raise InputError(f"{path}: expected a table in UTF-8, got {format_}")
            number = 0
            while raw := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                too_long = len(raw) > MAX_LINE_BYTES and not _skip_rest(raw, file)
                yield _line(number, raw.removeprefix(_BOM) if number == 1 else raw, too_long)
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


def _skip_rest(raw: bytes, file: IO[bytes]) -> bool:
    """True if a line of the greatest length is complete; if not, skips the rest."""
    complete = raw.endswith(b"\n")
    while not raw.endswith(b"\n") and (raw := file.readline(1 << 20)):
        pass
    return complete


def _line(number: int, raw: bytes, too_long: bool) -> _Line:  # noqa: FBT001
    if too_long:
        limit = f"at most {MAX_LINE_BYTES // 2**20} MiB"
        return _Line(number, "", RowError("line", limit, "a longer line"))
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        got = f"invalid UTF-8 at byte {error.start}"
        return _Line(number, "", RowError("line", "UTF-8 text", got))
    if "\0" in text:
        return _Line(number, "", RowError("line", "text without NUL bytes", "a NUL byte"))
    return _Line(number, text)


class _TableReader:
    """Splits lines into records.

    A broken record costs only its first line: the end of its quote is unknown, so the lines after
    it are read again.
    """

    def __init__(self, lines: Iterator[_Line]) -> None:
        self._lines = lines
        self._pending: deque[_Line] = deque()
        self._taken: list[_Line] = []

    def header(self, delimiter: str) -> _Record | None:
        """The first record that is not blank; None at the end."""
        while (record := self.record(delimiter)) is not None:
            if isinstance(record.cells, RowError) or any(c.strip() for c in record.cells):
                return record
        return None

    def record(self, delimiter: str) -> _Record | None:
        """The next record, no cells for a blank line; None at the end."""
        first = self._next()
        if first is None:
            return None
        self._taken = [first]
        if first.fault:
            return _Record(first.number, first.fault)
        rows = csv.reader(self._feed(), delimiter=delimiter, strict=True)
        limit = csv.field_size_limit(MAX_LINE_BYTES)
        try:
            return _Record(first.number, next(rows))
        except csv.Error as error:
            runs_on = len(self._taken) > 1
            self.read_anew()
            return _Record(first.number, _complaint(error, first.text, runs_on=runs_on))
        finally:
            csv.field_size_limit(limit)

    def read_anew(self) -> None:
        """Takes back all lines of the last record but its first."""
        self._put_back(self._taken[1:])
        self._taken = self._taken[:1]

    def rewind(self) -> None:
        """Takes back the last record whole."""
        self._put_back(self._taken)
        self._taken = []

    def _next(self) -> _Line | None:
        return self._pending.popleft() if self._pending else next(self._lines, None)

    def _put_back(self, lines: Sequence[_Line]) -> None:
        self._pending.extendleft(reversed(lines))

    def _feed(self) -> Iterator[str]:
        """The lines of one record, as far as csv asks for them."""
        yield self._taken[0].text
        while len(self._taken) < MAX_LINES and (line := self._next()) is not None:
            if line.fault:
                self._put_back([line])
                return
            self._taken.append(line)
            yield line.text


def _complaint(error: csv.Error, text: str, *, runs_on: bool) -> RowError:
    reason = str(error)
    if "field limit" in reason:
        return RowError("line", f"cells of at most {MAX_LINE_BYTES} characters", text)
    if runs_on or "unexpected end" in reason:
        return RowError("line", "a closing quote for every opening one", text)
    if "new-line" in reason:
        return RowError("line", "lines that end with LF or CRLF", text)
    return RowError("line", f"a row of CSV ({reason})", text)


# Parquet and Arrow -------------------------------------------------------------------------------


def read_arrow(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the rows of a Parquet or Arrow file with their numbers from 1.

    Fields that are null within an object are left out: a column of objects has the fields of all.

    Raises:
        InputError: If it can't be read, or pyarrow is not installed.
    """
    try:
        pyarrow: Any = import_module("pyarrow")
    except ImportError:
        raise InputError(needs(f"{path}: reading Parquet or Arrow", "pyarrow")) from None
    number = 0
    try:
        for batch in _batches(path, pyarrow):
            for number, row in enumerate(batch.to_pylist(), start=number + 1):  # noqa: B020
                yield number, {name: _without_nulls(value) for name, value in row.items()}
    except (OSError, ValueError) as error:  # pyarrow's errors derive from these
        raise InputError(f"{path}: can't be read: {shorten(str(error), 200)[1:-1]}") from None


def _batches(path: Path, pyarrow: Any) -> Iterator[Any]:
    with path.open("rb") as file:
        magic = file.read(6)
        if magic.startswith(b"PAR1"):
            parquet = import_module("pyarrow.parquet")
            yield from parquet.ParquetFile(path).iter_batches(_BATCH)
        elif magic == b"ARROW1":
            reader = pyarrow.ipc.open_file(path)
            yield from map(reader.get_batch, range(reader.num_record_batches))
        else:
            file.seek(0)
            yield from pyarrow.ipc.open_stream(file)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value).items()
        return {name: _without_nulls(each) for name, each in inner if each is not None}
    return list(map(_without_nulls, cast("list[Any]", value))) if isinstance(value, list) else value


def read_by_column(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the rows of a table in JSON, with their numbers from 1, as pandas writes it.

    It is an object of columns, each with a value by index, or of ``columns`` and ``data``.

    Raises:
        InputError: If it can't be read or is neither.
    """
    value = read_whole(path).value
    table = as_object(value) or {}
    names, data = as_list(table.get("columns")), as_list(table.get("data"))
    columns = {name: of for name, each in table.items() if (of := as_object(each)) is not None}
    if names is not None and data is not None:
        rows = [dict(zip(map(str, names), as_list(row) or (), strict=False)) for row in data]
    elif len(columns) == len(table) > 0:
        keys = dict.fromkeys(key for of in columns.values() for key in of)
        rows = [{name: of.get(key) for name, of in columns.items()} for key in keys]
    else:
        got = f"{value.got}" if isinstance(value, RowError) else shorten(value)
        raise InputError(f"{path}: expected a table by columns, got {got}")
    yield from enumerate(rows, start=1)
