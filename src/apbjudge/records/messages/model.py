"""Chat messages as every reader of the program sees them, whatever their dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, attempted or executed.

    Attributes:
        name: As written; empty where the call names none.
        arguments: An object where it could be read; else what came (text, a list, None).
        call_id: Id that its result names; empty without.
        parse_error: Why the arguments could not be read; empty where they could.
    """

    name: str
    arguments: Any = None
    call_id: str = ""
    parse_error: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer of a tool or the environment.

    Attributes:
        content: Text, or JSON values where the log has them.
        call_id: Id of the call that it answers, also where only its place says which; empty where
            that call has none, or where it answers no call.
        name: Tool that answers, where the log says so; of a call without an id always.
        is_error: True if the log marks it as an error; None where it says nothing.
        error: Words of the error that the log has apart from the content; empty without.
    """

    content: Any
    call_id: str = ""
    name: str = ""
    is_error: bool | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a speaker, with the calls made there and the answers to them.

    Attributes:
        role: Who speaks; ``tool`` for results that answer no call, and for an environment.
        text: As shown; empty without.
        reasoning: Thinking that the log keeps apart from it.
        calls: In order; also those of users.
        results: Answers to these calls in the order of the log, wherever they stood.
        attachments: Pictures, audio and files, each by its name, address or kind.
        extra: Fields that have no place here.
        entries: Positions, from 0, of the raw messages or items that it was made of.
        speaker: Name of who speaks, where the log tells several agents or people apart; empty
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
    """A list of messages, read.

    Attributes:
        messages: In order, without the system prompt.
        system_prompt: System messages before the first of a user, joined by blank lines.
        model: The model that the messages name; empty without.
        remarks: How often something occurred, by the names of ``trajectories.REMARKS``.
        unknown: Messages of a kind that is not known.
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
        """Text of the last message of the assistant; None where it makes calls or says nothing.

        What it calls ``final_result`` with, as pydantic-ai lets it answer in a form, is an answer.
        """
        last = next((m for m in reversed(self.messages) if m.role == "assistant"), Message("tool"))
        answers = (of.arguments for of in last.calls if of.name == "final_result")
        form = next(answers, None)
        if form is not None:
            return form if isinstance(form, str) else orjson.dumps(form).decode()
        return last.text or None if not last.calls else None
