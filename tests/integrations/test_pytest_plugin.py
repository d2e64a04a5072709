"""The plug-in of pytest, in test runs of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import apbjudge
from apbjudge.integrations.pytest_plugin import settings_of
from tests.support.judging import RIGHT, plan_row
from tests.support.server import Answer, ChatServer

SUITE = Path(__file__).parents[2] / "examples" / "pytest_suite"
ROWS = [plan_row(f"p{n}") for n in range(4)]
TESTS = f"""
import pytest
ROWS = {ROWS!r}

@pytest.mark.apbjudge("CR >= 0.9")
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_plans(judged, row):
    judged(row).check("CR >= 1")
"""


def _pytest(folder: Path, *arguments: str, tests: str = "", ini: str = "") -> tuple[int, str]:
    """Exit code and output of a test run in a folder; ``ini`` has lines of the option."""
    if tests:
        (folder / "test_it.py").write_text(tests, encoding="utf-8")
        lines = "".join(f"    {line}\n" for line in ini.splitlines())
        (folder / "pytest.ini").write_text(f"[pytest]\napbjudge =\n{lines}", encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**own, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_a_session_makes_one_run_of_a_record_a_row(tmp_path: Path, workers: str) -> None:
    code, out = _pytest(tmp_path, str(SUITE), "-n", workers)
    assert code == 0, out
    assert "5 passed" in out
    assert "judge static: 4 rows, 4 scored" in out
    gate = "passed: no provable fault >= 0.7: ≤ 0.750 [0.204, 0.987] /4 (test_plans.py::test_most_"
    assert gate in out
    run = tmp_path / "runs" / "pytest"
    lines = (run / "judgements.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [json.loads(line)["item_id"] for line in lines]
    assert ids == ["classes", "meeting", "refund", "train"]  # in whatever order they ended
    gates = json.loads((run / "summary.json").read_text(encoding="utf-8"))["gates"]
    assert [gate["outcome"] for gate in gates] == ["passed", "passed"]
    assert apbjudge.report(run).judges


@pytest.mark.slow
def test_workers_ask_a_model_once_a_row(tmp_path: Path) -> None:
    right = Answer(RIGHT)
    with ChatServer(lambda seen: right) as server:
        ini = f"judge=hosted_vllm/m\napi_base={server.address}\ngate=low"
        code, out = _pytest(tmp_path, "-n", "2", tests=TESTS, ini=ini)
        assert len(server.requests) == 4
    assert (code, "4 passed" in out) == (1, True), out  # the low end of 4 of 4 is below 0.9
    assert "failed: CR >= 0.9 at the low end: 1.000 [" in out
    assert "1 of 1 gates failed" in out


FAILING = """
import pytest
GOOD, BAD = {good!r}, {bad!r}  # rows; a row

@pytest.mark.apbjudge("no provable fault >= 0.8")
def test_many(judged):
    judged([BAD, *GOOD])

def test_one(judged):
    judged(BAD).check("no provable fault >= 0.8")

@pytest.mark.apbjudge("no provable fault >= 0.8")
def test_that_judges_nothing(): pass

@pytest.mark.apbjudge("no provable fault >= 0.8")
def test_that_is_skipped(): pytest.skip("not here")

@pytest.mark.apbjudge("no good")
def test_with_a_condition_that_is_none(judged): pass

def test_of_a_row_that_is_none(judged):
    run = judged([GOOD[0], {{**GOOD[0], "id": "x", "query": 1}}])
    assert run.summary.totals.unscored == {{"bad_input": 1}}
"""


@pytest.mark.slow
def test_conditions_that_are_not_met_fail_the_session_and_say_why(tmp_path: Path) -> None:
    bad: dict[str, Any] = {**ROWS[0], "model_response": '[{"tool": "none_such", "args": {}}]'}
    code, out = _pytest(tmp_path, "-n", "0", tests=FAILING.format(good=ROWS[1:], bad=bad))
    assert code == 1, out
    assert "1 failed, 3 passed, 1 skipped, 1 error" in out
    assert "GateError: 1 of 1 gates failed, judge static" in out
    where = "(test_it.py::test_many, holistic, planner)"
    inside = "not clear: the limit is within the interval"
    assert f"failed: no provable fault >= 0.8: ≤ 0.750 [0.204, 0.987] /4 {where}: {inside}" in out
    assert (
        "missing: no provable fault >= 0.8 (test_it.py::test_that_judges_nothing): no rows" in out
    )
    assert "got 'no good'" in out
    assert "test_that_is_skipped" not in out
    assert "of the rows are unscored; 0.00% are allowed" in out


@pytest.mark.parametrize(
    ("ini", "complaint"),
    [
        ("max_cost=5", "apbjudge: max_cost: expected no limit of a whole run"),
        ("gate=high", "gate: expected point or low, got 'high'"),
        ("max_unscored=all", "max_unscored: expected a share"),
        ("static", "expected lines such as judge=static, got 'static'"),
        ("juge=static", "expected one of "),
    ],
)
def test_an_unusable_option_is_an_error_of_the_test(ini: str, complaint: str) -> None:
    config: Any = SimpleNamespace(
        getini=lambda name: [ini], invocation_params=SimpleNamespace(dir=Path())
    )
    with pytest.raises(apbjudge.OptionError, match=complaint):
        apbjudge.grade(ROWS, **settings_of(config).options)


def test_a_test_run_that_does_not_use_it_loads_nothing() -> None:
    text = (
        "import sys, pytest; before = set(sys.modules); import apbjudge.integrations.pytest_plugin;"
        "print(*sorted(n for n in set(sys.modules) - before if n.startswith('apbjudge')));"
        "print({'numpy', 'pydantic', 'orjson', 'pandas', 'litellm'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    ours = "apbjudge apbjudge.integrations apbjudge.integrations.pytest_plugin apbjudge.version"
    assert out.stdout.splitlines() == [ours, "set()"]


@pytest.mark.slow
def test_a_suite_may_have_folders_with_conftests_of_their_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "conftest.py").write_text("def pytest_runtest_setup(item): ...", "utf-8")
        (folder / f"test_{name}.py").write_text("def test_it(): ...", "utf-8")
    code, out = _pytest(tmp_path, "-n", "0", "one", "two")
    assert (code, "2 passed" in out) == (0, True), out
