"""Traces: the spans of a run are put together to the run, in whatever order and form they are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.records.messages import read_messages
from apbjudge.records.trajectories import LogPlace, Trajectory
from apbjudge.trajectories.formats.derived import steps_of
from apbjudge.trajectories.formats.spans import Span, run_of, time_of

SYSTEM = {"role": "system", "content": "You help."}
ASKED = {"role": "user", "content": "Where is P-1?"}


def said(text: str | None, *calls: tuple[str, str, Any]) -> dict[str, Any]:
    listed = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": text} | ({"tool_calls": listed} if listed else {})


def told(content: Any, call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def model(at: int, sent: list[Any] | None, answer: Any, parent: str = "a", **more: Any) -> Span:
    output = None if answer is None else [answer]
    span = Span(span_id=f"m{at}", parent_id=parent, kind="model", start=at, input=sent)
    return replace(span, output=output, **more)


def tool(at: int, name: str, arguments: Any, result: Any, parent: str = "a", **more: Any) -> Span:
    span = Span(span_id=f"t{at}", parent_id=parent, kind="tool", name=name, start=at)
    return replace(span, arguments=arguments, result=result, **more)


def agent(span_id: str = "a", parent: str = "", at: int = 0, **more: Any) -> Span:
    span = Span(span_id=span_id, parent_id=parent, kind="agent", name=span_id, start=at)
    return replace(span, **more)


def run(*spans: Span) -> Trajectory:
    numbered = [replace(span, entry=at) for at, span in enumerate(spans)]
    return run_of(numbered, trajectory_id="r", place=LogPlace("otlp"))


def texts(of: Trajectory) -> list[str]:
    return [step.text for step in of.steps]


# A run that is drawn ------------------------------------------------------------------------------

words = st.sampled_from(["", "yes", "Look it up.", "P-1", "ok"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
executed = st.tuples(
    st.sampled_from(["find", "change"]), st.dictionaries(words, values, max_size=2), values
)


@st.composite
def messages(draw: st.DrawFn) -> tuple[list[dict[str, Any]], bool]:
    """The messages of a run, with unique ids of calls, and whether results need them."""
    needs_ids = draw(st.booleans())
    of = [SYSTEM] if draw(st.booleans()) else []
    n = 0
    for _ in range(draw(st.integers(1, 2))):
        of.append({"role": "user", "content": draw(words.filter(bool))})
        for calls in draw(st.lists(st.lists(executed, max_size=3), min_size=1, max_size=3)):
            ids = [f"c{n + at}" for at in range(len(calls))]
            n += len(calls)
            made = [(i, name, given) for i, (name, given, _) in zip(ids, calls, strict=True)]
            of.append(said(draw(words), *made))
            answers = [told(result, i) for i, (_, _, result) in zip(ids, calls, strict=True)]
            of += draw(st.permutations(answers)) if needs_ids else answers
        of.append(said(draw(words)))
    return of, needs_ids


def spans_of(of: list[dict[str, Any]], *, is_delta: bool) -> list[Span]:
    """A span for every request and every call, in order of time, ten at one time."""
    spans, sent = [agent()], 0
    results = {message["tool_call_id"]: message["content"] for message in of if "tool_call_id" in message}
    for at, message in enumerate(of):
        if message["role"] != "assistant":
            continue
        is_turn = not sent or of[at - 1]["role"] == "user"
        spans.append(model(10 * at + 1, of[0 if is_turn or not is_delta else sent : at], message))
        sent = at + 1
        for number, call in enumerate(message.get("tool_calls", ())):
            given = call["function"]["arguments"]
            executed = tool(10 * at + 2, call["function"]["name"], given, results[call["id"]])
            spans.append(replace(executed, span_id=f"t{at}.{number}", call_id=call["id"]))
    return spans


def without_ids(of: Any) -> Any:
    if isinstance(of, list):
        return [without_ids(value) for value in of]
    if isinstance(of, dict) and ("role" in of or "function" in of):
        return {k: without_ids(v) for k, v in of.items() if k not in ("id", "tool_call_id")}
    return of


@given(messages(), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_a_run_written_as_spans_is_read_back(
    drawn: tuple[list[dict[str, Any]], bool], is_delta: bool, is_known: bool, rng: random.Random
) -> None:
    of, has_ids = drawn
    spans = spans_of(of, is_delta=is_delta)
    if not has_ids:
        of = without_ids(of)
        spans = [
            replace(s, input=without_ids(s.input), output=without_ids(s.output), call_id="")
            for s in spans
        ]
    if not is_known:
        spans = [replace(span, arguments=None) for span in spans]
    rng.shuffle(spans)
    read = run(*spans)
    expected = read_messages(of)
    assert [replace(step, sources=()) for step in read.steps] == [
        replace(step, sources=()) for step in steps_of(expected.messages)
    ]
    assert read.system_prompt == expected.system_prompt
    assert read.remarks == expected.remarks
    for step in read.steps:
        kinds = {spans[entry].kind for entry in step.sources}
        assert kinds >= ({"model", "tool"} if step.calls else {"model"})
        assert "agent" not in kinds
