"""Logs of Inspect AI: ``.json`` files, and ``.eval`` archives with a file for each sample.

A sample is a trajectory, its epoch a trial. The transcript of events, which repeats the messages
many times, and tracebacks are left out.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any, cast

from ...errors import InputError, RowError
from ...jsonl import MAX_LINE_BYTES
from ...records.json_stream import parsed
from ...records.loose_json import as_list, as_object, objects_of, rest_of
from ...records.trajectories import LogPlace, Outcome, Trajectory, TrajectoryStep
from ...remote import zstandard
from ..base import LogEntry
from . import LogFormat
from .derived import trajectory_of_messages
from .fields import (
    id_field,
    list_in,
    number_of,
    numbers_in,
    object_in,
    objects_in,
    scores_in,
    text_field,
)

MAX_SAMPLE_BYTES = 4 * MAX_LINE_BYTES
"""Limit of an archive's member, unpacked."""

_ZSTD = 93
_REFERENCES = ("attachment://", "tc://")
_MAX_DEPTH = 64
_READ = frozenset(
    "id epoch uuid input messages output events events_data attachments timelines error".split()
)


def _is_sample(entry: Mapping[str, Any]) -> bool:
    return {"id", "epoch", "messages"} <= entry.keys() and not {"target", "scores"}.isdisjoint(
        entry
    )


def _read(entry: Mapping[str, Any], place: LogPlace, members: Mapping[str, Any]) -> Trajectory:
    sample_id, epoch = id_field(entry, "id"), entry.get("epoch")
    if not sample_id:
        raise RowError("id", "text or a number", None)
    if type(epoch) is not int:
        raise RowError("epoch", "a number", epoch)
    spec, attachments = object_in(members, "eval"), object_in(entry, "attachments")
    output = object_in(entry, "output")
    model = text_field(spec, "model", where="eval.") or text_field(output, "model")
    raw = [message for _, message in objects_in(entry, "messages")]
    events = objects_of(list_in(entry, "events"))
    n_turns = sum(message.get("role") == "assistant" for message in raw)
    scores = object_in(entry, "scores")
    values = {name: object_in(scores, name, "scores.").get("value") for name in scores}
    value = _main_score(values, spec, object_in(members, "results"))
    outcome, reward = None, number_of(value, letters=True)
    if isinstance(value, bool):
        outcome = Outcome(success=value)
    elif reward is not None:
        outcome = Outcome(reward)
    tools, limit, asked = _tools(events, attachments), entry.get("limit"), entry.get("input")
    if not isinstance(limit, str):
        limit = text_field(object_in(entry, "limit"), "type", where="limit.")
    if not isinstance(error := entry.get("error"), str | None):
        error = text_field(object_in(entry, "error"), "message", where="error.") or "error"
    task = {name: spec[name] for name in ("task", "created") if spec.get(name) is not None}
    trajectory = trajectory_of_messages(
        enumerate(_plain(message, attachments) for message in raw),
        "messages",
        replace(place, format="inspect", version=str(members.get("version", ""))),
        trajectory_id=id_field(entry, "uuid"),
        case_id=sample_id,
        tested_model=model,
        trial=epoch,
        setting=text_field(spec, "task", where="eval."),
        tools=None if tools is None else tuple(tools),
        termination=limit,
        infrastructure_error=error or "",
        outcome=outcome,
        scores=scores_in(values),
        usage=numbers_in(object_in(object_in(entry, "model_usage"), model, "model_usage.")),
        remarks={
            "cut content": _missing_turns(entry, events, n_turns),
            "missing scores": sum(map(_is_missing, values.values())),
        },
        extra=rest_of(entry, _READ) | task,
    )
    remarks = Counter(trajectory.remarks)
    remarks["cut content"] += _unresolved(trajectory.steps)
    query = trajectory.query or (asked if isinstance(asked, str) else "")
    return replace(trajectory, query=query, remarks=dict(+remarks))


def _unresolved(steps: Sequence[TrajectoryStep]) -> int:
    """Number of texts that refer to something that the sample lacks."""
    texts = (
        (of.text, of.thought, *(str(seen.content) for seen in of.observations)) for of in steps
    )
    return sum(text.startswith(_REFERENCES) for several in texts for text in several)


def _missing_turns(entry: Mapping[str, Any], events: list[dict[str, Any]], turns: int) -> int:
    """Number of the model's turns that the messages lack, as after a compaction."""
    count = entry.get("turn_count")
    if isinstance(count, int):
        return max(0, count - turns)
    if any(event.get("event") == "compaction" for event in events):
        return max(0, sum(event.get("event") == "model" for event in events) - turns)
    return 0


def _tools(events: list[dict[str, Any]], attachments: Mapping[str, Any]) -> list[Any] | None:
    """The tools of the first model call that offers any; None if no event states them."""
    tools: list[Any] | None = None
    for event in events:
        if event.get("event") == "model" and isinstance(event.get("tools"), list):
            tools = _resolved(event["tools"], attachments)
            if tools:
                break
    return tools


# Scores -------------------------------------------------------------------------------------------


def _main_score(
    values: Mapping[str, Any], spec: Mapping[str, Any], results: Mapping[str, Any]
) -> object:
    """The value of the only scorer, or of the one that the log names as its main one."""
    by_scorer = [score for _, score in objects_in(results, "scores", "results.")]
    first = by_scorer[0] if by_scorer else {}
    main = (
        object_in(results, "headline", "results.")
        or object_in(spec, "headline_metric", "eval.")
        or {"scorer": first.get("scorer"), "score": first.get("name")}
    )
    named = tuple(text_field(main, name, where="headline.") for name in ("scorer", "score"))
    names = values if len(values) == 1 else [name for name in named if name in values]
    value = values[next(iter(names))] if names else None
    if isinstance(value, dict):  # a scorer with several values
        return cast("dict[str, Any]", value).get(named[1])
    return value


def _is_missing(value: object) -> bool:
    """True if a score, or each of its several values, is null, or NaN as Inspect writes it."""
    several = as_object(value)
    return value is None if several is None else {*map(type, several.values())} == {NoneType}


# Messages -----------------------------------------------------------------------------------------


def _plain(message: dict[str, Any], attachments: Mapping[str, Any]) -> dict[str, Any]:
    """A message without references and file contents; its results state if they failed."""
    plain: dict[str, Any] = _resolved(message, attachments) if attachments else message
    if plain.get("role") == "tool":
        plain = {**plain, "is_error": bool(plain.get("error"))}
    if (parts := as_list(plain.get("content"))) is not None:
        plain = {**plain, "content": [_plain_part(of) for of in parts]}
    return plain


def _plain_part(part: Any) -> Any:
    """A part; for a tool that the model's provider ran, it has both call and result."""
    if (of := as_object(part)) is None:
        return part
    if of.get("type") == "tool_use":
        return {**of, "result": of.get("result") or None, "error": of.get("error") or False}
    return {k: v for k, v in of.items() if not (isinstance(v, str) and v.startswith("data:"))}


def _resolved(value: Any, attachments: Mapping[str, Any], depth: int = 0) -> Any:
    """A value with its references resolved; unknown ones stay."""
    if isinstance(value, str) and value.startswith(_REFERENCES):
        found = attachments.get(value.partition("//")[2])
        return found if isinstance(found, str) else value
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {name: _resolved(inner, attachments, depth + 1) for name, inner in items}
    if isinstance(value, list):
        return [_resolved(i, attachments, depth + 1) for i in cast("list[Any]", value)]
    return value


# Archives -----------------------------------------------------------------------------------------


def read_eval(path: Path) -> Iterator[LogEntry]:
    """The samples of an ``.eval`` archive, in order of their end.

    Memory stays at one sample, and nothing is unpacked to disk. Of two members with the same name
    the last counts. Members that are not samples, or whose name would lead out of the archive, are
    ignored.

    Raises:
        InputError: If the archive can't be read, is not Inspect's, or is compressed with zstd and
            the extra ``zstd`` is not installed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = _header(path, archive)
            names = {name: name.replace("\\", "/").split("/") for name in archive.namelist()}
            samples = (
                name
                for name, parts in names.items()
                if parts[0] == "samples" and name.endswith(".json") and ".." not in parts
            )
            for number, name in enumerate(samples, 1):
                info = archive.getinfo(name)
                place = LogPlace(format="inspect", file=str(path), line=number)
                raw, sample = b"", None
                content: Trajectory | RowError
                try:
                    raw = _unpacked(path, archive, info)
                    sample = _object(raw)
                    content = _read(sample, place, members)
                except RowError as error:
                    content = error
                offset = info.header_offset + info.compress_size
                digest = hashlib.sha256(raw).digest()
                yield LogEntry(number, offset, digest, content, raw=sample)
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror or error}") from None
    except zipfile.BadZipFile as error:
        raise InputError(f"{path}: expected an .eval archive of Inspect, got {error}") from None


def _header(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    """The archive's facts for all samples; only its start if the evaluation has not ended."""
    for name in ("header.json", "_journal/start.json"):
        if name in archive.NameToInfo:
            try:
                return _object(_unpacked(path, archive, archive.getinfo(name)))
            except RowError as error:
                raise InputError(f"{path}: {name}: {error}") from None
    raise InputError(f"{path}: expected an .eval archive of Inspect, got a ZIP without header.json")


def _unpacked(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member, unpacked.

    Raises:
        RowError: If it is damaged, or larger than allowed or stated.
    """
    size = info.file_size
    if size > MAX_SAMPLE_BYTES:
        raise RowError("line", f"at most {MAX_SAMPLE_BYTES // 2**20} MiB", f"{size} bytes")
    try:
        if info.compress_type == _ZSTD:
            raw = _unpacked_zstd(path, archive, info)
        else:
            with archive.open(info) as file:
                raw = file.read(size + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise RowError("line", "a member that can be unpacked", str(error)) from None
    if len(raw) != size:
        raise RowError("line", f"{size} bytes, as the archive says", f"{len(raw)} or more")
    return raw


def _unpacked_zstd(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The same for a method that ``zipfile`` knows only since Python 3.14, and without a limit.

    The packed bytes are read as if they were stored. Inspect begins a new frame every 200 MiB.
    """
    zstd = zstandard(path)
    packed = copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    packed.CRC = None  # type: ignore[assignment]  # that of the unpacked bytes is checked below
    with archive.open(packed) as file:
        try:
            reader = zstd.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            raw: bytes = reader.read(info.file_size + 1)
        except zstd.ZstdError as error:
            raise RowError("line", "a member that can be unpacked", str(error)) from None
    if len(raw) == info.file_size and zlib.crc32(raw) != info.CRC:
        raise RowError("line", "a member that can be unpacked", "another checksum")
    return raw


def _object(raw: bytes) -> dict[str, Any]:
    """The JSON object in a member; numbers that JSON lacks (scores may be NaN) are null."""
    value = parsed(raw, "line", has_nan=True)
    if (member := as_object(value)) is None:
        got = value.got.strip("'") if isinstance(value, RowError) else value
        raise RowError("line", "one JSON object", got)
    return member


INSPECT = LogFormat(
    name="inspect",
    title="an Inspect log",
    score=_is_sample,
    read=_read,
    member="samples",
    claims=lambda path: path.is_file() and path.suffix == ".eval",
    read_path=read_eval,
    has_nan=True,
    newest=True,
)
