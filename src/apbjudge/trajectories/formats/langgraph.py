"""States of LangGraph's threads, with messages; the latest of a thread has all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import RowError
from ...records.loose_json import as_list, as_object, objects_of
from ...records.messages import is_message
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import object_in, text_field
from .sessions import LoggedSession


def _values(state: Mapping[str, Any]) -> dict[str, Any]:
    return as_object(state.get("values")) or {}


def _score(record: Mapping[str, Any]) -> float:
    messages = as_list(_values(record).get("messages"))
    is_state = "next" in record and bool({"config", "checkpoint"} & record.keys())
    return float(is_state and (not messages or is_message(messages[0])))


def _thread(state: Mapping[str, Any]) -> str:
    config = object_in(object_in(state, "config"), "configurable")
    return text_field(config or object_in(state, "checkpoint"), "thread_id")


def _parts(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield _thread(record), record


def _read(states: list[dict[str, Any]], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    state, thread = states[0], _thread(states[0])
    if len(states) > 1:
        raise RowError("entry", f"one state of thread {thread}, the latest", f"{len(states)} of it")
    session, values = LoggedSession(), _values(state)
    for at, message in enumerate(objects_of(values.get("messages"))):
        session.add(message, at)
    failures = (text_field(of, "error") for of in objects_of(state.get("tasks")))
    session.error = "; ".join(filter(None, failures))
    others = {name: value for name, value in values.items() if name != "messages"}
    task = {"state": others} if others else {}
    return session.trajectory(place, thread, task=task)


LANGGRAPH = LogFormat(
    name="langgraph", title="LangGraph states", score=_score, read=_read, parts=_parts
)
