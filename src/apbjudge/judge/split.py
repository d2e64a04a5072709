"""Divides the rows of a command into parts: the commands of the parts, and those that follow."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from ..config import PartCommand
from ..errors import InputError, OptionError, path_text
from ..jsonl import write_atomically
from ..records.own_columns import OF_CASES, OF_PREDICTIONS
from ..records.own_rows import kind_of, own_rows
from ..remote import here
from ..runs.shards import INDEX, pieces_of
from .published import is_published


class InParts(NamedTuple):
    """A command that works on parts of its rows.

    Attributes:
        rows: Its option for the rows.
        out: Its option for the folder of a run.
        columns: Columns of rows that can be cut into pieces; None if the case of a row decides.
        is_argument: True if the rows are an argument of the command.
        asks: An option without which the parts have no run to merge.
        has_last: True if the command itself, of all rows, follows the merge in its folder and
            makes of the replies what no part can.
        of_last: An option that only this last one has.
    """

    rows: str
    out: str = "out"
    columns: frozenset[str] | None = None
    is_argument: bool = True
    asks: str = ""
    has_last: bool = False
    of_last: str = ""


COMMANDS: Mapping[PartCommand, InParts] = {
    "grade": InParts("rows", columns=OF_PREDICTIONS),
    "predict": InParts("cases", columns=OF_CASES),
    "refine": InParts("drafts", columns=OF_PREDICTIONS),
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
    Of a file in our own format the pieces are listed in ``index.json``, so that no part reads
    another's rows. Parts of anything else are by the case of each row, and read all of it.

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
    shards, remarks = divided(rows, options, out=out, parts=parts, command=command)
    rest = [*options, "--" if of.is_argument else f"--{of.rows}", path_text(rows)]
    place = f"--{of.out}"
    lines = [[command, "--shard", shard, place, str(folder), *rest] for shard, folder in shards]
    lines.append(["shards", "merge", "--out", whole, "--", *(str(folder) for _, folder in shards)])
    if of.has_last:
        lines.append([command, place, whole, *rest])
    return [*remarks, *(f"apbjudge {shlex.join(words)}" for words in lines)]


def divided(
    rows: str | Path, options: Sequence[str], *, out: str | Path, parts: int, command: PartCommand
) -> tuple[list[tuple[str, Path]], list[str]]:
    """Parts with the folders of their runs; writes the index of a file that has pieces.

    Args:
        rows: Input of the command.
        options: Options of the command.
        out: Folder for the index and the folders.
        parts: Number of parts.
        command: The command.

    Returns:
        The parts, as ``--shard`` takes them, with their folders; and remarks.

    Raises:
        InputError: If the rows can't be read, or the index can't be written.
    """
    index, remarks = _index(here(rows), Path(out), parts, command, options)
    numbers = range(1, parts + 1)
    shards = [f"{i}/{parts}" if index is None else f"{index}#{i}" for i in numbers]
    return list(zip(shards, (Path(out, f"part-{i}") for i in numbers), strict=True)), remarks


def _index(
    rows: Path, out: Path, parts: int, command: PartCommand, options: Sequence[str]
) -> tuple[Path | None, list[str]]:
    """Writes an index of the rows; None if they have no pieces. And remarks on it."""
    if (wanted := COMMANDS[command].columns) is None:
        return None, []
    model = "stated" if any(option.startswith("--tested-model") for option in options) else ""
    try:
        is_own = kind_of(rows) == "lines" and not any(of.startswith("--map") for of in options)
        if not is_own or own_rows(rows, wanted=wanted, tested_model=model).rows != rows:
            expected = "JSON lines with our own names for their fields, and the tested model"
            return None, [f"# every part reads all rows, which are not {expected}"]
        if is_published(rows):
            return None, ["# every part reads all rows, which hold judgements too"]
        pieces, n_apart = pieces_of(rows, parts)
    except (InputError, OptionError) as error:
        if not rows.exists():
            raise
        return None, [f"# every part reads all rows: {str(error).splitlines()[0]}"]
    index = out / INDEX
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(index, orjson.dumps(pieces.model_dump(), option=orjson.OPT_INDENT_2))
    apart = f"# {n_apart} rows are in other parts than the first of their case"
    return index, [apart] * bool(n_apart)
