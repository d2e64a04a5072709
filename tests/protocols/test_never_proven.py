"""A valid plan never gets a proven finding; one planted fault gets exactly its own code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.rows import findings, plan, plan_row, step, step_row
from tests.support.worlds import (
    PROSE,
    Call,
    World,
    call_of,
    dressed,
    references_to,
    with_placeholder,
    worlds,
)

MANY = settings(max_examples=max(80, settings.default.max_examples))
"""False proofs are rare: they take more examples to come about."""
HALF = settings(max_examples=settings.default.max_examples // 2)
"""Of what the profile asks for: each planted fault is a test of its own."""
PREVIOUS = ["PREVIOUS_RESULT", "<PREVIOUS_RESULT>", "PREVIOUS_STEP_RESULT.id", "{{previous.id}}"]


def _proven(row: dict[str, Any]) -> list[tuple[str | None, str, str, str]]:
    results = findings(row)
    return [(f.code, f.rule, f.where, f.message) for f in results if f.certainty == "proven"]


def _chain(draw: st.DrawFn, world: World) -> list[Call]:
    calls = [call_of(draw, world) for _ in range(draw(st.integers(1, 5)))]
    return [*calls, calls[0]] if draw(st.booleans()) else calls


def _described(draw: st.DrawFn, calls: list[Call]) -> list[Call]:
    """Values of a plan are words or anything; references go to earlier calls only."""
    done: list[Call] = []
    for i, (name, arguments) in enumerate(calls):
        texts = PROSE + [ref for earlier in calls[:i] for ref in references_to(earlier[0])]
        texts += PREVIOUS if i else []
        words = st.sampled_from(texts) | st.text(max_size=9) | st.integers() | st.none()
        done.append((name, {key: draw(words) for key in arguments}))
    return done


def _reference(draw: st.DrawFn, world: World, field: str) -> dict[str, Any]:
    calls = _chain(draw, world) if draw(st.booleans()) else []
    if field == "tool_chain":
        return {field: plan(*calls)["tool_chain"], "plan": draw(st.sampled_from(PROSE))}
    return {field: [step(call) for call in calls]}


def _spelled(draw: st.DrawFn, reply: dict[str, Any]) -> dict[str, Any]:
    """The keys and shapes of calls that are read alike."""
    entries: list[dict[str, Any]] = []
    for entry in reply["tool_chain"]:
        key = draw(st.sampled_from(["parameter_description", "arguments", "parameters"]))
        value = entry["parameter_description"]
        value = json.dumps(value) if draw(st.booleans()) else value
        name = draw(st.sampled_from(["name", "tool_name"]))
        entries.append({name: entry["name"], key: value, "reason": "…"})
    return reply | {"tool_chain": entries}


@MANY
@given(data=st.data(), world=worlds())
def test_a_valid_plan_is_never_proven_wrong(data: st.DataObject, world: World) -> None:
    draw = data.draw
    calls = _described(draw, _chain(draw, world))
    reply = plan(*calls, text=draw(st.sampled_from(PROSE)))
    fields = _reference(draw, world, "tool_chain") | {"tools": world.tools}
    if draw(st.booleans()):
        fields |= {"split": "holistic_tool_extraneous", "extraneous_tool_names": ["never used"]}
    assert _proven(plan_row(dressed(draw, _spelled(draw, reply)), **fields)) == []


def _steps(draw: st.DrawFn, world: World, k: int) -> list[list[Call]]:
    """k lists of calls; from the second on, placeholders stand for values."""
    steps: list[list[Call]] = []
    for i in range(k):
        calls = [call_of(draw, world) for _ in range(draw(st.sampled_from([0, 1, 1, 2])))]
        if i:
            earlier = [ref for done in steps for name, _ in done for ref in references_to(name)]
            calls = [with_placeholder(draw, call, PREVIOUS + earlier) for call in calls]
        steps.append(calls)
    return steps


def _written(draw: st.DrawFn, steps: list[list[Call]]) -> Any:
    if draw(st.booleans()) and all(len(calls) == 1 for calls in steps):
        return {
            "predicted_steps": [
                {"thought": "t", "action": "call", "tool": name, "arguments": arguments}
                for ((name, arguments),) in steps
            ]
        }
    as_text = draw(st.booleans())
    reply = [step(*((n, json.dumps(a) if as_text else a) for n, a in calls)) for calls in steps]
    return reply[0] if len(reply) == 1 and draw(st.booleans()) else reply


@MANY
@given(data=st.data(), world=worlds(), k=st.integers(1, 3))
def test_valid_steps_are_never_proven_wrong(data: st.DataObject, world: World, k: int) -> None:
    draw = data.draw
    reply = dressed(draw, _written(draw, _steps(draw, world, k)))
    fields = _reference(draw, world, "ground_truth_steps") | {"tools": world.tools}
    if draw(st.booleans()):
        fields["trajectory_prefix"] = [step(call) for call in _chain(draw, world)]
    if draw(st.booleans()):
        fields |= {"split": "step_wise_tool_extraneous", "extraneous_tool_names": ["never used"]}
    assert _proven(step_row(reply, k, **fields)) == []


Fault = Callable[[st.DrawFn, World, list[Call], int], list[Call]]


def _swap(calls: list[Call], at: int, call: Call) -> list[Call]:
    return [*calls[:at], call, *calls[at + 1 :]]


def _rename(draw: st.DrawFn, world: World, calls: list[Call], at: int) -> list[Call]:
    name = calls[at][0] + draw(st.sampled_from(["_v2", "S", " ", "\u200b"]))
    assume(name not in world.names)
    return _swap(calls, at, (name, calls[at][1]))


def _drop(draw: st.DrawFn, world: World, calls: list[Call], at: int) -> list[Call]:
    name, arguments = calls[at]
    gone = draw(st.sampled_from((world.schema(name) or {})["required"]))
    return _swap(calls, at, (name, {k: v for k, v in arguments.items() if k != gone}))


def _add(draw: st.DrawFn, world: World, calls: list[Call], at: int) -> list[Call]:
    name, arguments = calls[at]
    extra = draw(st.sampled_from(["ID", "Note", "notes", "größe ", "colour"]))
    return _swap(calls, at, (name, arguments | {extra: draw(st.sampled_from([1, None, "x"]))}))


def _refer_forward(draw: st.DrawFn, world: World, calls: list[Call], at: int) -> list[Call]:
    called = {name for name, _ in calls[:at]}
    later = [n for n in world.names if n not in called and n.isascii() and n.isidentifier()]
    assume(later)
    text = draw(st.sampled_from([f"${draw(st.sampled_from(later))}.id"]))
    name, arguments = calls[at]
    return _swap(calls, at, (name, arguments | {"note": text}))


def _wrong_value(draw: st.DrawFn, world: World, calls: list[Call], at: int) -> list[Call]:
    """A value that an independent validator rejects for one of the properties."""
    name, arguments = calls[at]
    schema = world.schema(name) or {}
    key = draw(st.sampled_from(sorted(schema["properties"])))
    part = {**schema["properties"][key], "$defs": schema["$defs"]}
    wrong = [
        v
        for v in ("seven", 7, 7.5, True, [7], {"x": 7})
        if not Draft202012Validator(part).is_valid(v)
    ]
    wrong = [v for v in wrong if at == 0 or not isinstance(v, str)]
    assume(wrong)
    return _swap(calls, at, (name, arguments | {key: draw(st.sampled_from(wrong))}))


FAULTS: dict[str, tuple[Fault, str]] = {
    "another name": (_rename, "E6"),
    "a required parameter is dropped": (_drop, "E5"),
    "an unknown parameter is added": (_add, "E5"),
    "a result is used before it is made": (_refer_forward, "E4"),
    "a wrong value": (_wrong_value, "E5"),
}


@pytest.mark.parametrize(("fault", "code"), FAULTS.values(), ids=FAULTS)
@HALF
@given(data=st.data(), world=worlds(bare=False), k=st.integers(1, 3))
def test_one_fault_gets_exactly_its_code(
    fault: Fault, code: str, data: st.DataObject, world: World, k: int
) -> None:
    draw = data.draw
    calls = [call_of(draw, world) for _ in range(k)]
    calls = fault(draw, world, calls, draw(st.integers(0, k - 1)))
    fields = _reference(draw, world, "ground_truth_steps") | {"tools": world.tools}
    results = _proven(step_row([step(call) for call in calls], k, **fields))
    assert {code for code, *_ in results} == {code}
    if fault is not _wrong_value:  # values of a plan are described
        fields = _reference(draw, world, "tool_chain") | {"tools": world.tools}
        assert {code for code, *_ in _proven(plan_row(plan(*calls), **fields))} == {code}
