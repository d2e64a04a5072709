"""Steps in the forms in which models and their servers write them.

Agents answer as chat messages of their provider, as bare calls, with calls between tags, or as
Thought, Action and Action Input. Each becomes a step with ``tool_calls``, whatever its spelling;
what can't be read with certainty is left alone, since a guess could blame the tested model for a
call that it never made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .loose_json import as_list, as_object
from .messages.envelope import CANDIDATES, answers_of
from .messages.reader import read_messages
from .messages.shapes import (
    is_call,
    kind_of,
    parts_of,
    plain_messages,
    role_of,
    tagged_calls,
)

Entry = dict[str, Any]

_OTHERS = ("tool", "user", "system")


def native_entries(value: object, horizon: int | None) -> list[object] | None:
    """The steps of a JSON value, as ``{"thought" or "content", "tool_calls"}``.

    It reads the benchmark's own steps; messages and parts in every dialect of ``messages``, alone,
    in a list or in a server's response; and bare calls. Messages of tools and users are left out.

    Args:
        value: A JSON value.
        horizon: The k of the case: above 1, a list of bare calls is one step per call (with texts
            among them only if there are k calls); otherwise it is one step.

    Returns:
        One entry per step; None if the value holds no step.
    """
    if (listed := as_list(value)) is not None:
        return _entries_of_list(listed, horizon)
    spec = as_object(value)
    if spec is None:
        return None
    if "role" not in spec and "response" not in spec:
        field, answers = answers_of(spec)
        sent = answers[:1] if field in CANDIDATES else answers or as_list(spec.get("messages"))
        if sent:
            return native_entries(sent if len(sent) > 1 else sent[0], horizon)
    if is_call(spec):
        return [{"tool_calls": [spec]}]
    return [*_steps_of(spec)] if _is_step(spec) else None


def _entries_of_list(values: list[object], horizon: int | None) -> list[object] | None:
    specs = [cast("Entry", v) for v in values if isinstance(v, dict)]
    if specs and len(specs) == len(values):
        if all(map(is_call, specs)):
            return _steps_of_calls(specs, horizon)
        # Parts of one message, or the items of a response: texts and calls.
        calls = [spec for spec in specs if is_call(spec)]
        is_block = all(
            (isinstance(s.get("type"), str) or (calls and kind_of(s) != "unread"))
            and role_of(s) not in _OTHERS
            for s in specs
        )
        if is_block and (calls or any(kind_of(spec) == "text" for spec in specs)):
            if horizon is not None and horizon > 1 and len(calls) == horizon:
                return _steps_of_calls(calls, horizon)
            return [*_steps_of({"content": specs, "tool_calls": []})]
    if not any(map(_is_step, specs)):
        return None
    steps: list[object] = []
    for value in values:
        if (spec := as_object(value)) is None:
            steps.append(value)
        elif not _is_foreign(spec):
            steps.extend(_steps_of(spec))
    return steps


def _steps_of_calls(calls: Sequence[Entry], horizon: int | None) -> list[object]:
    apart = horizon is not None and horizon > 1
    groups = [[call] for call in calls] if apart else [list(calls)]
    return [{"tool_calls": group} for group in groups]


def _is_foreign(spec: Mapping[str, Any]) -> bool:
    """True if a message is a tool's or a user's; one with calls merely has the wrong role."""
    return role_of(spec) in _OTHERS and not spec.get("tool_calls")


def _is_step(spec: Mapping[str, Any]) -> bool:
    if _is_foreign(spec):
        return False
    own = {"tool_calls", "function_call", "thought", "action", "tool", "tool_name"}
    if not own.isdisjoint(spec) or spec.get("role") is not None or role_of(spec) is not None:
        return True
    return spec.get("type") == "message" or isinstance(spec.get("parts"), list)


_CARRIERS = frozenset("parts function_call invalid_tool_calls toolInvocations copied_calls".split())
"""Fields with calls or texts that a step has in ``tool_calls`` and ``content``."""


def _steps_of(spec: Entry) -> list[Entry]:
    """Steps whose calls, if any, are in ``tool_calls`` and whose text is in ``content``."""
    if spec.get("role") is None and role_of(spec) == "assistant":
        (spec,) = plain_messages(spec) or [spec]
    parts = parts_of(spec)
    if parts is None and (spec.get("tool_calls") or _CARRIERS.isdisjoint(spec)):
        return [_with_calls(spec, [])]
    stated = {name: spec[name] for name in spec if name not in _CARRIERS}
    message = {**spec, "role": "assistant"}
    if parts is not None:
        message = {**message, "parts": None, "content": list(filter(None, map(_part, parts)))}
    return [
        _with_calls(
            stated if parts is None else {**stated, "content": read.text},
            [{"name": call.name, "arguments": call.arguments} for call in read.calls],
        )
        for read in read_messages([message], is_lenient=True).messages
        if read.role == "assistant"
    ]


def _part(part: object) -> object:
    """A part of a message as the reader takes it; None for a call that names no tool."""
    if (block := as_object(part)) is None:
        return part
    kind, names_tool = kind_of(block), is_call(block)
    if kind == "unread":
        return {**block, "type": "tool_call" if names_tool else "text"}
    return None if kind == "call" and not names_tool else block


def _with_calls(step: Entry, calls: list[Entry]) -> Entry:
    content: Any = step.get("content")
    if not calls and not step.get("tool_calls") and isinstance(content, str):
        calls = list(tagged_calls(content))
    return {**step, "tool_calls": calls} if calls else step


# Text ---------------------------------------------------------------------------------------------

_TAGS = re.compile(r"<(?:tool_?calls?|function=|function_calls|invoke )|\[TOOL_CALLS\]")


def tagged_entries(text: str) -> list[Entry] | None:
    """One step with the calls that a text holds between tags; None if it holds none."""
    calls = list(tagged_calls(text))
    return [{"content": _TAGS.split(text)[0].strip(), "tool_calls": calls}] if calls else None


_LABEL = re.compile(
    r"^[ \t>*_#]*(Thought|Action|Action[ _]Input|Observation|Final Answer)[ \t*_]*:"
    r"(?:_+(?=\s|$))?[ \t*]*(.*)$",  # other underscores begin what follows, such as the name _find
    re.IGNORECASE,
)
_NAME = re.compile(r"[`\"']?([A-Za-z_][\w.\-/:]*+)[`\"']?[ \t*_.]*")
_APPLIED = re.compile(r"`?([A-Za-z_][\w.\-/:]*)[ ]?([(\[])(.*)([)\]])`?[ \t*_.]*", re.DOTALL)
_FENCE = re.compile(r"\A```\w*\s*|(?<!\s)\s*```\s*\Z")


def react_entries(text: str, horizon: int | None) -> list[Entry] | None:
    """Steps written as Thought, Action and Action Input; None if the text has none.

    An action has to begin a line and to be the name of a tool, alone or with its arguments in
    brackets; alone it also needs an input or a thought. If the model made up an observation, steps
    beyond those asked for are left out.
    """
    fields = _labelled(text)
    labels = {label for label, _ in fields}
    if not labels & {"action", "final answer"}:
        return None
    steps: list[Entry] = []
    thought = ""
    for i, (label, body) in enumerate(fields):
        if label == "thought":
            thought = body
        elif label == "action":
            following, value = fields[i + 1] if i + 1 < len(fields) else ("", "")
            arguments = value if following == "action input" else None
            call = _action(body, arguments, known="thought" in labels)
            if call is None:
                return None
            steps.append({"thought": thought, "tool_calls": [{"function": call}]})
            thought = ""
        elif label == "final answer":
            steps.append({"thought": f"{thought}\n{body}".strip(), "tool_calls": []})
    if "observation" in labels and horizon is not None:
        steps = steps[:horizon]
    return steps or None


def _labelled(text: str) -> list[tuple[str, str]]:
    """The labelled parts of a text in order, each with all its lines."""
    parts: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        if label := _LABEL.match(line):
            parts.append((label.group(1).lower().replace("_", " "), [label.group(2)]))
        elif parts:
            parts[-1][1].append(line)
    return [(name, "\n".join(lines).strip()) for name, lines in parts]


def _action(body: str, arguments: str | None, *, known: bool) -> Entry | None:
    if (named := _NAME.fullmatch(body)) and (arguments is not None or known):
        call: Entry = {"name": named.group(1)}
        return call if arguments is None else {**call, "arguments": _FENCE.sub("", arguments)}
    if applied := _APPLIED.fullmatch(body):
        name, opening, inner, closing = applied.groups()
        if opening + closing in ("()", "[]"):
            return {"name": name, "arguments": inner}
    return None
