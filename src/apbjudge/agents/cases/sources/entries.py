"""Entries of a source, and helpers for all formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import orjson

from ....errors import RowError
from ....records import FileRef, Row
from ....records.files import name_of
from ....records.loose_json import MAX_DEPTH, as_list, is_shallow
from ....records.own_columns import value_at
from ....records.own_rows import kind_of, rows_in
from ....records.parameters import parsed
from ....records.tools import Toolset
from ....records.trajectories import LogPlace, ToolCall, ToolResult, Trajectory, TrajectoryStep
from ....trajectories.formats.fields import id_field, text_field
from ....trajectories.outcomes import Outcomes
from ..cases import Reject
from ..config import SourceName
from ..seeds import Seed, SeedCall

QUERY = ("query", "question", "instruction", "user_query", "prompt", "task")
TOOLS = ("tools", "functions", "tool_list", "api_list", "apis", "available_tools")
"""Names of these fields in rows; the first nonempty one is read."""


class SeedEntry(NamedTuple):
    """An entry of a source.

    Attributes:
        line: 1-based line, or number in a JSON list or folder.
        file: The file, or the folder if a log with one trajectory per file can't be read.
        content: The seed; a RowError if the entry can't be read; a Reject where it can, but no
            case can be built from it.
    """

    line: int
    file: str
    content: Seed | RowError | Reject


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Settings of reading a source.

    Attributes:
        path: The file or folder.
        format: The format; ``auto`` finds it by content. ``trajectories`` is any log that
            ``apbjudge convert`` reads; the first usable trajectory of each task is taken.
            ``functions`` has rows with a query, tools and reference calls; ``queries`` the same
            without calls. ``bfcl`` is the data of BFCL's conversations of several turns, ``tau2``
            the tasks of a domain of τ²-bench.
        tools: Definitions for entries that have none; None if there are no such.
        outcomes: Outcomes that a log does not state; see ``read_log``.
        any_outcome: True if to use trajectories that failed or whose outcome is not known.
        licence: Licence of entries that state none.
        source: Name of the data set, for entries that state none; by default the path's stem.
        columns: Columns of rows by field, as the user named them.
    """

    path: Path
    format: SourceName = "auto"
    _: KW_ONLY
    tools: tuple[Any, ...] | None = None
    outcomes: Path | Outcomes | None = None
    any_outcome: bool = False
    licence: str = ""
    source: str = ""
    columns: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFormat:
    """A format of sources.

    Attributes:
        name: As on the command line.
        title: As in messages.
        recognises: Test of a row for this format.
        read: Yields its entries; raises InputError.
    """

    name: str
    title: str
    recognises: Callable[[Mapping[str, Any]], bool]
    read: Callable[[SourceOptions], Iterator[SeedEntry]]


def read_rows(
    path: Path, columns: Mapping[str, str] | None = None
) -> Iterator[tuple[int, dict[str, Any] | RowError]]:
    """Yields the rows of a file of any kind, or of a data set; see ``records.own_rows``.

    Args:
        path: The file.
        columns: Columns by field, as the user named them; the names of others stay.

    Yields:
        The line, or the number of the row, and the row or why there is none.

    Raises:
        InputError: If the file can't be read.
    """
    for number, row in rows_in(path, kind_of(path)):
        if isinstance(row, RowError):
            yield number, row
        elif not is_shallow(row):
            yield number, RowError("line", f"JSON nested at most {MAX_DEPTH} deep", "deeper JSON")
        else:
            named = {name: value_at(row, column) for name, column in (columns or {}).items()}
            yield number, row | {name: value for name, value in named.items() if value is not None}


def entries_of(
    options: SourceOptions, make: Callable[[dict[str, Any], LogPlace], Seed | Reject], name: str
) -> Iterator[SeedEntry]:
    """Yields an entry for each row of a file.

    Args:
        options: Options of the source.
        make: Makes a seed of a row; raises RowError.
        name: Name of the format.
    """
    for line, row in read_rows(options.path, options.columns):
        content: Seed | Reject | RowError
        try:
            if isinstance(row, RowError):
                raise row
            content = make(row, LogPlace(name, "", options.path.name, line))
        except RowError as error:
            content = error
        yield SeedEntry(line, str(options.path), content)


def query_in(row: Mapping[str, Any]) -> str:
    """The query of a row; empty without.

    Raises:
        RowError: If it is not text.
    """
    return text_field(row, *QUERY)


def source_in(row: Mapping[str, Any]) -> str:
    """The data set that a row names; empty without."""
    return _text_or_nothing(row, "source")


def tools_in(row: Mapping[str, Any], options: SourceOptions) -> tuple[Any, ...] | None:
    """The definitions of the tools that a row offers, else the tools of the options; None without.

    Raises:
        RowError: If they are not even JSON.
    """
    for name in TOOLS:
        value = parsed(Row(row, 0).structured(name))
        if value is not None:
            listed = as_list(value)
            return (value,) if listed is None else tuple(listed)
    return options.tools


def task_of(
    row: Mapping[str, Any],
    place: LogPlace,
    options: SourceOptions,
    *,
    query: str,
    tools: tuple[Any, ...] | None = None,
) -> Trajectory:
    """A task without a log, as a trajectory without steps."""
    name = id_field(row, "id", "seed_id", "task_id", "case_id")
    name = name or f"{Path(place.file).stem}-{place.line}"
    return Trajectory(
        trajectory_id=name,
        case_id=name,
        tested_model="",
        query=query,
        system_prompt=text_field(row, "system_prompt", "system"),
        tools=tools_in(row, options) if tools is None else tools,
        steps=(),
        place=place,
    )


def step_of(
    name: str,
    arguments: Mapping[str, Any],
    call_id: str,
    *,
    result: str | None = None,
    is_error: bool | None = None,
    is_users: bool = False,
) -> TrajectoryStep:
    """A step that makes one call; the agent's, or the user's own."""
    observations = () if result is None else (ToolResult(result, call_id, name, is_error),)
    return TrajectoryStep(
        "user" if is_users else "agent",
        "call",
        calls=(ToolCall(name, dict(arguments), call_id),),
        observations=observations,
    )


def seed_of(
    trajectory: Trajectory,
    calls: Sequence[SeedCall],
    fields: Mapping[str, Any],
    options: SourceOptions,
    *,
    source: str = "",
    repairs: Sequence[str] = (),
) -> Seed | Reject:
    """A seed, if cases can be built from it.

    Args:
        trajectory: The task; its tools may be None.
        calls: Its solution.
        fields: Fields that may state files, licence, category and plan of the task.
        options: Settings of reading the source.
        source: Name of the data set as the entry states it.
        repairs: Repairs made while reading.

    Raises:
        RowError: If the tools or one of those fields can't be read.
    """
    tools = options.tools if trajectory.tools is None else trajectory.tools
    if not trajectory.query.strip():
        return rejected(trajectory, "the query is missing")
    if not tools:
        return rejected(trajectory, "no tools are known")
    seed = Seed(
        trajectory=replace(trajectory, tools=tools),
        calls=tuple(calls),
        files=files_in(fields),
        source=source or options.source or name_of(options.path),
        licence=text_field(fields, "licence", "license") or options.licence,
        plan=_text_or_nothing(fields, "plan"),
        category=_text_or_nothing(fields, "task_category", "category"),
        ends=Row(fields, 0).ends(),
        repairs=tuple(dict.fromkeys(repairs)),
    )
    toolset = seed.toolset
    if unknown := next((call for call in calls if call.name not in toolset.by_name), None):
        return rejected(trajectory, "a called tool is not offered", unknown.name)
    _check_storable(seed, toolset)
    return seed


def rejected(trajectory: Trajectory, reason: str, detail: str = "") -> Reject:
    """The rejection of a trajectory or a task from which no case can be built."""
    place = f"{trajectory.trajectory_id}: {detail}" if detail else trajectory.case_id
    return Reject(reason, place)


def files_in(fields: Mapping[str, Any]) -> tuple[FileRef, ...]:
    """The files of a task, as paths inside the data folder.

    Raises:
        RowError: If a path is none of that kind.
    """
    files = Row(fields, 0).files()
    for i, file in enumerate(files):
        path, windows = PurePosixPath(file.path), PureWindowsPath(file.path)
        is_inside = path.parts and not path.is_absolute() and not windows.drive
        if not is_inside or windows.root or ".." in windows.parts or "\0" in file.path:
            raise RowError(f"files[{i}].path", "a path inside the data folder", file.path)
        if ":" in windows.parts[0]:
            raise RowError(f"files[{i}].path", "a path, since nothing is fetched", file.path)
    return files


def _text_or_nothing(fields: Mapping[str, Any], *names: str) -> str:
    """A text that no case depends on; something else under its name is another field."""
    return next((value for name in names if isinstance(value := fields.get(name), str)), "")


def _check_storable(seed: Seed, toolset: Toolset) -> None:
    """Raises RowError if a part of the seed can't be written as JSON."""
    trajectory = seed.trajectory
    parts = {
        "id": [trajectory.trajectory_id, trajectory.place.file, seed.source, seed.licence],
        "query": [trajectory.query, trajectory.system_prompt, seed.plan, seed.category],
        "tools": [tool.model_dump() for tool in toolset.tools],
        "calls": [[call.name, dict(call.arguments), call.result] for call in seed.calls],
    }
    for name, part in parts.items():
        try:
            orjson.dumps(part)
        except (TypeError, UnicodeEncodeError):
            raise RowError(name, "values that can be written as JSON", part) from None
