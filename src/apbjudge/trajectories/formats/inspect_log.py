"""Logs of Inspect AI: ``.json`` files, and ``.eval`` archives with a file for each sample.

A sample is a run, its epoch a trial. The transcript of events, which repeats the messages many
times over, is not kept, nor are tracebacks.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import orjson

from ...errors import InputError, RowError
from ...jsonl import MAX_LINE_BYTES, object_of
from ...records.trajectories import LogPlace, Trajectory, trajectory_of
from ..base import LogEntry
from ..files import zstandard
from . import LogFormat
from .derived import final_answer_of, query_of, remarks_of
from .fields import list_in, object_in, objects_in, text_in

MAX_SAMPLE_BYTES = 4 * MAX_LINE_BYTES
"""Of an archive's member, unpacked."""

_ZSTD = 93
_REFERENCES = ("attachment://", "tc://")
_LETTERS: Mapping[Any, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_MAX_DEPTH = 64
_READ = frozenset(
    "id epoch uuid input messages output events events_data attachments timelines error".split()
)
_READ_OF_MESSAGE = frozenset(("role", "content", "tool_calls", "tool_call_id", "function"))
_READ_OF_CALL = frozenset(("id", "function", "arguments", "parse_error", "type"))


def _is_sample(entry: Mapping[str, Any]) -> bool:
    return {"id", "epoch", "messages"} <= entry.keys() and not {"target", "scores"}.isdisjoint(
        entry
    )


def _read(entry: Mapping[str, Any], place: LogPlace, members: Mapping[str, Any]) -> Trajectory:
    sample_id, epoch = entry.get("id"), entry.get("epoch")
    if isinstance(sample_id, bool) or not isinstance(sample_id, str | int):
        raise RowError("id", "text or a number", sample_id)
    if isinstance(epoch, bool) or not isinstance(epoch, int):
        raise RowError("epoch", "a number", epoch)
    spec = object_in(members, "eval")
    output = object_in(entry, "output")
    model = text_in(spec, "model", "eval.") or text_in(output, "model", "output.")
    conversation = _Conversation(object_in(entry, "attachments"))
    for number, message in objects_in(entry, "messages"):
        conversation.add(message, f"messages.{number}.")

    remarks = conversation.remarks
    events = [cast("dict[str, Any]", e) for e in list_in(entry, "events") if isinstance(e, dict)]
    remarks["cut content"] += _missing_turns(entry, events, conversation.turns)
    scores = object_in(entry, "scores")
    value = _main_score(scores, spec, object_in(members, "results"))
    remarks["scores without choice"] = len(scores) > 1 and value is None

    extra = {k: v for k, v in entry.items() if k not in _READ and v not in (None, {}, [])}
    task = {"task": spec.get("task"), "created": spec.get("created")}
    extra |= {name: known for name, known in task.items() if known is not None}
    if conversation.unknown:
        extra["unknown_messages"] = conversation.unknown
    limit = entry.get("limit")
    usage = object_in(entry, "model_usage")
    trajectory = trajectory_of(
        {
            "trajectory_id": text_in(entry, "uuid") or f"{sample_id}-{epoch}",
            "case_id": str(sample_id),
            "tested_model": model,
            "trial": epoch,
            "setting": text_in(spec, "task", "eval."),
            "system_prompt": "\n\n".join(conversation.prompts),
            "tools": _tools(events, conversation.attachments),
            "steps": conversation.rows,
            "termination": limit
            if isinstance(limit, str)
            else object_in(entry, "limit").get("type", ""),
            "infrastructure_error": _problem(entry),
            "outcome": _outcome(value),
            "usage": {
                name: count
                for name, count in object_in(usage, model, "model_usage.").items()
                if isinstance(count, int | float) and not isinstance(count, bool)
            },
            "place": asdict(
                replace(place, format="inspect", version=str(members.get("version", "")))
            ),
            "extra": extra,
        }
    )
    steps = trajectory.steps
    asked = entry.get("input")
    return replace(
        trajectory,
        query=query_of(steps) or (asked if isinstance(asked, str) else ""),
        final_answer=final_answer_of(steps),
        remarks=dict(+(remarks + remarks_of(steps))),
    )


def _problem(entry: Mapping[str, Any]) -> str:
    error = entry.get("error")
    if isinstance(error, str) or error is None:
        return error or ""
    return text_in(object_in(entry, "error"), "message", "error.") or "error"


def _missing_turns(entry: Mapping[str, Any], events: list[dict[str, Any]], turns: int) -> int:
    """How many of the model's turns the messages lack, as after a compaction."""
    count = entry.get("turn_count")
    if isinstance(count, int):
        return max(0, count - turns)
    if any(event.get("event") == "compaction" for event in events):
        return max(0, sum(event.get("event") == "model" for event in events) - turns)
    return 0


def _tools(events: list[dict[str, Any]], attachments: Mapping[str, Any]) -> list[Any] | None:
    """The tools of the first call of a model that offers any; None where no event says."""
    tools: list[Any] | None = None
    for event in events:
        if event.get("event") == "model" and isinstance(event.get("tools"), list):
            tools = _resolved(event["tools"], attachments)
            if tools:
                break
    return tools


# Scores -------------------------------------------------------------------------------------------


def _main_score(
    scores: Mapping[str, Any], spec: Mapping[str, Any], results: Mapping[str, Any]
) -> object:
    """The value of the only scorer, or of that which the log names as its main one."""
    by_scorer = [score for _, score in objects_in(results, "scores", "results.")]
    first = by_scorer[0] if by_scorer else {}
    main = (
        object_in(results, "headline", "results.")
        or object_in(spec, "headline_metric", "eval.")
        or {"scorer": first.get("scorer"), "score": first.get("name")}
    )
    named = (text_in(main, "scorer", "headline."), text_in(main, "score", "headline."))
    if len(scores) == 1:
        (name,) = scores
    else:
        name = next((name for name in named if name in scores), "")
    value = object_in(scores, name, "scores.").get("value")
    if isinstance(value, dict):  # a scorer of several values
        return cast("dict[str, Any]", value).get(named[1])
    return value


def _outcome(value: object) -> dict[str, Any] | None:
    if isinstance(value, bool):
        return {"success": value}
    if isinstance(value, str):
        return {"reward": _LETTERS[value]} if value in _LETTERS else None
    if isinstance(value, int | float) and math.isfinite(value):
        return {"reward": float(value)}
    return None


# Messages -----------------------------------------------------------------------------------------


class _Conversation:
    """Steps, made of one message after the other.

    Attributes:
        rows: Steps as rows of our own format.
        prompts: System messages before any other.
        unknown: Messages of no known role.
        turns: Messages of the model.
        remarks: What can't be seen in the steps themselves.
    """

    def __init__(self, attachments: Mapping[str, Any]) -> None:
        self.attachments = attachments
        self.rows: list[dict[str, Any]] = []
        self.prompts: list[str] = []
        self.unknown: list[Any] = []
        self.turns = 0
        self.remarks: Counter[str] = Counter()
        self._callers: dict[str, dict[str, Any]] = {}

    def add(self, message: Mapping[str, Any], where: str) -> None:
        """Adds a message; ``where`` is put before the names of fields in errors."""
        role = message.get("role")
        text, thought, used, files = self._content(message.get("content"), where)
        rest = {k: v for k, v in message.items() if k not in _READ_OF_MESSAGE and v is not None}
        if files:
            rest["files"] = files
        if role == "system" and not self.rows:
            self.prompts.append(text)
        elif role in ("system", "user"):
            self.rows.append({"source": role, "text": text, "extra": rest})
        elif role == "assistant":
            self._add_turn(message, {"text": text, "thought": thought, "extra": rest}, used, where)
        elif role == "tool":
            self._add_result(message, text, rest, where)
        else:
            self.unknown.append(message)
            self.remarks["unknown steps"] += 1

    def _add_turn(
        self,
        message: Mapping[str, Any],
        row: dict[str, Any],
        used: list[dict[str, Any]],
        where: str,
    ) -> None:
        self.turns += 1
        calls: list[dict[str, Any]] = []
        row |= {"source": "agent", "calls": calls, "observations": []}
        for number, call in objects_in(message, "tool_calls", where):
            at = f"{where}tool_calls.{number}."
            arguments = _resolved(call.get("arguments"), self.attachments)
            problem = text_in(call, "parse_error", at)
            self.remarks["unreadable arguments"] += bool(problem) and isinstance(arguments, dict)
            call_id = text_in(call, "id", at)
            calls.append(
                {
                    "name": text_in(call, "function", at),
                    "arguments": arguments,
                    "call_id": call_id,
                    "parse_error": problem,
                }
            )
            if call_id:
                self._callers[call_id] = row
        for tool in used:  # by the provider of the model, which shows call and result in one
            call_id, error = text_in(tool, "id", where), text_in(tool, "error", where)
            arguments = self._text(text_in(tool, "arguments", where))
            calls.append(
                {"name": text_in(tool, "name", where), "call_id": call_id} | _parsed(arguments)
            )
            result = self._text(text_in(tool, "result", where)) or error
            row["observations"].append(
                {"content": result, "call_id": call_id, "is_error": bool(error)}
            )
        if calls:
            row["kind"] = "call"
        self.rows.append(row)

    def _add_result(
        self, message: Mapping[str, Any], text: str, rest: dict[str, Any], where: str
    ) -> None:
        call_id = text_in(message, "tool_call_id", where)
        error = object_in(message, "error", where)
        result: dict[str, Any] = {
            "content": text or text_in(error, "message", f"{where}error."),
            "call_id": call_id,
            "name": text_in(message, "function", where),
            "is_error": bool(error),
        }
        row = self._callers.get(call_id)
        if row is None:
            row = dict[str, Any](source="environment", observations=[], extra={})
            self.rows.append(row)
        if rest:
            number = str(len(row["observations"]))
            row["extra"].setdefault("results", {})[number] = rest
        row["observations"].append(result)

    def _content(
        self, content: object, where: str
    ) -> tuple[str, str, list[dict[str, Any]], list[dict[str, Any]]]:
        """Text, reasoning, tools used by the provider, and files without what is in them."""
        if content is None or isinstance(content, str):
            return self._text(content or ""), "", [], []
        texts: list[str] = []
        thoughts: list[str] = []
        used: list[dict[str, Any]] = []
        files: list[dict[str, Any]] = []
        for number, part in objects_in({"content": content}, "content", where):
            at = f"{where}content.{number}."
            kind = part.get("type")
            if kind == "text":
                texts.append(self._text(text_in(part, "text", at)))
            elif kind == "reasoning":
                whole = text_in(part, "reasoning", at)
                if part.get("redacted"):
                    self.remarks["cut content"] += 1
                    whole = text_in(part, "summary", at)
                thoughts.append(self._text(whole))
            elif kind == "tool_use":
                used.append(part)
            else:
                self.remarks["attachments"] += 1
                named = {k: v for k, v in part.items() if not _is_data(v)}
                files.append({k: v for k, v in named.items() if v is not None})
        return "\n".join(texts), "\n".join(thoughts), used, files

    def _text(self, text: str) -> str:
        resolved = _resolved(text, self.attachments)
        self.remarks["cut content"] += resolved is text and text.startswith(_REFERENCES)
        return resolved


def _is_data(value: object) -> bool:
    return isinstance(value, str) and value.startswith("data:")


def _parsed(arguments: str) -> dict[str, Any]:
    try:
        value: object = orjson.loads(arguments)
    except orjson.JSONDecodeError as error:
        return {"arguments": arguments, "parse_error": str(error)}
    if isinstance(value, dict):
        return {"arguments": cast("Any", value)}
    return {"arguments": arguments, "parse_error": "no JSON object"}


def _resolved(value: Any, attachments: Mapping[str, Any], depth: int = 0) -> Any:
    """A value with what its texts refer to in their place; unknown references stay."""
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


INSPECT = LogFormat(
    name="inspect",
    title="an Inspect log",
    score=_is_sample,
    read=_read,
    member="samples",
    newest=True,
)


# Archives -----------------------------------------------------------------------------------------


def read_eval(path: Path) -> Iterator[LogEntry]:
    """The samples of an ``.eval`` archive, in the order in which they ended.

    Memory stays at one sample, and nothing is unpacked to disk. Of two members of one name the
    last counts. Members that are no samples, or whose name would lead out of the archive, are
    ignored.

    Raises:
        InputError: If the archive can't be read, is none of Inspect's, or is compressed with zstd
            and the extra ``inspect`` is not installed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = _header(path, archive)
            names = (name for name in dict.fromkeys(archive.namelist()) if _is_sample_name(name))
            for number, name in enumerate(names, 1):
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


def _is_sample_name(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return parts[0] == "samples" and name.endswith(".json") and ".." not in parts


def _header(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    """What the archive says of all samples; that of a run which has not ended has only a start."""
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
        RowError: If it is damaged, or larger than allowed or than it says.
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
    """Likewise, for a method that ``zipfile`` knows only since Python 3.14, and without a limit.

    The packed bytes are read as if they were stored. Inspect begins a new frame every 200 MiB.
    """
    zstd = zstandard(path)
    packed = copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    packed.CRC = None  # type: ignore[assignment]  # of the unpacked bytes, checked below
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
    """The JSON object in a member; numbers that JSON has not (scores may be NaN) are null."""
    if not any(word in raw for word in (b"NaN", b"Infinity")):
        return object_of(raw)
    try:
        value: object = json.loads(raw, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise RowError("line", "one JSON object", str(error)) from None
    if not isinstance(value, dict):
        raise RowError("line", "one JSON object", value)
    return cast("dict[str, Any]", value)
