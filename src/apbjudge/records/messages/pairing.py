"""Results joined to the calls that they answer."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import Any

from .model import Message, Role, ToolCall, ToolResult


@dataclass(slots=True, eq=False)
class MessageDraft:
    """A message to which texts, calls and results may still be added."""

    role: Role
    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    attachments: list[str] = field(default_factory=list[str])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    entries: list[int] = field(default_factory=list[int])

    def add_text(self, text: str) -> None:
        """Appends a text on new lines."""
        self.text = "\n".join(filter(None, (self.text, text)))

    def add_thought(self, text: str) -> None:
        """The same for its reasoning."""
        self.reasoning = "\n".join(filter(None, (self.reasoning, text)))

    @property
    def says_something(self) -> bool:
        """True if there is a text, a call, or a result with content."""
        results = (result.content for result in self.results)
        return bool(self.text or self.reasoning or self.calls or any(results))

    def message(self) -> Message:
        """The message; a text under ``name`` in its extra fields is the name of the speaker."""
        speaker = self.extra.pop("name") if isinstance(self.extra.get("name"), str) else ""
        return Message(
            self.role,
            self.text,
            self.reasoning,
            tuple(self.calls),
            tuple(self.results),
            tuple(self.attachments),
            self.extra,
            tuple(self.entries),
            speaker,
        )


class Matching:
    """Calls, and those of them that wait for a result.

    Of several messages that use an id, the latest counts, since some agents begin anew in every
    message. A result without an id answers the first waiting call of that name (of any name if it
    has none either) in the latest message with one.

    Attributes:
        n_waiting: Number of calls without an answer.
    """

    def __init__(self) -> None:
        self.n_waiting = 0
        self._waiting: dict[str, MessageDraft] = {}
        self._answered: dict[str, MessageDraft] = {}
        # number of further calls of one message with an id that is already waiting
        self._again: Counter[str] = Counter()
        self._by_name: dict[str, list[tuple[MessageDraft, deque[tuple[int, ToolCall]]]]] = {}
        self._n_indexed = 0
        self._next = (0, 0)  # next message, and next call in it, for the index
        self._answered_numbers: set[int] = set()  # numbers of calls without an id

    def add(self, call_id: str, draft: MessageDraft) -> None:
        """Adds a call of a message."""
        self.n_waiting += 1
        if call_id:
            if call_id in self._waiting:
                is_again = self._waiting[call_id] is draft
                self._again[call_id] = self._again[call_id] + 1 if is_again else 0
            self._waiting[call_id] = draft

    def knows(self, call_id: str) -> bool:
        """True if a call has that id."""
        return call_id in self._waiting or call_id in self._answered

    def answered(
        self, result: ToolResult, drafts: list[MessageDraft]
    ) -> tuple[MessageDraft | None, ToolResult]:
        """The message of the call that a result answers, and the result with the call's id or name.

        The call then no longer waits.
        """
        if not result.call_id:
            return self._answered_by_name(result, drafts)
        call_id = result.call_id
        draft = self._waiting.pop(call_id, None)
        if draft is None:
            return self._answered.get(call_id), result
        self.n_waiting -= 1
        self._answered[call_id] = draft
        if self._again and self._again[call_id] > 0:
            self._again[call_id] -= 1
            self._waiting[call_id] = draft
        return draft, result

    def _answered_by_name(
        self, result: ToolResult, drafts: list[MessageDraft]
    ) -> tuple[MessageDraft | None, ToolResult]:
        self._index(drafts)
        groups = self._by_name.get(result.name, [])
        while groups:
            draft, calls = groups[-1]
            while calls:
                number, call = calls.popleft()
                if call.call_id and self._waiting.get(call.call_id) is draft:
                    return self.answered(replace(result, call_id=call.call_id), drafts)
                if not call.call_id and number not in self._answered_numbers:
                    self._answered_numbers.add(number)
                    self.n_waiting -= 1
                    return draft, replace(result, name=call.name)
            groups.pop()
        return None, result

    def _index(self, drafts: list[MessageDraft]) -> None:
        """Adds the new calls to the index by name, which most logs never need."""
        next_draft, first = self._next
        for at in range(next_draft, len(drafts)):
            draft = drafts[at]
            for call in draft.calls[first:]:
                for name in {call.name, ""}:
                    groups = self._by_name.setdefault(name, [])
                    if not groups or groups[-1][0] is not draft:
                        groups.append((draft, deque()))
                    groups[-1][1].append((self._n_indexed, call))
                self._n_indexed += 1
            first = 0
        self._next = (len(drafts) - 1, len(drafts[-1].calls)) if drafts else (0, 0)
