"""Steps in the forms in which models and their servers write them.

Agents answer as chat messages of their provider, as bare calls, with calls between tags, or as
Thought, Action and Action Input. Each becomes a step with ``tool_calls``, whatever its spelling;
what can't be read for sure is left alone, since a guess could charge the tested model with a call
that it never made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from .loose_json import as_list, as_object
from .messages.envelope import CANDIDATES, answers_of
from .messages.shapes import (
    ROLES,
    call_body,
    is_call,
    kind_of,
    name_in_type,
    parts_of,
    plain_messages,
    role_of,
    tagged_calls,
)

Entry = dict[str, Any]

_OTHERS = ("tool", "user", "system")


def native_entries(value: object, horizon: int | None) -> list[object] | None:
    """The steps of a JSON value, as ``{"thought" or "content", "tool_calls"}``.

    Read are the benchmark's own steps; messages and parts in every dialect of ``messages``, alone,
    in a list or in the response as a server sends it; bare calls. Messages of tools and users are
    left out.

    Args:
        value: A JSON value.
        horizon: The k of the case: a list of as many bare calls is taken for k steps, any other
            for the calls of one step where k is 1.

    Returns:
        One entry a step; None where the value holds no step.
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
        return [{"tool_calls": [_call_of(spec)]}]
    return list(_steps_of(spec)) if _is_step(spec) else None


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
            text = "\n".join(filter(None, map(_text_of, specs)))
            return [{"content": text, "tool_calls": list(map(_call_of, calls))}]
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
    return [{"tool_calls": [_call_of(call) for call in group]} for group in groups]


def _text_of(block: Mapping[str, Any]) -> str:
    if kind_of(block) not in ("text", "unread"):
        return ""
    text: Any = block.get("text")
    if isinstance(text, str):
        return text
    content: Any = block.get("content")
    if block.get("type") == "message" and (listed := as_list(content)) is not None:
        parts = (_text_of(part) for part in map(as_object, listed) if part is not None)
        return "\n".join(filter(None, parts))
    return content if isinstance(content, str) else ""


def _call_of(spec: Entry) -> Entry:
    body = call_body(spec)
    if body is None and (name := name_in_type(spec)):
        return {**spec, "name": name}
    return dict(spec) if body is None else {"function": dict(body)}


def _is_foreign(spec: Mapping[str, Any]) -> bool:
    """True if a message is a tool's or a user's; one with calls has only a wrong role."""
    return role_of(spec) in _OTHERS and not spec.get("tool_calls")


def _is_step(spec: Mapping[str, Any]) -> bool:
    if _is_foreign(spec):
        return False
    own = {"tool_calls", "function_call", "thought", "action", "tool", "tool_name"}
    if not own.isdisjoint(spec) or spec.get("role") is not None or role_of(spec) is not None:
        return True
    return spec.get("type") == "message" or isinstance(spec.get("parts"), list)


def _steps_of(spec: Entry) -> Iterator[Entry]:
    """Steps whose calls, if any, are in ``tool_calls`` and whose text is in ``content``."""
    if spec.get("role") is None and role_of(spec) == "assistant":
        (spec,) = plain_messages(spec) or [spec]
    groups: list[list[Entry]] | None = None
    if (parts := parts_of(spec)) is not None:
        groups = [[]]
        for part in parts:
            block = {"text": part} if (block := as_object(part)) is None else block
            if kind_of(block) == "step" and groups[-1]:
                groups.append([])
            groups[-1].append(block)
    for group in [None] if groups is None else groups:
        yield _step_of(spec, group)


def _step_of(spec: Entry, blocks: list[Entry] | None) -> Entry:
    step = dict(spec)
    calls = [_call_of(block) for block in blocks or () if is_call(block)]
    listed = (as_list(spec.get(name)) or () for name in ("invalid_tool_calls", "toolInvocations"))
    calls += [_call_of(call) for calls in listed for call in map(as_object, calls) if call]
    calls = calls or list(as_list(spec.get("copied_calls")) or ())
    if (older := as_object(spec.get("function_call"))) is not None:
        calls.append(older)
    if blocks is not None:
        texts = (_text_of(block) for block in blocks if not is_call(block))
        step["content"] = "\n".join(filter(None, texts))
    content: Any = step.get("content")
    if not calls and isinstance(content, str):
        calls = [call for entry in tagged_entries(content) or () for call in entry["tool_calls"]]
    if calls and not step.get("tool_calls"):
        step["tool_calls"] = calls
    if ROLES.get(str(step.get("role"))) == "assistant":
        step["role"] = "assistant"
    return step


# Text ---------------------------------------------------------------------------------------------

_TAGS = re.compile(r"<(?:tool_?calls?|function=|function_calls|invoke )|\[TOOL_CALLS\]")


def tagged_entries(text: str) -> list[Entry] | None:
    """One step of the calls that a text holds between tags; None where it holds none."""
    calls = [{"function": call} for call in tagged_calls(text)]
    if not calls:
        return None
    return [{"content": _TAGS.split(text)[0].strip(), "tool_calls": calls}]


_LABEL = re.compile(
    r"^[ \t>*_#]*(Thought|Action|Action[ _]Input|Observation|Final Answer)[ \t*_]*:"
    r"(?:_+(?=\s|$))?[ \t*]*(.*)$",  # other underscores begin what follows, such as the name _find
    re.IGNORECASE,
)
_NAME = re.compile(r"[`\"']?([A-Za-z_][\w.\-/:]*+)[`\"']?[ \t*_.]*")
_APPLIED = re.compile(r"`?([A-Za-z_][\w.\-/:]*)[ ]?([(\[])(.*)([)\]])`?[ \t*_.]*", re.DOTALL)
_FENCE = re.compile(r"\A```\w*\s*|(?<!\s)\s*```\s*\Z")


def react_entries(text: str, horizon: int | None) -> list[Entry] | None:
    """Steps written as Thought, Action and Action Input; None where the text has none.

    An action has to begin a line and to be the name of a tool, alone or with its arguments in
    brackets; alone it needs an input or a thought beside it. What follows an observation that the
    model made up itself is left out beyond the steps that were asked for.
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
