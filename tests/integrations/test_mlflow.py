"""A real ``mlflow.genai.evaluate`` into a local store; where MLflow is missing it is skipped."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.test_judging import CALL, QUERY, RIGHT, TOOL, WRONG

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed"),
    pytest.mark.filterwarnings("default"),  # MLflow and what it imports warn of their own
]


def test_mlflow_evaluate_takes_verdict_reason_and_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    monkeypatch.chdir(tmp_path)
    import mlflow

    from apbjudge.integrations.mlflow import plan_scorer

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/store.db")
    mlflow.set_experiment("plans")
    data = [
        {
            "inputs": {"query": QUERY, "tools": tools},
            "outputs": reply,
            "expectations": {"tool_chain": [CALL]},
        }
        for reply, tools in ((RIGHT, [TOOL]), (WRONG, [TOOL]), (RIGHT, 3))
    ]
    evaluated: Any = mlflow.genai.evaluate(data=data, scorers=[plan_scorer(protocol="holistic")])
    assert evaluated.metrics["apbjudge/mean"] == 0.5  # of those that were judged
    feedback = [
        each
        for row in evaluated.result_df["assessments"]
        for each in row
        if each["assessment_name"] == "apbjudge"
    ]
    by_codes = {each["metadata"].get("codes"): each for each in feedback}
    assert by_codes[""]["feedback"]["value"] == 1.0
    assert by_codes["E6"]["feedback"]["value"] == 0.0
    assert "find_plane" in by_codes["E6"]["rationale"]
    assert by_codes["E6"]["source"]["source_id"] == "apbjudge/static"
    assert by_codes[None]["feedback"]["value"] is None
    assert "bad_input" in by_codes[None]["feedback"]["error"]["error_message"]
