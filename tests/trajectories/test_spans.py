"""Traces: spans are put together to the trajectory, whatever their order and form."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.records.messages import read_messages
from apbjudge.records.trajectories import LogPlace, Trajectory
from apbjudge.trajectories.formats.derived import steps_of
from apbjudge.trajectories.formats.span_trajectories import trajectory_of_spans
from apbjudge.trajectories.formats.spans import Span, time_of

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
    return trajectory_of_spans(numbered, trajectory_id="r", place=LogPlace("otlp"))


def texts(of: Trajectory) -> list[str]:
    return [step.text for step in of.steps]


# A trajectory that is drawn -----------------------------------------------------------------------

words = st.sampled_from(["", "yes", "Look it up.", "P-1", "ok"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
arguments = st.dictionaries(words, values, max_size=2)
executed = st.tuples(st.sampled_from(["find", "change"]), arguments, values)


@st.composite
def messages(draw: st.DrawFn) -> tuple[list[dict[str, Any]], bool]:
    """The messages of a trajectory, with unique ids of calls, and whether results need them."""
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
    results = {each["tool_call_id"]: each["content"] for each in of if "tool_call_id" in each}
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
    assert [replace(step, sources=(), span_id="") for step in read.steps] == [
        replace(step, sources=()) for step in steps_of(expected.messages)
    ]
    assert read.system_prompt == expected.system_prompt
    assert read.remarks == expected.remarks
    for step in read.steps:
        kinds = {spans[entry].kind for entry in step.sources}
        assert kinds >= ({"model", "tool"} if step.calls else {"model"})
        assert "agent" not in kinds


# Threads ------------------------------------------------------------------------------------------

CALL = said("I look.", ("c1", "find", '{"id": "P-1"}'))
GONE = [SYSTEM, ASKED, CALL, told("in Oslo", "c1")]
DONE = said("It is in Oslo.")


def test_a_sub_agent_is_counted_and_kept_apart() -> None:
    read = run(
        agent(),
        model(1, [SYSTEM, ASKED], CALL),
        tool(2, "find", {"id": "P-1"}, "in Oslo", call_id="c1"),
        agent("b", "t2", 3),
        model(4, [{"role": "user", "content": "Find P-1."}], said("in Oslo"), "b"),
        model(5, GONE, DONE),
    )
    assert texts(read) == [ASKED["content"], "I look.", "It is in Oslo."]
    assert read.remarks == {"sub-agents": 1}
    (inner,) = read.extra["sub-agents"]
    assert (inner["name"], len(inner["messages"])) == ("b", 2)
    assert [step.sources for step in read.steps] == [(1,), (1, 2, 5), (5,)]


@pytest.mark.parametrize("returned", [True, False])
def test_the_main_thread_is_what_the_root_returns_or_the_longest(returned: bool) -> None:
    grader = [{"role": "system", "content": "Grade."}, ASKED]
    output = [said("It is in Oslo.")] if returned else None
    read = run(
        agent(output=output),
        model(1, grader, said("fine")),
        model(2, [SYSTEM, ASKED], CALL),
        model(3, GONE, DONE),
        model(4, [grader[0], DONE], said("safe")),
    )
    assert read.final_answer == "It is in Oslo."
    assert read.remarks == {"sub-agents": 2}


def test_a_handover_goes_on_with_the_thread() -> None:
    other = {"role": "system", "content": "You are the second."}
    read = run(
        agent(),
        model(1, [SYSTEM, ASKED], CALL, "a"),
        agent("b", "", 2),
        model(3, [other, *GONE[1:]], DONE, "b", model="m-2"),
    )
    assert texts(read) == [ASKED["content"], "I look.", "It is in Oslo."]
    assert read.extra["rewritten context"] == [other]
    assert read.remarks == {"rewritten context": 1}


SUMMARY = {"role": "user", "content": "So far: P-1 was looked up."}


@pytest.mark.parametrize(
    ("later", "steps", "left"),
    [
        ([SYSTEM, *GONE[2:]], 3, 0),  # the oldest messages cut
        ([SYSTEM, ASKED, SUMMARY, CALL, GONE[3]], 3, 1),  # a summary put in
        ([SYSTEM, SUMMARY], 4, 0),  # all of it summarised
        ([{**SYSTEM, "content": "You help. It is 9:01."}, *GONE[1:]], 3, 1),
    ],
)
def test_an_agent_goes_on_after_its_history_was_rewritten(
    later: list[Any], steps: int, left: int
) -> None:
    read = run(agent(), model(1, [SYSTEM, ASKED], CALL), model(2, later, DONE))
    assert len(read.steps) == steps
    assert (read.query, read.final_answer) == (ASKED["content"], "It is in Oslo.")
    assert len(read.extra.get("rewritten context", ())) == left
    assert set(read.remarks) - {"calls without results"} <= {"rewritten context"}


def test_an_answer_that_is_asked_for_anew_is_an_abandoned_branch() -> None:
    first, again = model(1, [SYSTEM, ASKED], said("Hm.")), model(2, [SYSTEM, ASKED], CALL)
    read = run(agent(), first, again, model(3, GONE, DONE))
    assert texts(read) == [ASKED["content"], "I look.", "It is in Oslo."]
    assert read.remarks == {"abandoned branches": 1}
    assert read.extra["abandoned branches"][0]["messages"][-1] == said("Hm.")


def test_what_two_spans_say_counts_once() -> None:
    usage = {"input_tokens": 5.0}
    outer = model(1, [SYSTEM, ASKED], CALL, usage=usage)
    inner = replace(outer, span_id="inner", parent_id="m1", start=2)
    silent = replace(inner, span_id="silent", parent_id="inner", input=None, output=None)
    again = replace(inner, span_id="again", parent_id="a", usage={})
    called = tool(4, "find", {"id": "P-1"}, "in Oslo")
    within = replace(called, span_id="within", parent_id="t4", start=5)
    root = agent(name="find", arguments={"id": "P-1"})  # no tool, whatever it is called
    merged = tool(6, "(merged tools)", "N/A", [{"response": "in Oslo"}], call_id="e1")  # of ADK
    read = run(root, outer, inner, silent, again, called, within, merged, model(7, GONE, DONE))
    assert len(read.steps) == 3
    assert read.usage == usage
    assert read.remarks == {"duplicate carriers": 3}


def test_all_messages_of_an_agent_are_better_than_those_of_its_model() -> None:
    read = run(
        agent(input=[*GONE, DONE], is_whole=True),
        model(1, [ASKED], None, usage={"n": 1.0}, tools=({"name": "find"},), model="m-1"),
        model(2, [ASKED], said("cut"), usage={"n": 2.0}, tools=({"name": "find"},)),
    )
    assert texts(read) == [ASKED["content"], "I look.", "It is in Oslo."]
    assert (read.usage, read.tools, read.tested_model) == ({"n": 3.0}, ({"name": "find"},), "m-1")


# Tools --------------------------------------------------------------------------------------------


def test_a_failed_call_and_a_call_that_no_message_makes_come_from_spans_of_tools() -> None:
    unanswered = [SYSTEM, ASKED, CALL]
    read = run(
        agent(),
        model(1, [SYSTEM, ASKED], CALL),
        tool(2, "find", {"id": "P-1"}, None, is_error=True, error="No such parcel."),
        tool(3, "log", {"n": 1}, {"ok": True}, is_error=False),
        model(4, unanswered, DONE),
    )
    _, first, second, _ = read.steps
    assert [(of.content, of.is_error, of.error) for of in first.observations] == [
        ("No such parcel.", True, "")
    ]
    assert [(of.name, of.arguments) for of in second.calls] == [("log", {"n": 1})]
    assert [(of.content, of.is_error) for of in second.observations] == [({"ok": True}, False)]
    assert (first.sources, second.sources, read.remarks) == ((1, 2), (3,), {})


def test_a_result_that_differs_from_the_message_stays_and_is_kept() -> None:
    executed = tool(2, "find", {"id": "P-1"}, {"raw": 1}, is_error=True, error="Late.")
    read = run(agent(), model(1, [SYSTEM, ASKED], CALL), executed, model(3, GONE, DONE))
    (result,) = read.steps[1].observations
    assert (result.content, result.is_error, result.error) == ("in Oslo", True, "Late.")
    assert read.steps[1].extra["results"] == [{"call_id": "c1", "result": {"raw": 1}}]


def test_a_trace_without_messages_is_refused() -> None:
    off, bare = "content capture is off", "none of them is a model's"
    with pytest.raises(RowError, match=f"^no message in 2 model spans: {off}$"):
        run(agent(), model(1, None, None), model(2, [], None))
    with pytest.raises(RowError, match=f"^no message in 2 spans: {bare}$"):
        run(agent(), tool(1, "find", {}, "x"))


def test_without_spans_of_models_the_agent_says_what_was_asked_and_answered() -> None:
    executed = tool(1, "find", {"id": "P-1"}, "in Oslo")
    read = run(agent(input=[ASKED], output=[DONE]), executed)
    assert texts(read) == [ASKED["content"], "", "It is in Oslo."]


def test_a_run_that_a_failed_request_ended_broke() -> None:
    broken = model(3, GONE, None, is_error=True, error="503")
    read = run(agent(), model(1, [SYSTEM, ASKED], CALL), broken)
    assert (read.infrastructure_error, read.final_answer) == ("503", None)


def test_spans_in_a_circle_end() -> None:
    one, two = agent("a", "b"), agent("b", "a")
    assert texts(run(one, two, model(1, [ASKED], DONE))) == [ASKED["content"], "It is in Oslo."]


def test_times_are_ordered_whatever_they_are_written_as() -> None:
    day, seconds = "2026-05-04T09:00:00Z", 1777885200
    for earlier, later in (
        (day, "2026-05-04T09:00:00.5Z"),
        (day, "2026-05-04T08:00:01-02:00"),
        (day, "2026-05-04 09:00:01"),
        (f"{seconds}000000000", seconds * 10**9 + 1),
        (float(seconds), day.replace("00Z", "01Z")),
    ):
        assert (time_of(earlier) or 0) < (time_of(later) or 0)
    assert time_of("soon") is time_of(None) is time_of(-1e300) is time_of(float("nan")) is None
