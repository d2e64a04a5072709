"""Reads the logs of agents: which format it is, and one run after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import orjson

from ..errors import InputError, OptionError, RowError
from ..jsonl import MAX_LINE_BYTES, open_buffered, other_encoding, read_lines
from ..records.keys import KeySet, short_key
from ..records.trajectories import LogPlace, Trajectory
from ..runs.rows import row_error_of
from .base import LogEntry
from .formats import LogFormat
from .formats.atif import ATIF
from .formats.inspect_log import INSPECT, read_eval
from .formats.messages import MESSAGES
from .formats.own import OWN
from .formats.tau import TAU2, TAU_BENCH
from .json_stream import read_array, read_object
from .outcomes import Outcomes, read_outcomes
from .planbench.folder import PLANBENCH_RESULT, is_folder, read_folder

FORMATS: Mapping[str, LogFormat] = {
    format_.name: format_
    for format_ in (OWN, PLANBENCH_RESULT, ATIF, TAU2, TAU_BENCH, INSPECT, MESSAGES)
}
"""In the order in which they are tried: chat messages are in many logs."""
_MEMBERS = {format_.member: format_ for format_ in FORMATS.values() if format_.member}
_NAMES = ", ".join(FORMATS)
_LOOKED_AT = 10
"""Entries that a format is looked for in: the first ones may be broken."""
_ZIP = b"PK\x03\x04"

Layout = Literal["lines", "array", "object", "archive"]


class _Value(NamedTuple):
    """A JSON value of a log, with the members of the object around it."""

    file: Path
    number: int
    offset: int
    digest: bytes
    value: Any
    around: Mapping[str, Any]


def detect(path: Path) -> str:
    """The format of a log, by its content.

    Raises:
        InputError: If there is no such log, or it is none that is known.
    """
    if path.is_dir():
        if is_folder(path):
            return PLANBENCH_RESULT.name
        if (path / "metadata.json").is_file():
            wanted = "result.jsonl or progress/queries beside metadata.json"
            raise InputError(f"{path}: expected {wanted}, as PlanBench-XL writes them")
        for file in _files(path):
            with suppress(InputError):
                return detect(file)
        raise InputError(f"{path}: expected files of runs ({_NAMES}), got none that is known")
    if _layout(path) == "archive":
        return INSPECT.name
    for value in islice(_values(path), _LOOKED_AT):
        held: Any = value.value
        entry = cast("Any", {"messages": held} if isinstance(held, list) else held)
        if isinstance(entry, dict):
            row = cast("dict[str, Any]", entry)
            if (
                found := next((f for f in FORMATS.values() if f.recognises(row)), None)
            ) is not None:
                return found.name
    raise InputError(f"{path}: expected a log of runs ({_NAMES}), got none that is known")


def read_log(
    path: Path,
    log_format: str = "auto",
    *,
    outcomes: Path | None = None,
) -> Iterator[LogEntry]:
    """Yields the runs of a log, one at a time; memory stays at one run.

    Args:
        path: A file (JSON lines, one JSON array or object, an Inspect archive), a run folder of
            PlanBench-XL, or a folder of such files.
        log_format: Name of its format; ``auto``: as its content says.
        outcomes: File of outcomes to be joined with the runs, see ``outcomes.read_outcomes``.

    Raises:
        OptionError: If there is no such format.
        InputError: If the log as a whole, or the file of outcomes, is unusable.
    """
    name = detect(path) if log_format == "auto" else log_format
    if name not in FORMATS:
        raise OptionError(f"--from: expected one of {_NAMES}, got {name!r}")
    stated = None if outcomes is None else read_outcomes(outcomes)
    seen = KeySet()
    for entry in _entries(path, FORMATS[name]):
        run = entry.content
        if isinstance(run, Trajectory):
            yield entry._replace(content=_checked(run, seen, stated))
        else:
            yield entry
    if stated is not None and not stated.n_joined:
        raise InputError(f"{outcomes}: expected outcomes of runs of {path}, got only others")


def _checked(run: Trajectory, seen: KeySet, stated: Outcomes | None) -> Trajectory | RowError:
    """A run with its outcome; an error where its id was there before, or outcomes differ."""
    if not seen.add(short_key(run.trajectory_id, run.tested_model, run.setting)):
        expected = "an id that occurs once per tested model and setting"
        return RowError("trajectory_id", expected, run.trajectory_id)
    try:
        return run if stated is None else stated.join(run)
    except RowError as error:
        return error


def _entries(path: Path, format_: LogFormat) -> Iterator[LogEntry]:
    if path.is_dir() and is_folder(path):
        yield from read_folder(path)
        return
    if not path.is_dir() and _layout(path) == "archive":
        yield from read_eval(path)
        return
    for number, value in enumerate(_values(path, format_.member), start=1):
        line = value.number if value.file == path else number
        place = LogPlace(format_.name, file=str(value.file), line=line)
        yield LogEntry(line, value.offset, value.digest, _run(value, format_, place))


def _run(value: _Value, format_: LogFormat, place: LogPlace) -> Trajectory | RowError:
    entry: Any = value.value
    try:
        if isinstance(entry, RowError):
            raise entry  # noqa: TRY301 - it is one of those below
        if isinstance(entry, list) and format_ is MESSAGES:
            entry = {"messages": cast("Any", entry)}
        if not isinstance(entry, dict):
            wanted = f"a run, as {format_.title}"
            raise RowError("line", wanted, cast("Any", entry))  # noqa: TRY301
        return format_.read(cast("dict[str, Any]", entry), place, value.around)
    except Exception as error:  # noqa: BLE001 - one odd run must not cost the others
        return row_error_of(error)


# Values -------------------------------------------------------------------------------------------


def _values(path: Path, member: str = "") -> Iterator[_Value]:
    """The JSON values of a file, or of the files of a folder, one at a time."""
    if path.is_dir():
        for file in _files(path):
            yield from _values(file, member)
        return
    layout = _layout(path)
    if layout == "lines":
        for line in read_lines(path, any_format=True):
            value: Any = line.values
            if isinstance(value, RowError) and line.raw.startswith(b"["):
                value = _list_of(line.raw, value)
            end = line.offset + len(line.raw)
            digest = sha256(line.raw).digest()
            yield _Value(path, line.number, end, digest, value, {})
    elif layout == "array":
        for element in read_array(path):
            yield _Value(path, *element[:4], {})
    else:
        yield from _of_object(path, {member} if member else set(_MEMBERS))


def _of_object(path: Path, members: set[str]) -> Iterator[_Value]:
    """The runs under a member of the object that a file is; without it, the object as one run."""
    around: dict[str, Any] = {}
    is_there = False
    for element in read_object(path, members, around):
        is_there = True
        yield _Value(path, *element[:4], around)
    if not is_there and not members & around.keys():
        raw = orjson.dumps(around, default=str)
        yield _Value(path, 1, len(raw), sha256(raw).digest(), around, {})


def _list_of(raw: bytes, error: RowError) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return error


def _files(folder: Path) -> list[Path]:
    """The JSON files of a folder, in order."""
    files = sorted(
        file
        for file in folder.iterdir()
        if file.is_file() and file.suffix in (".json", ".jsonl", ".eval")
    )
    if not files:
        raise InputError(f"{folder}: expected a run folder of PlanBench-XL, or JSON files of runs")
    return files


def _layout(path: Path) -> Layout:
    """How a file is laid out, by its beginning."""
    try:
        with open_buffered(path) as file:
            head = file.peek()
            if head.startswith(_ZIP):
                return "archive"
            if encoding := other_encoding(head):
                raise InputError(f"{path}: expected JSON in UTF-8, got {encoding}")
            first, following = _first_lines(file)
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    if not first:
        raise InputError(f"{path}: expected a log of runs, got an empty file")
    try:
        value: Any = orjson.loads(first)
    except orjson.JSONDecodeError:
        runs_on = not following or first.endswith((b",", b"{", b"["))
        is_start = first[:1] in (b"[", b"{") and (first[:1] == b"[" or runs_on)
        if not is_start or (following and _is_json(following)):
            return "lines"
        return "array" if first[:1] == b"[" else "object"
    if isinstance(value, list) and not following:
        held = cast("list[Any]", value)
        is_messages = MESSAGES.recognises({"messages": held})
        return "lines" if is_messages else "array"
    is_whole = isinstance(value, dict) and bool({*_MEMBERS} & cast("Any", value).keys())
    return "object" if is_whole and not following else "lines"


def _first_lines(file: Any) -> tuple[bytes, bytes]:
    """The first two lines that are not blank, each cut at the greatest length."""
    found: list[bytes] = []
    while len(found) < 2 and (raw := file.readline(MAX_LINE_BYTES + 1)):
        if line := raw.removeprefix(b"\xef\xbb\xbf").strip():
            found.append(line)
    return (*found, b"", b"")[0], (*found, b"", b"")[1]


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
