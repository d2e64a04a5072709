"""Sessions of Claude Code: its own files, with those of sub-agents, and its ``stream-json``.

The lines of a session are a tree; the path to its last line is the trajectory. A message of the
API is several lines, and results of parallel calls are outside the path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from ...records.loose_json import as_list, as_object, objects_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import first_of, list_in, numbers_in, text_field
from .sessions import LoggedSession, name_in, opening_of

_Lines = list[dict[str, Any]]

_OF_LINES = frozenset("sessionId session_id uuid isSidechain parent_tool_use_id leafUuid".split())
_NEEDED = {"system": "subtype", "result": "subtype", "summary": "leafUuid"}
_SPEAKERS = ("user", "assistant")
_LOCAL, _COMMAND = "<local-command-", ("<command-name>", "<command-message>")
_NOT_A_MODEL = "<synthetic>"
"""Model of messages that the client writes in place of the agent, such as errors of the API."""


def _score(line: Mapping[str, Any]) -> float:
    kind = line.get("type")
    is_one = _NEEDED.get(str(kind)) in line or (
        kind in _SPEAKERS and _message(line).get("role") == kind
    )
    return float(is_one and not _OF_LINES.isdisjoint(line))


def _parts(line: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield name_in(line, "sessionId") or name_in(line, "session_id"), line


def _message(line: Mapping[str, Any]) -> dict[str, Any]:
    return as_object(line.get("message")) or {}


def _blocks(line: Mapping[str, Any]) -> _Lines:
    return objects_of(_message(line).get("content"))


def _result(line: Mapping[str, Any]) -> Any:
    """Notes of the client on a result, apart from the text that the model sees."""
    return first_of(line, "toolUseResult", "tool_use_result")[1]


def _read(lines: _Lines, place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    session, agents = LoggedSession(), _agents(lines)
    heard = [of for of, line in zip(agents, lines, strict=True) if line.get("type") in _SPEAKERS]
    agent = (
        "" if "" in heard else next(iter(heard), "")
    )  # a sub-agent's file without others is its trajectory
    own = [at for at, of in enumerate(agents) if of in ("", agent)]
    positions = _on_path(lines, own)
    left = [lines[at] for at in own if at not in positions and "parentUuid" in lines[at]]
    inside = {name_in(line, "uuid") for line in left}
    n = sum(name_in(line, "parentUuid") not in inside for line in left)
    session.leave_out("abandoned branches", left, n or 1)
    others = {*agents} - {"", agent}
    session.leave_out(
        "sub-agents", [of for of, a in zip(lines, agents, strict=True) if a in others], 0
    )
    notes = (as_object(lines[at].get("toolUseResult")) or {} for at in positions)
    named = {str(of["agentId"]) for of in notes if of.get("agentId")}
    session.remarks["sub-agents"] = max(len(others), len(named))
    usage = _add_messages(session, lines, sorted(positions))
    first = next((of for of in lines if of.get("subtype") == "init"), dict[str, Any]())
    last = next((of for of in reversed(lines) if of.get("type") == "result"), dict[str, Any]())
    answer, end = text_field(last, "result"), text_field(last, "subtype")
    if last.get("is_error") is True and end in ("success", "error_during_execution"):
        session.error, answer = answer or end, ""
    session.model = session.model or text_field(first, "model")
    session_id = next((name for line in lines for name, _ in _parts(line) if name), "")
    totals = {key: last.get(key) for key in ("total_cost_usd", "num_turns", "duration_ms")}
    return session.trajectory(
        place,
        "/".join(filter(None, (session_id, agent))),
        answer=answer,
        tools=tuple({"name": of} for of in list_in(first, "tools") if isinstance(of, str)) or None,
        termination=end,
        usage=numbers_in(as_object(last.get("usage")) or usage) | numbers_in(totals),
    )


def _agents(lines: _Lines) -> list[str]:
    """The sub-agent of each line, or the first line of its own; empty for the session's."""
    by_uuid: dict[str, str] = {}
    agents: list[str] = []
    for line in lines:
        data, caller = as_object(line.get("data")) or {}, line.get("parent_tool_use_id")
        is_aside = line.get("isSidechain") is True or caller or data.get("type") == "agent_progress"
        stated = line.get("agentId") or caller or data.get("agentId")
        name = stated or by_uuid.get(name_in(line, "parentUuid")) or line.get("uuid") or "?"
        agents.append(str(name) if is_aside else "")
        by_uuid[name_in(line, "uuid")] = agents[-1]
    return agents


def _on_path(lines: _Lines, own: list[int]) -> set[int]:
    """Positions of the lines on the path to the last one, and of lines that belong to these."""
    before = dict(zip(own[1:], own, strict=False))
    by_uuid = {name: at for at in own if (name := name_in(lines[at], "uuid"))}
    at = next((at for at in reversed(own) if "uuid" in lines[at]), own[-1] if own else None)
    positions: set[int] = set()
    while at is not None and at not in positions:
        positions.add(at)
        line = lines[at]
        parent = name_in(line, "logicalParentUuid") or name_in(line, "parentUuid")
        goes_on = parent or "parentUuid" not in line or _is_compaction(line)
        previous = before.get(at) if goes_on else None
        at = by_uuid.get(parent, previous) if parent else previous
    ids = {name_in(_message(lines[at]), "id") for at in positions} - {""}
    answered = {name_in(of, "tool_use_id") for at in positions for of in _blocks(lines[at])}
    calls: set[str] = set()
    for at in own:
        line, blocks = lines[at], _blocks(lines[at])
        if (
            name_in(_message(line), "id") in ids
            or not calls.isdisjoint({name_in(of, "tool_use_id") for of in blocks} - answered)
            or (
                line.get("type") not in _SPEAKERS
                and by_uuid.get(name_in(line, "parentUuid")) in positions
            )
        ):
            positions.add(at)
        if at in positions:
            calls |= {name_in(of, "id") for of in blocks if of.get("type") == "tool_use"} - {""}
    return positions


def _is_compaction(line: Mapping[str, Any]) -> bool:
    return line.get("subtype") == "compact_boundary" or line.get("isCompactSummary") is True


def _add_messages(session: LoggedSession, lines: _Lines, order: list[int]) -> dict[str, float]:
    """Adds the messages of the API; returns their usage."""
    by_id: dict[str, int] = {}
    usages: dict[Any, dict[str, float]] = {}
    compactions = [lines[at] for at in order if _is_compaction(lines[at])]
    n = sum(line.get("isCompactSummary") is True for line in compactions)
    session.leave_out("rewritten context", compactions, n or 1)
    order = [at for at in order if not _is_compaction(lines[at])]
    openings = [opening_of(_message(lines[at])) for at in order]
    for at, following in zip(order, [*openings[1:], ""], strict=False):
        line, raw, result = lines[at], _message(lines[at]), _result(lines[at])
        about = as_object(result) or {}
        is_cut = about.get("truncated") is True or "persistedOutputPath" in about
        session.remarks["cut content"] += is_cut
        message = _read_line(line, following)
        session.carriers.append(result if message else line)
        if message is None:
            continue
        if message["role"] == "assistant":
            session.model = session.model or text_field(raw, "model", where="message.")
            usages[name_in(raw, "id") or at] = numbers_in(as_object(raw.get("usage")) or {})
        if line.get("type") in _SPEAKERS:
            session.error = opening_of(raw) if line.get("isApiErrorMessage") is True else ""
        if message["role"] == "user" and not any("tool_use_id" in of for of in _blocks(line)):
            by_id.clear()
        message_id = name_in(raw, "id")
        if message_id in by_id:
            content = session.messages[by_id[message_id]]["content"]
            content += [of for of in _blocks(line) if of not in content]
            session.lines[by_id[message_id]].append(at)
            continue
        if message_id and (content := as_list(raw.get("content"))) is not None:
            by_id[message_id] = len(session.messages)
            message["content"] = list(content)
        session.add(message, at)
    return dict(sum(map(Counter, usages.values()), Counter[str]()))


def _read_line(line: Mapping[str, Any], following: str) -> dict[str, Any] | None:
    """The message of a line, as the system's if the client wrote it; None without one.

    A command that the client ran itself is followed by its output.
    """
    kind, message = line.get("type"), _message(line)
    if kind in _SPEAKERS and message:
        text = opening_of(message)
        is_local = text.startswith(_COMMAND) and following.startswith(_LOCAL)
        is_client = message.get("model") == _NOT_A_MODEL or line.get("isMeta") is True
        role = "system" if is_client or is_local or text.startswith(_LOCAL) else kind
        # without the type, which another API's items have too
        return {key: of for key, of in message.items() if key != "type"} | {"role": role}
    if kind == "system" and isinstance(text := line.get("content"), str):
        return {"role": "system", "content": text}
    if attached := as_object(line.get("attachment")):
        text = first_of(attached, "prompt", "content")[1]
        text = text if isinstance(text, str) and text else orjson.dumps(attached).decode()
        role = "user" if attached.get("type") == "queued_command" else "system"
        return {"role": role, "content": text}
    return None


CLAUDE_CODE = LogFormat(
    name="claude-code", title="Claude Code sessions", score=_score, read=_read, parts=_parts
)
