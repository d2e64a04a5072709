"""Makes messages of raw ones: finds, joins and counts texts, calls and results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ...errors import RowError
from ..loose_json import as_list, as_object, check_depth, rest_of
from .calls import call_of, copy_among
from .model import Messages, Role, ToolCall, ToolResult
from .pairing import Matching, MessageDraft
from .results import answer_in, failed, n_files_beside, name_of_file, texts_in
from .shapes import (
    ARGUMENTS,
    CALL_IDS,
    CODE,
    CONTENTS,
    NAMES,
    RESULT_IDS,
    ROLES,
    TEXTS,
    Kind,
    call_body,
    is_item,
    kind_of,
    name_in_type,
    parts_of,
    plain_messages,
)


def read_messages(
    messages: list[Any], where: str = "messages", *, is_lenient: bool = False
) -> Messages:
    """Reads messages of any dialect, also mixed, in one pass.

    Results join the message with the call that they answer: by id, else as in ``Matching``. Items
    of a response are one message unless a result or another speaker is between them.

    Args:
        messages: Chat messages or items, as JSON values.
        where: Name of the list, for errors.
        is_lenient: True if unreadable parts are left out, as for a model's reply.

    Raises:
        RowError: If a message, a part or a call is not an object, a text is not text, or a value to
            store as JSON is nested too deeply to be written; never with ``is_lenient``.
    """
    reader = _Reader(where, is_lenient=is_lenient)
    reader.read(messages)
    reader.check_depth("", [reader.unknown, *(of.extra for of in reader.drafts if of.extra)])
    read = tuple(draft.message() for draft in reader.drafts)
    for of in read:
        reader.remarks["parallel calls"] += len(of.calls) > 1
        reader.remarks["user-side calls"] += len(of.calls) if of.role == "user" else 0
    reader.remarks["calls without results"] = reader.matching.n_waiting
    system = "\n\n".join(reader.system)
    return Messages(read, system, reader.model, dict(+reader.remarks), reader.unknown)


_KNOWN = frozenset(
    "role type content parts tool_calls invalid_tool_calls tool_call_chunks toolInvocations "
    "copied_calls function_call reasoning_content reasoning thinking refusal tool_messages "
    "is_repeated audio".split()
)
_KNOWN_OF_RESULTS = frozenset(
    "role type part_kind parts id name tool_name toolName is_error isError requestor "
    "outcome".split()
).union(RESULT_IDS, CONTENTS)
_USUAL = frozenset("role content tool_calls tool_call_id name".split())
_KNOWN_OF_CALLS = frozenset(
    "type part_kind kind name tool_name toolName function_name index requestor parse_error error "
    "state".split()
).union(CALL_IDS, ARGUMENTS, CONTENTS[1:])
_KNOWN_OF_REASONING = frozenset("type summary content".split())
_OF_HOSTED_RESULTS = frozenset("output outputs results result error status".split())
_HOLDERS_OF_TEXT = ("reasoningContent", "guardContent", "citationsContent", "searchResult")
_NO_RESULT_YET = frozenset(
    "input-streaming input-available approval-requested approval-responded partial-call "
    "call".split()
)


class _Reader:
    """Makes messages of raw ones; see ``read_messages``."""

    def __init__(self, where: str, *, is_lenient: bool) -> None:
        self._where = where
        self._is_lenient = is_lenient
        self._at = 0
        self.drafts: list[MessageDraft] = []
        self.system: list[str] = []
        self.model = ""
        self.remarks: Counter[str] = Counter()
        self.unknown: list[Any] = []
        self.matching = Matching()
        self._turn: MessageDraft | None = None  # the agent's, until something else comes
        self._has_user = False

    def read(self, messages: list[Any]) -> None:
        """Reads messages in order."""
        readers: Mapping[Role, Callable[[dict[str, Any]], None]] = {
            "assistant": self._agent,
            "user": self._user,
            "system": self._system,
            "tool": self._tool,
        }
        for self._at, message in enumerate(messages):
            if type(message) is not dict:
                self._refuse("", "a message", message)
                continue
            raw = cast("dict[str, Any]", message)
            role: Any = raw.get("role")
            known = ROLES.get(role) if type(role) is str else None
            if known is not None and "additional_kwargs" not in raw:
                readers[known](raw)
                if not raw.keys() <= _USUAL:
                    self._look_beside(raw)
            elif role is None and is_item(raw.get("type")):
                self._item(str(raw["type"]), raw)
            elif (plain := plain_messages(raw)) is not None:
                for inner in plain:
                    readers[inner["role"]](inner)
                    self._look_beside(inner)
            elif raw.get("type") in ("item_reference", "compaction"):
                self.remarks["cut content"] += 1
            else:
                self._turn = None
                self.remarks["unknown steps"] += 1
                self.unknown.append(raw)

    def _look_beside(self, message: Mapping[str, Any]) -> None:
        """Notes the model's name."""
        if self.model:
            return
        about = as_object(message.get("response_metadata") or message.get("metadata")) or {}
        names = (of.get(key) for of in (message, about) for key in ("model_name", "model"))
        self.model = next((name for name in names if isinstance(name, str)), "")

    def _refuse(self, place: str, expected: str, got: object) -> None:
        """Raises RowError for an unreadable part, which a lenient reader leaves out."""
        if not self._is_lenient:
            raise RowError(f"{self._where}.{self._at}{place}", expected, got)

    def check_depth(self, place: str, value: object) -> None:
        """Raises RowError for a value nested too deeply to be written, unless lenient."""
        if not self._is_lenient:
            check_depth(f"{self._where}{place}", value)

    def _text(self, of: Mapping[str, Any], place: str, *names: str) -> str:
        """A text, or an integer as text, under any of the names; empty without."""
        for name in names:
            value = of.get(name)
            if value is None:
                continue
            if type(value) is str or type(value) is int:
                return str(value)
            self._refuse(f"{place}.{name}", "text", value)
        return ""

    def _new(self, role: Role) -> MessageDraft:
        draft = MessageDraft(role, entries=[self._at])
        self.drafts.append(draft)
        return draft

    def _joined(self, draft: MessageDraft | None, role: Role = "assistant") -> MessageDraft:
        """The draft, to which the present entry belongs too; a new one for None."""
        if draft is None:
            return self._new(role)
        if draft.entries[-1] != self._at:
            draft.entries.append(self._at)
        return draft

    # Messages

    def _user(self, message: dict[str, Any], role: Role = "user") -> None:
        """A message that is not the agent's; a user's may have results."""
        self._turn = None
        draft = MessageDraft(role, extra=rest_of(message, _KNOWN), entries=[self._at])
        n_results = 0
        content = message.get("content")
        if type(content) is str and len(message) == 2:
            draft.text = content
        else:
            n_results = self._contents(message, draft)
            self._calls(message.get("tool_calls"), draft)
        if n_results and not (draft.text or draft.calls or draft.attachments):
            self._keep_of_result(draft.extra)
            return
        self._has_user |= role == "user"
        self.drafts.append(draft)

    def _system(self, message: dict[str, Any]) -> None:
        self._user(message, "system")
        if not self._has_user:
            text = self.drafts.pop().text
            if "is_repeated" not in message or text not in self.system:
                self.system.append(text)
        elif "is_repeated" in message and self.drafts[-1].text in self.system:
            self.drafts.pop()

    def _agent(self, message: dict[str, Any]) -> None:
        draft = self._turn
        is_begun = draft is not None and (draft.reasoning or draft.extra) and not draft.text
        is_new = draft is None or not (
            message.get("type") == "message" or (is_begun and not draft.calls)
        )
        draft = self._turn = self._joined(None if is_new else draft)
        listed = message.get("tool_calls")
        n_results = 0
        content = message.get("content")
        if type(content) is str and not draft.text and "parts" not in message:
            draft.text = content
        elif content is not None or "parts" in message:
            n_results = self._contents(message, draft)
            draft = self._turn or draft
        if listed:
            self._calls(listed, draft)
        if len(message) > 1 + ("content" in message) + ("tool_calls" in message):
            self._more_of_agent(message, draft)
        is_empty = not (draft.says_something or draft.attachments)
        if is_new and n_results and is_empty and draft is self.drafts[-1]:
            self.drafts.pop()
            self._turn = None
            return
        self._turn = draft

    def _more_of_agent(self, message: dict[str, Any], draft: MessageDraft) -> None:
        """Adds the parts of an agent's message other than content and calls."""
        for name in ("reasoning_content", "reasoning", "thinking"):
            if (thought := message.get(name)) is not None:
                if isinstance(thought, str):
                    draft.add_thought(thought)
                    break
                draft.extra[name] = thought
        draft.add_text(self._text(message, "", "refusal"))
        if (audio := as_object(message.get("audio"))) is not None:
            draft.add_text(self._text(audio, ".audio", "transcript"))
            draft.attachments.append("audio")
            self.remarks["attachments"] += 1
        for name in ("invalid_tool_calls", "tool_call_chunks", "toolInvocations"):
            self._calls(message.get(name), draft)
        self._calls(message.get("copied_calls"), draft)
        if (call := message.get("function_call")) is not None and not message.get("tool_calls"):
            self._call(call, draft, ".function_call")
        draft.extra |= rest_of(message, _KNOWN)

    def _item(self, kind: str, item: dict[str, Any]) -> None:
        """An item of the Responses API other than a message."""
        if kind.endswith("_output"):
            self._result(item, item.get("output", item.get("result")))
            return
        draft = self._turn = self._joined(self._turn)
        if kind == "reasoning":
            inner = MessageDraft("user")
            self._contents({"content": item.get("content") or item.get("summary")}, inner)
            draft.add_thought(inner.text)
            self.remarks["cut content"] += bool(item.get("encrypted_content"))
            if rest := rest_of(item, _KNOWN_OF_REASONING):
                draft.extra.setdefault("reasoning", []).append(rest)
            return
        if kind in ("function_call", "custom_tool_call"):
            self._call(item, draft, "", is_free_text=kind == "custom_tool_call")
            return
        # Tools that the API itself runs: one item is both the call and, if stored, its result.
        call = {name: value for name, value in item.items() if name not in _OF_HOSTED_RESULTS}
        call.setdefault("name", kind.removesuffix("_call"))
        fields = {name: call.pop(name) for name in [*call] if name not in _KNOWN_OF_CALLS}
        call.setdefault("arguments", fields.pop("action", None) or fields)
        self._call(call, draft, "")
        for name in ("output", "outputs", "results", "result", "error"):
            if (output := item.get(name)) is not None:
                call_id = self._text(item, "", "call_id", "id")
                self._result({"call_id": call_id, "error": item.get("error")}, output)
                self._turn = draft
                break

    # Content

    def _contents(self, message: Mapping[str, Any], draft: MessageDraft) -> int:
        """Adds text and parts of a message to a draft; returns the number of results among them."""
        text = message.get("content")
        parts = parts_of(message)
        if parts is None and text is not None and not isinstance(text, str):
            self._refuse(".content", "text or a list of parts", text)
        n_results = self._parts(parts or (), draft)
        if isinstance(text, str) and (parts is None or text not in draft.text):
            (self._turn or draft).add_text(text)  # Vercel's older UI repeats the text of parts
        return n_results

    def _parts(self, parts: Sequence[Any], draft: MessageDraft) -> int:
        n_results, is_kept, texts = 0, False, list[str]()
        for i, part in enumerate(parts):
            if isinstance(part, str):
                texts.append(part)
                continue
            block, place = as_object(part), f".content.{i}"
            if block is None:
                self._refuse(place, "a part of a message", part)
                continue
            kind = kind_of(block)
            if kind == "text":
                texts.append(self._words(block, place))
            elif kind != "step":
                n_results += self._part(kind, block, draft, place)
                is_kept |= kind in ("attachment", "unread")
            elif texts or draft.says_something:
                draft.add_text("\n".join(filter(None, texts)))
                texts.clear()
                draft = self._new(draft.role)
        draft.add_text("\n".join(filter(None, texts)))
        if is_kept:
            draft.extra["content"] = parts
        if draft.role == "assistant":
            self._turn = draft
        return n_results

    def _part(self, kind: Kind, part: dict[str, Any], draft: MessageDraft, place: str) -> int:
        """Adds a part other than text; returns the number of its results."""
        if kind in ("call", "both"):
            part = as_object(part.get("toolInvocation")) or part
            self._call(part, draft, place)
            return self._result_of_call(part, draft) if kind == "both" or "result" in part else 0
        if kind == "result":
            self._result_part(part, place)
            return 1
        if kind == "reasoning":
            shown = {"summary": part.get("summary")} if part.get("redacted") else part
            thought = self._words(shown, place)
            draft.add_thought(thought)
            is_hidden = not thought and any(part[key] for key in part.keys() - {"type", "thinking"})
            self.remarks["cut content"] += shown is not part or is_hidden
        elif kind == "attachment":
            draft.attachments.append(name_of_file(part))
            self.remarks["attachments"] += 1
        elif kind == "cut":
            self.remarks["cut content"] += 1
        return 0

    def _words(self, part: Mapping[str, Any], place: str) -> str:
        """The text in a part, at any depth."""
        for name in (*TEXTS, *_HOLDERS_OF_TEXT):
            value = part.get(name)
            if value is None or (value == [] and name == "content"):
                continue
            if isinstance(value, str):
                return value
            if (inner := as_object(value)) is not None:
                return self._words(inner, f"{place}.{name}")
            if (listed := as_list(value)) is not None and all(map(as_object, listed)):
                titles = [of] if isinstance(of := part.get("title"), str) else []
                return "\n".join([*titles, *(self._words(of, f"{place}.{name}") for of in listed)])
            self._refuse(f"{place}.{name}", "text", value)
        return ""

    # Calls

    def _calls(self, calls: list[dict[str, Any]] | None, draft: MessageDraft) -> None:
        """Adds the calls that a message lists outside its content."""
        if calls is None:
            return
        if type(calls) is not list:
            self._refuse(".tool_calls", "a list of calls", calls)
            return
        copies = list(draft.calls)
        for call in calls:
            if not copies and type(call) is dict and len(call) == 3:
                function: Any = call.get("function")
                if type(function) is dict:
                    function = cast("dict[str, Any]", function)
                    call_id: Any = call.get("id")
                    name: Any = function.get("name")
                    arguments = function.get("arguments")
                    if type(call_id) is type(name) is type(arguments) is str and "type" in call:
                        self._add_call(call_of(name, arguments, call_id), draft)
                        continue
            n_calls = len(draft.calls)
            self._call(call, draft, ".tool_calls", copies=copies)
            if len(draft.calls) > n_calls and {"toolCallId", "state"} <= call.keys():
                self._result_of_call(call, draft)

    def _call(
        self,
        call: dict[str, Any],
        draft: MessageDraft,
        place: str,
        *,
        is_free_text: bool = False,
        copies: list[ToolCall] | None = None,
    ) -> None:
        """Adds a call in any form, unless it is one of the copies that the message already has."""
        if type(call) is not dict:
            self._refuse(place, "a call", call)
            return
        inner = call_body(call)
        holder = call if inner is None else inner
        call_id = self._text(call, place, *CALL_IDS) or self._text(holder, place, *CALL_IDS)
        name = self._text(holder, place, *NAMES, "function") or name_in_type(call)
        arguments = next((of for key in ARGUMENTS if (of := holder.get(key)) is not None), None)
        if not name and "language" in holder:
            name, arguments = CODE, holder
        problem = call.get("parse_error") or (None if "result" in call else call.get("error"))
        if copies and (copy := copy_among(copies, name, call_id, arguments)) is not None:
            copies.remove(copy)
            return
        is_free_text |= "custom" in call
        if type(arguments) is not str:
            self.check_depth(f".{self._at}", arguments)
        tool_call = call_of(name, arguments, call_id, is_free_text=is_free_text, problem=problem)
        self._add_call(tool_call, draft)
        rest = rest_of(call, _KNOWN_OF_CALLS | {"function", "custom"})
        rest = {key: value for key, value in rest.items() if value is not inner}
        if rest:
            draft.extra.setdefault("calls", []).append({"call_id": call_id, **rest})

    def _add_call(self, call: ToolCall, draft: MessageDraft) -> None:
        self.remarks["unreadable arguments"] += bool(call.parse_error)
        draft.calls.append(call)
        self.matching.add(call.call_id, draft)

    # Results

    def _tool(self, message: dict[str, Any]) -> None:
        """Adds a message with one or more results of tools."""
        content, name = message.get("content"), message.get("name", "")
        call_id: Any = message.get("tool_call_id")
        is_plain = len(message) == 3 + ("name" in message)
        if is_plain and type(content) is type(call_id) is type(name) is str:
            self._add_result(ToolResult(content, call_id, name))
            return
        if (several := as_list(message.get("tool_messages"))) is not None:
            for value in several:
                if (inner := as_object(value)) is None:
                    self._refuse(".tool_messages", "a message", value)
                    continue
                self._result(inner, inner.get("content"), ".tool_messages", is_value=True)
            return
        blocks = filter(None, map(as_object, parts_of(message) or ()))
        if "parts" in message or any(kind_of(block) in ("result", "both") for block in blocks):
            self._user(message, "tool")
        else:
            self._result(message, content)

    def _result_part(self, part: dict[str, Any], place: str) -> None:
        """Adds a result that is a part of a message."""
        holder, content, is_value = answer_in(part)
        self.remarks["attachments"] += n_files_beside(part)
        self._result(holder, content, place, is_value=is_value)

    def _result_of_call(self, part: dict[str, Any], draft: MessageDraft) -> int:
        """Adds the result in the part of its call; returns the number of results, 0 or 1."""
        if str(part.get("state")) in _NO_RESULT_YET:
            return 0
        content = next((of for key in CONTENTS[1:] if (of := part.get(key)) is not None), None)
        if content is None and part.get("state") == "output-denied":
            content = (as_object(part.get("approval")) or {}).get("reason")
        elif content is None:
            content = part.get("error")
        call = draft.calls[-1]
        mark = {"is_error": failed({k: part[k] for k in ("error", "state") if k in part})}
        holder = {"call_id": call.call_id, "name": "" if call.call_id else call.name, **mark}
        self._result(holder, content, is_value=True)
        self._turn = draft
        return 1

    def _result(
        self, holder: dict[str, Any], content: Any, place: str = "", *, is_value: bool = False
    ) -> None:
        call_id = self._text(holder, place, *RESULT_IDS)
        if not call_id:
            # An ``id`` may be the message's own.
            call_id = self._text(holder, place, "id")
            call_id = call_id if self.matching.knows(call_id) else ""
        name = self._text(holder, place, "name", "tool_name", "toolName", "function")
        extra = rest_of(holder, _KNOWN_OF_RESULTS)
        if name and extra.get("function") == name:
            del extra["function"]
        try:
            is_error = failed(holder)
        except ValueError as error:
            field, is_error = str(error), None
            self._refuse(f"{place}.{field}", "true or false", holder[field])
        if isinstance(extra.get("error"), bool):
            del extra["error"]
        if type(content) is not str:
            value, n_files = (content, 0) if is_value else texts_in(content)
            if n_files:
                self.remarks["attachments"] += n_files
                extra["content"] = content
            content = "" if value is None else value
        if content == "" and not isinstance(fault := extra.get("error"), bool | None):
            content = (as_object(fault) or {}).get("message", fault)
        if type(content) is not str:
            self.check_depth(f".{self._at}.content", content)
        self._add_result(ToolResult(content, call_id, name, is_error))
        self._keep_of_result(extra)

    def _keep_of_result(self, extra: dict[str, Any]) -> None:
        """Stores the log's other fields of the last result."""
        if extra:
            draft = self._answered
            call_id = draft.results[-1].call_id
            draft.extra.setdefault("results", []).append({"call_id": call_id, **extra})

    def _add_result(self, result: ToolResult) -> None:
        self._turn = None
        draft, result = self.matching.answered(result, self.drafts)
        if draft is None:
            self.remarks["results without calls"] += 1
        draft = self._joined(draft, "tool")
        draft.results.append(result)
        self._answered = draft
