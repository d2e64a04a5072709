"""Logs of agents in any format: one run at a time, whatever the size."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ..errors import InputError, OptionError, RowError, shorten
from ..records.keys import KeySet, short_key
from ..records.loose_json import as_list, as_object
from ..records.messages import is_message
from ..records.trajectories import LogPlace, Trajectory
from .base import LogEntry
from .conservation import Conservation, LossError
from .formats import LogFormat
from .formats.atif import ATIF
from .formats.benchmarks import BENCHMARKS
from .formats.braintrust import BRAINTRUST
from .formats.claude_code import CLAUDE_CODE
from .formats.codex import CODEX
from .formats.gemini_cli import GEMINI_CLI
from .formats.inspect_log import INSPECT, read_eval
from .formats.langfuse import LANGFUSE
from .formats.langsmith import LANGSMITH
from .formats.messages import MESSAGES
from .formats.mlflow import MLFLOW
from .formats.openai_agents import OPENAI_AGENTS
from .formats.openhands import OPENHANDS, OPENHANDS_EVENTS
from .formats.otlp import LOGFIRE, OPENINFERENCE, OTLP
from .formats.own import OWN
from .formats.tau import TAU2, TAU_BENCH
from .formats.weave import WEAVE
from .json_stream import (
    Element,
    array_member,
    layout_of,
    members_around,
    read_array,
    read_member,
    read_values,
    read_whole,
)
from .outcomes import Outcomes
from .planbench.folder import PLANBENCH_RESULT, is_folder, read_folder

FORMATS: Mapping[str, LogFormat] = {
    format_.name: format_
    for format_ in (
        OWN,
        PLANBENCH_RESULT,
        ATIF,
        CLAUDE_CODE,
        CODEX,
        GEMINI_CLI,
        TAU_BENCH,
        TAU2,
        INSPECT,
        BRAINTRUST,
        LANGFUSE,
        LANGSMITH,
        LOGFIRE,
        MLFLOW,
        OPENAI_AGENTS,
        OPENINFERENCE,
        OTLP,
        *BENCHMARKS,
        OPENHANDS,
        OPENHANDS_EVENTS,
        WEAVE,
        MESSAGES,
    )
}
"""The formats in JSON by name; of several that score the same, the first reads a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLog:
    """A log that is no file of JSON, or a folder with a structure of its own.

    Attributes:
        name: As on the command line; also the name of a format in JSON that it packs.
        title: As in messages.
        recognises: Whether a path is one.
        read: Yields its runs; raises InputError.
    """

    name: str
    title: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path], Iterator[LogEntry]]


def _is_archive(path: Path) -> bool:
    return path.is_file() and path.suffix == ".eval"


OTHER_LOGS: tuple[OtherLog, ...] = (
    OtherLog(
        name=PLANBENCH_RESULT.name,
        title="run folder of PlanBench-XL",
        recognises=is_folder,
        read=read_folder,
    ),
    OtherLog(name=INSPECT.name, title="Inspect archive", recognises=_is_archive, read=read_eval),
)
"""The logs that are recognised by their path."""

_LOOKED_AT = 10
_SCORED, _SURE = 20, 0.8
"""Records that a format is recognised by, and the least mean score of one that is."""


def format_names() -> list[str]:
    """The names that ``read_log`` takes beside ``auto``."""
    return sorted({*FORMATS, *(log.name for log in OTHER_LOGS)})


def detect(path: Path) -> str:
    """The name of a log's format, by its content.

    A folder that no format claims holds JSON files of one run each.

    Raises:
        InputError: If there is no such file, or no format recognises it.
    """
    if (other := _other_log(path)) is not None:
        return other.name
    got = "no run"
    scores = dict.fromkeys(FORMATS, 0.0)
    n = 0
    for found in islice(_entries(path, FORMATS.values()), _SCORED):
        try:
            record = _object_of(found.element.value)
        except RowError as error:
            got = error.got
            continue
        got = f"fields {shorten(', '.join(record))}"
        if record.keys() >= {"query", "tools", "answers"}:
            got += ": tasks with reference calls, of which apbjudge build makes cases"
        stated = {name: format_.score(record) for name, format_ in FORMATS.items()}
        n += any(stated.values())
        scores = {name: scores[name] + of for name, of in stated.items()}
    best = max(FORMATS, key=lambda name: scores[name])
    if scores[best] >= _SURE * max(1, n):
        return best
    titles = (*(of.title for of in FORMATS.values()), *(of.title for of in OTHER_LOGS))
    raise InputError(f"{path}: expected runs of agents ({', '.join(titles)}), got {got}")


def read_log(
    path: Path,
    log_format: str = "auto",
    *,
    outcomes: Path | Outcomes | None = None,
    conservation: Conservation | None = None,
) -> Iterator[LogEntry]:
    """Yields the runs of a log, in its order; memory stays at ten runs and the ids of all.

    What is not carried over from the log is counted, and too much of it refused.

    Args:
        path: A file or folder.
        log_format: One of ``format_names``, or ``auto``.
        outcomes: File of outcomes that the log does not state. Given as ``Outcomes``, it also says
            which score is a success, and can be asked afterwards where outcomes are from.
        conservation: Keeps account of what is not carried over, and says how much is accepted.

    Yields:
        One entry a run. Its content is a RowError where it can't be read, where too much of it is
        not carried over, where its id occurs twice for one tested model, or where its outcome
        contradicts the log's.

    Raises:
        OptionError: If there is no such format, or at the end, if no run has the score that is to
            say what a success is.
        InputError: If a file as a whole is unusable, or too much of it is not carried over, which
            may be known only at its end.
    """
    if log_format not in ("auto", *format_names()):
        raise OptionError(
            f"--from: expected one of {', '.join(format_names())}, got {log_format!r}"
        )
    name = detect(path) if log_format == "auto" else log_format
    other = _other_log(path)
    if other is not None and other.name == name:
        entries = other.read(path)
    elif name in FORMATS:
        entries = _read(path, FORMATS[name])
    else:
        title = next(of.title for of in OTHER_LOGS if of.name == name)
        raise InputError(f"{path}: expected {title}, got something else")
    entries = _conserved(path, entries, conservation or Conservation())
    settled = outcomes if isinstance(outcomes, Outcomes) else Outcomes(outcomes)
    return _checked(path, entries, settled)


def _other_log(path: Path) -> OtherLog | None:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    return next((log for log in OTHER_LOGS if log.recognises(path)), None)


def _checked(path: Path, entries: Iterator[LogEntry], outcomes: Outcomes) -> Iterator[LogEntry]:
    """The entries with their outcomes; of runs with one id, the first stays."""
    seen = KeySet()
    for entry in entries:
        run = entry.content
        if isinstance(run, RowError):
            yield entry
            continue
        if not seen.add(short_key(run.trajectory_id, run.tested_model, run.setting)):
            expected = "an id that no run before it has"
            yield entry._replace(content=RowError("trajectory_id", expected, run.trajectory_id))
            continue
        content: Trajectory | RowError = run
        try:
            content = outcomes.settled(run)
        except RowError as error:
            content = error
        yield entry if content is run else entry._replace(content=content)
    outcomes.check(str(path))


# Where the runs of a log are ---------------------------------------------------------------------


class _Found(NamedTuple):
    """An entry of a log; ``line`` is 0 where it is a file of its own."""

    element: Element
    file: str
    line: int
    around: Mapping[str, Any]


def _read(path: Path, format_: LogFormat) -> Iterator[LogEntry]:
    for element, file, line, around in _runs(path, format_):
        content: Trajectory | RowError
        value = element.value
        raw = list(value) if isinstance(value, _Parts) else value
        try:
            place = LogPlace(format_.name, "", file, line)
            record = value if isinstance(value, _Parts) else _object_of(value)
            content = format_.read(record, place, around)
        except RowError as error:
            content = error
        except RecursionError:
            content = RowError("entry", "JSON that is not nested deeply", "hundreds of levels")
        yield LogEntry(element.number, element.offset, element.digest, content, raw)


class _Parts(list[Any]):
    """The parts of a run, in the order of the log."""


def _runs(path: Path, format_: LogFormat) -> Iterator[_Found]:
    """The records of a log, the parts of each run put together."""
    if format_.parts is None:
        yield from _entries(path, [format_])
        return
    runs: dict[str, tuple[_Found, _Parts]] = {}
    named: dict[str, str] = {}  # by file, the run of the last part that says its own
    for found in _entries(path, [format_]):
        try:
            parts = format_.parts(_object_of(found.element.value))
        except RowError as error:
            yield found._replace(element=found.element._replace(value=error))
            continue
        for name, part in parts:
            unnamed = f"{found.file}/"
            if name and found.file not in named and (before := runs.pop(unnamed, None)):
                runs.setdefault(name, (before[0], _Parts()))[1].extend(before[1])
            if name:
                named[found.file] = name
            key = name or named.get(found.file, unnamed)
            runs.setdefault(key, (found, _Parts()))[1].append(part)
    for first, parts in runs.values():
        digest = hashlib.sha256(orjson.dumps(parts)).digest()
        yield first._replace(element=first.element._replace(digest=digest, value=parts))


def _conserved(
    path: Path, entries: Iterator[LogEntry], conservation: Conservation
) -> Iterator[LogEntry]:
    """The entries, each compared with its record.

    Raises:
        InputError: If next to nothing of the first entries is carried over, or too little of all.
    """
    compared = (_compared(entry, conservation) for entry in entries)
    head = deque(islice(compared, _LOOKED_AT))
    if head and all(isinstance(entry.content, LossError) for entry in head):
        raise InputError(f"{path}:{head[0].line}: {head[0].content}")
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


def _object_of(value: object) -> dict[str, Any]:
    """An entry as an object; a list alone is one of messages."""
    if isinstance(value, RowError):
        raise value
    if (messages := as_list(value)) is not None:
        return {"messages": messages}
    if (entry := as_object(value)) is None:
        raise RowError("entry", "an object or a list of messages", value)
    return entry


def _entries(path: Path, formats: Collection[LogFormat]) -> Iterator[_Found]:
    if path.is_dir():
        yield from _files(path)
        return
    layout = layout_of(path)
    around: Mapping[str, Any] = {}
    elements: Iterator[Element] | None = None
    if layout == "lines":
        elements = read_values(path)
    elif layout == "array":
        values = (element.value for element in islice(read_array(path), _LOOKED_AT))
        if not is_message(next((of for of in values if not isinstance(of, RowError)), None)):
            elements = read_array(path)
    elif key := array_member(path, frozenset(of.member for of in formats if of.member)):
        around = members_around(path, key)
        elements = read_member(path, key)
    if elements is None:
        yield _Found(read_whole(path), path.name, 0, around)
    for element in elements or ():
        yield _Found(element, path.name, element.number, around)


def _files(folder: Path) -> Iterator[_Found]:
    """The JSON files of a folder, each of which is a run."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError(f"{folder}: expected a folder of JSON files, got none in it")
    for number, file in enumerate(files, 1):
        yield _Found(read_whole(file)._replace(number=number, offset=0), file.name, 0, {})
