"""The shipped examples, graded by a scripted stand-in over a real socket."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import apbjudge
from apbjudge import JudgeSpec, Verdict
from apbjudge.judge.llm_judge import prompts_for

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = {
    "holistic": 27,
    "step_wise": 39,
    "tool_extraneous": 72,
    "tool_broken": 27,
    "unsolvable": 36,
    "efficiency": 24,
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The base address of examples/scripted_judge.py, run as a program."""
    command = [sys.executable, str(EXAMPLES / "scripted_judge.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


def labels_of(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    text = (EXAMPLES / "labels" / f"{name}.jsonl").read_text(encoding="utf-8")
    labels = [json.loads(line) for line in text.splitlines()]
    return {(label["item_id"], label["tested_model"]): label for label in labels}


def decided(verdict: Verdict) -> dict[str, Any]:
    values = {
        "is_correct": verdict.is_correct,
        "grade": verdict.grade,
        "errors": verdict.errors,
        "category": verdict.category,
    }
    return {name: value for name, value in values.items() if value is not None}


@pytest.mark.parametrize(
    ("name", "evidence"), [*((name, True) for name in FILES), ("step_wise", False)]
)
def test_a_judge_that_answers_as_the_labels_yields_the_labels(
    name: str, evidence: bool, address: str
) -> None:
    spec = JudgeSpec(
        model="hosted_vllm/scripted", api_base=address, evidence=evidence, vision="yes"
    )
    run = apbjudge.grade(EXAMPLES / f"{name}.jsonl", judge=spec)
    results = list(run.judgements)
    assert {(j.item_id, j.tested_model): decided(j) for j in results if isinstance(j, Verdict)} == {
        key: {k: label[k] for k in ("is_correct", "grade", "errors", "category") if k in label}
        for key, label in labels_of(name).items()
    }
    assert len(results) == FILES[name]
    assert [j.overrides for j in results if isinstance(j, Verdict) and j.overrides] == []
    assert run.summary.totals.calls == FILES[name]
    assert run.manifest["inconsistent"] == 0


def test_cases_themselves_are_answered_by_the_first_raters_labels(address: str) -> None:
    spec = JudgeSpec(model="hosted_vllm/scripted", api_base=address)
    run = apbjudge.grade(EXAMPLES / "asked" / "cases.jsonl", judge=spec, protocol="case")
    text = (EXAMPLES / "asked" / "case_labels.jsonl").read_text(encoding="utf-8")
    labels = [json.loads(line) for line in text.splitlines()]
    first = {one["item_id"]: one for one in labels if one["rater"] == "ann"}
    results = {j.item_id: decided(j) for j in run.judgements if isinstance(j, Verdict)}
    assert results == {
        name: {key: label[key] for key in ("is_correct", "grade", "errors")}
        for name, label in first.items()
    }


def chat(address: str, body: bytes, path: str = "/chat/completions") -> int:
    try:
        with urlopen(Request(address + path, data=body)) as response:
            return response.status
    except HTTPError as error:
        with error:
            return error.code


def test_the_scripted_judge_refuses_a_schema_that_a_label_can_not_fill(address: str) -> None:
    rows = EXAMPLES / "unsolvable.jsonl"
    case = json.loads(rows.read_text(encoding="utf-8").splitlines()[0])
    _, prompt = next(prompts_for(rows, item_id=case["id"]))
    schema = {"properties": {"category": {}, "is_correct": {}}}
    body = {"messages": prompt.messages()}
    asked = body | {"response_format": {"json_schema": {"schema": schema}}}
    assert chat(address, json.dumps(body).encode()) == 200
    assert chat(address, json.dumps(asked).encode()) == 400
    assert chat(address, json.dumps(body).encode(), "/elsewhere") == 400
