"""Runs of Hugging Face's smolagents: the steps in an agent's memory, or a result with them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson

from ...records.loose_json import as_list, as_object, json_text, objects_of, python_value
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import first_of, list_in, numbers_in, object_in, text_field
from .sessions import LoggedSession, name_in, note, opening_of

_STEPS = ("steps", "messages")
_KINDS = ("task task_images", "plan model_output_message", "tool_calls observations action_output")
_PRINTED = re.compile(
    r"ChatMessage\(role=(<MessageRole\.\w+: )?'(?P<role>[\w-]+)'>?, content="
    r"(\[{'type': 'text', 'text': )?(?P<text>None|'([^'\\]|\\.)*'|\"([^\"\\]|\\.)*\")"
)


def _score(record: Mapping[str, Any]) -> float:
    first = (*objects_of(first_of(record, *_STEPS)[1]), record)[0]
    return float(any(first.keys() >= {*kind.split()} for kind in _KINDS))


def _parts(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The result of a run without its steps, and each step; or a step alone."""
    key, steps = first_of(record, *_STEPS)
    if steps is None:
        yield "", record
        return
    name = sha256(orjson.dumps(record)).hexdigest()  # a run has no id
    yield name, {"run": {n: v for n, v in record.items() if n != key}}
    for step in objects_of(steps):
        yield name, step


def _read(parts: list[dict[str, Any]], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    session, usage, prompts, answer, end = LoggedSession(), Counter[str](), list[str](), None, ""
    run = as_object(parts[0].get("run"))
    for at, step in enumerate(parts if run is None else parts[1:]):
        sent = list_in(step, "model_input_messages")
        if "plan" in step:  # the history is between the two prompts
            session.extra.setdefault("planning_prompts", []).extend(sent[:1] + sent[1:][-1:])
        elif sent and (prompt := _message(sent[0])).get("role") == "system":
            prompts.append(opening_of(prompt))
        prompts.append(text_field(step, "system_prompt").lstrip())
        answer = step["output"] if "output" in step else _add(session, at, step)
        usage.update(numbers_in(object_in(step, "token_usage")))
        end = text_field(object_in(step, "error"), "type")
    stated = run or {}
    trajectory = session.trajectory(
        replace(place, line=0) if run is None else place,  # all of a file
        "",
        system="\n\n".join(filter(None, dict.fromkeys(prompts))),
        termination=end,  # not the state of a run, whose success is any answer
        usage=dict(usage) or numbers_in(object_in(stated, "token_usage")),
    )
    answer = stated.get("output", answer)
    text = None if answer in (None, "") else json_text(answer, "output")
    return replace(trajectory, final_answer=text)


def _message(value: Any) -> dict[str, Any]:
    """A message, which some versions log as Python prints it."""
    if not isinstance(value, str):
        return as_object(value) or {}
    found = _PRINTED.match(value)
    if found and (texts := as_list(python_value(f"[{found['text']}]"))):
        return {"role": found["role"], "content": texts[0]}
    return {"content": value}


def _add(session: LoggedSession, at: int, step: dict[str, Any]) -> Any:
    """Adds the messages of a step; returns the final answer if it has one."""
    if task := text_field(step, "task"):
        session.add({"role": "user", "content": task}, at)
    for key in ("task_images", "observations_images"):
        session.remarks["attachments"] += len(list_in(step, key))
    asked = _add_reply(session, at, step)
    calls = objects_of(step.get("tool_calls")) or asked  # those that were executed, if known
    seen, output = step.get("observations"), step.get("action_output")
    error = object_in(step, "error")
    fault = text_field(error, "message")
    session.error = fault if error.get("type") == "AgentGenerationError" else ""
    returned = output if seen is None and calls else seen
    content = f"{returned or ''}\n{fault}".strip() if fault else returned
    if len(calls) == 1 and content is not None:
        names = {"role": "tool", "tool_call_id": calls[0].get("id")}
        session.add({**names, "content": content, "is_error": bool(fault)}, at)
    elif content:  # one text for all calls
        session.add(note(content), at)
        session.remarks["results without calls"] += bool(calls)
    if not calls:
        if output is not None:  # the model's last words, when steps run out
            session.add({"role": "assistant", "content": json_text(output, "action_output")}, at)
        return output
    if returned is seen and (as_object(output) or as_list(output)):  # in the observations as text
        session.leave_out("duplicate carriers", [output])
    session.carriers.append(output)
    is_final = step.get("is_final_answer", not fault and "final_answer" in str(calls))
    return (returned if output is None else output) if is_final else None


def _add_reply(session: LoggedSession, at: int, step: dict[str, Any]) -> list[dict[str, Any]]:
    """Adds the model's message of a step; returns the calls in it."""
    reply, output = step.get("model_output_message"), first_of(step, "model_output", "plan")[1]
    message = _message(reply)
    raw = as_object(message.get("raw")) or {}
    responses = [as_object(of.get("message")) or {} for of in objects_of(raw.get("choices"))]
    thoughts = [name_in(of, "reasoning_content") for of in responses]
    session.model = session.model or name_in(raw, "model")
    said = message.get("content")
    # Some versions add an end to the model's text, or parse it; others describe its calls instead.
    is_own = not message or (said and (not isinstance(said, str) or said in (output or "")))
    text = output if is_own else said
    copies = [of for of in (output, reply) if isinstance(of, str) and of and of != text]
    session.leave_out("duplicate carriers", copies, len(copies))
    asked, executed = objects_of(message.get("tool_calls")), objects_of(step.get("tool_calls"))
    ids = [of.get("id") for of in asked]
    calls = [*asked, *(_with_code(of, step) for of in executed if of.get("id") not in ids)]
    if text or calls:
        content = {"content": text, "tool_calls": calls, "reasoning": "\n".join(thoughts)}
        session.add({"role": "assistant", **content}, at)
    return calls


def _with_code(call: dict[str, Any], step: Mapping[str, Any]) -> dict[str, Any]:
    """A call, in which code has a name as an argument."""
    function = object_in(call, "function")
    code = step.get("code_action") or function.get("arguments")
    is_code = function.get("name") == "python_interpreter" and not isinstance(code, dict)
    return {**call, "function": {**function, "arguments": {"code": code}}} if is_code else call


SMOLAGENTS = LogFormat(
    name="smolagents", title="smolagents runs", score=_score, read=_read, parts=_parts
)
