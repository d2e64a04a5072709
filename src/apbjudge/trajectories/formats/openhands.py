"""Trajectories of OpenHands (arXiv:2407.16741): its events, and results of evaluations.

An event is an action or an observation. If an action comes with a model's reply, the reply has the
call; the action's own arguments repeat it, with settings of the runtime. Events of the SDK (version
1) name their ``kind``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...errors import RowError
from ...records.loose_json import as_list, as_object, objects_of, rest_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .derived import trajectory_of_messages
from .fields import first_of, id_field, list_in, object_in, text_field

_KNOWN = frozenset("instance_id instruction metadata history metrics error instance".split())
_SILENT = frozenset("change_agent_state agent_state_changed null condensation_request".split())
_FORGETS = frozenset(("condensation", "Condensation"))
_CONTENTS = ("content", "output", "message", "error", "rejection_reason")
_INSTRUCTIONS = ("repo_instructions", "additional_agent_instructions", "conversation_instructions")
_WORDS = ("thought", "content", "final_thought")
_Message = dict[str, Any] | None


def _is_event(event: Mapping[str, Any]) -> bool:
    pairs = (("action", "args"), ("observation", "extras"), ("kind", "timestamp"))
    return event.keys() >= {"id", "source"} and any(event.keys() >= {*pair} for pair in pairs)


def _score(entry: Mapping[str, Any]) -> float:
    first = next(iter(as_list(entry.get("history")) or ()), None)
    event = as_object(next(iter(as_list(first) or ()), first)) or {}
    return "instance_id" in entry and _is_event(event)


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    """A line of ``output.jsonl``; a score states if its patch resolved the issue."""
    settings = object_in(object_in(entry, "metadata"), "llm_config", "metadata.")
    report = object_in(object_in(entry, "test_result"), "report", "test_result.")
    facts = {
        "case_id": id_field(entry, "instance_id"),
        "tested_model": text_field(settings, "model"),
        "query": text_field(entry, "instruction"),
        "termination": text_field(entry, "error"),
        "task": object_in(entry, "instance"),
        "scores": {k: v for k, v in report.items() if k == "resolved" and isinstance(v, bool)},
        "extra": rest_of(entry, _KNOWN),
    }
    return _trajectory(list_in(entry, "history", is_needed=True), place, facts)


def _trajectory(history: Iterable[Any], place: LogPlace, facts: dict[str, Any]) -> Trajectory:
    messages = list(_messages(history, facts))
    return trajectory_of_messages(messages, "history", place, **facts)


def _messages(
    history: Iterable[Any], facts: dict[str, Any]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The messages of events, which older files pair; ``facts`` receives their other content.

    The last action's claim about the task is a score.
    """
    pairs = (
        (number, of) for number, entry in enumerate(history) for of in as_list(entry) or [entry]
    )
    ids: dict[str, str] = {}  # ids of calls, by the events that make them
    replies: set[str] = set()
    for number, value in pairs:
        if (event := as_object(value)) is None:
            raise RowError(f"history.{number}", "an event", value)
        kind = str(event.get("kind") or event.get("action") or event.get("observation"))
        args, meta = object_in(event, "args"), object_in(event, "tool_call_metadata")
        if tools := as_list(args.get("tools") or event.get("tools")):
            facts["tools"] = tuple(tools)
        message: _Message = event
        if kind in _SILENT:
            continue
        if kind in _FORGETS:
            message = None
            facts.setdefault("remarks", {}).setdefault("rewritten context", []).append(event)
        elif "kind" in event:
            message = _of_kind(kind, event, facts, replies)
        elif "observation" in event:
            call_id = meta.get("tool_call_id") or ids.get(str(event.get("cause")), "")
            message = _of_observation(kind, event, call_id)
        elif "action" in event:
            ids[str(event.get("id"))] = call_id = str(meta.get("tool_call_id") or event.get("id"))
            message = _of_action(kind, event, facts, call_id, replies)
        if message is not None:
            yield number, message


def _is_known(reply_id: object, replies: set[str]) -> bool:
    """Returns True if a reply of the model is in ``replies``, and adds it."""
    is_known = reply_id is not None and str(reply_id) in replies
    replies.add(str(reply_id))
    return is_known


def _of_action(
    kind: str, event: dict[str, Any], facts: dict[str, Any], call_id: str, replies: set[str]
) -> _Message:
    args, meta = object_in(event, "args"), object_in(event, "tool_call_metadata")
    if kind in ("message", "system", "finish"):
        texts = dict.fromkeys(text_field(args, name) for name in _WORDS)
        content = [{"type": "text", "text": text} for text in texts if text]
        urls = as_list(args.get("image_urls")) or ()
        content += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        if isinstance(claim := args.get("task_completed"), str):
            facts.setdefault("scores", {})["task_completed"] = claim
        return {"role": "system" if kind == "system" else event.get("source"), "content": content}
    reply = object_in(meta, "model_response", "tool_call_metadata.")
    if choices := list_in(reply, "choices", "tool_call_metadata.model_response."):
        is_known = _is_known(reply.get("id"), replies)
        return None if is_known else object_in(as_object(choices[0]) or {}, "message")
    given = rest_of(args, frozenset(("thought",)))
    call = {"id": call_id, "name": meta.get("function_name") or kind, "arguments": given}
    message = {"role": "assistant", "content": args.get("thought"), "tool_calls": [call]}
    return None if kind == "recall" else message


def _of_observation(kind: str, event: dict[str, Any], call_id: str) -> dict[str, Any]:
    if kind == "recall":  # added to the conversation by the framework
        extras = object_in(event, "extras")
        known = objects_of(list_in(extras, "microagent_knowledge", "extras."))
        texts = [event.get("content"), *(extras.get(name) for name in _INSTRUCTIONS)]
        texts += [of.get("content") for of in known]
        return {"role": "system", "content": [{"type": "text", "text": of} for of in texts if of]}
    is_failed = kind in ("error", "user_rejected") or event.get("success") is False
    is_error = is_failed or (None if event.get("success") is None else False)
    content = event.get("content")
    return {"role": "tool", "tool_call_id": call_id, "content": content, "is_error": is_error}


def _of_kind(
    kind: str, event: dict[str, Any], facts: dict[str, Any], replies: set[str]
) -> dict[str, Any]:
    """A message of version 1; of an unknown kind, the event itself."""
    more = list_in(event, "extended_content")
    if kind == "SystemPromptEvent":
        blocks = [object_in(event, name) for name in ("system_prompt", "dynamic_context")]
        return {"role": "system", "content": list(filter(None, blocks))}
    if kind in ("MessageEvent", "ActionEvent"):
        raw = object_in(event, "llm_message") or {**event, "role": "assistant"}
        names = ("thinking_blocks", "thought", "content")
        parts = [part for name in names for part in list_in(raw, name)]
        message: dict[str, Any] = {"role": raw.get("role"), "content": [*parts, *more]}
        message["reasoning_content"] = raw.get("reasoning_content")
        if call := object_in(event, "tool_call"):
            # later ones of several calls in one reply continue its message
            is_known = _is_known(event.get("llm_response_id"), replies)
            message |= {"type": "message"} if is_known else {}
            named = {name: call.get(name) for name in ("id", "name", "arguments")}
            message["tool_calls"] = [named]
            if named["name"] == "finish":
                facts["final_answer"] = object_in(event, "action").get("message")
        return message
    if not (call_id := event.get("tool_call_id")):
        return event
    answer = as_object(event.get("observation")) or event
    _, content = first_of(answer, *_CONTENTS)
    content = content if (parts := as_list(content)) is None else [*parts, *more]
    is_error = True if answer is event else answer.get("is_error")
    return {"role": "tool", "tool_call_id": call_id, "content": content, "is_error": is_error}


OPENHANDS = LogFormat(name="openhands", title="OpenHands results", score=_score, read=_read)
OPENHANDS_EVENTS = LogFormat(
    name="openhands-events",
    title="OpenHands events",
    score=_is_event,
    read=lambda events, place, _: _trajectory(events, place, {"extra": {}}),
    parts=lambda event: [("", event)],
)
