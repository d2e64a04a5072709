"""Speakers of earlier messages and the agent's calls, in any dialect of chat messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ...records import Call, Item, Step, message_calls
from ...records.loose_json import as_object, objects_of
from ...records.messages import Role
from ...records.messages.shapes import ARGUMENTS, ROLES, call_body, kind_of, parts_of, role_of
from ...records.native import native_entries
from ...records.responses import read_steps

Message = dict[str, Any]

_RESULT = re.compile(r"observ|result|output|respon|return|error|exception", re.IGNORECASE)
"""Names of fields that hold the result of a call."""
_OWN = frozenset({"thought", "action", "tool_calls"})


class CaseTurn(NamedTuple):
    """A turn of the agent in a message.

    Attributes:
        entry: Its step, with calls in ``tool_calls`` or in the form of its own.
        calls: Its calls.
        is_item: True if the message is nothing but a call, so that the next ones may belong to the
            same step.
    """

    entry: Message
    calls: tuple[Call, ...]
    is_item: bool


def _speaker(message: Mapping[str, Any]) -> Role | Literal["unknown"] | None:
    """The speaker of a message; None if it states none."""
    if isinstance(role := message.get("role"), str) and role:
        return ROLES.get(role.lower(), "unknown")
    if message.get("type") == "function":  # a type of calls
        return None
    if (known := role_of(message)) is not None:
        return known
    for key in ("from", "source", "type"):
        if (named := ROLES.get(str(message.get(key)).lower())) is not None:
            return named
    return None


def is_agents(message: Mapping[str, Any]) -> bool:
    """True if a message is the agent's own, and not a result, a user's or a rule."""
    if speaker := _speaker(message):
        return speaker == "assistant"
    if "type" in message and kind_of(message) == "result":
        return False
    says = _OWN.isdisjoint(message) and not any(key in message for key in ARGUMENTS)
    holds = ("content" in message and "name" in message) or any(map(_RESULT.search, message))
    return not (says and holds)


def turns_of(message: Message) -> list[CaseTurn]:
    """The agent's turns in a message, in any dialect; none if others wrote it."""
    if not is_agents(message):
        return []
    is_own = not {"action", "tool", "tool_name"}.isdisjoint(message)
    if message.get("tool_calls") is None and not is_own and _speaker(message):
        # a name next to a role is the speaker's, unless arguments say that it is a tool's
        dropped = {"tool_calls"}
        if not any(key in message for key in ARGUMENTS):
            dropped.add("name")
        message = {key: value for key, value in message.items() if key not in dropped}
    entries = [message] if is_own else native_entries(message, None)
    is_item = _OWN.isdisjoint(message) and "content" not in message
    turns: list[CaseTurn] = []
    for entry in [message] if entries is None else entries:
        spec = as_object(entry) or {}
        turns.append(CaseTurn(spec, tuple(c for c in message_calls(spec) if c.name), is_item))
    return turns


def calls_in(message: Message) -> list[Call]:
    """The agent's calls in a message."""
    return [call for turn in turns_of(message) for call in turn.calls]


def steps_of(item: Item) -> tuple[tuple[Step, ...], list[int]]:
    """The steps of the reference, and the place of each one's message; results are left out."""
    ref = item.reference
    if ref is None:
        return (), []
    if item.form == "plan":
        return ref.steps, []
    turns = [(at, turn) for at, value in enumerate(ref.value) for turn in turns_of(value)]
    steps = read_steps([turn.entry for _, turn in turns], strict=False)[0]
    return steps, [at for at, _ in turns]


def holds_result(message: Mapping[str, Any]) -> bool:
    """True if a message with calls also has a result."""
    parts: list[Mapping[str, Any]] = list(filter(None, map(as_object, parts_of(message) or ())))
    if any(kind_of(part) == "result" for part in parts):
        return True
    for call in objects_of(message.get("tool_calls")):
        parts += [call, call_body(call) or {}]
    return any(
        _RESULT.search(key) is not None and value is not None
        for part in (message, *parts)
        for key, value in part.items()
    )


def _answers(message: Mapping[str, Any]) -> int:
    """Number of results that a message of another speaker may hold."""
    blocks = filter(None, map(as_object, parts_of(message) or ()))
    return max(1, sum(kind_of(block) == "result" for block in blocks))


def is_known(message: Message) -> bool:
    """True if the speaker and the form of a message are clear."""
    speaker = _speaker(message)
    return speaker != "unknown" and not (speaker is None and _FORMS.isdisjoint(message))


_FORMS = frozenset(
    "type content thought action tool_calls function_call parts tool tool_name name function "
    "arguments".split()
)


def is_parallel(messages: Sequence[Message], called: Sequence[Sequence[Call]], at: int) -> bool:
    """True if calls in a row of messages are answered together later."""
    answers, n_calls = 0, len(called[at])
    for message, calls in zip(messages[at + 1 :], called[at + 1 :], strict=True):
        if not is_agents(message):
            answers += _answers(message)
        elif answers:
            break
        else:
            n_calls += len(calls)
    return answers >= n_calls
