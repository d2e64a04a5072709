"""Judgements as Parquet: fixed columns, whatever the rows hold, and each row as it was.

Types that a library infers change with the rows. So the columns are the fields of a judgement that
are a single text, number or truth value; the column ``json`` has the whole row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import orjson

from ..errors import InputError, needs, shorten
from ..jsonl import replacing
from .files import TemporaryFile
from .judgements import COLUMNS

ROWS_OF_GROUP = 50_000
_JSON = "json"
_TYPES = {str: "string", bool: "bool_", int: "int64", float: "float64"}


def scalar_columns() -> dict[str, type]:
    """The fields of a judgement that are text, a number or a truth value, with their types."""
    types = {name: _scalar(column.type) for name, column in COLUMNS.items()}
    return {name: type_ for name, type_ in types.items() if type_ is not None}


def _scalar(type_: Any) -> type | None:
    """The single type of all values except null; None if there are several."""
    origin, parts = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return _scalar(parts[0])
    if origin is Literal:
        return str if all(isinstance(part, str) for part in parts) else None
    if origin in (Union, UnionType):
        several = {_scalar(part) for part in parts if part is not NoneType}
        return several.pop() if len(several) == 1 else None
    return type_ if type_ in _TYPES else None


def write_parquet(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes judgements, as ``judgement_row`` makes them, in groups of ``ROWS_OF_GROUP`` rows.

    Raises:
        InputError: If the file can't be written, or pyarrow is not installed.
    """
    arrow, parquet = _pyarrow(path, "writing")
    columns = scalar_columns()
    schema = arrow.schema(
        [(name, getattr(arrow, _TYPES[type_])()) for name, type_ in columns.items()]
        + [(_JSON, arrow.string())]
    )
    source = iter(rows)
    with replacing(path) as file, parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(source, ROWS_OF_GROUP)):
            values: dict[str, list[Any]] = {
                name: [_as(type_, row.get(name)) for row in group]
                for name, type_ in columns.items()
            }
            values[_JSON] = [orjson.dumps(row).decode() for row in group]
            writer.write_table(arrow.table(values, schema), row_group_size=ROWS_OF_GROUP)


def _as(type_: type, value: Any) -> Any:
    return float(value) if type_ is float and value is not None else value


def json_lines(path: Path) -> Path:
    """The file of judgements itself, or a temporary one with the rows of a Parquet file.

    Raises:
        InputError: If it can't be read, or is not a Parquet file of judgements.
    """
    if path.suffix != ".parquet" or not path.is_file():
        return path
    known = path.stat()
    return _lines(path, known.st_mtime_ns, known.st_size).path


@lru_cache(maxsize=16)
def _lines(path: Path, *_: int) -> TemporaryFile:
    copy = TemporaryFile(f"{path.stem}.jsonl")
    with copy.path.open("wb") as file:
        for text in _json_of(path):
            file.write(text.encode() + b"\n")
    return copy


def _json_of(path: Path) -> Iterator[str]:
    _, parquet = _pyarrow(path, "reading")
    try:
        source = parquet.ParquetFile(path)
        if _JSON not in source.schema_arrow.names:
            expected = "expected Parquet of judgements, as shards merge --as parquet writes it"
            raise InputError(f"{path}: {expected}, got no column {_JSON}")
        for batch in source.iter_batches(columns=[_JSON]):
            yield from batch.column(0).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's errors derive from these
        raise InputError(f"{path}: can't be read: {shorten(str(error), 200)[1:-1]}") from None


def _pyarrow(path: Path, doing: str) -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(needs(f"{path}: {doing} Parquet", "pyarrow")) from None
