"""Step-wise predictions carried out at the state of their prefix."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from apbjudge import calibrate, execute, grade, shards_merge
from apbjudge.agents.environments.execution.benchmark import HostedEnvironment
from apbjudge.agents.environments.execution.execute import ExecutionRun
from apbjudge.agents.environments.execution.host import StoppedError
from tests.support.judging import write_rows

from .conftest import TOY
from .toy import TOOLS

Call = tuple[str, dict[str, Any]]
ADD, READ, FAIL = ("add", {"n": 2}), ("read", {}), ("fail", {})


def step(*calls: Call) -> dict[str, Any]:
    made = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
    return {"role": "assistant", "thought": "so", "tool_calls": made}


def prefix(*results: tuple[Call, str]) -> list[dict[str, Any]]:
    """Messages with a call each and its result."""
    messages: list[dict[str, Any]] = []
    for n, ((name, arguments), result) in enumerate(results):
        call = {"id": f"c{n}", "type": "function"}
        call["function"] = {"name": name, "arguments": json.dumps(arguments)}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": result})
    return messages


def row(predicted: Any, reference: Any = None, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "id": "five-step0",
        "case_id": "five",
        "planning_regime": "Step-wise",
        "prediction_horizon": 1,
        "query": "Bring the counter to 5.",
        "tools": TOOLS,
        "trajectory_prefix": [],
        "tested_model": "alder",
        "model_response": predicted if isinstance(predicted, str) else json.dumps(predicted),
        **fields,
    }
    return given if reference is None else given | {"ground_truth_steps": reference}


def carried_out(path: Path, *rows: dict[str, Any], **settings: Any) -> ExecutionRun:
    plans = write_rows(path / "steps.jsonl", rows)
    return execute(TOY, mode="steps", plans=plans, **settings)


COUNTED = prefix((("add", {"n": 3}), '{"list": [3], "count": 3}'))
LATER = [step(ADD), step(("add", {"n": "PREVIOUS_RESULT"}))]
RESULTS: list[tuple[Any, Any, str, bool | None]] = [
    ([step(ADD)], [step(ADD)], "same_state", True),
    ([step(("add", {"n": 1}), ("add", {"n": 1}))], [step(ADD)], "same_state", True),
    ([step(("add", {"n": 7}))], [step(ADD)], "other_state", True),
    ('{"status": "REJECT", "reason": "no"}', [step(ADD)], "other_state", True),
    ([step(("no_such_tool", {}))], [step(ADD)], "error", True),
    ([step(READ)], [step(READ)], "same_state", False),
    ([step(ADD)], None, "no_reference", None),
    ([step(FAIL)], None, "error", None),
]
UNKNOWN: dict[str, tuple[Any, Any, list[dict[str, Any]]]] = {
    "returned 'Error 503: unavailable'": (
        [step(ADD)],
        [step(ADD)],
        prefix((("add", {"n": 3}), "Error 503: unavailable")),
    ),
    "returned nothing": ([step(ADD)], [step(ADD)], COUNTED[:1]),
    "can't be read": ([step(ADD)], [step(ADD)], [{"role": "assistant", "content": 7}]),
    "the prediction: step 2: a value is described": (LATER, [step(ADD)], []),
    "the reference: step 2: a value is described": ([step(ADD)], LATER, []),
}


def test_predictions_are_carried_out_beside_their_references(tmp_path: Path) -> None:
    """Nothing is said where the prefix does not come about or a value is still to come."""
    rows = [
        row(predicted, reference, id=f"five-step{n}", trajectory_prefix=COUNTED)
        for n, (predicted, reference, *_) in enumerate(RESULTS)
    ]
    rows += [
        row(predicted, reference, id=reason, trajectory_prefix=before, prediction_horizon=2)
        for reason, (predicted, reference, before) in UNKNOWN.items()
    ]
    run = carried_out(tmp_path, *rows)
    assert run.steps is not None
    got = {each["id"]: each for each in run.steps}
    assert {each["task"] for each in got.values()} == {"five"}
    for n, (*_, expected, changes) in enumerate(RESULTS):
        of = got[f"five-step{n}"]
        assert (of["result"], of["reference_changes"]) == (expected, changes), RESULTS[n]
    for reason in UNKNOWN:
        of = got[reason]
        assert (of["result"], of["reference_changes"]) == ("not_executable", None)
        assert reason in of["detail"]


def test_labels_are_of_steps_whose_reference_changes_the_state(tmp_path: Path) -> None:
    rows = [
        row([step(ADD)], [step(ADD)]),
        row([step(READ)], [step(ADD)], id="five-step1"),
        row([step(FAIL)], [step(ADD)], id="five-step2"),
        row([step(READ)], [step(READ)], id="five-step3"),
        row([step(ADD)], id="five-step4"),
        row([step(("add", {"n": "<n>"}))], [step(ADD)], id="five-step5"),
        row([step(ADD)], [step(ADD)], id="three-step0", case_id="three", tested_model="birch"),
    ]
    run = carried_out(tmp_path, *rows, out=tmp_path / "run")
    parts = [
        carried_out(tmp_path, *rows, out=tmp_path / f"{i}", shard=f"{i}/2").folder for i in (1, 2)
    ]
    merged = shards_merge(parts, tmp_path / "merged")
    assert isinstance(merged, ExecutionRun)
    assert (merged.executed, merged.text) == (run.executed, run.text)
    labels = {label["item_id"]: (label["trial"], label["termination"]) for label in run.executed}
    assert labels == {
        "five-step0": (0, "same_state"),
        "five-step1": (1, "other_state"),
        "five-step2": (2, "error"),
        "three-step0": (0, "same_state"),
    }
    assert [label["is_correct"] for label in run.executed] == [True, False, False, True]
    assert run.steps is not None
    alder = run.steps.counts["alder"]
    assert alder.changing == {"same_state": 1, "other_state": 1, "error": 1}
    assert (alder.reading, alder.unknown) == (
        {"same_state": 1},
        {"no_reference": 1, "not_executable": 1},
    )
    judged = grade(tmp_path / "steps.jsonl", protocol="step-wise", out=tmp_path / "judged")
    (judge,) = calibrate(judged, tmp_path / "run/steps/executed.jsonl").judges
    assert (judge.n_labelled, judge.n_clusters) == (4, 2)


def test_bad_rows_are_named_and_the_others_carried_out(command: Any, tmp_path: Path) -> None:
    rows = [
        row([step(ADD)], [step(ADD)]),
        row([step(ADD)], [step(ADD)], id="seven-step0", case_id="seven"),
        row("{}", id="a-plan", planning_regime="Holistic", prediction_horizon=None),
    ]
    cases = write_rows(tmp_path / "cases.jsonl", rows)
    lean = ({f: each[f] for f in ("id", "tested_model", "model_response")} for each in rows)
    plans = write_rows(tmp_path / "plans.jsonl", lean)
    plans.write_text(plans.read_text() + "{torn\n")
    out = tmp_path / "run"
    args = ["--mode", "steps", "--plans", plans, "--cases", cases, "--out", out]
    for _ in range(2):
        done = command("execute", TOY, *args)
        assert done.code == 1
        assert re.search(r"alder +changes the state +1 +1 +0 +0\n", done.out)
        assert "expected a task of toy, got 'seven'" in done.err
        assert "field planning_regime: expected Step-wise" in done.err
        assert f"{plans}:4" in done.err
    assert not (out / "cases.jsonl").exists()
    assert len((out / "steps/failures.jsonl").read_text().splitlines()) == 3


def test_a_suite_that_breaks_is_no_failure_of_the_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(self: HostedEnvironment) -> None:
        raise StoppedError

    given, out = row([step(ADD)], [step(ADD)]), tmp_path / "run"
    with monkeypatch.context() as broken:
        broken.setattr(HostedEnvironment, "state", dies)
        run = carried_out(tmp_path, given, out=out)
    assert run.steps is not None
    assert (run.failed, run.executed) == (1, ())
    assert run.steps.counts["alder"].failed == {"infrastructure": 1}
    run = carried_out(tmp_path, given, out=out)
    assert (run.failed, len(run.executed)) == (0, 1)
