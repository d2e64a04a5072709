"""Chats of the Gemini CLI, as one object or one line per change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...records.loose_json import as_list, as_object, objects_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import numbers_in, object_in, text_field
from .sessions import LoggedSession, name_in, note, opening_of, part_of_file

_TYPES = frozenset("user gemini info error warning".split())
_CONTEXT = ("<session_context>", "<hook_context>")


def _score(line: Mapping[str, Any]) -> float:
    is_message = name_in(line, "type") in _TYPES and line.keys() >= {"id", "timestamp", "content"}
    is_change = "$set" in line or "$rewindTo" in line
    return float(is_message or is_change or line.keys() >= {"sessionId", "projectHash"})


def _read(lines: list[dict[str, Any]], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    session, about, session_id = LoggedSession(), dict[str, tuple[int, dict[str, Any]]](), ""
    for at, line in enumerate(lines):
        update = as_object(line.get("$set")) or line
        if name_in(line, "type") in _TYPES:
            about[text_field(line, "id")] = at, line
        elif "$rewindTo" in line:
            ids = list(about)
            to = ids.index(line["$rewindTo"]) if line["$rewindTo"] in about else 0
            session.leave_out("abandoned branches", [about.pop(of)[1] for of in ids[to:]])
        elif "messages" in update:
            stated = {text_field(of, "id"): (at, of) for of in objects_of(update["messages"])}
            dropped = [of for name, (_, of) in about.items() if name not in stated]
            session.leave_out("rewritten context", dropped)
            about = stated
        session_id = session_id or text_field(update, "sessionId")
    usage, agents = Counter[str](), set[str]()
    for at, message in about.values():
        _add(session, at, message)
        usage.update(numbers_in(object_in(message, "tokens")))
        agents |= {text_field(of, "agentId") for of in objects_of(message.get("toolCalls"))} - {""}
    session.remarks["sub-agents"] = len(agents)
    return session.trajectory(place, session_id, usage=dict(usage))


def _add(session: LoggedSession, at: int, message: dict[str, Any]) -> None:
    """Adds a message with the results of its calls."""
    kind, content = message.get("type"), message.get("content")
    parts = [
        {"text": of} if isinstance(of, str) else of
        for of in (as_list(content) or [content] if content else ())
    ]
    opening = opening_of({"content": parts})
    session.carriers.append(message.get("displayContent"))
    if kind == "user":
        role = "system" if opening.startswith(_CONTEXT) else "user"
        session.add({"role": role, "parts": parts}, at)
    elif kind != "gemini":
        session.add(note(opening), at)
    if kind not in ("info", "warning"):
        session.error = opening if kind == "error" else ""
    if kind != "gemini":
        return
    session.model = session.model or text_field(message, "model")
    thoughts = objects_of(message.get("thoughts"))
    words = [name_in(of, key) for of in thoughts for key in ("subject", "description")]
    has_thoughts = any(of.get("thought") is True for of in objects_of(parts))
    reasoning = {} if has_thoughts else {"reasoning": "\n".join(filter(None, words))}
    calls = objects_of(message.get("toolCalls"))
    asked = [{key: call.get(key) for key in ("id", "name", "args")} for call in calls]
    session.add({"role": "model", "parts": parts, "tool_calls": asked, **reasoning}, at)
    for call in calls:
        session.carriers.append([call.get("resultDisplay"), call.get("description")])
        if call.get("result") is not None:
            session.add({"role": "user", "parts": [_answer(call)]}, at)


def _answer(call: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a call as one part, including other content beside the function's answer."""
    parts = objects_of(call["result"])
    answers = [inner for of in parts if (inner := as_object(of.get("functionResponse")))]
    answer = answers[0] if answers else {"response": {"output": call["result"]}}
    others = [of for of in parts if "functionResponse" not in of] if answers else []
    more = {"parts": [*(as_list(answer.get("parts")) or ()), *others]} if others else {}
    failed = {"success": False, "error": True}.get(str(call.get("status")))
    mark = {} if failed is None else {"is_error": failed}
    names = {"call_id": call.get("id"), "name": call.get("name")}
    return {"functionResponse": {**answer, **names, **more, **mark}}


GEMINI_CLI = LogFormat(
    name="gemini-cli", title="Gemini CLI chats", score=_score, read=_read, parts=part_of_file
)
