"""A real ``mlflow.genai.evaluate`` into a local store; where MLflow is missing it is skipped."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "hosts"
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
    monkeypatch.syspath_prepend(EXAMPLE)
    example = import_module("mlflow_evaluate")
    evaluated: Any = example.evaluated(f"sqlite:///{tmp_path}/store.db")
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
