"""Traces in OTLP, of Phoenix and of Logfire: one trajectory, whatever the convention."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apbjudge.records.loose_json import python_value
from apbjudge.records.messages import ToolCall
from apbjudge.records.tools import build_toolset
from apbjudge.records.trajectories import Trajectory
from apbjudge.trajectories.detection import detect
from apbjudge.trajectories.reading import read_log

LOGS = Path(__file__).parent / "logs" / "otlp"
FILES = sorted(path.name for path in LOGS.iterdir())
"""One trajectory by container and convention: a call, and an answer after it."""
SYSTEM, ASKED = "You help with the weather.", "Will it rain in Bergen?"
THOUGHT, RESULT, ANSWER = "I look it up first.", "Rain, 9 °C", "Yes, it will rain."
WORDS = "The station did not answer."


def records_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (LOGS / name).read_text(encoding="utf-8").splitlines()]


def format_of(name: str) -> str:
    first = name.partition("_")[0].partition(".")[0]
    return {"phoenix": "openinference", "logfire": "logfire"}.get(first, "otlp")


@pytest.mark.parametrize("name", FILES)
def test_the_run_is_the_same_in_every_container_and_convention(name: str) -> None:
    assert detect(LOGS / name) == format_of(name)
    (entry,) = read_log(LOGS / name)
    run = entry.content
    assert isinstance(run, Trajectory), run
    assert (run.trajectory_id, run.tested_model, run.system_prompt) == ("0af7", "m-1", SYSTEM)
    assert [(step.source, step.text) for step in run.steps] == [
        ("user", ASKED),
        ("agent", THOUGHT),
        ("agent", ANSWER),
    ]
    call_id = run.steps[1].calls[0].call_id
    given = {"city": "Bergen", "days": 2}
    assert run.steps[1].calls == (ToolCall("get_weather", given, call_id),)
    (result,) = run.steps[1].observations
    assert (result.content, result.call_id) == (RESULT, call_id)
    assert (result.is_error, result.error) == (True, WORDS)
    assert run.final_answer == ANSWER
    names = build_toolset(list(run.tools or ()), None, "tools").names
    assert names == (frozenset() if name == "livekit.json" else {"get_weather"})
    assert run.remarks == {}
    if "_logs" not in name:
        assert [step.sources for step in run.steps] == [(1,), (1, 2, 3), (3,)]


def read_rows(folder: Path, rows: list[Any]) -> list[Any]:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return [entry.content for entry in read_log(path)]


def test_a_text_that_the_exporter_cut_is_counted_and_what_was_whole_is_read(tmp_path: Path) -> None:
    rows = records_of("logfire.jsonl")
    rows[2]["attributes"]["gen_ai.tool.call.result"] = RESULT
    about = rows[3]["attributes"]
    about["gen_ai.input.messages"] = about["gen_ai.input.messages"][:-30]
    (run,) = read_rows(tmp_path, rows)
    assert [step.text for step in run.steps] == [ASKED, THOUGHT, ANSWER]
    assert run.steps[1].observations[0].content == RESULT
    assert run.remarks == {"cut content": 1}


def test_scores_candidates_and_usage_are_read(tmp_path: Path) -> None:
    rows = records_of("logfire.jsonl")
    about = rows[3]["attributes"]
    about["gen_ai.output.messages"] = json.dumps(json.loads(about["gen_ai.output.messages"]) * 2)
    about["gen_ai.usage.input_tokens"] = 7
    evaluations = [
        {"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.5},
        {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "friendly"},
    ]
    rows[0]["otel_events"] = [{"event_name": "x", "attributes": of} for of in evaluations]
    (run,) = read_rows(tmp_path, rows)
    assert run.scores == {"relevance": 0.5, "tone": "friendly"}
    assert run.usage == {"input_tokens": 7.0}
    assert run.remarks["other candidates"] == 1


def test_traces_of_one_file_are_runs_in_whatever_lines_their_spans_are(tmp_path: Path) -> None:
    rows = [*records_of("logfire.jsonl"), *records_of("logfire_pydantic_ai.jsonl")]
    for row in rows[4:]:
        row["trace_id"] = "0af8"
    begun = {**rows[1], "kind": "pending_span", "span_id": "p", "parent_span_id": "m0"}
    first, second = read_rows(tmp_path, [*rows[::2], begun, *rows[1::2]])
    assert [of.text for of in first.steps] == [of.text for of in second.steps]
    assert (first.trajectory_id, second.trajectory_id) == ("0af7", "0af8")


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("{'city': 'Oslo', 'at': (1, None)}", {"city": "Oslo", "at": [1, None]}),
        ("{'a': {1, 2}}", "{'a': {1, 2}}"),
        (r"{'\d': 1}", {r"\d": 1}),
    ],
)
def test_arguments_may_be_written_in_python(written: str, arguments: Any) -> None:
    assert python_value(written) == arguments
