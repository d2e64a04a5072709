"""Data of one's own as seeds, one entry at a time, whatever its format and size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from ....errors import InputError, OptionError, RowError, shorten
from ....records.files import STDIN
from ....records.keys import KeySet, short_key
from ....records.own_rows import is_dataset
from ....trajectories import detection as logs
from ....trajectories.outcomes import Outcomes
from ..cases import Reject
from ..config import SourceName
from ..seeds import Seed
from .bfcl import BFCL, is_bfcl_folder
from .entries import SeedEntry, SourceFormat, SourceOptions, check_readable, read_rows
from .functions import FUNCTIONS, QUERIES
from .tau2 import TAU2, tasks_in
from .trajectories import TRAJECTORIES

FORMATS: Mapping[str, SourceFormat] = {
    format_.name: format_ for format_ in (TRAJECTORIES, TAU2, BFCL, FUNCTIONS, QUERIES)
}
"""The formats by name; the first that recognises a row reads the file."""

_LOOKED_AT = 10


def detect(
    path: Path, columns: Mapping[str, str] | None = None, tools: Sequence[Any] | None = None
) -> str:
    """The name of a source's format, by its content.

    Args:
        path: A file or folder.
        columns: Columns of rows by field.
        tools: Those of entries that have none: with them, rows that are no log need but a query.

    Raises:
        InputError: If there is no such file, or no format recognises it.
    """
    check_readable(path)
    if path.is_dir() and is_bfcl_folder(path):
        return BFCL.name
    if path.is_dir() and tasks_in(path).is_file():
        return TAU2.name
    is_file = path.is_file() or path == STDIN or is_dataset(path)
    if not is_file or path.suffix == ".eval":
        logs.detect(path)
        return TRAJECTORIES.name
    got, with_tools = "nothing of the kind", False
    for _, row in islice(read_rows(path, columns), _LOOKED_AT):
        if isinstance(row, RowError):
            got = row.got
            continue
        for format_ in FORMATS.values():
            if format_.recognises(row):
                return format_.name
        got = f"fields {shorten(', '.join(row))}"
        with_tools |= tools is not None and QUERIES.recognises({**row, "tools": tools})
    try:
        logs.detect(path)
    except InputError:
        if with_tools:
            return QUERIES.name
        titles = ", ".join(format_.title for format_ in FORMATS.values())
        raise InputError(f"{path}: expected {titles}, got {got}") from None
    return TRAJECTORIES.name


def read_seeds(
    path: Path,
    *,
    source_format: SourceName = "auto",
    tools: Sequence[Any] | None = None,
    outcomes: Path | Outcomes | None = None,
    any_outcome: bool = False,
    licence: str = "",
    source: str = "",
    columns: Mapping[str, str] | None = None,
) -> Iterator[SeedEntry]:
    """Yields the seeds of a source, in its order; memory stays at one entry and the ids of all.

    Args:
        path: A file or folder.
        source_format: The format; ``auto`` finds it by content. ``trajectories`` is any log that
            ``apbjudge convert`` reads; the first usable trajectory of each task is taken.
            ``functions`` has rows with a query, tools and reference calls; ``queries`` the same
            without calls. ``bfcl`` is the data of BFCL's conversations of several turns, ``tau2``
            the tasks of a domain of τ²-bench.
        tools: Definitions for entries that have none.
        outcomes: Outcomes that a log does not state; see ``read_log``.
        any_outcome: Whether to use trajectories that failed or whose outcome is not known.
        licence: Licence of entries that state none.
        source: Name of the data set for entries that state none; by default the path's stem.
        columns: Columns of rows by field, such as ``{"query": "question"}``.

    Yields:
        One entry for each row, task or trajectory. Its content is no seed where the entry can't be
        read, where no case can be built from it, or where an entry before it has its id or content.

    Raises:
        OptionError: If there is no such format.
        InputError: If a file as a whole is unusable.
    """
    if source_format not in ("auto", *FORMATS):
        names = ", ".join(("auto", *FORMATS))
        raise OptionError(f"--from: expected one of {names}, got {source_format!r}")
    check_readable(path)
    options = SourceOptions(
        path=path,
        tools=None if tools is None else tuple(tools),
        outcomes=outcomes,
        any_outcome=any_outcome,
        licence=licence,
        source=source,
        columns=columns or {},
    )
    name = detect(path, columns, tools) if source_format == "auto" else source_format
    return _checked(FORMATS[name].read(options))


def _checked(entries: Iterator[SeedEntry]) -> Iterator[SeedEntry]:
    """The entries; of seeds with equal ids or equal content only the first stays a seed."""
    ids, contents = KeySet(), KeySet()
    for entry in entries:
        seed = entry.content
        if not isinstance(seed, Seed):
            yield entry
        elif not ids.add(short_key(seed.source, seed.seed_id)):
            expected = "an id that no entry before it has"
            yield entry._replace(content=RowError("id", expected, seed.seed_id))
        elif not contents.add(_content(seed)):
            reason = "an entry before it is the same task"
            yield entry._replace(content=Reject("source", reason, seed.seed_id))
        else:
            yield entry


def _content(seed: Seed) -> int:
    """A key of a seed's query, tools, files, calls and results."""
    trajectory = seed.trajectory
    names = sorted(seed.toolset.by_name)
    calls = [[call.name, dict(call.arguments), call.result] for call in seed.calls]
    files = [file.path for file in seed.files]
    content = [" ".join(trajectory.query.split()), trajectory.system_prompt, names, calls, files]
    return short_key(orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode())
