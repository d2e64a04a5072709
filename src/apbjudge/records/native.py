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

from .loose_json import as_list, as_object, json_values

Entry = dict[str, Any]

NAME_KEYS = ("name", "tool_name", "tool", "api_name", "api")
"""Names under which a call names its tool."""
ARGUMENT_KEYS = tuple("arguments parameter_description parameters args input kwargs param".split())
"""Names under which a call's arguments stand; the first that is there counts."""
_CALL_TYPES = ("function", "function_call", "tool_call", "tool_use", "toolUse")
_TEXT_TYPES = ("text", "output_text", "input_text", "summary_text", "message")
_ASSISTANT = ("assistant", "model", "ai")
_OTHERS = ("tool", "function", "user", "human", "system", "developer")
_OWN_FORM = frozenset({"thought", "action", "predicted_steps", "tool", "tool_name"})
_WRAPPERS = ("choices", "candidates", "output", "messages", "generations")


def native_entries(value: object, horizon: int | None) -> list[object] | None:
    """The steps of a JSON value, as ``{"thought" or "content", "tool_calls"}``.

    Read are the benchmark's own steps; messages of OpenAI (also its older ``function_call`` and
    the items of its Responses), Anthropic, Gemini, Bedrock and LangChain, alone, in a list or in
    the response as a server sends it; bare calls. Messages of tools and users are left out.

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
    for wrapper in _WRAPPERS:
        inner = as_list(spec.get(wrapper))
        if inner and "role" not in spec:
            parts = [_unwrapped(part) for part in inner]
            chosen = parts[:1] if wrapper in ("choices", "candidates", "generations") else parts
            return native_entries(chosen if len(chosen) > 1 else chosen[0], horizon)
    if is_call(spec):
        return [{"tool_calls": [_call_of(spec)]}]
    return [_step_of(spec)] if _is_step(spec) else None


def _unwrapped(part: object) -> object:
    """The message in an entry of ``choices``, ``candidates`` or ``generations``."""
    spec = as_object(part) or {}
    inner = (as_object(spec.get(name)) for name in ("message", "content"))
    return next((value for value in inner if value is not None), part)


def _entries_of_list(values: list[object], horizon: int | None) -> list[object] | None:
    specs = [cast("Entry", v) for v in values if isinstance(v, dict)]
    if specs and len(specs) == len(values):
        if all(map(is_call, specs)):
            return _steps_of_calls(specs, horizon)
        # Content blocks of one message, or the items of a response: texts and calls.
        is_block = all(
            isinstance(s.get("type"), str) and s.get("role") not in _OTHERS for s in specs
        )
        calls = [spec for spec in specs if is_call(spec)]
        if is_block and (calls or any(spec["type"] in _TEXT_TYPES for spec in specs)):
            if horizon is not None and horizon > 1 and len(calls) == horizon:
                return _steps_of_calls(calls, horizon)
            text = "\n".join(filter(None, map(_text_of, specs)))
            return [{"content": text, "tool_calls": list(map(_call_of, calls))}]
    if not any(map(_is_step, specs)):
        return None
    return [
        value if (spec := as_object(value)) is None else _step_of(spec)
        for value in values
        if not _is_foreign(as_object(value) or {})
    ]


def _steps_of_calls(calls: Sequence[Entry], horizon: int | None) -> list[object]:
    apart = horizon is not None and horizon > 1
    groups = [[call] for call in calls] if apart else [list(calls)]
    return [{"tool_calls": [_call_of(call) for call in group]} for group in groups]


def _text_of(block: Mapping[str, Any]) -> str:
    text: Any = block.get("text")
    if isinstance(text, str):
        return text
    content: Any = block.get("content")
    if block.get("type") == "message" and (listed := as_list(content)) is not None:
        parts = (_text_of(part) for part in map(as_object, listed) if part is not None)
        return "\n".join(filter(None, parts))
    return content if isinstance(content, str) else ""


def call_body(
    spec: Entry, keys: Sequence[str] = ("function", "toolUse", "functionCall", "function_call")
) -> Entry:
    """The part of a call that has its name and arguments: under one of ``keys``, or the whole."""
    return next((inner for key in keys if (inner := as_object(spec.get(key)))), spec)


def is_call(spec: Entry) -> bool:
    """Whether an object is a call by itself: a name, and arguments or a type that says so."""
    if spec.get("role") is not None or not _OWN_FORM.isdisjoint(spec) or "tool_calls" in spec:
        return False
    body = call_body(spec)
    names = (body.get(key) for key in (*NAME_KEYS, "function_name"))
    named = any(isinstance(name, str) and name.strip() for name in names)
    return named and (
        any(key in body for key in ARGUMENT_KEYS)
        or spec.get("type") in _CALL_TYPES
        or body is not spec
    )


def _call_of(spec: Entry) -> Entry:
    body = call_body(spec)
    return dict(spec) if body is spec else {"function": dict(body)}


def _is_foreign(spec: Mapping[str, Any]) -> bool:
    """Whether a message is a tool's or a user's; one with calls has only a wrong role."""
    return spec.get("role") in _OTHERS and not spec.get("tool_calls")


def _is_step(spec: Mapping[str, Any]) -> bool:
    if _is_foreign(spec):
        return False
    own = {"tool_calls", "function_call", "thought", "action", "tool", "tool_name"}
    if not own.isdisjoint(spec) or spec.get("role") is not None:
        return True
    return spec.get("type") in ("message", "ai") or isinstance(spec.get("parts"), list)


def _step_of(spec: Entry) -> Entry:
    """A step whose calls, if any, are in ``tool_calls`` and whose text is in ``content``."""
    step, blocks = dict(spec), _blocks(spec)
    calls = [_call_of(block) for block in blocks or () if is_call(block)]
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
    if step.get("role") in _ASSISTANT:
        step["role"] = "assistant"
    return step


def _blocks(spec: Mapping[str, Any]) -> list[Entry] | None:
    """The parts of a message's content; None where it is no list."""
    content: Any = spec.get("content")
    inner = as_object(content)
    blocks = as_list(content)
    if blocks is None:
        blocks = as_list((spec if inner is None else inner).get("parts"))
    if blocks is None:
        return None
    return [{"text": b} if (block := as_object(b)) is None else block for b in blocks]


# Text ---------------------------------------------------------------------------------------------

_TOOL_CALL = re.compile(r"<tool_?calls?>(.*?)(?:</tool_?calls?>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_INVOKE = re.compile(r"<invoke name=[\"']([^\"'>]+)[\"']>(.*?)(?:</invoke>|\Z)", re.DOTALL)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*")


def tagged_entries(text: str) -> list[Entry] | None:
    """One step of the calls that a text holds between tags; None where it holds none.

    Read are ``<tool_call>`` (Hermes, Qwen), ``<function=NAME>`` (Llama), ``<invoke name=NAME>``
    (Anthropic) and ``[TOOL_CALLS]`` (Mistral). Parameters between tags of their own have no types,
    so they are left unread.
    """
    calls = [{"function": call} for call in _tagged_calls(text)]
    if not calls:
        return None
    before = re.split(r"<(?:tool_?calls?|function=|function_calls|invoke )|\[TOOL_CALLS\]", text)[0]
    return [{"content": before.strip(), "tool_calls": calls}]


def _tagged_calls(text: str) -> Iterator[Entry]:
    if "<function=" in text or "<invoke " in text:
        for pattern in (_FUNCTION, _INVOKE):
            for name, body in pattern.findall(text):
                yield {"name": name, **({"arguments": body.strip()} if body.strip() else {})}
        return
    bodies = _TOOL_CALL.findall(text) if "<tool" in text else []
    if mistral := _MISTRAL.search(text):
        bodies.append(text[mistral.end() :])
    for body in bodies:
        for value in json_values(body):
            for entry in [value] if (listed := as_list(value)) is None else listed:
                if (spec := as_object(entry)) is not None and is_call(spec):
                    yield dict(call_body(spec))


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
