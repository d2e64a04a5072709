"""Logs of agents in any format and of any number of files: one run at a time, whatever the size."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ..errors import InputError, OptionError, RowError, load_plugin, plugin_names, shorten
from ..jsonl import open_buffered, other_format, read_line_at
from ..records.files import LogFile, files_of, unpacked
from ..records.json_stream import (
    MAX_ELEMENT_BYTES,
    Element,
    array_members,
    layout_of,
    members_around,
    read_array,
    read_member,
    read_values,
    read_whole,
)
from ..records.keys import KeySet, short_key
from ..records.loose_json import as_list, as_object
from ..records.messages import is_message
from ..records.trajectories import LogPlace, Trajectory
from .base import LogEntry
from .conservation import Conservation, LossError
from .formats import ENTRY_POINT_GROUP, LogFormat
from .formats.atif import ATIF
from .formats.benchmarks import BENCHMARKS
from .formats.braintrust import BRAINTRUST
from .formats.claude_code import CLAUDE_CODE
from .formats.codex import CODEX
from .formats.gemini_cli import GEMINI_CLI
from .formats.harbor import HARBOR, is_job, read_job
from .formats.inspect_log import INSPECT, read_eval
from .formats.langfuse import LANGFUSE
from .formats.langsmith import LANGSMITH
from .formats.messages import MESSAGES
from .formats.mlflow import MLFLOW
from .formats.openai_agents import OPENAI_AGENTS
from .formats.openhands import OPENHANDS, OPENHANDS_EVENTS
from .formats.otlp import LOGFIRE, OPENINFERENCE, OTLP
from .formats.own import OWN
from .formats.tau import TAU2, TAU_BENCH, is_tau2_folder, read_tau2_folder
from .formats.weave import WEAVE
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
"""The shipped formats in JSON by name."""


@lru_cache(maxsize=1)
def formats() -> Mapping[str, LogFormat]:
    """The formats in JSON by name: the shipped ones, and those that installed packages add.

    Raises:
        OptionError: If a package adds something else.
        PluginError: If one can't be imported.
    """
    added = {
        name: load_plugin(ENTRY_POINT_GROUP, name, LogFormat, "--from")
        for name in plugin_names(ENTRY_POINT_GROUP)
    }
    return {**{name: of for name, of in added.items() if of is not None}, **FORMATS}


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
    OtherLog(name=HARBOR, title="job folder of Harbor", recognises=is_job, read=read_job),
    OtherLog(
        name=TAU2.name,
        title="results folder of τ²-bench",
        recognises=is_tau2_folder,
        read=read_tau2_folder,
    ),
)
"""The logs that are recognised by their path."""

_LOOKED_AT = 10
_SCORED, _SURE = 20, 0.8
"""Records that a format is recognised by, and the least mean score of one that is."""

_OTHERS = "files without any run of this format"
_OLDER = "runs whose trial is in a newer file too"

_NO_LOGS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(("model_response",)), "predictions: apbjudge grade takes them, in one file"),
    (frozenset(("kind", "judge", "fingerprint")), "judgements: apbjudge report takes their folder"),
    (
        frozenset(("judge_model", "judgement")),
        "judgements of another judge: apbjudge calibrate takes them",
    ),
    (
        frozenset(("rater", "is_correct")),
        "labels: apbjudge calibrate and report take them as --labels",
    ),
    (
        frozenset(("query", "tools", "answers")),
        "queries with reference calls, which nobody ran: apbjudge build takes them",
    ),
    (
        frozenset(("query", "tools", "reference")),
        "cases, which nobody ran: apbjudge predict takes them",
    ),
    (
        frozenset(("id", "user_scenario", "evaluation_criteria")),
        "tasks of τ²-bench, which nobody ran: apbjudge build takes their folder",
    ),
)
"""What rows that are no runs are, by their fields, and which command takes them."""


def _format(name: str) -> LogFormat | None:
    return FORMATS.get(name) or formats().get(name)


def format_names() -> list[str]:
    """The names that ``read_log`` takes beside ``auto``.

    Raises:
        OptionError: As ``formats`` does.
        PluginError: Likewise.
    """
    return sorted({*formats(), *(log.name for log in OTHER_LOGS)})


def detect(path: Path) -> str:
    """The name of a log's format, by the first records of its files.

    A folder that no format claims holds files of JSON, in any depth.

    Raises:
        InputError: If there is no such file, no format recognises it, or several do.
        PluginError: If an installed format can't be imported, or fails.
    """
    return _detected(path, _files(path))


def _files(path: Path) -> list[LogFile]:
    return files_of(path, lambda folder: _other_log(folder) is not None)


def _detected(path: Path, files: Sequence[LogFile]) -> str:
    sums: Counter[Any] = Counter()
    first: object = None
    n = 0
    for file in files[:: len(files) // _SCORED or 1][:_SCORED]:
        best: dict[str, float] = {}
        if (other := _other_log(file.path)) is not None:
            best[other.name] = 1
        else:
            try:
                with _named(file) as at:
                    known = tuple(formats().values())
                    scores, record = _scores_of(at, known, _SCORED // len(files) or 1)
            except InputError:
                if len(files) == 1:
                    raise
                continue
            first = first if isinstance(first, dict) else record
            for (name, _), score in scores.items():
                best[name] = max(best.get(name, 0.0), score)
        n += any(best.values())
        sums.update(best)
    ranked = [(name, score / n) for name, score in sums.most_common(3) if score]
    if ranked and ranked[0][1] >= _SURE and ranked[0][1] > (*ranked, ("", 0.0))[1][1]:
        return ranked[0][0]
    got = "" if isinstance(first, dict) else _other_format(files[0].path)
    raise InputError(f"{path}: expected runs of agents, got {got or _guessed(first, ranked)}")


def _other_format(path: Path) -> str:
    if path.is_dir():
        return ""
    with open_buffered(unpacked(path)) as file:
        return other_format(file.peek())


def _guessed(record: object, ranked: Sequence[tuple[str, float]]) -> str:
    """What a log is that is not recognised, as far as that can be said, and the way out."""
    if isinstance(record, RowError):
        return record.got
    if (fields := as_object(record)) is None:
        return "no run"
    for names, what in _NO_LOGS:
        if names <= fields.keys() and not ranked:
            return what
    keys = f"fields {shorten(', '.join(fields))}"
    if not ranked:
        return f"{keys}: --from NAME reads it as one of {', '.join(format_names())}"
    guesses = " or ".join(f"{name} ({score:.2f})" for name, score in ranked[:2])
    return f"{keys}, which may be {guesses}: --from NAME says which"


def _scores_of(
    path: Path, known: Collection[LogFormat], n: int
) -> tuple[dict[tuple[str, str], float], dict[str, Any] | RowError | None]:
    """How surely a file is of each format, and its first record as far as one can be read.

    An object that is the whole file is scored as a record (under an empty key), and so are those
    that it lists under a key.
    """
    scores: dict[tuple[str, str], float] = {}
    first: dict[str, Any] | RowError | None = None
    for key, values in _samples(path, frozenset(of.member for of in known if of.member), n):
        asked = [of for of in known if key in ("", of.member)]
        stated: list[dict[str, float]] = []
        for value in values:
            try:
                record = _object_of(value)
            except RowError as error:
                first = first if isinstance(first, dict) else error
                continue
            first = first if isinstance(first, dict) else record
            stated.append({of.name: of.score(record) for of in asked})
        n_known = sum(any(row.values()) for row in stated) or 1
        for of in asked:
            scores[of.name, key] = sum(row[of.name] for row in stated) / n_known
    return scores, first


def _samples(path: Path, members: frozenset[str], n: int) -> Iterator[tuple[str, list[Any]]]:
    """Yields the first values of a file by the key that lists them: the whole file first."""
    layout = _layout_of(path)
    if layout != "object":
        elements = (read_values if layout == "lines" else read_array)(path)
        yield "", [element.value for element in islice(elements, n)]
        return
    is_run = path.stat().st_size <= MAX_ELEMENT_BYTES
    listed = {
        key: [element.value for element in islice(read_member(path, key), n)]
        for key in islice(array_members(path, members), None if is_run else 1)
    }
    if not listed:
        yield "", [read_whole(path).value]
    elif is_run:
        key = next(iter(listed))
        yield "", [members_around(path, key) | {key: listed[key]}]
    yield from listed.items()


def _layout_of(path: Path) -> str:
    """What a file is; an array of messages is as a whole one run, as an object is."""
    layout = layout_of(path)
    if layout == "array":
        values = (element.value for element in islice(read_array(path), _LOOKED_AT))
        if is_message(next((of for of in values if not isinstance(of, RowError)), None)):
            return "object"
    return layout


@contextmanager
def _named(file: LogFile) -> Generator[Path]:
    """The file as it can be read; errors name it as it was named."""
    path = unpacked(file.path)
    try:
        yield path
    except InputError as error:
        raise InputError(str(error).replace(str(path), str(file.path))) from None


def read_log(
    path: Path,
    log_format: str = "auto",
    *,
    outcomes: Path | Outcomes | None = None,
    conservation: Conservation | None = None,
) -> Iterator[LogEntry]:
    """Yields the runs of a log, in its order; memory stays at ten runs and the ids of all.

    What is not carried over from the log is counted, and too much of it refused. Where a record is
    a part of a run, the log is read twice, and memory holds the places of all parts besides; of
    files that are one JSON array or object, the parts themselves.

    Args:
        path: A file, a folder, a pattern such as ``logs/*.jsonl`` or ``{a.json,b.json}``, or ``-``
            for standard input; files may be packed (``.gz``, ``.zst``).
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
            may be known only at its end. Of several files, one that is unusable is an entry.
        PluginError: If an installed format can't be imported, or fails.
    """
    if log_format not in ("auto", *FORMATS) and log_format not in (names := format_names()):
        raise OptionError(f"--from: expected one of {', '.join(names)}, got {log_format!r}")
    files = _files(path)
    name = _detected(path, files) if log_format == "auto" else log_format
    format_ = _format(name)
    others = (_other_log(file.path) for file in files)
    if format_ is None and not any(of is not None and of.name == name for of in others):
        title = next(of.title for of in OTHER_LOGS if of.name == name)
        raise InputError(f"{path}: expected {title}, got something else")
    account = conservation or Conservation()
    of_newest = len(files) > 1 and format_ is not None and format_.newest
    if of_newest:
        files.sort(key=lambda file: (file.path.name, file.name), reverse=True)
    entries = _conserved(path, _entries(path, files, name, account), account)
    settled = outcomes if isinstance(outcomes, Outcomes) else Outcomes(outcomes)
    return _checked(path, entries, settled, account if of_newest else None)


def _other_log(path: Path) -> OtherLog | None:
    return next((log for log in OTHER_LOGS if log.recognises(path)), None)


def _checked(
    path: Path, entries: Iterator[LogEntry], outcomes: Outcomes, newest: Conservation | None
) -> Iterator[LogEntry]:
    """The entries with their outcomes; of runs with one id, the first stays.

    With ``newest``, which counts them, runs are left out whose trial of the task a file before has.
    """
    seen, trials, file = KeySet(), KeySet(), ""
    of_file: list[int] = []
    for entry in entries:
        run = entry.content
        if isinstance(run, RowError):
            yield entry
            continue
        if newest is not None:
            if run.place.file != file:
                file = run.place.file
                for trial in of_file:
                    trials.add(trial)
                of_file.clear()
            trial = short_key(run.tested_model, run.setting, run.case_id, str(run.trial))
            if trial in trials:
                newest.left_out.setdefault(_OLDER, []).append(run.trajectory_id)
                continue
            of_file.append(trial)
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
    file: LogFile
    line: int
    around: Mapping[str, Any]


def _entries(
    path: Path, files: Sequence[LogFile], name: str, account: Conservation
) -> Iterator[LogEntry]:
    """The entries of all files; of several files they are numbered one after the other."""
    format_ = _format(name)
    is_one = len(files) == 1 and files[0].path == path
    if format_ is not None and format_.parts is not None:
        entries = (_entry(found, format_) for found in _runs(files, format_, account))
    else:
        entries = chain.from_iterable(_entries_of(of, files, name, account) for of in files)
    number = 0
    for number, entry in enumerate(entries, 1):
        yield entry if is_one else entry._replace(line=number)
    if not number and account.left_out:
        raise InputError(f"{path}: no file of it holds a run of {name}")


def _entries_of(
    file: LogFile, files: Sequence[LogFile], name: str, account: Conservation
) -> Iterator[LogEntry]:
    other, format_ = _other_log(file.path), _format(name)
    if other is not None and other.name == name:
        for entry in other.read(file.path):
            yield entry if entry.file else entry._replace(file=str(file.path), at=entry.line)
    elif format_ is None or (other is not None and file.path.is_dir()):
        account.left_out.setdefault(_OTHERS, []).append(file.name)
    else:
        for found in _records(file, format_, None if len(files) == 1 else account):
            yield _entry(found, format_)


def _entry(found: _Found, format_: LogFormat) -> LogEntry:
    element, file, line, around = found
    content: Trajectory | RowError
    is_whole = format_.parts is None or isinstance(element.value, RowError)
    try:
        place = LogPlace(format_.name, "", file.name, line)
        record = _object_of(element.value) if is_whole else element.value
        content = format_.read(record, place, around)
    except RowError as error:
        content = error
    except RecursionError:
        content = RowError("entry", "JSON that is not nested deeply", "hundreds of levels")
    where = (str(file.path), line or 1)
    return LogEntry(element.number, element.offset, element.digest, content, *where, element.value)


@dataclass(frozen=True, slots=True)
class _Splitter:
    """Takes records apart by run."""

    split: Callable[[Mapping[str, Any]], Iterable[tuple[str, Any]]]

    def parts(self, value: object) -> list[tuple[str, Any]]:
        """The parts in a record, each with the name of its run."""
        return list(self.split(_object_of(value)))

    def parts_at(self, file: LogFile, start: int) -> list[tuple[str, Any]]:
        """Those of a record that is read again: of the line at a byte, or with -1 of the file."""
        path = unpacked(file.path)
        try:
            line = orjson.loads(read_line_at(path, start)) if start >= 0 else read_whole(path).value
            return self.parts(line)
        except (OSError, ValueError, RowError):
            raise InputError(f"{file.path}: it was changed while it was read") from None


def _runs(files: Sequence[LogFile], format_: LogFormat, account: Conservation) -> Iterator[_Found]:
    """The runs of which the records hold parts, each put together.

    First the places of all parts are noted, by run; then each run is read from its places.
    """
    splitter = _Splitter(format_.parts or (lambda _: ()))
    heads: dict[str, _Found] = {}
    places: dict[str, array[int]] = {}  # the file, where in it, and whether the parts have no name
    held: list[list[tuple[str, Any]]] = []  # of elements that can't be read again by their place

    @lru_cache(maxsize=8)
    def parts_at(number: int, start: int) -> list[tuple[str, Any]]:
        return held[start] if number < 0 else splitter.parts_at(files[number], start)

    for number, file in enumerate(files):
        run = unnamed = f"{file.name}/"
        for found in _records(file, format_, None if len(files) == 1 else account):
            element = found.element
            try:
                parts = splitter.parts(element.value)
            except RowError as error:
                yield found._replace(element=element._replace(value=error))
                continue
            place = (number, -1 if element.start is None else element.start)
            if element.start is None and found.line:
                place = (-1, len(held))
                held.append(parts)
            for name in dict.fromkeys(name for name, _ in parts):
                if name and run == unnamed in heads:
                    heads.setdefault(name, heads.pop(unnamed))
                    places.setdefault(name, array("q")).extend(places.pop(unnamed))
                run = name or run
                heads.setdefault(run, found._replace(element=element._replace(value=None)))
                places.setdefault(run, array("q")).extend((*place, not name))
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
        InputError: If next to nothing of the first entries is carried over, or too little of all.
    """
    compared = (_compared(entry, conservation) for entry in entries)
    head = deque(islice(compared, _LOOKED_AT))
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


def _object_of(value: object) -> dict[str, Any]:
    """An entry as an object; a list alone is one of messages."""
    if isinstance(value, RowError):
        raise value
    if (messages := as_list(value)) is not None:
        return {"messages": messages}
    if (entry := as_object(value)) is None:
        raise RowError("entry", "an object or a list of messages", value)
    return entry


def _records(file: LogFile, format_: LogFormat, others: Conservation | None) -> Iterator[_Found]:
    """The records of a file; with ``others``, one that has none of the format is noted there."""
    try:
        with _named(file) as path:
            layout, around = _layout_of(path), dict[str, Any]()
            key = _container(path, format_) if layout == "object" else ""
            if layout != "object":
                elements = (read_values if layout == "lines" else read_array)(path)
            elif key:
                elements, around = read_member(path, key), members_around(path, key)
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
                yield _Found(element, file, 0 if is_whole else element.number, around)
    except InputError as error:
        if others is None:
            raise
        fault = RowError("file", "a log", str(error).removeprefix(f"{file.path}: "))
        yield _Found(Element(1, 0, hashlib.sha256(b"").digest(), fault), file, 0, {})


def _container(path: Path, format_: LogFormat) -> str:
    """The key under which the object that a file is lists the records; empty where it is one."""
    if not format_.member:
        return ""
    scores = _scores_of(path, (format_,), _SCORED)[0].items()
    # Of equal scores the record itself, unless nothing says that it is one.
    return max((of, bool(key) != bool(of), key) for (_, key), of in scores)[2]


def _head(elements: Iterator[Element], format_: LogFormat) -> tuple[list[Element], bool]:
    """The first elements, up to one of the format, and whether it may be of this format at all."""
    head: list[Element] = []
    for element in islice(elements, _SCORED):
        head.append(element)
        try:
            if format_.score(_object_of(element.value)):
                return head, True
        except RowError:
            continue
    return head, all(isinstance(element.value, RowError) for element in head)
