"""Trajectories of SWE-agent (arXiv:2405.15793), also demonstrations, which have a history only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...records.loose_json import as_list, as_object, rest_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .derived import run_of_messages
from .fields import numbers_in, object_in, objects_in, text_field

_KNOWN = frozenset("history trajectory info environment".split())
_KNOWN_OF_INFO = frozenset("submission exit_status model_stats".split())
_MARKS = frozenset("agent action is_demo message_type".split())


def _score(entry: Mapping[str, Any]) -> float:
    history = [as_object(of) or {} for of in as_list(entry.get("history")) or ()]
    return any(of.keys() >= {"role", "content", "thought", "action"} for of in history)


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    """A run as its history tells it; what the agent submitted is its final answer.

    Where no tools are called, an action is the command in the message, which a shell runs, and the
    next message is its result. The history may lack the last turn, and what answered it.
    """
    info = object_in(entry, "info")
    history = [message for _, message in objects_in(entry, "history")]
    for _, last in [*objects_in(entry, "trajectory")][-1:]:
        if all(of.get("content") != last.get("response") for of in history):
            said = {"role": "assistant", "content": last.get("response")}
            history.append({**said, "action": last.get("action")})
        if history[-1].get("role") == "assistant" and last.get("observation"):
            history.append({"role": "user", "content": last["observation"]})
    actions = [of["action"] for of in history if of.get("tool_calls") and of.get("action")]
    return run_of_messages(
        _messages(history),
        "history",
        place,
        setting=text_field(entry, "environment"),
        final_answer=text_field(info, "submission"),
        termination=text_field(info, "exit_status"),
        usage=numbers_in(object_in(info, "model_stats")),
        extra=rest_of(entry, _KNOWN) | rest_of(info, _KNOWN_OF_INFO),
        left_out={"duplicate carriers": actions},
        remarks={"copied context": sum(bool(of.get("is_demo")) for of in history)},
    )


def _messages(history: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    is_open = False  # a command without an id waits for its result
    for number, raw in enumerate(history):
        if raw.get("is_demo"):
            continue
        message = {name: raw[name] for name in raw if name not in _MARKS}
        if (thought := message.get("thought")) and str(thought).strip() in str(raw.get("content")):
            del message["thought"]
        if blocks := as_list(message.pop("thinking_blocks", None)):
            message["content"] = [*blocks, {"type": "text", "text": raw.get("content") or ""}]
        if ids := as_list(message.pop("tool_call_ids", None)):
            message["tool_call_id"] = ids[0]
        action = raw.get("action")
        if is_open and raw.get("role") == "user":
            message["role"] = "tool"
        is_open = not raw.get("tool_calls") and isinstance(action, str) and bool(action.strip())
        if is_open:
            message["tool_calls"] = [{"name": "bash", "arguments": {"command": action}}]
        yield number, message


SWE_AGENT = LogFormat(name="swe-agent", title="SWE-agent trajectories", score=_score, read=_read)
