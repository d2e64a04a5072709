"""Sessions of Google's Agent Development Kit, or their events alone.

Names of fields are in camelCase or snake_case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...records.loose_json import as_object, objects_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import first_of, numbers_in, object_in, text_field
from .sessions import LoggedSession, note

_INVOCATION = ("invocationId", "invocation_id")


def _score(record: Mapping[str, Any]) -> float:
    events = objects_of(record.get("events")) or [record]
    is_event = isinstance(events[0].get("author"), str)
    return float(is_event and first_of(events[0], *_INVOCATION)[1] is not None)


def _parts(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The session without its events, and each event."""
    if (events := record.get("events")) is None:
        yield "", record
        return
    session_id = text_field(record, "id")
    yield session_id, {"session": {n: v for n, v in record.items() if n != "events"}}
    for event in objects_of(events):
        yield session_id, event


def _read(parts: list[dict[str, Any]], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    session, state, usage = LoggedSession(), dict[str, Any](), Counter[str]()
    about = as_object(parts[0].get("session"))
    for at, event in enumerate(parts if about is None else parts[1:]):
        actions = object_in(event, "actions")
        state |= as_object(first_of(actions, "stateDelta", "state_delta")[1]) or {}
        if event.get("partial") is True:  # another event repeats it as a whole
            session.carriers.append(event.get("content"))
            continue
        _add(session, at, event)
        spent = as_object(first_of(event, "usageMetadata", "usage_metadata")[1])
        usage.update(numbers_in(spent or {}))
    state |= object_in(about or {}, "state")
    task = {"state": state} if state else {}
    return session.trajectory(place, text_field(about or {}, "id"), usage=dict(usage), task=task)


def _add(session: LoggedSession, at: int, event: dict[str, Any]) -> None:
    """Adds the content of an event as a message."""
    author, content = text_field(event, "author"), object_in(event, "content")
    parts = objects_of(content.get("parts"))
    error = text_field(event, "errorMessage", "error_message", "errorCode", "error_code")
    if parts or error:  # an answer after a failure ends it
        session.error = error
    if error:
        session.add(note(error), at)
    session.model = session.model or text_field(event, "modelVersion", "model_version")
    if parts:
        is_agent = author != "user" and content.get("role") != "user"  # results have role user
        who = {"role": "model", "name": author} if is_agent else {"role": "user"}
        session.add({**who, "parts": parts}, at)


ADK = LogFormat(name="adk", title="Google ADK sessions", score=_score, read=_read, parts=_parts)
