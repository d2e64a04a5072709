"""Results of other evaluation tools: forms, metrics, scales."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.errors import InputError, OptionError

N = 8
HUMAN = [i % 2 == 0 for i in range(N)]
JUDGE = [i % 4 == 0 for i in range(N)]
LOST = 3
"""The item that the tool failed on."""


def lines(*rows: Mapping[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def deepeval() -> str:
    def metric(i: int) -> dict[str, Any]:
        if i == LOST:
            return {"name": "Correctness", "success": False, "score": None, "error": "timed out"}
        return {"name": "Correctness", "success": JUDGE[i], "score": 0.9 if JUDGE[i] else 0.2}

    return json.dumps(
        {"testCases": [{"name": f"c{i}", "metricsData": [metric(i)]} for i in range(N)]}
    )


def promptfoo() -> str:
    def result(i: int) -> dict[str, Any]:
        part = {"pass": JUDGE[i], "score": int(JUDGE[i]), "assertion": {"type": "llm-rubric"}}
        grading = None if i == LOST else {"pass": JUDGE[i], "componentResults": [part]}
        of = {"failureReason": 0, "provider": {"id": "p"}, "success": JUDGE[i]}
        return {**of, "vars": {"id": f"c{i}"}, "gradingResult": grading}

    results = {"evalId": "e", "results": {"results": [result(i) for i in range(N)]}}
    return json.dumps(results, indent=2)


def ragas() -> str:
    cells = ("" if i == LOST else int(JUDGE[i]) for i in range(N))
    rows = (f"c{i},answer,gold,{cell}" for i, cell in enumerate(cells))
    return "\n".join(["user_input,response,reference,correct_aspect", *rows])


def mlflow_table() -> str:
    cells = [None if i == LOST else ("yes" if JUDGE[i] else "no") for i in range(N)]
    data = [[f"c{i}", "answer", cell] for i, cell in enumerate(cells)]
    return json.dumps({"columns": ["trace_id", "response", "correctness/value"], "data": data})


def mlflow_traces() -> str:
    def assessment(by: str, value: str | bool) -> dict[str, Any]:
        of = {"source": {"source_type": by}, "feedback": {"value": value}}
        return {"assessment_name": "correct", **of}

    def trace(i: int) -> dict[str, Any]:
        judge = assessment("LLM_JUDGE", "yes" if JUDGE[i] else "no")
        assessments = [] if i == LOST else [judge, assessment("HUMAN", HUMAN[i])]
        attributes = {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": '{"question": "q"}'}
        attributes["mlflow.spanOutputs"] = '"answer"'
        span: dict[str, Any] = {"span_id": f"s{i}", "start_time_unix_nano": 1, "name": "agent"}
        info = {"trace_id": f"c{i}", "assessments": assessments}
        return {"info": info, "data": {"spans": [span | {"attributes": attributes}]}}

    return lines(*map(trace, range(N)))


def lm_eval() -> str:
    rows = (
        {"doc_id": f"c{i}", "resps": [["4"]], "filter": "strict", "metrics": ["exact_match"]}
        | ({} if i == LOST else {"exact_match": float(JUDGE[i])})
        for i in range(N)
    )
    return lines(*rows)


def openai_log() -> str:
    events: list[dict[str, Any]] = [{"spec": {"eval_name": "e"}}]
    for i in range(N):
        event = {"event_id": i, "sample_id": f"c{i}"}
        events.append({**event, "type": "sampling", "data": {"sampled": ["x"]}})
        if i != LOST:
            events.append({**event, "type": "match", "data": {"correct": JUDGE[i]}})
    return lines(*events, {"final_report": {"accuracy": 0.5}})


def openai_items() -> str:
    def item(i: int) -> dict[str, Any]:
        results = [] if i == LOST else [{"name": "grader", "passed": JUDGE[i], "score": 3.5}]
        return {"datasource_item_id": i, "datasource_item": {"id": f"c{i}"}, "results": results}

    return json.dumps({"object": "list", "data": [item(i) for i in range(N)]})


def inspect() -> str:
    def sample(i: int) -> dict[str, Any]:
        scores = {} if i == LOST else {"match": {"value": "C" if JUDGE[i] else "I"}}
        messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
        return {"id": f"c{i}", "epoch": 1, "messages": messages, "target": "a", "scores": scores}

    samples = [sample(i) for i in range(N)]
    return json.dumps({"version": 2, "eval": {"task": "t", "model": "m"}, "samples": samples})


FORMS = {
    "deepeval.json": (deepeval, "Correctness", "results of DeepEval: name as item"),
    "promptfoo.json": (promptfoo, "llm-rubric", "results of promptfoo: vars.id as item"),
    "ragas.csv": (ragas, "correct_aspect", "results of ragas: user_input as item"),
    "table.json": (mlflow_table, "correctness", "evaluation table of MLflow: trace_id as item"),
    "mlflow.jsonl": (mlflow_traces, "correct", "log of mlflow: case as item"),
    "samples.jsonl": (lm_eval, "exact_match (strict)", "samples of lm-eval: doc_id as item"),
    "log.jsonl": (openai_log, "correct", "log of OpenAI evals: sample_id as item"),
    "items.json": (openai_items, "grader", "OpenAI evals: datasource_item.id as item"),
    "inspect.json": (inspect, "match", "log of inspect: case as item"),
}


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    rows = (f"c{i},{'yes' if HUMAN[i] else 'no'},{i % 5 + 1}" for i in range(N))
    path.write_text("\n".join(["ticket,ok,stars", *rows]), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FORMS)
def test_metrics_are_judges_without_options(name: str, labels: Path, tmp_path: Path) -> None:
    text, metric, described = FORMS[name]
    path = tmp_path / name
    path.write_text(text(), encoding="utf-8")
    (judge,) = apbjudge.calibrate(path, labels).judges
    assert (judge.judge, judge.n_rows, judge.n_scored) == (metric, N, N - 1)
    agreeing = sum(JUDGE[i] == HUMAN[i] for i in range(N) if i != LOST)
    assert judge.whole.measures["agreement"].value == pytest.approx(agreeing / (N - 1))
    assert described in judge.notes[0]
    other = tmp_path / f"other_{name}"
    other.write_text(text(), encoding="utf-8")
    comparison = apbjudge.compare(path, other)
    assert (comparison.n_pairs, comparison.n_compared) == (N, N - 1)
    assert described in comparison.notes[0]


def test_each_metric_has_its_own_scale(labels: Path, tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = []
    for i in range(N):
        metrics = [{"name": "unit", "score": i / N, "success": JUDGE[i]}]
        metrics += [{"name": "stars", "score": score} for score in (i % 5 + 1, 0.5)]
        cases.append({"name": f"c{i}", "metricsData": metrics})
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"test_results": cases}), encoding="utf-8")
    (judge,) = apbjudge.calibrate(path, labels).judges
    assert judge.judge == "unit"
    assert any("Not read" in note and "score of stars" in note for note in judge.notes)
    assert any(note.startswith("Left out: stars 3:") for note in judge.notes)
    (stars,) = apbjudge.calibrate(path, labels, scale="1..5", judges="stars").judges
    assert stars.whole.measures["score MAE"].value == 0
    with pytest.raises(OptionError, match="expected some of unit, stars, stars 3, got 'moon'"):
        apbjudge.calibrate(path, labels, judges="moon")
    scores = apbjudge.compare(path, path, judges="unit,stars 3")
    assert scores.flips is None
    assert [of.name for of in scores.differences] == ["Grade"]
    assert scores.differences[0].first.value == pytest.approx(sum(range(N)) / N / N, abs=1e-4)


def test_rows_without_any_score_are_refused(labels: Path, tmp_path: Path) -> None:
    path = tmp_path / "failed.json"
    rows = [{"vars": {"id": f"c{i}"}, "failureReason": 2, "error": "refused"} for i in range(N)]
    path.write_text(json.dumps({"results": {"results": rows}}), encoding="utf-8")
    with pytest.raises(InputError, match="results of promptfoo: no verdicts or scores"):
        apbjudge.calibrate(path, labels)


def test_prompts_of_one_provider_are_told_apart(labels: Path, tmp_path: Path) -> None:
    grading = {"pass": True, "componentResults": [{"pass": True, "score": 1}]}
    rows = [
        {"vars": {"id": f"c{i}"}, "promptIdx": at, "provider": "p", "gradingResult": grading}
        for i in range(N)
        for at in range(2)
    ]
    path = tmp_path / "prompts.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    comparison = apbjudge.compare(path, path, tested_models=("p prompt 0", "p prompt 1"))
    assert comparison.n_compared == N
