"""Logs of agents, of any format, size and number of files: one trajectory at a time."""

from __future__ import annotations

import hashlib
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ..errors import InputError, RowError
from ..jsonl import read_line_at
from ..records.files import LogFile, unpacked
from ..records.json_stream import (
    Element,
    members_around,
    read_array,
    read_member,
    read_values,
    read_whole,
)
from ..records.keys import KeySet, short_key
from ..records.trajectories import LogPlace, Trajectory
from .base import LogEntry
from .conservation import Conservation, LossError
from .detection import (
    SCORED,
    claimed,
    container_in,
    detect,
    files_in,
    format_named,
    layout_in,
    named,
    record_of,
)
from .formats import LogFormat
from .outcomes import Outcomes

_FIRST = 10
"""Number of first entries, one of which has to carry over content of its record."""
_OTHERS = "files without any trajectory of this format"
_OLDER = "trajectories whose trial is in a newer file too"


def read_log(
    path: Path,
    log_format: str = "auto",
    *,
    outcomes: Path | Outcomes | None = None,
    conservation: Conservation | None = None,
) -> Iterator[LogEntry]:
    """Yields the trajectories of a log, in its order; memory holds ten of them and the ids of all.

    Content that is not carried over from the log is counted, and too much of it is refused. If a
    record is a part of a trajectory, the log is read twice, and memory also holds the places of all
    parts; for files that are one JSON array or object, the parts themselves.

    Args:
        path: A file, a folder, a pattern such as ``logs/*.jsonl`` or ``{a.json,b.json}``, or ``-``
            for standard input; files may be packed (``.gz``, ``.zst``).
        log_format: One of ``format_names``, or ``auto``.
        outcomes: File of outcomes that the log does not state. As ``Outcomes``, it also defines the
            score for success, and states the sources of outcomes afterwards.
        conservation: Account of the content that is not carried over, with the accepted share.

    Yields:
        One entry per trajectory. Its content is a RowError if it can't be read, if too much of it
        is not carried over, if its id occurs twice for one tested model, or if its outcome
        contradicts the log's.

    Raises:
        OptionError: If there is no such format, or at the end, if no trajectory has the score that
            defines success.
        InputError: If a file as a whole is unusable, or too much of it is not carried over, which
            may be known only at its end. If there are several files, an unusable one is an entry.
        PluginError: If an installed format can't be imported, or fails.
    """
    stated = None if log_format == "auto" else format_named(log_format)
    files = files_in(path)
    format_ = stated or format_named(detect(path, files))
    account = conservation or Conservation()
    of_newest = len(files) > 1 and format_.newest
    if of_newest:
        files.sort(key=lambda file: (file.path.name, file.name), reverse=True)
    entries = _conserved(path, _entries(path, files, format_, account), account)
    outcome_rules = outcomes if isinstance(outcomes, Outcomes) else Outcomes(outcomes)
    return _checked(path, entries, outcome_rules, account if of_newest else None)


def _checked(
    path: Path, entries: Iterator[LogEntry], outcomes: Outcomes, newest: Conservation | None
) -> Iterator[LogEntry]:
    """The entries with their outcomes; of trajectories with one id, the first stays.

    With ``newest``, which counts them, trajectories are left out if a previous file has the same
    trial of the task.
    """
    seen, trials, file = KeySet(), KeySet(), ""
    of_file: list[int] = []
    for entry in entries:
        trajectory = entry.content
        if isinstance(trajectory, RowError):
            yield entry
            continue
        if newest is not None:
            if trajectory.place.file != file:
                file = trajectory.place.file
                for trial in of_file:
                    trials.add(trial)
                of_file.clear()
            trial = short_key(
                trajectory.tested_model,
                trajectory.setting,
                trajectory.case_id,
                str(trajectory.trial),
            )
            if trial in trials:
                newest.left_out.setdefault(_OLDER, []).append(trajectory.trajectory_id)
                continue
            of_file.append(trial)
        if not seen.add(
            short_key(trajectory.trajectory_id, trajectory.tested_model, trajectory.setting)
        ):
            expected = "an id that no trajectory before it has"
            yield entry._replace(
                content=RowError("trajectory_id", expected, trajectory.trajectory_id)
            )
            continue
        content: Trajectory | RowError = trajectory
        try:
            content = outcomes.applied_to(trajectory)
        except RowError as error:
            content = error
        yield entry if content is trajectory else entry._replace(content=content)
    outcomes.check(str(path))


# Places of trajectories in a log ------------------------------------------------------------------


class _LocatedEntry(NamedTuple):
    """An entry of a log; ``line`` is 0 if it is a whole file."""

    element: Element
    file: LogFile
    line: int
    around: Mapping[str, Any]


def _entries(
    path: Path, files: Sequence[LogFile], format_: LogFormat, account: Conservation
) -> Iterator[LogEntry]:
    """The entries of all files, numbered consecutively across files."""
    is_one = len(files) == 1 and files[0].path == path
    if format_.parts is not None:
        entries = (_entry(located, format_) for located in _trajectories(files, format_, account))
    else:
        entries = chain.from_iterable(_entries_of(of, files, format_, account) for of in files)
    number = 0
    for number, entry in enumerate(entries, 1):
        yield entry if is_one else entry._replace(line=number)
    if not number and account.left_out:
        raise InputError(f"{path}: no file of it holds a trajectory of {format_.name}")


def _entries_of(
    file: LogFile, files: Sequence[LogFile], format_: LogFormat, account: Conservation
) -> Iterator[LogEntry]:
    owner = claimed(file.path)
    if owner is format_ and format_.read_path is not None:
        for entry in format_.read_path(file.path):
            yield entry if entry.file else entry._replace(file=str(file.path), at=entry.line)
    elif owner is not None and file.path.is_dir():
        account.left_out.setdefault(_OTHERS, []).append(file.name)
    else:
        for located in _records(file, format_, None if len(files) == 1 else account):
            yield _entry(located, format_)


def _entry(located: _LocatedEntry, format_: LogFormat) -> LogEntry:
    element, file, line, around = located
    content: Trajectory | RowError
    is_whole = format_.parts is None or isinstance(element.value, RowError)
    try:
        place = LogPlace(format_.name, "", file.name, line)
        record = record_of(element.value) if is_whole else element.value
        content = format_.read(record, place, around)
    except RowError as error:
        content = error
    except RecursionError:
        content = RowError("entry", "JSON that is not nested deeply", "hundreds of levels")
    where = (str(file.path), line or 1)
    return LogEntry(element.number, element.offset, element.digest, content, *where, element.value)


def _parts_of(value: object, format_: LogFormat) -> list[tuple[str, Any]]:
    """The parts of trajectories in a record, each with the name of its trajectory."""
    return list(format_.parts(record_of(value))) if format_.parts else []


def _parts_again(file: LogFile, start: int, format_: LogFormat) -> list[tuple[str, Any]]:
    """The parts of a record that is read again: the line at a byte offset, or with -1 the file."""
    path = unpacked(file.path)
    try:
        value = orjson.loads(read_line_at(path, start)) if start >= 0 else read_whole(path).value
        return _parts_of(value, format_)
    except (OSError, ValueError, RowError):
        raise InputError(f"{file.path}: it was changed while it was read") from None


def _trajectories(
    files: Sequence[LogFile], format_: LogFormat, account: Conservation
) -> Iterator[_LocatedEntry]:
    """The trajectories that are joined from parts in records.

    A first pass collects the places of all parts by trajectory; then each trajectory is read from
    its places.
    """
    heads: dict[str, _LocatedEntry] = {}
    places: dict[str, array[int]] = {}  # file, offset, and 1 if the parts have no name
    held: list[list[tuple[str, Any]]] = []  # parts of elements that can't be read again by offset

    @lru_cache(maxsize=8)
    def parts_at(number: int, start: int) -> list[tuple[str, Any]]:
        return held[start] if number < 0 else _parts_again(files[number], start, format_)

    for number, file in enumerate(files):
        current = unnamed = f"{file.name}/"
        for located in _records(file, format_, None if len(files) == 1 else account):
            element = located.element
            try:
                parts = _parts_of(element.value, format_)
            except RowError as error:
                yield located._replace(element=element._replace(value=error))
                continue
            place = (number, -1 if element.start is None else element.start)
            if element.start is None and located.line:
                place = (-1, len(held))
                held.append(parts)
            for name in dict.fromkeys(name for name, _ in parts):
                if name and current == unnamed in heads:
                    heads.setdefault(name, heads.pop(unnamed))
                    places.setdefault(name, array("q")).extend(places.pop(unnamed))
                current = name or current
                heads.setdefault(current, located._replace(element=element._replace(value=None)))
                places.setdefault(current, array("q")).extend((*place, not name))
    for name, first in heads.items():
        at = iter(places.pop(name))
        whole = [
            part
            for number, start, is_unnamed in zip(at, at, at, strict=True)
            for of, part in parts_at(number, start)
            if of == ("" if is_unnamed else name)
        ]
        digest = hashlib.sha256(orjson.dumps(whole)).digest()
        yield first._replace(element=first.element._replace(digest=digest, value=whole))


def _conserved(
    path: Path, entries: Iterator[LogEntry], conservation: Conservation
) -> Iterator[LogEntry]:
    """The entries, each compared with its record.

    Raises:
        InputError: If almost nothing of the first entries is carried over, or too little of all.
    """
    compared = (_compared(entry, conservation) for entry in entries)
    head = deque(islice(compared, _FIRST))
    if head and all(isinstance(entry.content, LossError) for entry in head):
        raise InputError(f"{head[0].place}: {head[0].content}")
    while head:
        yield head.popleft()
    yield from compared
    conservation.check(str(path))


def _compared(entry: LogEntry, conservation: Conservation) -> LogEntry:
    content = entry.content
    if isinstance(content, Trajectory) and entry.raw is not None:
        try:
            content = conservation.checked(entry.raw, content, entry.offset)
        except RowError as error:
            content = error
    return entry._replace(content=content, raw=None)


def _records(
    file: LogFile, format_: LogFormat, others: Conservation | None
) -> Iterator[_LocatedEntry]:
    """The records of a file; with ``others``, a file without any of the format is noted there."""
    try:
        with named(file) as path:
            layout, around = layout_in(path), dict[str, Any]()
            key = container_in(path, format_) if layout == "object" else ""
            if layout != "object":
                elements = (read_values if layout == "lines" else read_array)(path)
            elif key:
                nan = format_.has_nan
                elements = read_member(path, key, has_nan=nan)
                around = members_around(path, key, has_nan=nan)
            else:
                elements = iter((read_whole(path),))
            is_whole = layout == "object" and not key
            if others is not None:
                head, is_one = _head(elements, format_)
                if not is_one:
                    others.left_out.setdefault(_OTHERS, []).append(file.name)
                    return
                elements = chain(head, elements)
            for element in elements:
                yield _LocatedEntry(element, file, 0 if is_whole else element.number, around)
    except InputError as error:
        if others is None:
            raise
        fault = RowError("file", "a log", str(error).removeprefix(f"{file.path}: "))
        yield _LocatedEntry(Element(1, 0, hashlib.sha256(b"").digest(), fault), file, 0, {})


def _head(elements: Iterator[Element], format_: LogFormat) -> tuple[list[Element], bool]:
    """The first elements, up to one of the format, and True if the file may have the format."""
    head: list[Element] = []
    for element in islice(elements, SCORED):
        head.append(element)
        try:
            if format_.score(record_of(element.value)):
                return head, True
        except RowError:
            continue
    return head, all(isinstance(element.value, RowError) for element in head)
