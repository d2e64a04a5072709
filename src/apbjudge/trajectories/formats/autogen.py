"""Results and saved states of AutoGen's agents and teams (AgentChat), and streams of their events.

A file with a stream is one trajectory, also of several turns; their results repeat its events.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from ...records.loose_json import as_list, as_object, objects_of, rest_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import id_field, numbers_in, object_in, text_field
from .messages import outcome_of
from .sessions import LoggedSession, name_in, note, part_of_file

_TYPE = re.compile(r"[A-Z]\w*(Message|Event)(\[.+\])?")
_CALLS = ("ToolCallRequestEvent", "AssistantMessage")
_RESULTS = ("ToolCallExecutionEvent", "FunctionExecutionResultMessage", "CodeExecutionEvent")
_MAY_REPEAT = ("ToolCallSummaryMessage", "HandoffMessage")
_ROLES = {
    "UserMessage": "user",
    "SelectSpeakerEvent": "tool",
    **dict.fromkeys(("SystemMessage", "MemoryQueryEvent"), "system"),
}
_READ = frozenset(
    "id type source content result thought models_usage created_at code_blocks tool_calls results "
    "context".split()
)
_AROUND = frozenset(
    "messages stop_reason id case_id reward success agent_states llm_context type version".split()
)
_COPIES, _CODE = "duplicate carriers", "code_execution"


def _listed(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a result, or of the state of an agent or a team."""
    states = (as_object(record.get("agent_states")) or {}).values()
    holders = [record, *objects_of([record.get("llm_context"), *states])]
    lists = (objects_of(of.get(key)) for of in holders for key in ("messages", "message_thread"))
    return next(filter(None, lists), list[dict[str, Any]]())


def _is_event(of: Mapping[str, Any]) -> bool:
    is_typed = _TYPE.fullmatch(name_in(of, "type")) is not None
    return is_typed and "source" in of and ("content" in of or "result" in of)


def _score(record: Mapping[str, Any]) -> float:
    return float(any(map(_is_event, _listed(record))))


def _score_of_line(line: Mapping[str, Any]) -> float:
    return float(_is_event(line)) or 0.9 * _score(line)


def _read(record: dict[str, Any], place: LogPlace, around: Mapping[str, Any]) -> Trajectory:
    return _read_stream([record], place, around)


def _read_stream(lines: list[dict[str, Any]], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    chat, streamed, facts = _Chat(), set[object](), dict[str, Any]()
    for line in lines:
        is_event = _is_event(line)
        if is_event and (end := facts.pop("termination", "")):  # of a previous turn
            chat.add(note(end), chat.n_events - 1)
        for event in [line] if is_event else _listed(line):
            key = text_field(event, "id") or orjson.dumps(event)  # older versions have no ids
            if is_event or key not in streamed:
                chat.add_event(event)
            chat.remarks[_COPIES] += key in streamed
            if is_event:
                streamed.add(key)
        if not is_event:
            streamed.clear()
            chat.extra |= rest_of(line, _AROUND)
            facts |= {name: id_field(line, name) for name in ("id", "case_id")}
            facts |= {"termination": text_field(line, "stop_reason"), "outcome": outcome_of(line)}
    facts |= {"answer": chat.answer, "usage": dict(chat.usage)}
    return chat.trajectory(place, facts.pop("id", ""), **facts)


def _results(kind: str, event: Mapping[str, Any]) -> Any:
    """The results in an event; code has one."""
    if kind != "CodeExecutionEvent":
        return event.get("content")
    result = object_in(event, "result")
    is_error = result.get("exit_code") != 0
    return [{"name": _CODE, "content": result.get("output"), "is_error": is_error}]


def _content(kind: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """The text, reasoning and calls of a message."""
    content, thought = event.get("content"), {"reasoning": event.get("thought")}
    if kind == "ThoughtEvent":  # the message that follows is joined to it
        return {"reasoning": content}
    if kind in _CALLS and as_list(content):
        return {"tool_calls": content, **thought}
    if blocks := event.get("code_blocks"):
        thought["tool_calls"] = [{"name": _CODE, "arguments": {"code_blocks": blocks}}]
    return {"parts": _parts(content), **thought}


def _parts(content: Any) -> list[dict[str, Any]]:
    """The parts of a message: texts and pictures, memories with such, or an object."""
    parts, listed = list[dict[str, Any]](), as_list(content)
    for of in [content] if listed is None else listed:
        memory = as_object(of) or {}
        inner = memory.get("content") if "mime_type" in memory else of
        picture = as_object(inner) or {}
        text = inner if isinstance(inner, str) else orjson.dumps(inner).decode()
        is_picture = listed is not None and picture.keys() == {"data"}
        parts.append({"type": "image", **picture} if is_picture else {"text": text})
    return parts


@dataclass(slots=True)
class _Chat(LoggedSession):
    """The messages of events.

    Attributes:
        n_events: Number of events.
        users: Sources that are people.
        results: Contents of the last results, by source.
        answer: Text of the last event, if it repeats results.
        usage: Sums of tokens.
    """

    n_events: int = 0
    users: set[str] = field(default_factory=lambda: {"user"})
    results: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    answer: str = ""
    usage: Counter[str] = field(default_factory=Counter[str])

    def add_event(self, event: dict[str, Any]) -> None:
        """Adds an event, or a message of a model's context."""
        at, kind = self.n_events, name_in(event, "type").partition("[")[0]
        source, self.n_events = name_in(event, "source"), at + 1
        self.usage.update(numbers_in(object_in(event, "models_usage")))
        if kind == "ModelClientStreamingChunkEvent":  # the message as a whole follows
            self.leave_out(_COPIES, [event.get("content")])
            return
        self.answer = ""
        role = "user" if source in self.users else _ROLES.get(kind, "model")
        if kind == "UserInputRequestedEvent":
            self.users.add(source)
        elif kind in _RESULTS:
            self._add_results(source, _results(kind, event), at)
        elif kind in _MAY_REPEAT and role == "model" and self._repeats(source, event, at):
            self.answer = text_field(event, "content")
        else:
            who = {"role": role, **({} if source == "user" else {"name": source})}
            self.add({**who, **_content(kind, event), **rest_of(event, _READ)}, at)

    def _add_results(self, source: str, results: Any, at: int) -> None:
        self.results[source] = [of.get("content") for of in objects_of(results)]
        self.add({"role": "tool", "tool_messages": results}, at)

    def _repeats(self, source: str, event: dict[str, Any], at: int) -> bool:
        """True if a summary or a handoff has the text of results, which are read, and no other."""
        results, known = objects_of(event.get("results")), self.results.get(source, [])
        stated = [of.get("content") for of in results] or known
        if stated != known:  # a log of messages without events
            self.add({"role": "model", "name": source, "tool_calls": event.get("tool_calls")}, at)
            self._add_results(source, results, at)
        is_copy = event.get("content") in ("\n".join(map(str, stated)), *stated) and bool(stated)
        self.remarks[_COPIES] += is_copy
        return is_copy


AUTOGEN = LogFormat(name="autogen", title="AutoGen results", score=_score, read=_read)
AUTOGEN_EVENTS = LogFormat(
    name="autogen-events",
    title="AutoGen streams of events",
    score=_score_of_line,
    read=_read_stream,
    parts=part_of_file,
)
