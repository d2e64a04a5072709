"""Runs of OpenHands (arXiv:2407.16741): its events, and the results of evaluations that hold them.

An event is an action or an observation. Where a model's reply stands beside an action, it says what
was called; the action's own arguments repeat it, with settings of the runtime. Events of the SDK
(version 1) name their ``kind``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...errors import RowError
from ...records.loose_json import as_list, as_object, rest_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .derived import run_of_messages
from .fields import first_of, id_field, list_in, object_in, objects_in, text_field

_KNOWN = frozenset("instance_id instruction metadata history metrics error instance".split())
_SILENT = frozenset(
    "change_agent_state agent_state_changed null condensation condensation_request".split()
)
"""Actions and observations that say nothing to the agent."""
_FAILURES = frozenset(("error", "user_rejected"))


def _is_event(event: Mapping[str, Any]) -> bool:
    pairs = (("action", "args"), ("observation", "extras"), ("kind", "timestamp"))
    return event.keys() >= {"id", "source"} and any(event.keys() >= {*pair} for pair in pairs)


def _score(entry: Mapping[str, Any]) -> float:
    history = as_list(entry.get("history")) or [None]
    first = as_object((as_list(history[0]) or history)[0])
    return "instance_id" in entry and first is not None and _is_event(first)


def _flat(history: Iterable[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events, which older files pair."""
    for number, entry in enumerate(history):
        for event in as_list(entry) or [entry]:
            if (of := as_object(event)) is None:
                raise RowError(f"history.{number}", "an event", event)
            yield number, of


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    """A line of ``output.jsonl``; whether its patch resolved the issue is a score."""
    settings = object_in(object_in(entry, "metadata"), "llm_config", "metadata.")
    report = object_in(object_in(entry, "test_result"), "report", "test_result.")
    resolved = report.get("resolved")
    return _run(
        list_in(entry, "history", is_needed=True),
        place,
        {"resolved": resolved} if isinstance(resolved, bool) else {},
        case_id=id_field(entry, "instance_id"),
        tested_model=text_field(settings, "model"),
        query=text_field(entry, "instruction"),
        termination=text_field(entry, "error"),
        task=object_in(entry, "instance"),
        extra=rest_of(entry, _KNOWN),
    )


def _read_events(events: list[Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    return _run(events, place, {}, extra={})


def _run(
    history: Iterable[Any], place: LogPlace, scores: dict[str, Any], **facts: Any
) -> Trajectory:
    """The run that events are; what its last action claims of the task is a score."""
    events, forgotten = list(_flat(history)), list[Any]()
    for _, event in events:
        args = as_object(event.get("args")) or event
        if tools := as_list(args.get("tools")):
            facts["tools"] = tuple(tools)
        if isinstance(claim := args.get("task_completed"), str):
            scores["task_completed"] = claim
        if event.get("kind") == "Condensation" or event.get("action") == "condensation":
            forgotten.append(event)
        action = as_object(event.get("action")) or {}
        if action.get("kind") == "FinishAction":
            facts["final_answer"] = text_field(action, "message")
    left_out = {"rewritten context": forgotten}
    return run_of_messages(
        _messages(events), "history", place, scores=scores, left_out=left_out, **facts
    )


def _messages(events: list[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, dict[str, Any]]]:
    ids: dict[Any, Any] = {}  # of calls, by the events that make them
    replies: set[Any] = set()
    for number, event in events:
        meta = object_in(event, "tool_call_metadata")
        kind = str(event.get("kind") or event.get("action") or event.get("observation"))
        message: dict[str, Any] | None = None
        if "kind" in event:
            message = _of_kind(kind, event, replies)
        elif "observation" in event and kind not in _SILENT:
            call_id = meta.get("tool_call_id") or ids.get(event.get("cause"))
            message = _of_observation(kind, event, call_id)
        elif "action" in event and kind not in _SILENT:
            ids[event.get("id")] = call_id = str(meta.get("tool_call_id") or event.get("id"))
            message = _of_action(kind, event, meta, call_id, replies)
        elif kind not in _SILENT:
            message = event
        if message is not None:
            yield number, message


def _of_action(
    kind: str, event: dict[str, Any], meta: dict[str, Any], call_id: str, replies: set[Any]
) -> dict[str, Any] | None:
    args = object_in(event, "args")
    if kind == "recall":
        return None
    if kind in ("message", "system"):
        said = [{"type": "text", "text": args.get("content") or ""}]
        urls = as_list(args.get("image_urls")) or ()
        said += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        by = "system" if kind == "system" else text_field(event, "source")
        return {"role": by, "content": said}
    if kind == "finish":
        words = dict.fromkeys(text_field(args, name) for name in ("thought", "final_thought"))
        return {"role": "assistant", "content": "\n\n".join(filter(None, words))}
    reply = object_in(meta, "model_response", "tool_call_metadata.")
    for _, choice in objects_in(reply, "choices"):
        is_new = reply.get("id") not in replies
        replies.add(reply.get("id"))
        return object_in(choice, "message") if is_new else None
    given = rest_of(args, frozenset(("thought",)))
    call = {"id": call_id, "name": meta.get("function_name") or kind, "arguments": given}
    return {"role": "assistant", "content": args.get("thought"), "tool_calls": [call]}


def _of_observation(kind: str, event: dict[str, Any], call_id: Any) -> dict[str, Any]:
    if kind == "recall":  # what the framework adds to the conversation
        extras = object_in(event, "extras")
        names = ("repo_instructions", "additional_agent_instructions", "conversation_instructions")
        known = [of.get("content") for _, of in objects_in(extras, "microagent_knowledge")]
        texts = [event.get("content"), *(extras.get(name) for name in names), *known]
        return {"role": "system", "content": [{"type": "text", "text": of} for of in texts if of]}
    success = event.get("success")
    is_error = kind in _FAILURES or (not success if isinstance(success, bool) else None)
    content = event.get("content")
    return {"role": "tool", "tool_call_id": call_id, "content": content, "is_error": is_error}


def _of_kind(kind: str, event: dict[str, Any], replies: set[Any]) -> dict[str, Any] | None:
    """A message of version 1; of unknown kinds the event itself."""
    more = list_in(event, "extended_content")
    if kind == "Condensation":
        return None
    if kind == "SystemPromptEvent":
        blocks = [object_in(event, name) for name in ("system_prompt", "dynamic_context")]
        return {"role": "system", "content": list(filter(None, blocks))}
    if kind == "MessageEvent":
        said = object_in(event, "llm_message")
        listed = [*list_in(said, "thinking_blocks"), *list_in(said, "content"), *more]
        return {name: said.get(name) for name in ("role", "reasoning_content")} | {
            "content": listed
        }
    if kind == "ActionEvent":
        call = object_in(event, "tool_call")
        reply = event.get("llm_response_id")
        # Of several calls in one reply, the later ones go on with its message.
        made = {"type": "message"} if reply in replies else {}
        replies.add(reply)
        return made | {
            "role": "assistant",
            "content": [*list_in(event, "thinking_blocks"), *list_in(event, "thought")],
            "reasoning_content": event.get("reasoning_content"),
            "tool_calls": [{name: call.get(name) for name in ("id", "name", "arguments")}],
        }
    if not (call_id := event.get("tool_call_id")):
        return event
    answer = as_object(event.get("observation")) or event
    _, content = first_of(answer, "content", "output", "message", "error", "rejection_reason")
    content = content if (listed := as_list(content)) is None else [*listed, *more]
    is_error = True if answer is event else answer.get("is_error")
    return {"role": "tool", "tool_call_id": call_id, "content": content, "is_error": is_error}


OPENHANDS = LogFormat(name="openhands", title="OpenHands results", score=_score, read=_read)
OPENHANDS_EVENTS = LogFormat(
    name="openhands-events",
    title="OpenHands events",
    score=_is_event,
    read=_read_events,
    parts=lambda event: [("", event)],
)
