"""A real ``deepeval test run``; where DeepEval is not installed it is skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("deepeval") is None, reason="deepeval is not installed"),
]
TESTS = """
import pytest
from deepeval import assert_test
from deepeval.test_case import LLMTestCase, ToolCall
from apbjudge.integrations.deepeval import PlanMetric
from tests.integrations.test_judging import QUERY, RIGHT, TOOL, WRONG

METRIC = PlanMetric(protocol="holistic")


def case(reply, tools=(TOOL,), **more):
    return LLMTestCase(input=QUERY, actual_output=reply, metadata={"tools": tools}, **more)


@pytest.mark.parametrize("run_async", [True, False])
@pytest.mark.parametrize("reply", [RIGHT, WRONG])
def test_reply(reply, run_async):
    assert_test(case(reply), [METRIC], run_async=run_async)


@pytest.mark.parametrize("name", ["find_train", "find_plane"])
def test_calls(name):
    called, expected = (
        [ToolCall(name=of, input_parameters={"city": "Porto"})] for of in (name, "find_train")
    )
    metric = PlanMetric(response="tools_called", protocol="holistic")
    assert_test(case("done", tools_called=called, expected_tools=expected), [metric])


def test_unscored():
    assert_test(case(RIGHT, tools=3), [METRIC])
"""


def test_deepeval_test_run_takes_verdict_reason_and_codes(tmp_path: Path) -> None:
    (tmp_path / "test_plans.py").write_text(TESTS)
    environment = {
        "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
        "DEEPEVAL_DISABLE_DOTENV": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["deepeval", "test", "run", "test_plans.py"],
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
    passed = [metric["success"] for name, metric in by_name.items() if "unscored" not in name]
    assert sorted(passed) == [False] * 3 + [True] * 3
    for metric in by_name.values():
        if metric.get("score") == 0.0:
            assert "find_plane" in metric["reason"]
            assert "codes: E6" in metric["verboseLogs"]
    unscored = next(metric for name, metric in by_name.items() if "unscored" in name)
    assert unscored["error"].startswith("not judged, bad_input")
    assert unscored.get("score") is None
