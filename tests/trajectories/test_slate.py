"""Executions of SLATE plans, graded: every measure, and the shipped examples with their truth."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import apbjudge
from apbjudge.errors import InputError, OptionError, RowError, TransportError
from apbjudge.llm.base import Request, ScriptedClient
from apbjudge.records.trajectories import (
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
    trajectory_of,
    trajectory_row,
)
from apbjudge.trajectories import Evaluation, EvaluatorSettings
from apbjudge.trajectories.slate import SLATE, SlateCase, SlateEvaluator
from apbjudge.trajectories.slate.evaluator import OUTPUT_TAGS
from tests.support.runs import run_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "trajectories"
REFERENCE = "OUTPUT_FROM_STEP_1.1.id"
CASE: dict[str, Any] = {
    "id": "berth",
    "query": "Reserve a berth for the Alma and warn the pilot.",
    "category": "harbour",
    "plan": [
        {"step": "1"},
        {"step": "1.1", "tool": "find", "arguments": {"ship": "Alma"}},
        {"step": "1.2"},
        {"step": "2"},
        {"step": "2.1", "tool": "book", "arguments": {"berth": REFERENCE, "nights": 2}},
        {"step": "2.2", "tool": "warn", "arguments": {"berth": REFERENCE}},
    ],
    "tools": [
        {"name": "find", "arguments": {"ship": {}}, "results": {"id": {}}},
        {"name": "book", "arguments": {"berth": {}, "nights": {"type": "integer"}}},
        {"name": "warn", "arguments": {"berth": {}}},
    ],
    "outputs": {"1.1": {"id": "B4"}, "2.1": {"fee": 58}, "2.2": "done"},
}
"""Two final outputs: those of 2.1 and 2.2."""


def does(
    substep: str, tool: str, arguments: Any, output: Any, tag: str = "", **call: Any
) -> TrajectoryStep:
    """A step of the agent with a call and its output."""
    extra = {"substep": substep} | ({"output": tag} if tag else {})
    called = ToolCall(tool, arguments, f"c{substep}", **call)
    answers = () if output is None else (ToolResult(output, f"c{substep}"),)
    return TrajectoryStep("agent", "call", calls=(called,), observations=answers, extra=extra)


FIND = does("1.1", "find", {"ship": "Alma"}, {"id": "B4"})
THINK = TrajectoryStep("agent", text="It is deep enough.", extra={"substep": "1.2"})
BOOK = does("2.1", "book", {"berth": "B4", "nights": 2}, {"fee": 58})
WARN = does("2.2", "warn", {"berth": REFERENCE}, "done")


def run(*steps: TrajectoryStep, case: str = "berth") -> Trajectory:
    return run_of(case, steps=(TrajectoryStep("user", text="Reserve a berth."), *steps))


def evaluate(*steps: TrajectoryStep, case: dict[str, Any] = CASE) -> Evaluation:
    parsed = SlateCase.model_validate(case)
    return SlateEvaluator({parsed.case_id: parsed}).evaluate(run(*steps))


def counts(found: Evaluation) -> tuple[float, ...]:
    """Identified actions of 4, matching tools and arguments of 3, exact ones, the last output."""
    names = ("actions identified", "tools matched", "arguments matched")
    more = ("arguments matched exactly", "last output right")
    return tuple(found.measures[name] for name in (*names, *more))


def test_the_reference_itself_is_right_in_all() -> None:
    found = evaluate(FIND, THINK, BOOK, WARN)
    assert (found.is_correct, found.first_error, found.findings) == (True, None, ())
    assert counts(found) == (4, 3, 3, 3, 1)
    assert (found.measures["substeps"], found.measures["calls due"]) == (4, 3)
    assert found.groups == {"category": "harbour"}
    assert "tagged outputs" not in found.measures


ELSEWHERE = does("1.2", "tide", {}, "high")
"""A call where none is due."""
REWRITTEN = does("2.1", "book", {"berth": "b4", "nights": "2.0"}, {"fee": 58})
TOO_FEW = does("2.1", "book", {"berth": "B4"}, {"fee": 58})
CUT = does("2.1", "book", "{berth", None, parse_error="no JSON")
ANOTHER = does("2.1", "warn", {"berth": "B4"}, "no")


@pytest.mark.parametrize(
    ("steps", "failure", "expected", "first_error"),
    [
        ((), "wrong action", (0, 0, 0, 0, 0), None),
        ((FIND, THINK, WARN), "wrong action", (3, 2, 2, 2, 1), None),
        ((FIND, ELSEWHERE, BOOK, WARN), None, (3, 3, 3, 3, 1), 2),
        ((FIND, THINK, ANOTHER, WARN), "wrong tool", (4, 2, 2, 2, 1), 3),
        ((FIND, THINK, REWRITTEN, WARN), None, (4, 3, 3, 2, 1), None),
        ((FIND, THINK, TOO_FEW, WARN), None, (4, 3, 2, 2, 1), 3),
        ((FIND, THINK, CUT, WARN), "wrong arguments", (4, 3, 2, 2, 1), 3),
        (
            (FIND, THINK, BOOK, does("2.2", "warn", {"berth": "B4"}, "Done")),
            *("wrong output", (4, 3, 3, 3, 0), None),
        ),
        ((FIND, replace(THINK, kind="invalid"), BOOK, WARN), None, (3, 3, 3, 3, 1), 2),
    ],
)
def test_measures_by_hand(
    steps: tuple[TrajectoryStep, ...],
    failure: str | None,
    expected: tuple[float, ...],
    first_error: int | None,
) -> None:
    found = evaluate(*steps)
    assert (counts(found), found.first_error) == (expected, first_error)
    assert found.is_correct == (failure is None)
    assert found.classes == ({} if failure is None else {"failure": failure})
    assert failure is None or f"failure={failure}" in {figure.of for figure in SLATE.metrics}


def test_references_are_resolved_from_the_agent_s_own_outputs_never_from_the_reference() -> None:
    """A wrong output that is passed on is one wrong argument, not three."""
    lost = does("1.1", "find", {"ship": "Elma"}, {"id": "B0"}, "default")
    book = does("2.1", "book", {"berth": "B0", "nights": 2}, {"fee": 0}, "default")
    warn = does("2.2", "warn", {"berth": REFERENCE}, "nobody there", "default")
    assert counts(evaluate(lost, THINK, book, warn)) == (4, 3, 2, 2, 0)
    # What the reference would have passed is not what this agent had before it.
    assert counts(evaluate(lost, THINK, BOOK, warn)) == (4, 3, 1, 1, 0)
    # Nothing had been found at all, or only later.
    assert counts(evaluate(THINK, BOOK, WARN)) == (3, 2, 1, 1, 1)
    assert counts(evaluate(THINK, BOOK, FIND, WARN)) == (4, 3, 2, 2, 1)


def test_an_error_is_no_output_even_with_the_right_content() -> None:
    for error in (
        replace(BOOK, extra={"substep": "2.1", "output": "error"}),
        replace(BOOK, observations=(ToolResult({"fee": 58}, "c2.1", is_error=True),)),
    ):
        found = evaluate(FIND, THINK, error, WARN)
        assert (found.is_correct, found.measures["arguments matched"]) == (False, 3)


def test_no_arguments_may_be_left_out_of_the_log() -> None:
    plan = [{"step": "1.1", "tool": "find"}]
    case = CASE | {"plan": plan, "outputs": {"1.1": {"id": "B4"}}}
    for arguments, error, matched in (({}, "", 1), (None, "", 1), (None, "cut off", 0)):
        call = does("1.1", "find", arguments, {"id": "B4"}, parse_error=error)
        assert evaluate(call, case=case).measures["arguments matched exactly"] == matched


def test_outputs_written_as_json_text_are_read() -> None:
    text = replace(FIND, observations=(ToolResult('{"id": "B4"}'),))
    assert counts(evaluate(text, THINK, BOOK, WARN)) == (4, 3, 3, 3, 1)
    number = CASE | {"outputs": CASE["outputs"] | {"2.2": "35"}}
    as_text = replace(WARN, observations=(ToolResult("35", "c2.2"),))
    assert evaluate(FIND, THINK, BOOK, as_text, case=number).is_correct
    unquoted = replace(WARN, observations=(ToolResult(35, "c2.2"),))
    assert not evaluate(FIND, THINK, BOOK, unquoted, case=number).is_correct


def test_tags_are_counted_and_only_where_the_log_has_any() -> None:
    tags = ((FIND, "matched"), (BOOK, "default"), (WARN, "default"))
    tagged = [replace(step, extra=step.extra | {"output": tag}) for step, tag in tags]
    found = evaluate(tagged[0], THINK, *tagged[1:]).measures
    assert found["tagged outputs"] == 3
    assert [found[f"{tag} outputs"] for tag in OUTPUT_TAGS] == [1, 0, 2, 0]


def test_faults_of_the_case_are_shown_and_decide_nothing() -> None:
    tools = [tool for tool in CASE["tools"] if tool["name"] != "warn"]
    found = evaluate(FIND, THINK, BOOK, WARN, case=CASE | {"tools": tools})
    assert found.is_correct
    assert [(f.rule, f.certainty, f.where) for f in found.findings] == [
        ("unknown-tool", "suspected", "case.plan[5].tool")
    ]


# Which step is for which substep ------------------------------------------------------------------


def unmarked(*steps: TrajectoryStep) -> tuple[TrajectoryStep, ...]:
    return tuple(replace(step, extra={}) for step in steps)


def test_steps_without_marks_are_for_the_substeps_in_their_order() -> None:
    steps = unmarked(FIND, THINK, BOOK, WARN)
    assert counts(evaluate(*steps)) == (4, 3, 3, 3, 1)
    answer = TrajectoryStep("agent", "answer", "Berth B4.")
    talk = TrajectoryStep("agent", text="Let me see.")
    assert counts(evaluate(talk, FIND, THINK, BOOK, WARN, answer)) == (4, 3, 3, 3, 1)


@pytest.mark.parametrize(
    ("steps", "field"),
    [
        (unmarked(FIND, THINK, BOOK, WARN, THINK), "steps"),
        ((FIND, THINK, BOOK, *unmarked(WARN)), "steps.4.extra.substep"),
        ((FIND, THINK, BOOK, FIND), "steps.4.extra.substep"),
        ((replace(FIND, calls=FIND.calls * 2),), "steps.1.calls"),
        ((replace(FIND, observations=()),), "steps.1.observations"),
        ((replace(FIND, extra={"substep": "1.1", "output": "guess"}),), "steps.1.extra.output"),
    ],
)
def test_a_run_that_does_not_say_what_is_needed_is_bad_input(
    steps: tuple[TrajectoryStep, ...], field: str
) -> None:
    with pytest.raises(RowError) as error:
        evaluate(*steps)
    assert error.value.field == field


def test_unknown_cases_and_cases_without_calls_are_unscored() -> None:
    plain = SlateCase.model_validate({"id": "talk", "query": "", "plan": [{"step": "1.1"}]})
    evaluator = SlateEvaluator({"talk": plain})
    with pytest.raises(RowError, match="a case whose plan calls a tool"):
        evaluator.evaluate(run(replace(THINK, extra={}), case="talk"))
    with pytest.raises(RowError, match="a case of the file of cases"):
        evaluator.evaluate(run(case="berth"))


def test_values_nested_too_deeply_are_bad_input() -> None:
    deep: Any = "end"
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(RowError, match="nested less deeply"):
        evaluate(does("1.1", "find", {"ship": deep}, {"id": 1}))


# Any plan -----------------------------------------------------------------------------------------


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Plans whose calls take literals or the value of any earlier call."""
    plan: list[dict[str, Any]] = [{"step": "1"}, {"step": "1.1", "tool": "t0", "arguments": {}}]
    for i in range(2, draw(st.integers(2, 6))):
        calls = [step["step"] for step in plan if step.get("tool")]
        if draw(st.booleans()):
            value = draw(
                st.sampled_from([f"OUTPUT_FROM_STEP_{c}.v" for c in calls]) | st.integers()
            )
            plan.append({"step": f"1.{i}", "tool": f"t{i}", "arguments": {"a": value}})
        else:
            plan.append({"step": f"1.{i}"})
    calls = [step["step"] for step in plan if step.get("tool")]
    tools = [{"name": s["tool"], "results": {"v": {}}} for s in plan if s.get("tool")]
    values = draw(st.lists(st.integers(0, 99), min_size=len(calls), max_size=len(calls)))
    outputs = {call: {"v": value} for call, value in zip(calls, values, strict=True)}
    return {"id": "berth", "query": "", "plan": plan, "tools": tools, "outputs": outputs}


@given(plans(), st.data())
def test_a_run_is_right_as_far_as_it_follows_the_plan(
    case: dict[str, Any], data: st.DataObject
) -> None:
    steps = [
        does(s["step"], s["tool"], s["arguments"], case["outputs"][s["step"]])
        if s.get("tool")
        else TrajectoryStep("agent", extra={"substep": s["step"]})
        for s in case["plan"][1:]
    ]
    reached = data.draw(st.integers(0, len(steps)))
    found = evaluate(*steps[:reached], case=case)
    n_calls = sum(bool(step.calls) for step in steps[:reached])
    assert found.is_correct == (n_calls == len(case["outputs"]))
    assert counts(found)[:4] == (reached, n_calls, n_calls, n_calls)
    assert found.measures["substeps"] == len(steps)


# The protocol and the examples --------------------------------------------------------------------


def test_the_examples_are_graded_as_they_state() -> None:
    evaluator = SLATE.evaluator(EvaluatorSettings(cases=EXAMPLES / "slate_cases.jsonl"))
    assert len(evaluator.digest) == 64
    lines = (EXAMPLES / "slate_trajectories.jsonl").read_bytes().splitlines()
    runs = [trajectory_of(orjson.loads(line)) for line in lines]
    assert {run.case_id for run in runs} == {*evaluator.cases}
    for example in runs:
        found, truth = evaluator.evaluate(example), example.extra["truth"]
        assert example.outcome is not None
        assert found.is_correct == example.outcome.success, example.trajectory_id
        assert {name: found.measures[name] for name in truth} == truth, example.trajectory_id
    assert {run.outcome.is_success for run in runs if run.outcome} == {True, False}


def test_a_log_is_graded_with_its_cases(tmp_path: Path) -> None:
    cases = EXAMPLES / "slate_cases.jsonl"
    some = tmp_path / "slate_trajectories.jsonl"
    lines = (EXAMPLES / "slate_trajectories.jsonl").read_bytes().splitlines(keepends=True)
    some.write_bytes(b"".join(lines[:7]))  # all of alder's but that of "image"
    graded = apbjudge.grade(some, protocol="slate", cases=cases)
    (group,) = graded.summary.groups
    sums = {"TMR": (17, 18), "AIA": (20, 23), "arguments matched": (15, 17)}
    for name, (above, below) in sums.items():
        assert group.metrics[name].value == pytest.approx(above / below)
    assert group.metrics["execution success"].value == pytest.approx(5 / 7)
    assert group.metrics["wrong arguments"].value == 1  # of the two that fail
    (unscored,) = (j for j in graded.judgements if isinstance(j, apbjudge.Unscored))
    assert (graded.summary.scored, unscored.reason, unscored.case_id) == (7, "missing", "image")
    with pytest.raises(OptionError, match="--cases: expected a JSONL file of SLATE cases"):
        apbjudge.grade(some, protocol="slate")


# Texts that a model compares ----------------------------------------------------------------------

NOTED: dict[str, Any] = {
    "query": "Note it.",
    "plan": [{"step": "1"}, {"step": "1.1", "tool": "note", "arguments": {"text": "Low tide"}}],
    "tools": [{"name": "note", "arguments": {"text": {}}, "results": {"on": {}, "said": {}}}],
    "outputs": {"1.1": {"on": "5 March 2026", "said": "It is noted."}},
}
OUTPUTS: dict[str, tuple[str, Any, str]] = {
    "same": ("Low tide", NOTED["outputs"]["1.1"], "exact"),
    "date": ("low  TIDE", {"on": "2026-03-05", "said": "it is  noted."}, "canonical"),
    "paraphrase": ("Low tide", {"on": "2026-03-05", "said": "I have noted it."}, "judge"),
    "again": ("Low tide", {"on": "5 March 2026", "said": "I have noted it."}, "judge"),
    "words": ("Ebb", NOTED["outputs"]["1.1"], "exact"),
    "other": ("Low tide", {"on": "5 March 2026", "said": "Nothing is noted."}, "other"),
    "other date": ("Low tide", {"on": "2026-03-06", "said": "I have noted it."}, "other"),
}
"""Argument, output, and the way in which that is the recorded one."""
COMPARING = {"model": "hosted_vllm/equal"}


def same_text(request: Request) -> str:
    text = request.messages[-1]["content"]
    return json.dumps({"same": "I have noted it." in text or "Ebb" in text})


def test_grade_settles_by_code_what_it_can_and_asks_a_model_once_for_a_pair(tmp_path: Path) -> None:
    log, cases = noted(tmp_path)
    client = ScriptedClient(same_text)
    settings: dict[str, Any] = {"protocol": "slate", "cases": cases, "client": client}
    graded = apbjudge.grade(log, out=tmp_path / "run", same_text=COMPARING, **settings)
    by_id = {judgement.item_id: judgement for judgement in graded.judgements}
    for name, (_, _, way) in OUTPUTS.items():
        fields = by_id[name].reply_fields
        assert fields is not None
        assert fields["outputs"] == {"1.1": way}, name
        assert by_id[name].is_correct == (way != "other"), name
    compared = ("I have noted it.", "Ebb", "Nothing is noted.")
    asked = [request.messages[-1]["content"] for request in client.requests]
    assert len(asked) == 3  # a paraphrase is one call, the same pair again none
    assert all(sum(text in request for request in asked) == 1 for text in compared)
    assert by_id["words"].diagnosis is not None
    assert by_id["words"].diagnosis.measures["arguments matched"] == 1
    calls = {name: judgement.usage.calls for name, judgement in by_id.items() if judgement.usage}
    assert sum(calls.values()) == 3
    assert {name for name in calls if not calls[name]} <= {"paraphrase", "again"}
    pair = {"tool": "note", "recorded": "It is noted.", "asked": "Nothing is noted."}
    other = by_id["other"].reply_fields
    assert other is not None
    assert other["texts"] == [{**pair, "of": "output", "same": False}]
    client.requests.clear()
    apbjudge.grade(log, out=tmp_path / "run", same_text=COMPARING, **settings)
    assert client.requests == []
    with pytest.raises(OptionError, match="same_text"):
        apbjudge.grade(log, out=tmp_path / "run", **settings)


def test_without_a_model_only_the_same_output_counts(tmp_path: Path) -> None:
    log, cases = noted(tmp_path)
    graded = apbjudge.grade(log, protocol="slate", cases=cases)
    right = {judgement.item_id for judgement in graded.judgements if judgement.is_correct}
    assert right == {"same", "words"}
    assert {judgement.reply_fields for judgement in graded.judgements} == {None}
    with pytest.raises(OptionError, match="--same-text: expected nothing, since outcome compares"):
        apbjudge.grade(log, protocol="outcome", same_text=COMPARING)


def test_a_comparison_without_an_answer_leaves_the_trajectory_unscored(tmp_path: Path) -> None:
    log, cases = noted(tmp_path)

    def refuse(request: Request) -> str:
        raise TransportError("no answer")

    settings: dict[str, Any] = {"protocol": "slate", "cases": cases, "out": tmp_path / "run"}
    failed = apbjudge.grade(
        log, client=ScriptedClient(refuse), same_text={**COMPARING, "retries": 0}, **settings
    )
    reasons = {judgement.item_id: judgement.reason for judgement in failed.judgements}
    unanswered = {"paraphrase", "again", "words", "other"}
    assert reasons == {name: "transport" if name in unanswered else None for name in OUTPUTS}
    client = ScriptedClient(same_text)
    again = apbjudge.grade(log, client=client, same_text={**COMPARING, "retries": 0}, **settings)
    assert sum(bool(judgement.is_correct) for judgement in again.judgements) == 5
    assert len(client.requests) == 3


def test_calibrate_takes_labelled_pairs_of_texts(tmp_path: Path) -> None:
    """Of three pairs the model is right about two: it took the ebb for low tide."""
    log, cases = noted(tmp_path)
    client = ScriptedClient(same_text)
    out = tmp_path / "run"
    settings: dict[str, Any] = {"protocol": "slate", "cases": cases, "client": client}
    apbjudge.grade(log, out=out, same_text=COMPARING, **settings)
    labelled = [
        ("It is noted.", "I have noted it.", "output", True),
        ("It is noted.", "Nothing is noted.", "output", False),
        ("Low tide", "Ebb", "argument", False),
        ("Low tide", "Flood", "argument", False),
    ]
    pairs = tmp_path / "pairs.jsonl"
    rows = [
        {"tool": "note", "recorded": one, "asked": other, "of": of, "same": same, "rater": "ann"}
        for one, other, of, same in labelled
    ]
    pairs.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    report = apbjudge.calibrate(out, pairs)
    (judge,) = report.judges
    assert (judge.judge, judge.n_rows) == ("hosted_vllm/equal", 3)
    text = " ".join(str(report).split())
    assert "agreement 66.7 [11.8, 98.3] /3" in text
    assert "1 labelled items have no judgement here" in text
    with pytest.raises(InputError, match="expected a run of grade --same-text"):
        apbjudge.calibrate(apbjudge.grade(log, out=tmp_path / "plain", **settings), pairs)


def noted(folder: Path) -> tuple[Path, Path]:
    """A log of an execution for each of ``OUTPUTS``, and the cases."""
    log, cases = folder / "log.jsonl", folder / "cases.jsonl"
    cases.write_bytes(b"".join(orjson.dumps(NOTED | {"id": name}) + b"\n" for name in OUTPUTS))
    runs = [
        replace(run(does("1.1", "note", {"text": text}, output), case=name), trajectory_id=name)
        for name, (text, output, _) in OUTPUTS.items()
    ]
    log.write_bytes(b"".join(orjson.dumps(trajectory_row(each)) + b"\n" for each in runs))
    return log, cases
