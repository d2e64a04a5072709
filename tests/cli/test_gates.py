"""Gates at the commands: outcomes, exit codes, files for CI, and the page about them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.reports.rows import verdict
from tests.support.judging import plan_row, write_rows

from .conftest import EXAMPLES, Command, example

ROOT = EXAMPLES.parent
PAGE = ROOT / "docs" / "gates.md"


def block(language: str) -> str:
    match = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    assert match
    return match[1]


def outcomes(folder: str) -> list[tuple[str, str, str]]:
    gates = json.loads(Path(folder, "summary.json").read_bytes())["gates"]
    return [(gate["condition"], gate["group"]["tested_model"], gate["outcome"]) for gate in gates]


def test_a_run_that_is_not_finished_fails_gates_and_is_said_so_everywhere(
    apbjudge: Command,
) -> None:
    for folder in ("run", "before"):
        assert apbjudge("grade", example("holistic"), "--out", folder).code == 0
    manifest = json.loads(Path("run/manifest.json").read_bytes())
    Path("run/manifest.json").write_text(json.dumps(manifest | {"state": "running"}))
    judgements = Path("run/judgements.jsonl")
    judgements.write_text("".join(judgements.read_text().splitlines(keepends=True)[:12]))
    said = "Run run is not finished: figures are of the 12 rows judged so far."
    labels = EXAMPLES / "labels" / "holistic.jsonl"
    gated = {
        "calibrate": ("run", labels, "--fail-under", "recall>=0.01"),
        "compare": ("before", "run", "--fail-on-regression", "--gate", "point"),
    }
    for command, arguments in gated.items():
        done = apbjudge(command, *arguments, "--junit", "junit.xml")
        assert (command, done.code, said in " ".join(done.out.split())) == (command, 3, True), done
        failure = ET.parse("junit.xml").find(".//testcase/failure")
        assert failure is not None
        assert said in failure.attrib["message"] + (failure.text or "")
        allowed = apbjudge(command, *arguments, "--allow-unfinished")
        assert (allowed.code, said in " ".join(allowed.out.split())) == (0, True)
    for form in ("text", "csv"):
        assert said in apbjudge("report", "run", "--format", form).err
    assert said in apbjudge("plan-labels", "run", "--n", "10").out.replace("\n", " ")


READS_RUNS = (
    "grade run; grade run/predictions.jsonl; refine run --mode static",
    "predict run/predictions.jsonl --model hosted_vllm/m@http://127.0.0.1:1; validate above",
    "label run/predictions.jsonl --out l.jsonl; check run/predictions.jsonl",
    "entropy run/trajectories.jsonl; audit static --rows run/predictions.jsonl; cascade run run",
    "execute bfcl --mode bound --plans run; convert run/trajectories.jsonl out.jsonl --to atif",
    "build run/trajectories.jsonl --split all --out built; prompt run/predictions.jsonl --id a",
)


@pytest.mark.parametrize("line", "; ".join(READS_RUNS).split("; "))
def test_every_other_command_says_of_a_run_that_it_is_not_finished(
    line: str, apbjudge: Command
) -> None:
    for folder, state in (("run", "paused"), ("other", "running"), ("above/direct", "running")):
        Path(folder).mkdir(parents=True)
        for name in ("predictions", "judgements", "trajectories", "executed"):
            Path(folder, f"{name}.jsonl").touch()
        Path(folder, "manifest.json").write_text(json.dumps({"state": state}))
    warned = [of for of in apbjudge(*line.split()).err.splitlines() if of.startswith("warning: ")]
    name = "direct" if "above" in line else "run"
    assert f"warning: run {name} is not finished: its rows so far count" in warned
    assert not any("other" in of for of in warned)


# grade --------------------------------------------------------------------------------------------


def test_a_failed_gate_ends_with_3_and_the_results_are_there(apbjudge: Command) -> None:
    done = apbjudge(
        *("grade", example("holistic"), "--out", "run"),
        *("--fail-under", "no-provable-fault=0.5", "--fail-under", "E4 <= 0.2"),
    )
    assert (done.code, done.err) == (3, "apbjudge: 1 of 6 gates failed\n")
    failed = next(line for line in done.out.splitlines() if line.startswith("failed "))
    assert failed.startswith("failed   holistic, cress-small  ")
    assert "gates failed\nno provable fault >= 0.5\noutcome  of" in done.out
    assert outcomes("run") == [
        ("no provable fault >= 0.5", "alder-large", "passed"),
        ("no provable fault >= 0.5", "birch-medium", "passed"),
        ("no provable fault >= 0.5", "cress-small", "failed"),
        ("E4 <= 0.2", "alder-large", "passed"),
        ("E4 <= 0.2", "birch-medium", "passed"),
        ("E4 <= 0.2", "cress-small", "passed"),
    ]


def test_a_condition_that_can_not_be_checked_ends_with_2(apbjudge: Command) -> None:
    for condition, text in {
        "Grace=0.8": "expected a measure among no provable fault, Grade, E1, E2-H, E3",
        "CR=0.8": "gives no CR: expected 'no provable fault>=0.8', an upper bound of it",
        "dahlia: E1=0.8": "expected a group among holistic, alder-large, birch-medium, cress",
        "E1=5": "E1: expected a limit from 0 to 1",
    }.items():
        done = apbjudge("grade", example("holistic"), "--fail-under", condition)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert done.err.startswith("apbjudge: --fail-under: ")
        assert text in done.err


def bad_rows(path: Path) -> Path:
    """A good row, and one that can't be read."""
    return write_rows(path, [plan_row("good"), {**plan_row("bad"), "tools": 3}])


@pytest.mark.parametrize(
    ("condition", "allowed", "code"),
    [("E1=0.5", "1", 0), ("E1=0.5", "0", 1), ("E1>=0.5", "1", 3), ("E1>=0.5", "0", 3)],
)
def test_unscored_rows_are_1_and_a_failed_gate_is_3_also_with_them(
    apbjudge: Command, tmp_path: Path, condition: str, allowed: str, code: int
) -> None:
    rows = bad_rows(tmp_path / "rows.jsonl")
    done = apbjudge(
        *("grade", rows, "--max-unscored", allowed, "--fail-under", condition),
        *("--junit", "ci/junit.xml"),
    )
    assert done.code == code
    root = ET.parse("ci/junit.xml").getroot()
    gates, rows_suite = root.findall("testsuite")
    counts = [gates.get(name) for name in ("tests", "failures", "errors")]
    assert counts == ["1", str(int(code == 3)), "0"]
    (case,) = rows_suite.findall("testcase")
    (reason,) = case
    assert (case.get("name"), reason.tag) == ("bad_input", "skipped" if allowed == "1" else "error")
    assert reason.get("message") == "1 row without a verdict: bad_input"
    assert "tools" in (reason.text or "")


def test_junit_has_a_case_for_each_gate_and_tested_model(apbjudge: Command, tmp_path: Path) -> None:
    models = ['a <b> & "c"', "bell\x07"]
    rows = [plan_row(f"row-{i}", tested_model=model) for i, model in enumerate(models)]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    apbjudge("grade", path, "--fail-under", "E1>=0.5", "--junit", "junit.xml")
    root = ET.parse("junit.xml").getroot()
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "2", "2")
    cases = root.findall("testsuite/testcase")
    names = {(case.get("name"), case.get("classname")) for case in cases}
    assert names == {("E1 >= 0.5", f"holistic, {of}") for of in ('a <b> & "c"', "bell\\x07")}
    for failure in root.iter("failure"):
        assert failure.get("message", "").startswith("failed: E1 >= 0.5: ≥ 0.000 [")


def test_a_page_for_ci_has_the_result_first_and_is_added_to_a_job_summary(
    apbjudge: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("grade", example("holistic"), "--fail-under", "E6=0.1", "--ci-summary", "ci.md")
    for _ in range(2):
        assert apbjudge(*command).code == 3
    page = Path("ci.md").read_text("utf-8")
    assert page.startswith("## 1 of 3 gates failed\n\n### ")
    assert page.index("| failed |") < page.index("| passed |") < page.index("## holistic")
    assert page.count("gates failed") == 1
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "ci.md"))
    apbjudge(*command)
    assert Path("ci.md").read_text("utf-8") == page + page


# calibrate and compare ----------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path: Path) -> None:
    """Forty items: of ``same`` as of ``before``, of ``worse`` four more are wrong."""
    for name, wrong in (("before", 8), ("same", 8), ("worse", 12)):
        (tmp_path / name).mkdir()
        rows = [verdict(f"item-{at:02}", "E1" * (at < wrong), judge=name) for at in range(40)]
        write_rows(tmp_path / name / "judgements.jsonl", rows)
    labels = [{"item_id": f"item-{at:02}", "is_correct": at >= 8} for at in range(40)]
    write_rows(tmp_path / "labels.jsonl", labels)


@pytest.mark.parametrize(
    ("after", "options", "code"),
    [
        ("same", "--margin 0.1", 0),
        ("same", "--margin 0.02", 3),  # forty items can't exclude a regression of 0.02
        ("same", "--margin 0.02 --gate point", 0),
        ("worse", "--margin 0.09 --gate point", 3),
        ("worse", "--margin 0.11 --gate point", 0),
        ("worse", "--margin 0.11 --gate point --primary E1,CR", 0),
    ],
)
@pytest.mark.usefixtures("runs")
def test_a_regression_beyond_the_margin_fails(
    apbjudge: Command, after: str, options: str, code: int
) -> None:
    command = ("compare", "before", after, "--fail-on-regression", *options.split())
    done = apbjudge(*command)
    assert done.code == code, done.out
    shown = json.loads(apbjudge(*command, "--format", "json").out)["gates"]
    assert [gate["condition"].split()[0] for gate in shown] == (
        ["CR"] if "primary" not in options else ["CR", "E1"] if "," in options else ["E1"]
    )
    if after == "worse":
        assert shown[0]["estimate"]["value"] == pytest.approx(0.1)


@pytest.mark.usefixtures("runs")
def test_a_judge_has_to_be_good_enough(apbjudge: Command) -> None:
    """Of 32 correct items the judge sees 28, and no other: recall 0.875, F1 0.933."""
    for options, code in (("F1=0.9", 0), ("F1=0.9 --gate low", 3), ("recall=0.9", 3), ("F2=0", 2)):
        done = apbjudge("calibrate", "worse", "labels.jsonl", "--fail-under", *options.split())
        assert done.code == code, done.out


# Python and the page ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_has_a_test_that_fails_readably_in_a_pytest_suite(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "test_plans.py").write_text(block("py"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_plans.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "GateError: 1 of 4 gates failed, judge static" in done.stdout
    assert "failed: no provable fault >= 0.6: ≤ 0.333 [0.091, 0.646] /9" in done.stdout
