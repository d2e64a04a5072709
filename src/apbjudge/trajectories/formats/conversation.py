"""Chat messages as steps: OpenAI chat and Responses items, Anthropic blocks, also mixed.

The shapes differ in where calls and results stand, and none needs to be named: a message is read by
its role, an item by its type, a block by its type.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import orjson

from ...errors import RowError
from ...records.loose_json import MAX_DEPTH, as_list, as_object, check_depth, is_shallow, rest_of
from ...records.trajectories import (
    Observation,
    StepSource,
    ToolCall,
    TrajectoryStep,
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a list of messages holds.

    Attributes:
        steps: In order, without the system prompt.
        system_prompt: System messages before the first of a user, joined by blank lines.
        remarks: Counts, by the names of ``REMARKS``.
        unknown: Messages of a kind that is not known.
    """

    steps: tuple[TrajectoryStep, ...]
    system_prompt: str
    remarks: dict[str, int]
    unknown: list[Any]

    @property
    def query(self) -> str:
        """The first text of a user; empty without."""
        return next((step.text for step in self.steps if step.source == "user" and step.text), "")

    @property
    def final_answer(self) -> str | None:
        """Text of the agent's last message; None where that makes calls or says nothing."""
        last = next((step for step in reversed(self.steps) if step.source == "agent"), None)
        return last.text or None if last is not None and not last.calls else None


def read_messages(messages: list[Any], where: str = "messages") -> Conversation:
    """Reads messages in one pass.

    Args:
        messages: Chat messages or Responses items, as JSON values.
        where: Name of the list, for errors.

    Raises:
        UnreadError: If nothing at all was read of messages that have content.
        RowError: If a message, a part or a call is not even an object, or a text no text, or what
            is kept as JSON is nested too deeply to be written.
    """
    reader = _Reader(where)
    reader.read(messages)
    if reader.unread and not (any(reader.system) or any(map(_says_something, reader.steps))):
        fields = ", ".join(sorted(set(reader.unread.values())))
        raise UnreadError(where, "text, calls or results that can be read", f"only {fields}")
    check_depth(where, [reader.unknown, *(step.extra for step in reader.steps if step.extra)])
    steps = _frozen(reader.steps, reader.remarks)
    reader.remarks["calls without results"] = reader.matching.n_waiting
    reader.remarks["unread content"] = len(reader.unread)
    return Conversation(steps, "\n\n".join(reader.system), dict(+reader.remarks), reader.unknown)


class UnreadError(RowError):
    """Of a run that has content, nothing at all was read."""


def is_message(value: object) -> bool:
    """Whether a JSON value is a message or an item of a conversation, by its role or type."""
    message = as_object(value) or {}
    role = message.get("role")
    return (isinstance(role, str) and role in _ROLES) or _is_item(message.get("type"))


# Roles and types ---------------------------------------------------------------------------------

_ROLES = frozenset("assistant model user human system developer tool function".split())
_KNOWN = frozenset(
    "role type content tool_calls function_call reasoning_content reasoning thinking refusal "
    "tool_messages".split()
)
_KNOWN_OF_RESULTS = frozenset(
    "role type content tool_call_id call_id tool_use_id id name tool_name is_error output "
    "requestor".split()
)
_CONTENT = _KNOWN - {"role", "type"} | {"output"}
_NO_CONTENT = frozenset(
    "uuid timestamp created created_at createdAt date time index model usage cost metadata status "
    "state finish_reason stop_reason stop_sequence logprobs annotations tool_call_ids".split()
)
_READ = _KNOWN | _KNOWN_OF_RESULTS | _NO_CONTENT
"""Fields that are read, and those that never are content."""
_KNOWN_OF_CALLS = frozenset(
    "id call_id type function custom name arguments args input index requestor".split()
)
_KNOWN_OF_REASONING = frozenset("type summary content".split())
_OF_HOSTED_RESULTS = frozenset("output outputs results result error status".split())
_TEXTS = frozenset("text input_text output_text summary_text reasoning_text".split())
_ATTACHMENTS = frozenset(
    "image image_url input_image output_image audio input_audio output_audio video video_url "
    "file input_file document container_upload".split()
)
_ERROR_OF_STATUS = {"error": True, "failed": True, "success": False}


def _is_item(kind: object) -> bool:
    return isinstance(kind, str) and (
        kind == "reasoning" or kind.endswith(("_call", "_call_output"))
    )


@dataclass(slots=True, eq=False)
class _Draft:
    """A step to which texts, calls and results may still come."""

    source: StepSource
    text: str = ""
    thought: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    observations: list[Observation] = field(default_factory=list[Observation])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


def _unread_field(message: Mapping[str, Any]) -> str:
    """The first field whose content has no place in a step; empty without.

    Beside content that is read, that is one with a list of objects, such as calls; in a message
    that says nothing else, any field.
    """
    says_more = any(message.get(name) for name in _CONTENT)
    for name in message:
        value = message[name]
        listed = as_list(value)
        is_content = any(map(as_object, listed or ())) or (value and not says_more)
        if name not in _READ and is_content and isinstance(value, str | list | dict):
            return name
    return ""


def _says_something(draft: _Draft) -> bool:
    results = (result.content for result in draft.observations)
    return bool(draft.text or draft.thought or draft.calls or any(results))


def _frozen(drafts: list[_Draft], remarks: Counter[str]) -> tuple[TrajectoryStep, ...]:
    for draft in drafts:
        if len(draft.calls) > 1:
            remarks["parallel calls"] += 1
        if draft.source == "user":
            remarks["user-side calls"] += len(draft.calls)
    return tuple(
        TrajectoryStep(
            draft.source,
            "call" if draft.calls else "message",
            draft.text,
            draft.thought,
            tuple(draft.calls),
            tuple(draft.observations),
            extra=draft.extra,
        )
        for draft in drafts
    )


class _Reader:
    """Makes steps of messages; see ``read_messages``."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._at = 0
        self.steps: list[_Draft] = []
        self.system: list[str] = []
        self.remarks: Counter[str] = Counter()
        self.unread: dict[int, str] = {}  # what was not read of a message, by its number
        self.unknown: list[Any] = []
        self.matching = _Matching()
        self._turn: _Draft | None = None  # of the agent, as long as nothing else came
        self._has_user = False

    def read(self, messages: list[dict[str, Any]]) -> None:
        """Takes in messages in order."""
        readers: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "assistant": self._agent,
            "model": self._agent,
            "user": self._user,
            "human": self._user,
            "system": self._system,
            "developer": self._system,
            "tool": self._tool,
            "function": self._tool,
        }
        for self._at, message in enumerate(messages):
            if type(message) is not dict:
                raise self._error("", "a message", message)
            role = message.get("role")
            read = readers.get(role) if type(role) is str else None
            if read is not None:
                read(message)
                if message.keys() - _READ and (field := _unread_field(message)):
                    self.unread[self._at] = field
            elif role is None and _is_item(message.get("type")):
                self._item(message["type"], message)
            else:
                self._turn = None
                self.remarks["unknown steps"] += 1
                self.unknown.append(message)

    def _error(self, place: str, expected: str, got: object) -> RowError:
        return RowError(f"{self._where}.{self._at}{place}", expected, got)

    def _text(self, of: Mapping[str, Any], place: str, *names: str) -> str:
        """A text, or a whole number as text, under any of the names; empty where there is none."""
        for name in names:
            value = of.get(name)
            if value is None:
                continue
            if type(value) is str or type(value) is int:
                return str(value)
            raise self._error(f"{place}.{name}", "text", value)
        return ""

    # Messages

    def _user(self, message: dict[str, Any], source: StepSource = "user") -> None:
        """A message that is not the agent's; results of Anthropic's API are a user's."""
        self._turn = None
        draft = _Draft(source, extra=rest_of(message, _KNOWN))
        n_results = self._content(message.get("content"), draft)
        self._calls(message.get("tool_calls"), draft)
        if n_results and not (draft.text or draft.calls or draft.extra):
            return
        self._has_user |= source == "user"
        self.steps.append(draft)

    def _system(self, message: dict[str, Any]) -> None:
        self._user(message, "system")
        if not self._has_user:
            self.system.append(self.steps.pop().text)

    def _agent(self, message: dict[str, Any]) -> None:
        draft = self._turn
        is_begun = draft is not None and (draft.thought or draft.extra) and not draft.text
        is_item = message.get("type") == "message"
        if draft is None or not (is_item or (is_begun and not draft.calls)):
            draft = _Draft("agent")
            self.steps.append(draft)
        content = message.get("content")
        if type(content) is str and not draft.text:
            draft.text = content
        else:
            self._content(content, draft)
        if calls := message.get("tool_calls"):
            self._calls(calls, draft)
        if len(message) > 1 + ("content" in message) + ("tool_calls" in message):
            for name in ("reasoning_content", "reasoning", "thinking"):
                if (thought := message.get(name)) is not None:
                    if isinstance(thought, str):
                        _add_thought(draft, thought)
                        break
                    draft.extra[name] = thought
            _add_text(draft, self._text(message, "", "refusal"))
            if (call := message.get("function_call")) is not None and not calls:
                self._call(call, draft, ".function_call")
            draft.extra |= rest_of(message, _KNOWN)
        self._turn = draft

    def _item(self, kind: str, item: dict[str, Any]) -> None:
        """An item of the Responses API that is no message."""
        if kind.endswith("_output"):
            self._result(item, item.get("output"))
            return
        draft = self._turn
        if draft is None:
            draft = self._turn = _Draft("agent")
            self.steps.append(draft)
        if kind == "reasoning":
            inner = _Draft("agent")
            self._content(item.get("content") or item.get("summary"), inner)
            _add_thought(draft, inner.text)
            if rest := rest_of(item, _KNOWN_OF_REASONING):
                draft.extra.setdefault("reasoning", []).append(rest)
            return
        if kind in ("function_call", "custom_tool_call"):
            self._call(item, draft, "", is_free_text=kind == "custom_tool_call")
            return
        # Tools that the API itself runs: one item is both the call and, where kept, its result.
        call = {name: item[name] for name in item.keys() - _OF_HOSTED_RESULTS}
        call.setdefault("name", kind.removesuffix("_call"))
        call.setdefault("arguments", call.pop("action", None))
        self._call(call, draft, "")
        for name in ("output", "outputs", "results", "result"):
            if (output := item.get(name)) is not None:
                call_id = self._text(item, "", "call_id", "id")
                self._result({"call_id": call_id, "error": item.get("error")}, output)
                self._turn = draft
                break

    def _content(self, content: object, draft: _Draft) -> int:
        """Adds the parts of a message to its step; returns how many of them are results."""
        if type(content) is str:
            _add_text(draft, content)
            return 0
        if content is None:
            return 0
        parts = as_list(content)
        if parts is None:
            raise self._error(".content", "text or a list of parts", content)
        found: Counter[str] = Counter()
        texts: list[str] = []
        for i, part in enumerate(parts):
            if isinstance(part, str):
                texts.append(part)
                continue
            block = as_object(part)
            if block is None:
                raise self._error(f".content.{i}", "a part of a message", part)
            found[self._part(block, draft, f".content.{i}", texts)] += 1
        _add_text(draft, "\n".join(filter(None, texts)))
        if found["attachment"] or found["unread"]:
            self.remarks["attachments"] += found["attachment"]
            draft.extra["content"] = parts
        return found["result"]

    def _part(
        self, part: dict[str, Any], draft: _Draft, place: str, texts: list[str]
    ) -> Literal["content", "result", "attachment", "unread"]:
        """Adds a part to its step, or its text to ``texts``; returns what it is."""
        kind = str(part.get("type"))
        if kind in _TEXTS or kind == "refusal":
            texts.append(self._text(part, place, "text", "refusal"))
        elif kind in ("thinking", "reasoning"):
            _add_thought(draft, self._text(part, place, "thinking", "text"))
        elif kind == "redacted_thinking":
            self.remarks["cut content"] += 1
        elif kind.endswith("tool_use"):
            self._call(part, draft, place)
        elif kind.endswith("tool_result"):
            self._result(part, part.get("content"), place)
            return "result"
        elif kind in _ATTACHMENTS:
            return "attachment"
        else:
            of = f"of type {kind}" if "type" in part else "without a type"
            self.unread[self._at] = f"content {of}"
            return "unread"
        return "content"

    # Calls

    def _calls(self, calls: list[dict[str, Any]] | None, draft: _Draft) -> None:
        """The calls that a message lists beside its content."""
        if calls is None:
            return
        if type(calls) is not list:
            raise self._error(".tool_calls", "a list of calls", calls)
        for call in calls:
            if type(call) is dict and len(call) == 3 and type(call.get("function")) is dict:
                function: dict[str, Any] = call["function"]
                call_id: Any = call.get("id")
                name: Any = function.get("name")
                arguments = function.get("arguments")
                if type(call_id) is type(name) is type(arguments) is str and "type" in call:
                    self._add_call(draft, name, arguments, call_id)
                    continue
            self._call(call, draft, ".tool_calls")

    def _call(
        self, call: dict[str, Any], draft: _Draft, place: str, *, is_free_text: bool = False
    ) -> None:
        """A call in any form."""
        if type(call) is not dict:
            raise self._error(place, "a call", call)
        holder = call
        if type(call.get("function")) is dict:
            holder = call["function"]
        elif type(call.get("custom")) is dict:
            holder, is_free_text = call["custom"], True
        call_id = self._text(call, place, "call_id", "id")
        arguments = holder.get("arguments")
        if arguments is None:
            arguments = holder.get("input", holder.get("args"))
        name = self._text(holder, place, "name", "function")
        self._add_call(draft, name, arguments, call_id, is_free_text)
        if rest := rest_of(call, _KNOWN_OF_CALLS):
            draft.extra.setdefault("calls", []).append({"call_id": call_id, **rest})

    def _add_call(
        self, draft: _Draft, name: str, arguments: Any, call_id: str, is_free_text: Any = None
    ) -> None:
        error = ""
        value = arguments
        if type(arguments) is str and not is_free_text:
            try:
                value = orjson.loads(arguments)
            except orjson.JSONDecodeError as fault:
                error = str(fault)
            else:
                if len(arguments) > 2 * MAX_DEPTH and not is_shallow(value):
                    error = f"expected JSON nested at most {MAX_DEPTH} deep"
        elif arguments is not None:
            check_depth(f"{self._where}.{self._at}", arguments)
        if type(value) is not dict and value is not None and not (error or is_free_text):
            error = f"expected a JSON object, got {type(value).__name__}"
        if error:
            self.remarks["unreadable arguments"] += 1
        draft.calls.append(ToolCall(name, arguments if error else value, call_id, error))
        self.matching.add(call_id, draft)

    # Results

    def _tool(self, message: dict[str, Any]) -> None:
        """A message with the result of a tool, or with several."""
        content, name = message.get("content"), message.get("name", "")
        call_id: Any = message.get("tool_call_id")
        is_plain = len(message) == 3 + ("name" in message)
        if is_plain and type(content) is type(call_id) is type(name) is str:
            self._add_result(content, call_id, name)
            return
        if (several := as_list(message.get("tool_messages"))) is not None:
            for value in several:
                if (inner := as_object(value)) is None:
                    raise self._error(".tool_messages", "a message", value)
                self._result(inner, inner.get("content"), ".tool_messages")
        elif any(
            (as_object(part) or {}).get("type") == "tool_result" for part in as_list(content) or ()
        ):
            self._user(message, "environment")
        else:
            self._result(message, content)

    def _result(self, holder: dict[str, Any], content: Any, place: str = "") -> None:
        call_id = self._text(holder, place, "tool_call_id", "call_id", "tool_use_id")
        if not call_id:
            # An ``id`` may be the message's own.
            call_id = self._text(holder, place, "id")
            call_id = call_id if self.matching.step_of_id(call_id) else ""
        name = self._text(holder, place, "name", "tool_name")
        extra = rest_of(holder, _KNOWN_OF_RESULTS)
        is_error = holder.get("is_error")
        if is_error is None and isinstance(extra.get("error"), bool):
            is_error = extra.pop("error")
        elif is_error is None and "error" in extra:
            is_error = True
        elif is_error is None and isinstance(status := extra.get("status"), str):
            is_error = _ERROR_OF_STATUS.get(status)
        if is_error is not None and type(is_error) is not bool:
            raise self._error(f"{place}.is_error", "true or false", is_error)
        if type(content) is not str:
            content = self._result_content(content, extra)
            check_depth(f"{self._where}.{self._at}.content", content)
        draft = self._add_result(content, call_id, name, is_error)
        if extra:
            call_id = draft.observations[-1].call_id
            draft.extra.setdefault("results", []).append({"call_id": call_id, **extra})

    def _add_result(self, content: Any, call_id: str, name: str, is_error: Any = None) -> _Draft:
        self._turn = None
        draft, matched = self.matching.answered(call_id, name, self.steps)
        if draft is None:
            self.remarks["results without calls"] += 1
            draft = _Draft("environment")
            self.steps.append(draft)
        draft.observations.append(Observation(content, call_id or matched, name, is_error))
        return draft

    def _result_content(self, content: object, extra: dict[str, Any]) -> object:
        """Texts of a list of parts; other JSON values as they are."""
        parts = [as_object(part) or {} for part in as_list(content) or []]
        kinds = [str(part.get("type")) for part in parts]
        texts = [
            part.get("text") for part, kind in zip(parts, kinds, strict=True) if kind in _TEXTS
        ]
        is_parts = all(kind in _TEXTS or kind in _ATTACHMENTS for kind in kinds)
        if content is None or not is_parts or not all(isinstance(text, str) for text in texts):
            return "" if content is None else content
        if len(texts) < len(parts):
            self.remarks["attachments"] += len(parts) - len(texts)
            extra["content"] = content
        return "\n".join(cast("list[str]", texts)) if parts else content


def _add_text(draft: _Draft, text: str) -> None:
    draft.text = f"{draft.text}\n{text}" if draft.text and text else draft.text or text


def _add_thought(draft: _Draft, text: str) -> None:
    draft.thought = f"{draft.thought}\n{text}" if draft.thought and text else draft.thought or text


# Which call a result answers ---------------------------------------------------------------------


class _Matching:
    """Calls, and which of them wait for a result.

    By id, the latest step that uses the id counts, since some agents begin anew in every message.
    A result without an id answers the latest step with a waiting call of that name (of any name if
    it has none either), and in it the first.

    Attributes:
        n_waiting: Calls that nothing has answered.
    """

    def __init__(self) -> None:
        self.n_waiting = 0
        self._waiting: dict[str, _Draft] = {}
        self._answered: dict[str, _Draft] = {}
        self._again: Counter[str] = Counter()  # calls of one step by an id that is waiting already
        self._by_name: dict[str, list[tuple[_Draft, deque[tuple[int, str]]]]] = {}
        self._n_indexed = 0
        self._next = (0, 0)  # step and call in it that come next in the index
        self._answered_numbers: set[int] = set()  # of calls without an id

    def add(self, call_id: str, draft: _Draft) -> None:
        """Takes in a call of a step."""
        self.n_waiting += 1
        if call_id:
            if call_id in self._waiting:
                is_again = self._waiting[call_id] is draft
                self._again[call_id] = self._again[call_id] + 1 if is_again else 0
            self._waiting[call_id] = draft

    def step_of_id(self, call_id: str) -> _Draft | None:
        """The latest step with a call of that id; None where there is none."""
        return self._waiting.get(call_id) or self._answered.get(call_id)

    def answered(self, call_id: str, name: str, steps: list[_Draft]) -> tuple[_Draft | None, str]:
        """The step of the call that a result answers, which waits no more, and the call's id."""
        if not call_id:
            return self._answered_by_name(name, steps)
        draft = self._waiting.pop(call_id, None)
        if draft is None:
            return self._answered.get(call_id), call_id
        self.n_waiting -= 1
        self._answered[call_id] = draft
        if self._again and self._again[call_id] > 0:
            self._again[call_id] -= 1
            self._waiting[call_id] = draft
        return draft, call_id

    def _answered_by_name(self, name: str, steps: list[_Draft]) -> tuple[_Draft | None, str]:
        self._index(steps)
        groups = self._by_name.get(name, [])
        while groups:
            draft, calls = groups[-1]
            while calls:
                number, call_id = calls.popleft()
                if call_id and self._waiting.get(call_id) is draft:
                    return self.answered(call_id, "", steps)
                if not call_id and number not in self._answered_numbers:
                    self._answered_numbers.add(number)
                    self.n_waiting -= 1
                    return draft, ""
            groups.pop()
        return None, ""

    def _index(self, steps: list[_Draft]) -> None:
        """Takes the calls that came since into the index by name, which most logs never need."""
        next_step, first = self._next
        for at in range(next_step, len(steps)):
            draft = steps[at]
            for call in draft.calls[first:]:
                for name in {call.name, ""}:
                    groups = self._by_name.setdefault(name, [])
                    if not groups or groups[-1][0] is not draft:
                        groups.append((draft, deque()))
                    groups[-1][1].append((self._n_indexed, call.call_id))
                self._n_indexed += 1
            first = 0
        self._next = (len(steps) - 1, len(steps[-1].calls)) if steps else (0, 0)
