"""Data of one's own as seeds, one entry at a time, whatever its format and size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import orjson

from ....errors import InputError, RowError, shorten
from ....records.files import STDIN, is_there
from ....records.keys import KeySet, short_key
from ....records.own_rows import is_dataset
from ....trajectories import detection as logs
from ..cases import Reject
from ..seeds import Seed
from .bfcl import BFCL, is_bfcl_folder
from .entries import SeedEntry, SourceFormat, SourceOptions, read_rows
from .functions import FUNCTIONS, QUERIES
from .tau2 import TAU2, tasks_in
from .trajectories import TRAJECTORIES

FORMATS: Mapping[str, SourceFormat] = {
    format_.name: format_ for format_ in (TRAJECTORIES, TAU2, BFCL, FUNCTIONS, QUERIES)
}
"""The formats by name; the first that recognises a row reads the file."""

_LOOKED_AT = 10


def detect(options: SourceOptions) -> str:
    """The name of a source's format, by its content.

    With tools for entries that have none, rows that are no log need but a query.

    Raises:
        InputError: If there is no such file, or no format recognises it.
    """
    path = options.path
    _check_readable(path)
    if path.is_dir() and is_bfcl_folder(path):
        return BFCL.name
    if path.is_dir() and tasks_in(path).is_file():
        return TAU2.name
    is_file = path.is_file() or path == STDIN or is_dataset(path)
    if not is_file or path.suffix == ".eval":
        logs.detect(path)
        return TRAJECTORIES.name
    got, with_tools = "nothing of the kind", False
    for _, row in islice(read_rows(path, options.columns), _LOOKED_AT):
        if isinstance(row, RowError):
            got = row.got
            continue
        for format_ in FORMATS.values():
            if format_.recognises(row):
                return format_.name
        got = f"fields {shorten(', '.join(row))}"
        with_tools |= options.tools is not None and QUERIES.recognises(
            {**row, "tools": options.tools}
        )
    try:
        logs.detect(path)
    except InputError:
        if with_tools:
            return QUERIES.name
        titles = ", ".join(format_.title for format_ in FORMATS.values())
        raise InputError(f"{path}: expected {titles}, got {got}") from None
    return TRAJECTORIES.name


def _check_readable(path: Path) -> None:
    """Raises InputError if there is no such file or folder, or the file is empty."""
    if path != STDIN and not is_there(path):
        raise InputError(f"{path}: no such file or folder")
    if path.is_file() and not path.stat().st_size:
        raise InputError(f"{path}: expected tasks or trajectories of agents, got an empty file")


def read_seeds(options: SourceOptions) -> Iterator[SeedEntry]:
    """Yields the seeds of a source, in its order; memory stays at one entry and the ids of all.

    Yields:
        One entry for each row, task or trajectory. Its content is no seed where the entry can't be
        read, where no case can be built from it, or where an entry before it has its id or content.

    Raises:
        InputError: If a file as a whole is unusable.
    """
    _check_readable(options.path)
    name = detect(options) if options.format == "auto" else options.format
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
            yield entry._replace(content=Reject(reason, seed.seed_id))
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
