"""Reads a tested model's raw reply the way models really write them.

JSON may be alone, in a fence, amid prose or after a thinking block; a call may be spelled ``name``
or ``tool_name``, its arguments may be an object or a JSON string, a step may be a chat message of
any provider (``native``) or a ``predicted_steps`` entry. Nothing here raises: what can't be read
becomes a problem in the prediction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from .loose_json import after_thinking, as_list, as_object, json_values, lenient
from .messages.reader import read_messages
from .messages.shapes import (
    ARGUMENTS,
    NAMES,
    ROLES,
    call_body,
    is_call,
    name_in_type,
    parts_of,
    role_of,
)
from .native import native_entries, react_entries, tagged_entries
from .predictions import Call, Form, FormProblem, Prediction, Step

_THOUGHT_KEYS = ("thought", "content", "reasoning", "reasoning_content")
_CHAIN_KEYS = ("tool_chain", "toolchain", "chain")
_CALL_KEYS = ("tool_calls", "calls")
"""Fields that hold the chain only together with a plan or rejection; alone they form a message."""
_NO_TOOL = {"", "none", "null", "n/a"}


def read_response(text: str, form: Form, horizon: int | None) -> Prediction:
    """Reads a reply into a prediction.

    Of several usable values the last one is the answer; a plan comes before a bare list of calls.
    Whatever else the reply may mean is in ``others``.

    Args:
        text: The raw reply.
        form: The requested shape, ``plan`` or ``steps``.
        horizon: The k of a step-wise case; None skips the check of the number of steps.

    Returns:
        The prediction; its ``problems`` list every departure from the benchmark's form.
    """
    if not text.strip():
        return _unreadable("", "the reply is empty")
    counted, *others = readings(text, form, horizon)
    return counted.model_copy(update={"others": tuple(others)}) if others else counted


_MOST_VALUES = 20
"""Limit of answers in one reply that are compared; if it has more, nothing is proven."""
_MARKS = re.compile(r"```\w*|<[^<>]{0,40}>")


def readings(text: str, form: Form, horizon: int | None) -> list[Prediction]:
    """The distinct readings of a reply, the one that counts first.

    They are: each usable JSON value alone; all plans, steps and calls together; for a rejection
    that makes calls, the rejection and its calls; and a rejection without any call where the words
    outside the JSON values say REJECT.
    """
    values = json_values(text)
    read = [(v, answer) for v in values if (answer := _alone(v, form, horizon)) is not None]
    body = after_thinking(text) if form == "steps" else ""
    written = tagged_entries(body) or react_entries(body, horizon)
    if written is not None:
        read = [(value, answer) for value, answer in read if answer.kind == "reject"]
        counted = _of_entries(list(written), horizon, is_array=True)
    elif not read:
        message = f"no JSON in the form of {_FORM_TEXT[form]} in the reply"
        return [_unreadable(text.strip(), message)]
    else:
        usable = [(v, answer) for v, answer in read if form == "steps" or as_list(v) is None]
        last, counted = (usable or read)[-1]
        calls = [spec for spec, _ in read if form == "steps" and is_call(as_object(spec) or {})]
        if len(calls) > 1 and calls[-1] is last:
            counted = _steps(calls, horizon) or counted
    if len(read) > _MOST_VALUES:
        return [counted, Prediction(kind="text")]
    alone = _each_once([answer for _, answer in read])
    ways = [counted, *alone]
    planned = [answer for answer in alone if answer.kind != "reject"]
    if len(planned) > 1:
        ways.append(_together(planned))
    for answer in [way for way in ways if way.kind == "reject" and way.steps]:
        ways += [answer.model_copy(update={"steps": ()}), answer.model_copy(update={"kind": form})]
    if "REJECT" in text and "REJECT" in (words := words_beside(text)):
        ways.append(Prediction(kind="reject", plan=words))
    return _each_once(ways)


def _each_once(predictions: list[Prediction]) -> list[Prediction]:
    return [answer for n, answer in enumerate(predictions) if answer not in predictions[:n]]


def words_beside(text: str) -> str:
    """The words of a reply around its JSON values, without fence marks and tags."""
    words: list[str] = []
    for _ in json_values(text, words):
        pass
    return _MARKS.sub("", "".join(words)).strip()


def _alone(value: object, form: Form, horizon: int | None) -> Prediction | None:
    """A JSON value as the whole answer; None if it is not one."""
    spec = as_object(value)
    if spec is not None and str(spec.get("status", "")).upper() == "REJECT":
        return _rejection(spec)
    return _plan(value) if form == "plan" else _steps(value, horizon)


def _together(parts: Sequence[Prediction]) -> Prediction:
    """Several plans or steps joined into one."""
    steps: list[Step] = []
    for step in (step for part in parts for step in part.steps):
        place = f"[{len(steps)}]"
        calls = (replace(c, where=_INDEX.sub(place, c.where, count=1)) for c in step.calls)
        steps.append(replace(step, calls=tuple(calls)))
    plan = "\n".join(part.plan for part in parts)
    return Prediction(kind=parts[0].kind, plan=plan, steps=tuple(steps))


_INDEX = re.compile(r"\[\d+\]")
_FORM_TEXT = {"plan": "plan and tool_chain", "steps": "assistant steps with tool_calls"}


def _unreadable(plan: str, message: str) -> Prediction:
    return Prediction(
        kind="text", plan=plan, problems=(FormProblem(where="response", message=message),)
    )


def _rejection(spec: Mapping[str, Any]) -> Prediction:
    keys = (*_CHAIN_KEYS, *_CALL_KEYS)
    key = next((key for key in keys if isinstance(spec.get(key), list)), None)
    steps, problems = read_chain(spec[key] if key else None)
    return Prediction(kind="reject", plan=_text(spec.get("reason")), steps=steps, problems=problems)


def _plan(value: object) -> Prediction | None:
    if (chain := as_list(value)) is not None:
        if not chain or not all(_first(as_object(c) or {}, NAMES) for c in chain):
            return None
        value = {"plan": "", "tool_chain": chain}
    spec = as_object(value)
    if spec is None:
        return None
    keys = (*_CHAIN_KEYS, *_CALL_KEYS) if "plan" in spec else _CHAIN_KEYS
    chain_key = next((key for key in keys if key in spec), None)
    planned = spec.get("plan", spec.get("steps"))
    calls = [] if chain_key else _calls_in(planned)
    if chain_key is None and "plan" not in spec and not calls:
        return None
    steps, problems = read_chain(spec.get(chain_key, []) if chain_key else calls)
    return Prediction(kind="plan", plan=_text(planned), steps=steps, problems=problems)


def _calls_in(planned: object) -> list[dict[str, Any]]:
    """The calls among the steps of a plan that is a list, or has one under ``steps``.

    A step is a call if it names a tool as such; a ``name`` may be that of the step, unless it has
    arguments as well. Other steps are prose.
    """
    listed = as_list((as_object(planned) or {}).get("steps", planned)) or []
    calls: list[dict[str, Any]] = []
    for spec in (spec for entry in listed if (spec := as_object(entry)) is not None):
        tool = _first(spec, (*NAMES[1:], "function"))
        has_arguments = any(as_object(spec.get(key)) is not None for key in ARGUMENTS)
        call = {**spec, "name": tool} if tool else spec
        is_call = tool or has_arguments or as_object(spec.get("function")) is not None
        if is_call and call_name(call).strip().lower() not in _NO_TOOL:
            calls.append(call)
    return calls


def read_chain(value: object) -> tuple[tuple[Step, ...], tuple[FormProblem, ...]]:
    """Reads a holistic tool chain, one step per call."""
    steps: list[Step] = []
    problems: list[FormProblem] = []
    listed = [] if value is None else as_list(value)
    if listed is None:
        return (), (FormProblem(where="tool_chain", message="tool_chain is not a list"),)
    for i, entry in enumerate(listed):
        where = f"tool_chain[{i}]"
        call = _call(entry, where, problems)
        steps.append(Step(thought=call.reason, calls=(call,)))
    return tuple(steps), tuple(problems)


def _steps(value: object, horizon: int | None) -> Prediction | None:
    listed = as_list((as_object(value) or {}).get("predicted_steps"))
    if listed is not None:
        return _of_entries(listed, horizon, is_array=True)
    entries = native_entries(value, horizon)
    if entries is None:
        return None
    return _of_entries(entries, horizon, is_array=isinstance(value, list))


def _of_entries(entries: list[object], horizon: int | None, *, is_array: bool) -> Prediction:
    steps, problems = read_steps(entries, strict=True)
    n = len(steps)
    if horizon is not None and n != horizon:
        message = f"{n} step(s) where exactly {horizon} were asked for"
        problems = (FormProblem(where="response", message=message), *problems)
    elif horizon is not None and horizon > 1 and not is_array:
        problems = (_readable("response", "not an array of steps"), *problems)
    return Prediction(kind="steps", steps=steps, problems=problems)


def read_steps(
    entries: list[object], *, strict: bool
) -> tuple[tuple[Step, ...], tuple[FormProblem, ...]]:
    """Reads assistant steps.

    Args:
        entries: Chat messages or ``predicted_steps`` entries.
        strict: True if missing fields are problems (predictions) or not (references).
    """
    steps: list[Step] = []
    problems: list[FormProblem] = []
    for i, entry in enumerate(entries):
        where = f"step[{i}]"
        spec = as_object(entry)
        if spec is None:
            problems.append(FormProblem(where=where, message="a step is not an object"))
            steps.append(Step())
            continue
        if strict:
            problems.extend(_missing_fields(spec, where))
        thought = next((_text(spec[key]) for key in _THOUGHT_KEYS if key in spec), "")
        steps.append(Step(thought=thought, calls=_step_calls(spec, where, problems)))
    return tuple(steps), tuple(problems)


def message_calls(message: dict[str, Any]) -> tuple[Call, ...]:
    """The calls that a message of a trajectory makes, in any of the forms a step may have.

    Calls written in its text don't count: executed calls are stated separately.
    """
    stated = {**message, "content": ""} if isinstance(message.get("content"), str) else message
    entries = map(as_object, native_entries(stated, None) or [message])
    steps = [spec for spec in entries if spec and ("tool_calls" in spec or _is_alternative(spec))]
    return tuple(call for spec in steps for call in _step_calls(spec, "trajectory", []))


def message_tools(message: dict[str, Any]) -> set[str]:
    """Names of the tools that a message of a trajectory shows to exist, called or answering."""
    names = {call.name for call in message_calls(message)}
    if parts_of(message) is not None or "role" not in message:
        read = read_messages([message], is_lenient=True).messages
        names.update(result.name for each in read for result in each.results)
    elif role_of(message) == "tool":
        names.add(_first(message, NAMES))
    return names - {""}


def _missing_fields(spec: Mapping[str, Any], where: str) -> Iterator[FormProblem]:
    if not any(key in spec for key in _THOUGHT_KEYS):
        yield _readable(where, "the field thought is missing")
    if "tool_calls" in spec or not _is_alternative(spec):
        if ROLES.get(str(spec.get("role"))) != "assistant":
            yield _readable(f"{where}.role", "role is not 'assistant'")
        if "tool_calls" not in spec:
            yield _readable(where, "the field tool_calls is missing")


def _readable(where: str, message: str) -> FormProblem:
    return FormProblem(where=where, message=message, is_readable=True)


def _is_alternative(spec: Mapping[str, Any]) -> bool:
    """True for the ``{"thought", "action", "tool", "arguments"}`` form of a step."""
    return "tool" in spec or "action" in spec or "tool_name" in spec


def _has_speaker(spec: Mapping[str, Any]) -> bool:
    """True if ``name`` is the name of the speaker.

    It is if the message has a role and names its tool elsewhere, or has no arguments.
    """
    if "role" not in spec:
        return False
    if _first(spec, NAMES[1:]):
        return True
    is_message = "tool_calls" in spec or "content" in spec
    return is_message and not any(key in spec for key in ARGUMENTS)


def _step_calls(spec: dict[str, Any], where: str, problems: list[FormProblem]) -> tuple[Call, ...]:
    if spec.get("tool_calls") is None:
        if _has_speaker(spec):
            spec = {key: value for key, value in spec.items() if key != "name"}
        is_call_itself = _first(spec, NAMES).strip().lower() not in _NO_TOOL
        return (_call(spec, where, problems),) if is_call_itself else ()
    listed = as_list(spec["tool_calls"])
    if listed is None:
        problems.append(FormProblem(where=f"{where}.tool_calls", message="not a list"))
        return ()
    return tuple(_call(c, f"{where}.tool_calls[{i}]", problems) for i, c in enumerate(listed))


def _call(entry: Any, where: str, problems: list[FormProblem]) -> Call:
    spec = as_object(entry)
    if spec is None:
        problems.append(FormProblem(where=where, message="a call is not an object"))
        return Call(name="", where=where)
    body = call_body(spec) or spec
    name = _name_in(body, spec)
    if not name:
        problems.append(FormProblem(where=where, message="a call without a tool name"))
    key = next((key for key in ARGUMENTS if key in body), "")
    raw: Any = body[key] if key else None
    arguments = as_object(raw)
    if isinstance(raw, str):
        value, is_json = lenient(raw if raw.strip() else "{}")
        arguments = as_object(value)
        if not is_json and raw.lstrip().startswith(("{", "[")):
            message = "arguments are not valid JSON"  # prose is not a fault: it can't be checked
            problems.append(FormProblem(where=f"{where}.{key}", message=message))
    reason: Any = spec.get("reason")
    return Call(
        name,
        arguments,
        where,
        reason if isinstance(reason, str) else _text(reason),
        is_unread=raw is not None and arguments is None,
    )


def call_name(spec: dict[str, Any]) -> str:
    """The name of the tool that a call names, in any spelling; empty when it names none."""
    return _name_in(call_body(spec) or spec, spec)


def _name_in(body: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    return _first(body, NAMES) or name_in_type(spec) or _first(spec, ("function",))


def _first(spec: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := spec.get(key), str)), "")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if value else ""
