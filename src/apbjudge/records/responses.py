"""Reads a tested model's raw reply the way models really write them.

JSON may stand alone, in a fence, amid prose or after a thinking block; a call may be spelled
``name`` or ``tool_name``, its arguments may be an object or a JSON string, a step may be a chat
message of any provider (``native``) or a ``predicted_steps`` entry. Nothing here raises: what can't
be read is a problem that the prediction carries along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from .loose_json import after_thinking, json_values, lenient
from .native import ARGUMENT_KEYS, is_call, native_entries, react_entries, tagged_entries
from .predictions import Call, Form, FormProblem, Prediction, Step

_NAME_KEYS = ("name", "tool_name", "tool", "api_name", "api")
_THOUGHT_KEYS = ("thought", "content", "reasoning", "reasoning_content")
_CHAIN_KEYS = ("tool_chain", "toolchain", "chain")
_CALL_KEYS = ("tool_calls", "calls")
"""Hold the chain only beside a plan or a rejection; alone they make a chat message."""
_NO_TOOL = {"", "none", "null", "n/a"}


def read_response(text: str, form: Form, horizon: int | None) -> Prediction:
    """Reads a reply into a prediction.

    Of several usable values the last one is the answer; a bare list of calls yields to a plan.

    Args:
        text: The raw reply.
        form: ``plan`` or ``steps``: which shape was asked for.
        horizon: The k of a step-wise case; None skips the check of the number of steps.

    Returns:
        The prediction; its ``problems`` list every departure from the benchmark's form.
    """
    if not text.strip():
        return _unreadable("", "the reply is empty")
    if form == "steps":
        body = after_thinking(text)
        written = tagged_entries(body) or react_entries(body, horizon)
        if written is not None:
            return _of_entries(list(written), horizon, is_array=True)
    whole: Prediction | None = None
    bare: Prediction | None = None
    calls: list[object] = []
    for value in json_values(text):
        if form == "steps" and isinstance(value, dict) and is_call(cast("dict[str, Any]", value)):
            calls.append(cast("object", value))
            read = _steps(calls if len(calls) > 1 else calls[0], horizon)
        else:
            read = _interpret(value, form, horizon)
        if form == "plan" and isinstance(value, list):
            bare = read or bare
        else:
            whole = read or whole
    message = f"no JSON in the form of {_FORM_TEXT[form]} in the reply"
    return whole or bare or _unreadable(text.strip(), message)


_FORM_TEXT = {"plan": "plan and tool_chain", "steps": "assistant steps with tool_calls"}


def _unreadable(plan: str, message: str) -> Prediction:
    return Prediction(
        kind="text", plan=plan, problems=(FormProblem(where="response", message=message),)
    )


def _interpret(value: Any, form: Form, horizon: int | None) -> Prediction | None:
    if isinstance(value, dict):
        spec = cast("dict[str, Any]", value)
        if str(spec.get("status", "")).upper() == "REJECT":
            return _rejection(spec)
    return (
        _plan(cast("object", value)) if form == "plan" else _steps(cast("object", value), horizon)
    )


def _rejection(spec: Mapping[str, Any]) -> Prediction:
    keys = (*_CHAIN_KEYS, *_CALL_KEYS)
    key = next((key for key in keys if isinstance(spec.get(key), list)), None)
    steps, problems = read_chain(spec[key] if key else None)
    return Prediction(kind="reject", plan=_text(spec.get("reason")), steps=steps, problems=problems)


def _plan(value: object) -> Prediction | None:
    if isinstance(value, list):
        chain = cast("list[Any]", value)
        if not chain or not all(_first(_object(c) or {}, _NAME_KEYS) for c in chain):
            return None
        value = {"plan": "", "tool_chain": chain}
    if not isinstance(value, dict):
        return None
    spec = cast("dict[str, Any]", value)
    keys = (*_CHAIN_KEYS, *_CALL_KEYS) if "plan" in spec else _CHAIN_KEYS
    chain_key = next((key for key in keys if key in spec), None)
    if chain_key is None and "plan" not in spec:
        return None
    steps, problems = read_chain(spec.get(chain_key, []) if chain_key else [])
    return Prediction(kind="plan", plan=_text(spec.get("plan")), steps=steps, problems=problems)


def read_chain(value: object) -> tuple[tuple[Step, ...], tuple[FormProblem, ...]]:
    """Reads a holistic tool chain, one step per call."""
    steps: list[Step] = []
    problems: list[FormProblem] = []
    if value is None:
        value = []
    if not isinstance(value, list):
        return (), (FormProblem(where="tool_chain", message="tool_chain is not a list"),)
    for i, entry in enumerate(cast("list[object]", value)):
        where = f"tool_chain[{i}]"
        call = _call(entry, where, problems)
        steps.append(Step(thought=call.reason, calls=(call,)))
    return tuple(steps), tuple(problems)


def _steps(value: object, horizon: int | None) -> Prediction | None:
    if isinstance(value, dict):
        spec = cast("dict[str, Any]", value)
        listed: Any = spec.get("predicted_steps")
        if isinstance(listed, list):
            return _of_entries(cast("list[object]", listed), horizon, is_array=True)
    entries = native_entries(cast("object", value), horizon)
    if entries is None:
        return None
    return _of_entries(entries, horizon, is_array=isinstance(value, list))


def _of_entries(entries: list[object], horizon: int | None, *, is_array: bool) -> Prediction:
    steps, problems = read_steps(entries, strict=True)
    return Prediction(
        kind="steps",
        steps=steps,
        problems=(*_count_problems(len(steps), horizon, is_array=is_array), *problems),
    )


def _count_problems(n: int, horizon: int | None, *, is_array: bool) -> Iterator[FormProblem]:
    if horizon is None:
        return
    if n != horizon:
        message = f"{n} step(s) where exactly {horizon} were asked for"
        yield FormProblem(where="response", message=message)
    elif horizon > 1 and not is_array:
        message = "not an array of steps"
        yield FormProblem(where="response", message=message, is_readable=True)


def read_steps(
    entries: list[object], *, strict: bool
) -> tuple[tuple[Step, ...], tuple[FormProblem, ...]]:
    """Reads assistant steps.

    Args:
        entries: Chat messages or ``predicted_steps`` entries.
        strict: Whether missing fields are problems (predictions) or not (references).
    """
    steps: list[Step] = []
    problems: list[FormProblem] = []
    for i, entry in enumerate(entries):
        where = f"step[{i}]"
        if not isinstance(entry, dict):
            problems.append(FormProblem(where=where, message="a step is not an object"))
            steps.append(Step())
            continue
        spec = cast("dict[str, Any]", entry)
        if strict:
            problems.extend(_missing_fields(spec, where))
        steps.append(Step(thought=_thought(spec), calls=_step_calls(spec, where, problems)))
    return tuple(steps), tuple(problems)


def message_calls(message: Mapping[str, Any]) -> tuple[Call, ...]:
    """The calls that a message of a trajectory makes, in any of the forms a step may have."""
    if "tool_calls" not in message and not _is_alternative(message):
        return ()
    return _step_calls(message, "trajectory", [])


def message_tools(message: Mapping[str, Any]) -> set[str]:
    """Names of the tools that a message of a trajectory shows to exist, called or answering."""
    names = {call.name for call in message_calls(message)}
    parts: list[Any] = [message.get("function_call")]
    if message.get("role") in ("tool", "function"):
        parts.append(message)
    content = message.get("content")
    if isinstance(content, list):
        parts.extend(cast("list[Any]", content))
    for part in parts:
        names.add(_first(_object(part) or {}, ("name",)))
    return names - {""}


def _missing_fields(spec: Mapping[str, Any], where: str) -> Iterator[FormProblem]:
    if not any(key in spec for key in _THOUGHT_KEYS):
        yield _readable(where, "the field thought is missing")
    if "tool_calls" in spec or not _is_alternative(spec):
        if spec.get("role") != "assistant":
            yield _readable(f"{where}.role", "role is not 'assistant'")
        if "tool_calls" not in spec:
            yield _readable(where, "the field tool_calls is missing")


def _readable(where: str, message: str) -> FormProblem:
    return FormProblem(where=where, message=message, is_readable=True)


def _is_alternative(spec: Mapping[str, Any]) -> bool:
    """Whether this is the ``{"thought", "action", "tool", "arguments"}`` form of a step."""
    return "tool" in spec or "action" in spec or "tool_name" in spec


def _step_calls(
    spec: Mapping[str, Any], where: str, problems: list[FormProblem]
) -> tuple[Call, ...]:
    calls = spec.get("tool_calls")
    if calls is None:
        name = _first(spec, _NAME_KEYS)
        if name.strip().lower() in _NO_TOOL:
            return ()
        return (_call(spec, where, problems),)
    if not isinstance(calls, list):
        problems.append(FormProblem(where=f"{where}.tool_calls", message="not a list"))
        return ()
    listed = cast("list[object]", calls)
    return tuple(_call(c, f"{where}.tool_calls[{i}]", problems) for i, c in enumerate(listed))


def _call(entry: Any, where: str, problems: list[FormProblem]) -> Call:
    spec = _object(entry)
    if spec is None:
        problems.append(FormProblem(where=where, message="a call is not an object"))
        return Call(name="", where=where)
    body = _body(spec)
    name = call_name(spec)
    if not name:
        problems.append(FormProblem(where=where, message="a call without a tool name"))
    key = next((key for key in ARGUMENT_KEYS if key in body), "")
    raw: Any = body[key] if key else None
    arguments: Any = raw
    if isinstance(raw, str):
        arguments = _decoded(raw, f"{where}.{key}", problems)
    reason: Any = spec.get("reason")
    return Call(
        name,
        cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None,
        where,
        reason if isinstance(reason, str) else _text(reason),
        is_unread=raw is not None and not isinstance(arguments, dict),
    )


def _body(spec: dict[str, Any]) -> dict[str, Any]:
    """The part of a call that names the tool and its arguments."""
    inner: Any = spec.get("function")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) and inner else spec


def call_name(spec: dict[str, Any]) -> str:
    """The name of the tool that a call names, in any spelling; empty when it names none."""
    name = _first(_body(spec), _NAME_KEYS)
    if name:
        return name
    inner: Any = spec.get("function")
    return inner if isinstance(inner, str) else ""


def _decoded(text: str, where: str, problems: list[FormProblem]) -> object:
    """Arguments given as a JSON string; prose is left as it is: nothing to be checked."""
    if not text.strip():
        return {}
    value, is_json = lenient(text)
    if not is_json and text.lstrip().startswith(("{", "[")):
        problems.append(FormProblem(where=where, message="arguments are not valid JSON"))
    return value


def _object(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _first(spec: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = spec.get(key)
        if isinstance(value, str):
            return value
    return ""


def _thought(spec: Mapping[str, Any]) -> str:
    return next((_text(spec[key]) for key in _THOUGHT_KEYS if key in spec), "")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if value else ""
