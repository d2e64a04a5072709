"""Rollouts of the Codex CLI, and the output of ``codex exec --json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from ...errors import RowError
from ...records.loose_json import as_object
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import first_of, numbers_in, object_in, text_field
from .sessions import LoggedSession, note, opening_of, part_of_file

_LINES = frozenset("session_meta turn_context response_item event_msg compacted".split())
_EVENTS = ("thread.", "turn.", "item.")
_CONTEXT = (
    *("<environment_context>", "<user_instructions>", "<turn_aborted>"),
    "# AGENTS.md instructions",
)
"""Prefixes of messages that the client writes in place of the user."""
_OF_RESULTS = frozenset(
    "id type status exit_code aggregated_output result error server tool".split()
)


def _score(line: Mapping[str, Any]) -> float:
    kind = str(line.get("type"))
    held = as_object(line.get("payload")) or as_object(line.get("item"))
    is_event = kind.startswith(_EVENTS) and (held or not kind.startswith("item."))
    return float(bool(is_event or (held and kind in _LINES)))


def _read(lines: list[dict[str, Any]], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    session = _Rollout(is_whole=any(line.get("type") == "response_item" for line in lines))
    for at, line in enumerate(lines):
        session.take(at, line)
    for item, places in session.items.values():
        is_done = lines[places[-1]].get("type") == "item.completed"
        for message in _of_item(item, is_done=is_done):
            session.add(message, *places)
    for i, message in enumerate(session.messages):
        mark = (session.failed | _mark(message)).get(str(message.get("call_id")))
        if mark is not None and str(message.get("type")).endswith("_output"):
            session.messages[i] = {**message, "is_error": mark}
    about = session.about
    instructions = as_object(about.get("base_instructions")) or {"text": about.get("instructions")}
    return session.trajectory(
        place,
        text_field(about, "id", where="payload."),
        system=text_field(instructions, "text", where="payload.base_instructions."),
        termination=session.end,
        usage=session.usage,
    )


@dataclass(slots=True, kw_only=True)
class _Rollout(LoggedSession):
    """A session; its events count only if it has no items (``is_whole``)."""

    is_whole: bool
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    items: dict[str, tuple[dict[str, Any], list[int]]] = field(default_factory=dict[str, Any])
    failed: dict[str, bool] = field(default_factory=dict[str, bool])
    usage: dict[str, float] = field(default_factory=dict[str, float])
    end: str = ""

    def take(self, at: int, line: dict[str, Any]) -> None:
        """Adds a line."""
        kind = str(line.get("type"))
        held = as_object(line.get("payload")) or as_object(line.get("item")) or line
        if kind == "session_meta":
            if self.about and self.messages:
                raise RowError("payload.id", "one session in a file", held.get("id"))
            self.about = self.about or held  # a fork repeats its origin's
        elif kind == "turn_context":
            self.model = self.model or text_field(held, "model", where="payload.")
        elif kind == "compacted":
            self.leave_out("rewritten context", [held])
        elif kind == "response_item":
            is_context = held.get("role") == "user" and opening_of(held).startswith(_CONTEXT)
            self.add({**held, "role": "system"} if is_context else held, at)
        elif kind.startswith("item."):
            item_id = text_field(held, "id", where="item.")
            self.items[item_id] = held, [*self.items.get(item_id, ({}, []))[1], at]
        else:
            self._event(at, held)

    def _event(self, at: int, event: dict[str, Any]) -> None:
        kind = event.get("type")
        self.carriers.append(event)
        self.failed |= _mark(event)
        if kind == "thread.started":
            self.about = {"id": event.get("thread_id")}
        elif kind in ("turn.failed", "error"):
            self.error = text_field(as_object(event.get("error")) or event, "message")
        elif kind == "thread_rolled_back":
            turns = [i for i, of in enumerate(self.messages) if of.get("role") == "user"]
            at = next(iter(turns[-int(event.get("num_turns") or 0) :]), len(self.messages))
            self.leave_out("abandoned branches", self.messages[at:])
            del self.messages[at:], self.lines[at:]
        elif kind == "turn_aborted":
            self.end = text_field(event, "reason") or "turn_aborted"
        elif not self.is_whole and (message := _message_item(event)):
            self.add(message, at)
        info = object_in(event, "info")
        last = Counter(numbers_in(object_in(info, "last_token_usage")))
        whole = object_in(info, "total_token_usage") or object_in(event, "usage")
        self.usage = numbers_in(whole) or dict(last + Counter(self.usage))
        if kind == "turn.completed" or event.get("last_agent_message"):
            self.error = ""


def _mark(of: Mapping[str, Any]) -> dict[str, bool]:
    """Maps the call of a result or event to True if it failed, if a code or Boolean states it."""
    output: Any = of.get("output")
    with suppress(orjson.JSONDecodeError):
        output = orjson.loads(output) if isinstance(output, str) else output
    inner = as_object(output) or of
    code, success = (as_object(inner.get("metadata")) or of).get("exit_code"), inner.get("success")
    if type(code) is int or isinstance(success, bool):
        return {str(of.get("call_id")): code != 0 if type(code) is int else not success}
    return {}


def _message_item(of: Mapping[str, Any]) -> dict[str, Any] | None:
    """The item of the Responses API for an event or an item of ``exec``; None without one."""
    kind, text = str(of.get("type")), first_of(of, "text", "message")[1]
    if kind in ("user_message", "agent_message", "plan"):
        role = "user" if kind == "user_message" else "assistant"
        return {"type": "message", "role": role, "content": text}
    if kind.endswith("reasoning"):
        return {"type": "reasoning", "summary": [{"type": "text", "text": text}]}
    return note(text) if kind == "error" else None


def _of_item(item: dict[str, Any], *, is_done: bool) -> Iterator[dict[str, Any]]:
    """The items of the Responses API for an item of ``exec``."""
    if message := _message_item(item):
        yield message
        return
    server, tool, call_id = item.get("server"), item.get("tool"), item.get("id")
    given = {key: of for key, of in item.items() if key not in _OF_RESULTS}
    name = f"mcp__{server}__{tool}" if server else tool or item.get("type")
    call = {"name": name, "call_id": call_id, "arguments": item.get("arguments", given)}
    yield {"type": "function_call", **call}
    if is_done:
        output = first_of(item, "aggregated_output", "result", "error")[1]
        mark = {"is_error": True} if item.get("status") in ("failed", "declined") else {}
        mark = {"is_error": code != 0} if type(code := item.get("exit_code")) is int else mark
        output = "" if output is None else output
        yield {"type": "function_call_output", "call_id": call_id, "output": output, **mark}


CODEX = LogFormat(
    name="codex", title="Codex rollouts", score=_score, read=_read, parts=part_of_file
)
