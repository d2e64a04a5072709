"""What the report page gets to know of a whole trajectory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.records.judgements import Diagnosis
from apbjudge.records.trajectories import (
    Execution,
    LogPlace,
    Outcome,
    Retrieval,
    RetrievedTool,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from apbjudge.reports.page import trajectories
from apbjudge.reports.page.html import write_report
from apbjudge.reports.page.trajectories import trajectory_view

from .page.reports import Page, report
from .page.trajectories import FAILED_SEARCH, SEARCH, explored, judged, trajectory
from .rows import check_golden

HOSTILE = "</script></style><script>x()</script><!--]]>'\"&{{ 1 }}<img src=x onerror=x()>\u202e\0"


# One trajectory -----------------------------------------------------------------------------------


def test_views_are_the_golden_ones() -> None:
    """Of all that a log and its diagnosis say, and of searches that find little."""
    nothing = replace(SEARCH, retrieval=Retrieval(by_inputs=True, tools=()))
    searches = trajectory_view(trajectory(SEARCH, FAILED_SEARCH, nothing), None)
    views = [trajectory_view(*explored(6)), searches]
    check_golden("trajectory_views.json", json.dumps(views, indent=1, ensure_ascii=False) + "\n")


# Letters -----------------------------------------------------------------------------------------


# Limits ------------------------------------------------------------------------------------------


def test_the_end_of_a_very_long_text_is_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trajectories, "TEXT_SHOWN", 10)
    calls, seen = (ToolCall("look", {"a": "b" * 20}),), (ToolResult("0123456789" * 200),)
    step = TrajectoryStep("agent", "call", text="short", calls=calls, observations=seen)
    view = trajectory_view(trajectory(step), None)["steps"][1]
    assert view["text"] == "short"
    assert view["results"][0]["text"] == "0123456789\n[1,990 more characters, see the log]"
    assert view["calls"][0]["raw"].startswith('{\n  "a": "\n[')


# What trajectories of a task share ---------------------------------------------------------------


def test_trajectories_of_a_task_share_its_texts_and_tools_in_the_page(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    run, diagnosis = explored(8)
    other = replace(run, trajectory_id="run-2", trial=3, system_prompt="Another prompt.")
    entries = [
        judged(run, diagnosis),
        judged(replace(run, trajectory_id="run-1b"), diagnosis.model_copy(update={"classes": {}})),
        judged(other, None),
    ]
    write_report(report(entries, judges=("code",)), path)
    page = Page(path)
    items, cases, tools = (page.records(name) for name in ("items", "cases", "tools"))
    assert [item["case"] for item in items] == [0, 0, 1]
    assert [case["system"] for case in cases] == [run.system_prompt, "Another prompt."]
    assert [case["tools"] for case in cases] == [0, 0]
    assert [tool["name"] for tool in tools[0]] == ["track_order"]
    assert items[0]["trajectory"] == trajectory_view(run, diagnosis)
    assert items[2]["trajectory"] == trajectory_view(other, None)
    assert items[0]["judgements"][0]["diagnosis"] == diagnosis.model_dump()
    assert page.records("texts")[0] == [run.query, "the answer is not grounded"]
    failure = {"names": ["Weak Recovery"], "of": [0, -1, -1]}
    assert page.blocks["index"]["groups"]["failure"] == failure


@pytest.mark.parametrize("damaged", ["text", {"measures": {"turns": "many"}}])
def test_a_diagnosis_that_can_not_be_read_marks_nothing(tmp_path: Path, damaged: Any) -> None:
    path = tmp_path / "report.html"
    run, diagnosis = explored(8)
    entries = [judged(run, damaged), judged(run, diagnosis)]
    write_report(report(entries, judges=("code",)), path)
    first, second = Page(path).records("items")
    assert first["trajectory"] == trajectory_view(run, None)
    assert second["trajectory"] == trajectory_view(run, diagnosis)


# Texts of others ---------------------------------------------------------------------------------


def run_of(text: str) -> tuple[Trajectory, Diagnosis]:
    """A trajectory with the same text in every place that takes one."""
    of_calls = dict.fromkeys(("rejection", "output_datatype", "output_value", "tool_type"), text)
    found = (RetrievedTool(text, (text,), text, text),)
    step = TrajectoryStep(
        "agent",
        "call",
        text=text,
        thought=text,
        calls=(ToolCall(text, {text: {text: [text]}}, text), ToolCall(text, text, text, text)),
        observations=(ToolResult(text, text, text, is_error=True), ToolResult({text: text}, "?")),
        retrieval=Retrieval(inputs=(text,), outputs=(text,), tools=found),
        execution=Execution(was_executed=True, **of_calls),
        extra={text: text},
    )
    fields = (
        "trajectory_id case_id tested_model setting query system_prompt final_answer termination "
        "infrastructure_error"
    )
    run = trajectory(
        step,
        **dict.fromkeys(fields.split(), text),
        tools=({"name": text, "description": text}, text),
        outcome=Outcome(reward=0.5),
        usage={text: 1.0},
        place=LogPlace(text, text, text, 1),
        remarks={text: 1},
        extra={text: text},
    )
    return run, Diagnosis(measures={text: 1.0}, classes={text: text}, word="P", first_error=1)


def test_no_text_of_a_run_changes_what_the_page_is_made_of(tmp_path: Path) -> None:
    pages: list[Page] = []
    for text in ("harmless", HOSTILE):
        run, diagnosis = run_of(text)
        finding = {"code": None, "certainty": "suspected", "where": text, "message": text}
        entry = judged(run, diagnosis, findings=[finding], judge=text)
        write_report(report([entry], judges=(text,)), tmp_path / "report.html")
        pages.append(Page(tmp_path / "report.html"))
    harmless, hostile = pages
    assert hostile.tags == harmless.tags
    assert len(hostile.scripts) == len(harmless.scripts)
    assert hostile.records("items")[0]["trajectory"] == trajectory_view(*run_of(HOSTILE))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_whatever_a_call_is_given_and_gets_reaches_the_page(given_: Any, got: Any) -> None:
    step = TrajectoryStep(
        "agent", "call", calls=(ToolCall("look", given_),), observations=(ToolResult(got),)
    )
    view = orjson.loads(orjson.dumps(trajectory_view(trajectory(step), None)))["steps"][1]
    (call,), (seen,) = view["calls"], view["results"]
    if isinstance(given_, dict):
        assert call["arguments"] == given_
    elif isinstance(given_, str) or given_ is None:
        assert call.get("raw", "") == (given_ or "")
    else:
        assert orjson.loads(call["raw"]) == given_
    if isinstance(got, str) or got is None:
        assert seen["text"] == (got or "")
    else:
        assert orjson.loads(seen["text"]) == got
