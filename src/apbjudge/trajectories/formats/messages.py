"""Chat messages with tool calls: OpenAI chat and Responses items, Anthropic blocks, also mixed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson

from ...errors import RowError
from ...records.trajectories import (
    LogPlace,
    Observation,
    Outcome,
    StepSource,
    ToolCall,
    Trajectory,
    TrajectoryStep,
)
from . import LogFormat
from .derived import final_answer_of, query_of, remarks_of

_MESSAGE_KEYS = ("messages", "items", "conversation", "trajectory", "traj", "history", "input")
_ID_KEYS = ("id", "trajectory_id", "run_id", "session_id")
_CASE_KEYS = ("case_id", "task_id", "sample_id")
_MODEL_KEYS = ("tested_model", "model", "agent")
_END_KEYS = ("termination", "termination_reason", "stop_reason")
_SPECIFIC = "system tools trial setting reward success outcome usage final_answer query".split()
_READ = frozenset((*_MESSAGE_KEYS, *_ID_KEYS, *_CASE_KEYS, *_MODEL_KEYS, *_END_KEYS, *_SPECIFIC))
_READ_OF_MESSAGE = frozenset(
    "role type content tool_calls function_call reasoning_content reasoning thought name "
    "tool_call_id call_id output arguments is_error error id summary status refusal".split()
)
_RARE = frozenset("reasoning_content reasoning thought refusal function_call".split())
_SYSTEM, _USER, _RESULT = ("system", "developer"), ("user", "human"), ("tool", "function")


def messages_of(entry: Mapping[str, Any]) -> list[Any] | None:
    """The messages of an entry; None where it has none."""
    for key in _MESSAGE_KEYS:
        value = entry.get(key)
        if isinstance(value, list):
            listed = cast("list[Any]", value)
            if any(isinstance(m, dict) and ("role" in m or "type" in m) for m in listed):
                return listed
    return None


def _recognises(entry: Mapping[str, Any]) -> bool:
    return messages_of(entry) is not None


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    listed = messages_of(entry)
    if listed is None:
        raise RowError("messages", "a list of chat messages", entry.get("messages"))
    case = first_text(entry, _CASE_KEYS)
    trial = entry.get("trial")
    number = trial if isinstance(trial, int) and not isinstance(trial, bool) else None
    fallback = f"{Path(place.file).stem or 'run'}-{place.line}"
    if case and number is not None:
        fallback = f"{case}-{number}"
    own_id = first_text(entry, _ID_KEYS) or fallback
    model = entry.get("agent") if isinstance(entry.get("agent"), str) else None
    tools, usage = entry.get("tools"), entry.get("usage")
    run = conversation(listed)
    return replace(
        run,
        trajectory_id=own_id,
        case_id=case or own_id,
        tested_model=first_text(entry, _MODEL_KEYS[:2]) or model or "",
        trial=number,
        setting=first_text(entry, ("setting",)),
        query=first_text(entry, ("query",)) or run.query,
        system_prompt=first_text(entry, ("system",)) or run.system_prompt,
        tools=tuple(cast("list[Any]", tools)) if isinstance(tools, list) else None,
        final_answer=first_text(entry, ("final_answer",)) or run.final_answer,
        termination=first_text(entry, _END_KEYS),
        outcome=outcome_of(entry),
        usage=numbers_of(usage),
        place=replace(place, format="messages"),
        extra={name: value for name, value in entry.items() if name not in _READ},
    )


def first_text(entry: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of some fields that is a text or a whole number; empty without."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def numbers_of(values: Any) -> dict[str, float]:
    """The numbers of an object, by name."""
    if not isinstance(values, dict):
        return {}
    held = cast("dict[str, Any]", values)
    return {
        name: value
        for name, value in held.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def outcome_of(entry: Mapping[str, Any]) -> Outcome | None:
    """The outcome that an entry states in ``reward``, ``success`` or an ``outcome`` of these.

    Raises:
        RowError: If one of them is of another kind.
    """
    inner = entry.get("outcome")
    stated = cast("dict[str, Any]", inner) if isinstance(inner, dict) else entry
    reward, success = stated.get("reward"), stated.get("success")
    if reward is not None and (isinstance(reward, bool) or not isinstance(reward, int | float)):
        raise RowError("reward", "a number", reward)
    if success is not None and not isinstance(success, bool):
        raise RowError("success", "true or false", success)
    return None if reward is None and success is None else Outcome(reward, success)


# Messages -----------------------------------------------------------------------------------------


class _Step:
    """A step that is still being put together."""

    __slots__ = ("answers", "calls", "extra", "is_item", "source", "text", "thought")

    def __init__(self, source: StepSource, *, is_item: bool = False) -> None:
        self.source: StepSource = source
        self.text = self.thought = ""
        self.calls: list[ToolCall] = []
        self.answers: list[Observation] = []
        self.extra: dict[str, Any] = {}
        self.is_item = is_item

    def say(self, text: str) -> None:
        """Adds to the text."""
        self.text = "\n".join(filter(None, (self.text, text)))

    def think(self, text: str) -> None:
        """Adds to the reasoning."""
        self.thought = "\n\n".join(filter(None, (self.thought, text)))

    def done(self) -> TrajectoryStep:
        """The step."""
        return TrajectoryStep(
            self.source,
            "call" if self.calls else "message",
            self.text,
            self.thought,
            tuple(self.calls),
            tuple(self.answers),
            extra=self.extra,
        )


def conversation(messages: list[Any]) -> Trajectory:
    """The run that a list of messages tells, without what stands around it.

    A message of the assistant is one step with all its calls, and so are the items of the Responses
    API that follow each other without a result between them. A result joins the step that made its
    call: by id, else by the name of the tool, else in order. What can't be joined is a step of the
    environment; what can't be read is kept in ``extra``.
    """
    reader = _Reader()
    for message in messages:
        reader.add(message)
    steps = tuple(step.done() for step in reader.steps)
    return Trajectory(
        trajectory_id="-",
        case_id="-",
        tested_model="",
        query=query_of(steps),
        system_prompt="\n\n".join(reader.prompts),
        steps=steps,
        final_answer=final_answer_of(steps),
        place=LogPlace("messages"),
        remarks=dict(+(reader.remarks + remarks_of(steps))),
    )


class _Reader:
    """Takes in messages one at a time."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self.prompts: list[str] = []
        self.remarks: Counter[str] = Counter()
        self._open: dict[str, list[_Step]] = {}  # by id of a call: steps that still wait for it
        self._unnamed: list[tuple[_Step, str]] = []  # calls without id, with their names

    def add(self, message: Any) -> None:
        """Takes in one message."""
        if not isinstance(message, dict):
            self._unknown(message)
            return
        row = cast("dict[str, Any]", message)
        role, kind = row.get("role"), row.get("type")
        if role in _RESULT or kind in ("function_call_output", "tool_result"):
            self._result(row)
        elif kind in ("function_call", "reasoning", "custom_tool_call"):
            self._item(row, str(kind))
        elif role in _SYSTEM:
            self._system(row)
        elif role in _USER or role in ("assistant", "ai", "model"):
            self._said(row, "user" if role in _USER else "agent")
        else:
            self._unknown(row)

    def _unknown(self, message: Any) -> None:
        self.remarks["unknown steps"] += 1
        step = _Step("environment")
        step.extra["message"] = message
        self.steps.append(step)

    def _system(self, row: dict[str, Any]) -> None:
        step = _Step("system")
        self._content(step, row.get("content"))
        if self.steps:
            self.steps.append(step)
        else:
            self.prompts.append(step.text)

    def _said(self, row: dict[str, Any], source: StepSource) -> None:
        last = self.steps[-1] if self.steps else None
        is_item = source == "agent" and row.get("type") == "message"
        goes_on = is_item and last is not None and last.is_item and not last.answers
        step = last if goes_on and last is not None else _Step(source, is_item=is_item)
        n_answers = self._content(step, row.get("content"))
        if not _RARE.isdisjoint(row):
            for name in ("reasoning_content", "reasoning", "thought"):
                if isinstance(row.get(name), str):
                    step.think(row[name])
            if isinstance(row.get("refusal"), str):
                step.say(row["refusal"])
            if isinstance(row.get("function_call"), dict):
                self._call(step, row["function_call"])
        calls: Any = row.get("tool_calls")
        for call in cast("list[Any]", calls) if isinstance(calls, list) else ():
            self._call(step, call)
        if not row.keys() <= _READ_OF_MESSAGE:
            rest = {name: value for name, value in row.items() if name not in _READ_OF_MESSAGE}
            step.extra.update(rest)
        if not goes_on and not (n_answers and not step.text and not step.calls):
            self.steps.append(step)

    def _item(self, row: dict[str, Any], kind: str) -> None:
        """An item of the Responses API that belongs to the agent's turn."""
        last = self.steps[-1] if self.steps else None
        if last is None or not last.is_item or last.answers:
            last = _Step("agent", is_item=True)
            self.steps.append(last)
        if kind == "reasoning":
            parts: Any = row.get("summary") or row.get("content") or []
            last.think("\n\n".join(_texts(parts)))
        else:
            self._call(last, {**row, "id": row.get("call_id") or row.get("id")})

    def _content(self, step: _Step, content: Any) -> int:
        """Puts the parts of a content into a step; returns how many of them are results."""
        if content is None or isinstance(content, str):
            step.say(content or "")
            return 0
        if not isinstance(content, list):
            step.extra["content"] = content
            self.remarks["unknown steps"] += 1
            return 0
        n_answers = n_other = 0
        for part in cast("list[Any]", content):
            of = cast("dict[str, Any]", part) if isinstance(part, dict) else {"text": part}
            kind = of.get("type")
            if kind == "tool_use":
                self._call(step, {**of, "arguments": of.get("input")})
            elif kind == "tool_result":
                self._result({**of, "tool_call_id": of.get("tool_use_id")})
                n_answers += 1
            elif kind in ("thinking", "reasoning"):
                step.think(str(of.get("thinking") or of.get("text") or ""))
            elif isinstance(of.get("text"), str):
                step.say(of["text"])
            elif isinstance(of.get("refusal"), str):
                step.say(of["refusal"])
            else:
                n_other += 1
        if n_other:
            self.remarks["attachments"] += n_other
            step.extra["content"] = content
        return n_answers

    def _call(self, step: _Step, entry: Any) -> None:
        of = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        function: Any = of.get("function")
        body = cast("dict[str, Any]", function) if isinstance(function, dict) else of
        name = body.get("name") or (function if isinstance(function, str) else "")
        arguments, problem = arguments_of(body.get("arguments", body.get("input")))
        call_id = of.get("id") or of.get("call_id") or of.get("tool_call_id")
        call = ToolCall(str(name or ""), arguments, str(call_id or ""), problem)
        step.calls.append(call)
        if call.call_id:
            self._open.setdefault(call.call_id, []).append(step)
        else:
            self._unnamed.append((step, call.name))

    def _result(self, row: dict[str, Any]) -> None:
        call_id = str(row.get("tool_call_id") or row.get("call_id") or "")
        name = row.get("name") if isinstance(row.get("name"), str) else ""
        content = row.get("output", row.get("content"))
        parts = _texts(content) if isinstance(content, list) else None
        if parts is not None and (n_other := len(cast("list[Any]", content)) - len(parts)):
            self.remarks["attachments"] += n_other
        is_error = row.get("is_error", row.get("error"))
        if is_error is not None and not isinstance(is_error, bool):
            is_error = bool(is_error)
        answer = Observation(
            content if parts is None else "\n".join(parts), call_id, str(name), is_error
        )
        step = self._step_of(call_id, str(name))
        if step is None:
            step = _Step("environment")
            self.steps.append(step)
        step.answers.append(answer)

    def _step_of(self, call_id: str, name: str) -> _Step | None:
        """The step whose call a result answers, which then waits no longer."""
        if call_id:
            waiting = self._open.get(call_id)
            return waiting.pop(0) if waiting else None
        at = next((i for i, (_, n) in enumerate(self._unnamed) if not name or n == name), None)
        if at is not None:
            return self._unnamed.pop(at)[0]
        return self._first_open(name)

    def _first_open(self, name: str) -> _Step | None:
        """The last step of the agent, if a call of it with an id has no answer yet."""
        last = self.steps[-1] if self.steps else None
        for call in last.calls if last is not None else ():
            waiting = self._open.get(call.call_id)
            if waiting and (not name or call.name == name):
                return waiting.pop(0)
        return None


def arguments_of(value: Any) -> tuple[Any, str]:
    """Arguments as an object where they are one, also as JSON text, and else why they are not."""
    if isinstance(value, dict):
        return cast("Any", value), ""
    if isinstance(value, str):
        try:
            parsed: Any = orjson.loads(value) if value.strip() else {}
        except orjson.JSONDecodeError as error:
            return value, str(error)
        if isinstance(parsed, dict):
            return cast("Any", parsed), ""
        return value, "no JSON object"
    return value, "" if value is None else "no JSON object"


def _texts(parts: Any) -> list[str]:
    """The texts among the parts of a content."""
    listed = cast("list[Any]", parts) if isinstance(parts, list) else [parts]
    return [*_each_text(listed)]


def _each_text(parts: list[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            text = cast("dict[str, Any]", part).get("text")
            if isinstance(text, str):
                yield text


MESSAGES = LogFormat(name="messages", title="chat messages", recognises=_recognises, read=_read)
