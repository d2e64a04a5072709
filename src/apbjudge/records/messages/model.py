"""Chat messages in the form that all readers of the program use, for any dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, attempted or executed.

    Attributes:
        name: Name as written; empty if the call has none.
        arguments: An object if it could be parsed; else the original value (text, a list, None).
        call_id: Id that its result names; empty without.
        parse_error: Reason why the arguments could not be parsed; empty if they could.
    """

    name: str
    arguments: Any = None
    call_id: str = ""
    parse_error: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer of a tool or the environment.

    Attributes:
        content: Text, or JSON values if the log has them.
        call_id: Id of the call that it answers, even if only its place identifies the call; empty
            if that call has none, or if it answers no call.
        name: Tool that answers, if the log states it; always set for a call without an id.
        is_error: True if the log marks it as an error; None if not stated.
        error: Text of the error, if the log has it apart from the content; empty without.
    """

    content: Any
    call_id: str = ""
    name: str = ""
    is_error: bool | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a speaker, with its calls and their answers.

    Attributes:
        role: The speaker; ``tool`` for results that answer no call, and for an environment.
        text: Text as shown; empty without.
        reasoning: Thinking that the log has apart from the text.
        calls: Calls in order, also those of users.
        results: Answers to these calls in the order of the log, from any place in it.
        attachments: Pictures, audio and files, each by its name, address or kind.
        extra: Fields that have no place here.
        entries: Positions, from 0, of its raw messages or items.
        speaker: Name of the speaker, if the log distinguishes several agents or people; empty
            without.
    """

    role: Role
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    attachments: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    entries: tuple[int, ...] = ()
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Messages:
    """A parsed list of messages.

    Attributes:
        messages: Messages in order, without the system prompt.
        system_prompt: System messages before the first of a user, joined by blank lines.
        model: The model that the messages name; empty without.
        remarks: Counts of occurrences, by the names of ``trajectories.REMARKS``.
        unknown: Messages of an unknown kind.
    """

    messages: tuple[Message, ...]
    system_prompt: str = ""
    model: str = ""
    remarks: dict[str, int] = field(default_factory=dict[str, int])
    unknown: list[Any] = field(default_factory=list[Any])

    @property
    def query(self) -> str:
        """The first text of a user; empty without."""
        return next((m.text for m in self.messages if m.role == "user" and m.text), "")

    @property
    def final_answer(self) -> str | None:
        """Text of the last message of the assistant; None if it makes calls or is empty.

        Arguments of a call of ``final_result``, pydantic-ai's way to answer in a form, are an
        answer.
        """
        last = next((m for m in reversed(self.messages) if m.role == "assistant"), Message("tool"))
        answers = (of.arguments for of in last.calls if of.name == "final_result")
        form = next(answers, None)
        if form is not None:
            return form if isinstance(form, str) else orjson.dumps(form).decode()
        return last.text or None if not last.calls else None
