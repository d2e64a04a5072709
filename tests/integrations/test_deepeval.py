"""A real ``deepeval test run``; where DeepEval is not installed it is skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import copy

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("deepeval") is None, reason="deepeval is not installed"),
]
EXAMPLE = Path(__file__).parents[2] / "examples" / "hosts"


def test_deepeval_test_run_takes_verdict_reason_and_codes(tmp_path: Path) -> None:
    for name in ("plans.py", "test_deepeval.py"):
        copy(EXAMPLE / name, tmp_path)
    environment = {
        "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
        "DEEPEVAL_DISABLE_DOTENV": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["deepeval", "test", "run", "test_deepeval.py"],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        text=True,
        timeout=200,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    latest = json.loads((tmp_path / ".deepeval" / ".latest_test_run.json").read_text())
    by_name = {case["name"]: case["metricsData"][0] for case in latest["testRunData"]["testCases"]}
    passed = [metric["success"] for name, metric in by_name.items() if "nobody" not in name]
    assert sorted(passed) == [False] * 3 + [True] * 3
    for metric in by_name.values():
        if metric.get("score") == 0.0:
            assert "find_plane" in metric["reason"]
            assert "codes: E6" in metric["verboseLogs"]
    unscored = next(metric for name, metric in by_name.items() if "nobody" in name)
    assert unscored["error"].startswith("not judged, bad_input")
    assert unscored.get("score") is None
