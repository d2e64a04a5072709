"""Rows in memory, as lists of dicts or frames, in place of files of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

Rows = Sequence[Mapping[str, Any]]


def rows_in(value: Any) -> Rows | None:
    """The rows that a value holds: a list of dicts, or a pandas or polars frame; else None.

    A cell of a frame that is missing (None, NaN, NaT) is left out of its row.
    """
    if hasattr(value, "columns") and hasattr(value, "to_dict"):
        frame: Any = value.to_pandas() if hasattr(value, "to_pandas") else value
        is_there: Iterable[Iterable[bool]] = frame.notna().to_numpy()
        records: list[dict[str, Any]] = frame.to_dict(orient="records")
        return [
            {
                str(name): cell
                for (name, cell), there in zip(row.items(), known, strict=True)
                if there
            }
            for row, known in zip(records, is_there, strict=True)
        ]
    if isinstance(value, list | tuple) and value:
        several = cast("Sequence[Any]", value)
        return several if all(isinstance(each, Mapping) for each in several) else None
    return None


def path_of(value: str | PathLike[str] | Rows, name: str) -> Path:
    """The path itself, or the path of a file that holds the rows; see ``file_of``."""
    return Path(value) if isinstance(value, str | PathLike) else file_of(value, name)


def file_of(rows: Rows, name: str) -> Path:
    """A JSONL file of rows, named after a setting and its content; deleted at exit."""
    import orjson

    option = orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    data = b"".join(orjson.dumps(dict(row), default=str, option=option) for row in rows)
    path = Path(_folder().name, f"{name}-{sha256(data).hexdigest()[:12]}.jsonl")
    path.write_bytes(data)
    return path


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="apbjudge-rows-")
