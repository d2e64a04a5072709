"""Sessions: logs in which a trajectory is many lines, with messages and the client's notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import RowError
from ...records.loose_json import as_list, as_object, objects_of
from ...records.trajectories import LogPlace, Trajectory
from .derived import trajectory_of_messages


def part_of_file(line: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The line as a part of its file's trajectory."""
    yield "", line


def name_in(of: Mapping[str, Any], key: str) -> str:
    """A text under a key; empty for any other value."""
    value = of.get(key)
    return value if isinstance(value, str) else ""


def opening_of(message: Mapping[str, Any]) -> str:
    """The text at the beginning of a message; empty if it begins with something else."""
    content = message.get("content")
    text = objects_of(content)[0].get("text") if objects_of(content) else content
    return text.lstrip() if isinstance(text, str) else ""


def note(text: object) -> dict[str, Any]:
    """A message of the client to its user, which the model does not see."""
    return {"role": "tool", "parts": [{"type": "text", "text": text}]}


@dataclass(slots=True)
class LoggedSession:
    """The messages that were selected from the lines of a session.

    Attributes:
        messages: The messages to read, in order.
        lines: Positions of the lines of each message.
        carriers: Values that should only repeat the messages.
        remarks: Counts of what was left out.
        extra: Content that was left out, by the remark that counts it.
        model: The tested model; if empty, the one that the messages name.
        error: Failure other than the agent's that ended the session; empty without.
    """

    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    lines: list[list[int]] = field(default_factory=list[list[int]])
    carriers: list[Any] = field(default_factory=list[Any])
    remarks: Counter[str] = field(default_factory=Counter[str])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    model: str = ""
    error: str = ""

    def add(self, message: dict[str, Any], *lines: int) -> None:
        """Appends a message."""
        self.messages.append(message)
        self.lines.append(list(lines))

    def leave_out(self, remark: str, values: Sequence[Any], n: int = 1) -> None:
        """Keeps values apart under a remark, which counts them as n."""
        if values:
            self.extra.setdefault(remark, []).extend(values)
            self.remarks[remark] += n

    def trajectory(
        self, place: LogPlace, session_id: str, *, system: str = "", answer: str = "", **more: Any
    ) -> Trajectory:
        """The trajectory of the messages.

        Args:
            place: Place of the session.
            session_id: Its id; empty without.
            system: Instructions besides the messages.
            answer: Final answer, if the messages end without one.
            more: Further fields of the trajectory.

        Raises:
            RowError: If there are no messages, or one of them can't be read.
        """
        if not self.messages:
            raise RowError("entry", "a session with messages", "none")
        copies, cut = _repeated(self.carriers, self.messages)
        self.leave_out("duplicate carriers", copies, len(copies))
        self.leave_out("cut content", cut, max(0, len(cut) - self.remarks["cut content"]))
        trajectory = trajectory_of_messages(
            zip(self.lines, self.messages, strict=True),
            "messages",
            place,
            trajectory_id=session_id,
            tested_model=self.model,
            system_prompt=system,
            infrastructure_error=self.error,
            remarks=self.remarks,
            extra=self.extra,
            **more,
        )
        return (
            trajectory
            if trajectory.final_answer
            else replace(trajectory, final_answer=answer or None)
        )


# Copies -------------------------------------------------------------------------------------------

_FRAME = re.compile(r"^\s*\d+(?:→|\t)|</?tool_use_error>")
"""Marks that a client adds to lines that it shows to the model."""
_MARK = re.compile(r"^(?:[+-]|Error: )")
"""Marks that the client puts before lines of a diff, and of an error."""
_END = 500
"""Characters at one end of a text that identify a truncated copy."""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in (as_object(value) or {}).values() or as_list(value) or ():
        yield from _texts(inner)


def _repeated(carriers: list[Any], messages: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The texts that messages repeat in another form, and those of which they have one end.

    Each line of the former is a line of the messages, apart from marks of a diff. Texts that are
    equal to a message are left out.
    """
    texts = set(_texts(messages)) if any(carriers) else set[str]()
    known = {_FRAME.sub("", line).strip() for text in texts for line in text.splitlines()} | {""}
    whole = "\n".join(texts)
    copies, cut = list[str](), list[str]()
    for text in dict.fromkeys(of for of in _texts(carriers) if of.strip() and of not in texts):
        if all({of.strip(), _MARK.sub("", of).strip()} & known for of in text.splitlines()):
            copies.append(text)
        elif len(text) > 2 * _END and any(
            end.strip() in whole for end in (text[:_END], text[-_END:])
        ):
            cut.append(text)
    return copies, cut
