"""Divides the rows of a command into parts: the commands of the parts, and those that follow."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson

from ..config import PartCommand
from ..errors import InputError, OptionError, path_text
from ..jsonl import write_atomically
from ..records.own_columns import OF_CASES, OF_PREDICTIONS
from ..records.own_rows import RowReading, copy_file, own_rows
from ..remote import here, is_fetched
from ..runs.resume import read_mark
from ..runs.shards import INDEX, Origin, PieceIndex, pieces_of
from .config import GradeConfig
from .published import is_published
from .source import in_own_format
from .trajectory_source import protocol_of_log

ROWS = "index.rows.jsonl"
"""The copy of rows that can't be cut as they are, next to the index."""


class InParts(NamedTuple):
    """A command that works on parts of its rows.

    Attributes:
        rows: Its option for the rows.
        out: Its option for the folder of a run.
        columns: Columns of rows that can be cut into pieces; None if the case of a row decides.
        is_run: True if the folder of the rows is read too, as that of a run.
        is_argument: True if the rows are an argument of the command.
        asks: An option without which the parts have no run to merge.
        has_last: True if the command itself, of all rows, follows the merge in its folder and
            makes of the replies what no part can.
        of_last: An option that only this last one has.
    """

    rows: str
    out: str = "out"
    columns: frozenset[str] | None = None
    is_run: bool = False
    is_argument: bool = True
    asks: str = ""
    has_last: bool = False
    of_last: str = ""


COMMANDS: Mapping[PartCommand, InParts] = {
    "grade": InParts("rows", columns=OF_PREDICTIONS),
    "predict": InParts("cases", columns=OF_CASES),
    "refine": InParts("drafts", columns=OF_PREDICTIONS, is_run=True),
    "simulate": InParts("benchmark"),
    "execute": InParts("benchmark"),
    "branch": InParts("cases"),
    "audit": InParts("rows", is_argument=False, asks="judge", has_last=True),
    "check": InParts(
        "cases", out="run", columns=OF_CASES, asks="ask", has_last=True, of_last="findings"
    ),
}


def shards_split(
    rows: str | Path,
    options: Sequence[str] = (),
    *,
    out: str | Path,
    parts: int,
    command: PartCommand = "grade",
) -> list[str]:
    """Writes the commands that work on rows in parts, and last the one that merges them.

    Behind the merge of ``check`` is the command that checks all rows with the merged answers, and
    behind that of ``audit`` the one that makes the card of all cases. Neither asks again.
    Pieces of the rows are listed in ``index.json``, so that no part reads another's; other formats
    and files at addresses are copied to ``index.rows.jsonl`` first. What can't be cut, such as a
    log, has parts by the case of each row, which read all of it.

    Args:
        rows: Input of the command.
        options: Options of the command, of an audit with its judge.
        out: Folder for the index, the runs of the parts, and the whole.
        parts: Number of parts.
        command: A command that has ``--shard``.

    Returns:
        Lines for a shell; those of the parts may run at the same time. Remarks begin with ``#``.

    Raises:
        OptionError: If the command has no ``--shard``.
        InputError: If the rows can't be read, or the index can't be written.
    """
    if command not in COMMANDS:
        raise OptionError(f"command: expected one of {', '.join(COMMANDS)}, got {command!r}")
    of, whole = COMMANDS[command], str(Path(out, "whole"))
    stated = _reading_options(options)
    read, shards, remarks = divided(rows, stated, out=out, parts=parts, command=command)
    rest = [*options, "--" if of.is_argument else f"--{of.rows}"]
    place = f"--{of.out}"
    lines = [[command, "--shard", part, place, str(to), *rest, read] for part, to in shards]
    lines.append(["shards", "merge", "--out", whole, "--", *(str(folder) for _, folder in shards)])
    if of.has_last:
        lines.append([command, place, whole, *rest, path_text(rows)])
    return [*remarks, *(f"apbjudge {shlex.join(words)}" for words in lines)]


class Divided(NamedTuple):
    """Rows that are divided into parts.

    Attributes:
        rows: The rows that the parts read: as they were named, or a copy in our own format.
        shards: The parts, as ``--shard`` takes them, with the folders of their runs.
        remarks: Remarks; each begins with ``#``.
    """

    rows: str
    shards: list[tuple[str, Path]]
    remarks: list[str]


def divided(
    rows: str | Path,
    options: Mapping[str, Any],
    *,
    out: str | Path,
    parts: int,
    command: PartCommand,
) -> Divided:
    """Divides rows into parts; writes the index of those that have pieces.

    Args:
        rows: Input of the command.
        options: Options of the command, by their names in Python; those for reading rows count.
        out: Folder for the index and the folders.
        parts: Number of parts.
        command: The command.

    Raises:
        InputError: If the rows can't be read, or the index can't be written.
    """
    index, remarks = _index(here(rows), Path(out), parts, command, options)
    numbers = range(1, parts + 1)
    folders = [Path(out, f"part-{i}") for i in numbers]
    if index is None:
        shards = [f"{i}/{parts}" for i in numbers]
    else:
        shards = [f"{Path(out, INDEX)}#{i}" for i in numbers]
    read = path_text(rows) if index is None or index.origin is None else index.file
    return Divided(read, list(zip(shards, folders, strict=True)), remarks)


def _index(
    rows: Path, out: Path, parts: int, command: PartCommand, options: Mapping[str, Any]
) -> tuple[PieceIndex | None, list[str]]:
    """Writes an index of the rows; None if they have no pieces. And remarks on it."""
    if COMMANDS[command].columns is None:
        return None, []
    try:
        read, origin = _whole_lines(rows, out / ROWS, command, options)
        pieces, n_apart = pieces_of(read, parts)
    except (InputError, OptionError) as error:
        if not rows.exists():
            raise
        return None, [f"# every part reads all rows: {str(error).splitlines()[0]}"]
    out.mkdir(parents=True, exist_ok=True)
    pieces = pieces.model_copy(update={"origin": origin})
    write_atomically(out / INDEX, orjson.dumps(pieces.model_dump(), option=orjson.OPT_INDENT_2))
    remarks = [] if origin is None else [f"# the parts read {read}, a copy in our own format"]
    if n_apart:
        remarks.append(f"# {n_apart} rows are in other parts than the first of their case")
    return pieces, remarks


def _whole_lines(
    rows: Path, copy: Path, command: PartCommand, options: Mapping[str, Any]
) -> tuple[Path, Origin | None]:
    """The rows as a file that can be cut: itself, or a copy with its origin.

    Raises:
        InputError: If they can't be read.
        OptionError: If they can't be cut, or an option for reading them is unusable.
    """
    stated = {name: options[name] for name in _READING if name in options}
    of, config = COMMANDS[command], GradeConfig(**stated)
    if command == "grade" and protocol_of_log(rows, config) is not None:
        raise OptionError("they are trajectories")
    if is_published(rows):
        raise OptionError("they hold judgements too")
    if command == "grade":
        own = in_own_format(rows, config)
    else:
        wanted = cast("frozenset[str]", of.columns)
        own = own_rows(rows, config.columns, wanted, split=config.data_split)
    if own.rows == rows and not is_fetched(rows):
        return rows, None
    if of.is_run:
        raise OptionError("they are not JSON lines with our own names, on this machine")
    if copy.exists() and copy.samefile(rows):
        raise OptionError(f"a copy would replace them: {copy}")
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy_file(cast("Path", own.rows), copy)
    return copy, _origin(rows, own.reading)


def _origin(rows: Path, reading: RowReading) -> Origin:
    mark, _ = read_mark(rows)
    return Origin(
        path=path_text(rows),
        bytes=mark.bytes,
        sha256=mark.sha256,
        columns=reading.columns,
        text=reading.text,
    )


_READING = ("map", "data_split", "tested_model", "protocol", "cases", "from_")
"""Options for reading rows, by their names in Python."""


def _reading_options(words: Sequence[str]) -> dict[str, Any]:
    """The options for reading rows among the words of a command."""
    names = {f"--{name.rstrip('_').replace('_', '-')}": name for name in _READING}
    stated = dict[str, Any]()
    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, is_joined, value = word.partition("=")
        if name := names.get(option):
            text = value if is_joined else following
            stated[name] = [*stated.get(name, ()), text] if name == "map" else text
    return stated
