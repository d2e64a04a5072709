"""Users' own rows, in any kind of file, as JSON lines with our names for their fields.

Rows that already have this form are read from their file without a copy. All others are written
once to a file with the line numbers of the original, so that code that reads rows, their lines and
offsets handles one format only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Any, Literal, NamedTuple, cast

import orjson

from ..errors import InputError, OptionError, RowError
from ..jsonl import (
    ARRAY,
    MAX_LINE_BYTES,
    SPREAD,
    TABLE,
    Line,
    line_of,
    open_buffered,
    other_format,
    parse_object,
    read_lines,
    replacing,
)
from ..remote import here, is_fetched
from .files import STDIN, TemporaryFile, name_of, unpacked
from .json_stream import Element, array_members, read_array, read_member, read_objects
from .loose_json import as_object
from .own_columns import OF_PREDICTIONS, ColumnMatch, match_columns, value_at
from .tables import TABLE_SUFFIXES, column_names, read_arrow, read_by_column, read_cells, read_table

LOOKED_AT = 256
"""Number of rows by which columns are recognised."""
_MEMBERS = frozenset("testCases test_cases rows data examples samples instances results".split())
"""Members of an object that may hold the rows of a file."""
_ARROW = (".parquet", ".arrow", ".feather")

_BY_COLUMN = re.compile(rb'\s*\{\s*("columns"\s*:\s*\[|"[^"]+"\s*:\s*\{\s*"0"\s*:)')
"""The beginning of a table as pandas writes it without ``orient="records"``."""

Kind = Literal["lines", "array", "objects", "member", "by column", "cells", "arrow", "dataset"]
TABLES: tuple[Kind, ...] = ("cells", "arrow", "by column")
"""Kinds of files that are tables."""
NumberedRow = tuple[int, dict[str, Any] | RowError]


@dataclass(frozen=True, slots=True)
class RowReading:
    """The way to read rows that are not in our own format; empty for those that are.

    Attributes:
        origins: The files that the user named, by the files that are read in their place.
        columns: Columns by field.
        text: The same as a line for the user.
        out: Folder of the run that the rows belong to; None for a run in memory.
        lasting: One of the files that are read, if it outlives this program.
    """

    origins: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    text: str = ""
    out: Path | None = None
    lasting: Path | None = None

    def origin_of(self, path: Path) -> Path:
        """The file that the user named, for a file that is read in its place."""
        return self.origins.get(path, path)

    def copied(self, path: Path, name: str) -> Path:
        """The path of a file that is read, at a place that outlives this program.

        A temporary file is copied next to the folder of the run, if it has one.
        """
        if path not in self.origins or path == self.lasting or self.out is None:
            return path
        place = self.out.with_name(f"{self.out.name}.{name}.jsonl")
        copy_file(path, place)
        return place

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that must be equal for two sessions to be the same run."""
        return {"columns": dict(self.columns)} if self.columns else {}

    def of_run(self, out: Path | None, cases: RowReading | None = None) -> RowReading:
        """The reading of a run's rows together with that of their cases."""
        cases = cases or RowReading()
        of_cases = {f"cases.{name}": column for name, column in cases.columns.items()}
        text = "; ".join(filter(None, (self.text, cases.text and f"cases {cases.text}")))
        return RowReading(
            {**self.origins, **cases.origins},
            {**self.columns, **of_cases},
            text,
            out,
            self.lasting,
        )


def copy_file(path: Path, to: Path) -> None:
    """Copies a file in one step: another process sees the old content there or the new."""
    with path.open("rb") as file, replacing(to) as copy:
        copyfileobj(file, copy)


class OwnRows(NamedTuple):
    """Rows in our own format, in a file of JSON lines or in memory, with their reading."""

    rows: Path | Iterable[Mapping[str, Any]]
    reading: RowReading = RowReading()


def own_rows(
    rows: str | Path | Iterable[Mapping[str, Any]],
    columns: Mapping[str, str] | None = None,
    wanted: Set[str] = OF_PREDICTIONS,
    *,
    split: str = "",
    tested_model: str = "",
    known: RowReading | None = None,
) -> OwnRows:
    """Rows of any kind in our own format.

    Args:
        rows: A file: CSV, TSV, JSON (lines, an array, objects over several lines), Parquet, Arrow,
            also packed or as a stream; the folder of a data set; or rows in memory.
        columns: Columns by field, as the user named them; see ``match_columns``.
        wanted: The fields to match.
        split: Split of the data set.
        tested_model: Tested model of rows that name none, in place of the file's name.
        known: The reading of a file that is known to be JSON lines with our own names, and need
            not be inspected.

    Raises:
        InputError: If the file or its columns can't be read.
        OptionError: If the data set has several splits and none was chosen, or lacks the chosen
            one.
    """
    columns = columns or {}
    if not isinstance(rows, str | Path):
        return _in_memory(rows, columns, wanted, tested_model)
    path = here(rows)
    if known is not None and known.lasting is not None:
        origin = known.origin_of(known.lasting)
        return OwnRows(path, replace(known, origins={path: origin}, lasting=path))
    as_it_is = OwnRows(path, RowReading({path: path} if is_fetched(path) else {}))
    is_there = path == STDIN or path.exists()
    if not is_there or ((known is not None or path.is_fifo()) and not columns):
        return as_it_is  # its reader complains; rows of a pipe are read as they come
    kind = kind_of(path, split)
    sample = _sample(rows_in(path, kind, split), columns)
    match = _checked(str(path), sample, columns, wanted)
    lacks_model = bool(tested_model) and not all(row.get("tested_model") for row in sample)
    if kind == "lines" and match.is_own and unpacked(path) == path and not lacks_model:
        return as_it_is
    stem = name_of(Path(path.stem))
    key = (tuple(sorted(match.fields.items())), match.missing, tested_model)
    copy = _copy(path, _stamp(path), kind, split, key).path
    if not copy.exists():
        with replacing(copy) as file:
            _write(_renamed(rows_in(path, kind, split), match, stem, tested_model), file)
    number = "line number" if kind in ("lines", "cells") else "row number"
    return OwnRows(copy, _reading(match, number, tested_model or stem, {copy: path}))


def _in_memory(
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str, str],
    wanted: Set[str],
    tested_model: str,
) -> OwnRows:
    all_rows: Iterable[Any] = rows
    if not isinstance(rows, Sequence):
        source = iter(rows)
        rows = list(islice(source, LOOKED_AT))
        all_rows = chain(rows, source)
    match = _checked("row", _sample(enumerate(rows, 1), columns), columns, wanted)
    if match.is_own and not tested_model:
        return OwnRows(all_rows)
    renamed = (row for _, row in _renamed(enumerate(all_rows, 1), match, "rows", tested_model))
    reading = _reading(match, "row number", tested_model or "rows", {})
    return OwnRows(list(renamed) if all_rows is rows else renamed, reading)


def _reading(
    match: ColumnMatch, number: str, tested_model: str, origins: Mapping[Path, Path]
) -> RowReading:
    if match.is_own:
        return RowReading(origins)
    text = match.describe(id=number, tested_model=tested_model)
    return RowReading(origins, match.fields, text)


def _renamed(
    rows: Iterable[tuple[int, Any]], match: ColumnMatch, stem: str, tested_model: str
) -> Iterator[tuple[int, Any]]:
    """The rows with our names, and with an id and a tested model if they lack one."""
    model = {"tested_model": tested_model or stem}
    fills = model if tested_model or "tested_model" in match.missing else {}
    for number, row in rows:
        own_id = {"id": f"{stem}-{number}"} if "id" in match.missing else {}
        is_row = isinstance(row, dict)
        yield number, {**own_id, **fills, **match.rename(cast("Any", row))} if is_row else row


def _sample(rows: Iterable[tuple[int, Any]], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """The first rows, and later ones with named columns that the first rows lack."""
    read = (cast("dict[str, Any]", row) for _, row in rows if isinstance(row, dict))
    head = list(islice(read, LOOKED_AT))
    lacking = [c for c in columns.values() if c and all(value_at(r, c) is None for r in head)]
    more = (row for row in read if any(value_at(row, column) is not None for column in lacking))
    return [*head, *(islice(more, len(lacking)) if lacking else ())]


def _checked(
    name: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], wanted: Set[str]
) -> ColumnMatch:
    match = match_columns(rows, columns, wanted)
    if match.complaint:
        raise InputError(f"{name}: {match.complaint}")
    return match


@lru_cache(maxsize=16)
def _copy(*_: Any) -> TemporaryFile:
    return TemporaryFile("rows.jsonl")


def _stamp(path: Path) -> tuple[Any, ...]:
    """A stamp that changes when a file or one in a folder does."""
    if path == STDIN:
        return (sys.stdin,)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return tuple((str(file), (of := file.stat()).st_mtime_ns, of.st_size) for file in files)


def _write(rows: Iterable[NumberedRow], file: IO[bytes]) -> None:
    """Writes each row on the line with its number; the lines between stay blank."""
    at = 1
    for number, row in rows:
        file.write(b"\n" * (number - at) + line_of(row))
        at = number + 1


# Kinds of files ----------------------------------------------------------------------------------


def kind_of(path: Path, split: str = "") -> Kind:
    """The kind of a file, by its content; a data set for a folder that is one.

    Raises:
        InputError: If it can't be read.
        OptionError: If a split is named of a path that is not a data set.
    """
    if is_dataset(path):
        return "dataset"
    if split:
        raise OptionError(f"--split: expected a data set on disk, got {str(path)!r}")
    try:
        plain = unpacked(path)
        with open_buffered(plain) as file:
            head = file.peek()
            may_be_object = head.startswith(b"{") and head.count(b"\n") <= 1
            # a row longer than the head, with more rows after it: avoids scanning the whole file
            first = parse_object(file.readline(MAX_LINE_BYTES)) if may_be_object else {}
            has_rows = isinstance(first, dict) and file.read(1) == b"{"
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    if head.startswith((b"PAR1", b"ARROW1")) or plain.suffix.lower() in _ARROW:
        return "arrow"
    format_ = other_format(head)
    if plain.suffix.lower() in TABLE_SUFFIXES or format_ == TABLE:
        return "cells"
    if format_ == ARRAY:
        return "array"
    otherwise: Kind = "objects" if format_ == SPREAD else "lines"
    is_object = format_ == SPREAD or (may_be_object and not has_rows)
    return (is_object and _kind_of_object(plain, head)) or otherwise


def _kind_of_object(path: Path, head: bytes) -> Kind | None:
    """The kind of a file that is one object, by its beginning; None of a row alone."""
    if _BY_COLUMN.match(head):
        return "by column"
    return "member" if _member_of(path) else None


def rows_in(path: Path, kind: Kind, split: str = "") -> Iterator[NumberedRow]:
    """Yields the rows of a file, or their errors, each with its line or number.

    Raises:
        InputError: If it can't be read.
    """
    if kind == "dataset":
        parts = chain.from_iterable(read_arrow(part) for part in _parts(path, split))
        yield from ((number, row) for number, (_, row) in enumerate(parts, start=1))
        return
    plain = unpacked(path)
    match kind:
        case "lines":
            yield from ((line.number, line.exact) for line in read_lines(plain))
        case "cells":
            yield from read_cells(plain)
        case "arrow":
            yield from read_arrow(plain)
        case "by column":
            yield from read_by_column(plain)
        case "array":
            yield from map(_row_of, read_array(plain))
        case "member":
            yield from map(_row_of, read_member(plain, _member_of(plain)))
        case _:
            yield from map(_row_of, read_objects(plain))


def stated_rows(
    path: Path, columns: Sequence[str] = (), needed: Sequence[str] = ()
) -> Iterator[NumberedRow]:
    """Yields the rows of a file of labels, facts or another tool's judgements, of any kind.

    In a CSV file, letter case and spaces in the names of columns don't count, nor do spaces around
    cells; an empty cell is left out.

    Args:
        path: The file, as ``own_rows`` takes it.
        columns: Columns of a CSV file that are read; empty for all.
        needed: Columns of which a CSV file must have at least one; empty for any.

    Yields:
        As ``rows_in`` does.

    Raises:
        InputError: If the file can't be read.
    """
    kind, plain = kind_of(path), unpacked(path)
    try:
        if kind != "cells":
            yield from rows_in(path, kind)
        else:
            names = [] if columns and len(needed) == 1 else column_names(plain)
            known = {name.lower() for name in names}
            key = next((name for name in needed if name in known), (*needed, *names)[0])
            yield from read_table(plain, columns or names, needed=key)
    except InputError as error:
        raise InputError(str(error).replace(str(plain), str(path))) from None


def _row_of(element: Element) -> NumberedRow:
    value = element.value
    if isinstance(value, RowError):
        return element.number, value
    row = as_object(value)
    if row is None:
        return element.number, RowError("line", "one JSON object", value)
    return element.number, Line(element.number, 0, element.text, row).exact


def _member_of(path: Path) -> str:
    """The member of the file's object that holds the rows; empty without one."""
    return _member(path, _stamp(path))


@lru_cache(maxsize=16)
def _member(path: Path, _: tuple[Any, ...]) -> str:
    """The same, once per stamp of a file: an object without such a member is scanned to its end."""
    return next(array_members(path, _MEMBERS), "")


# Data sets on disk -------------------------------------------------------------------------------


def is_dataset(path: Path) -> bool:
    """True if a folder is a data set: from ``save_to_disk``, or with Parquet files of splits."""
    if path == STDIN or not path.is_dir():
        return False
    return bool(_splits(path))


def _parts(folder: Path, split: str) -> list[Path]:
    splits = _splits(folder)
    if split not in splits and (split or len(splits) > 1):
        names = ", ".join(sorted(splits))
        got = repr(split) if split else "none"
        raise OptionError(f"--split: expected one of {names} in {folder}, got {got}")
    return splits[split or next(iter(splits))]


def _splits(folder: Path) -> dict[str, list[Path]]:
    """The files of each split of a data set; none for another folder."""
    if (folder / "dataset_dict.json").is_file():
        each = {path.name: _arrow_files(path) for path in sorted(folder.iterdir())}
        return {name: files for name, files in each.items() if files}
    if files := _arrow_files(folder):
        return {folder.name: files}
    splits: dict[str, list[Path]] = {}
    for path in sorted([*folder.glob("*.parquet"), *folder.glob("data/*.parquet")]):
        splits.setdefault(path.stem.split("-")[0], []).append(path)
    return splits


def _arrow_files(folder: Path) -> list[Path]:
    """The files that the state of a data set lists."""
    try:
        state = as_object(orjson.loads((folder / "state.json").read_bytes())) or {}
    except (OSError, orjson.JSONDecodeError):
        return []
    names = [as_object(each) or {} for each in cast("list[Any]", state.get("_data_files") or [])]
    return [folder / Path(str(each.get("filename"))).name for each in names]
