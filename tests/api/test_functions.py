"""Every command has its function: options by name, results that print, and go into each other."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

import apbjudge
from apbjudge.cli.main import COMMANDS, command_of
from apbjudge.config import option_of
from apbjudge.document.display import LONGEST
from tests.support.signatures import FILE, stub

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS, CASES = EXAMPLES / "holistic.jsonl", EXAMPLES / "cases.jsonl"
LABELS = EXAMPLES / "labels" / "holistic.jsonl"
SUITE = EXAMPLES / "own_benchmarks" / "storeroom.py"
NAMES = {"rubric list": "rubric_names", "rubric show": "load_rubric"}
"""Functions that are not named like their command."""
OUTPUT = set(
    "format no_intervals figures fail_under fail_on gate fail_on_regression margin junit "
    "ci_summary allow_unfinished max_unscored dry_run grace open compare".split()
)
"""Options about what is printed and about exit codes."""
WATCHED = apbjudge.Events(progress=lambda progress: None, bad_row=lambda message: None)
FILES = {
    "report": {"out", "leaderboard"},
    "check": {"out", "format"},
    "validate": {"out"},
    "scale": {"part"},
}
"""Files for what is printed, and the part that a job alone runs."""


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_a_function_that_takes_its_options(path: str) -> None:
    name = NAMES.get(path, path.replace("-", "_").replace(" ", "_"))
    function: Callable[..., Any] = getattr(apbjudge, name)
    taken = inspect.signature(function).parameters
    fields = command_of(path).fields
    options = {n for n, field in fields.items() if not option_of(field).is_argument}
    assert options - OUTPUT - FILES.get(path, set()) - taken.keys() == set()


def test_the_signatures_for_editors_are_made_from_the_fields() -> None:
    """``python -m tests.support.signatures`` writes them."""
    written = ast.parse(FILE.read_text(encoding="utf-8"))
    assert _dumped(ast.parse(stub())) == _dumped(written)


def _dumped(tree: ast.Module) -> list[str]:
    """Imports in any order, docstrings without their indentation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = " ".join(node.value.split())
    return sorted(ast.dump(node) for node in tree.body)


@pytest.fixture(scope="module")
def run() -> apbjudge.Run:
    return apbjudge.grade(ROWS, protocol="holistic")


@pytest.fixture(scope="module")
def executed() -> Any:
    return apbjudge.execute(str(SUITE), mode=("gold", "null"))


RESULTS: dict[str, Callable[[Any, Any, Path], Any]] = {
    "grade": lambda run, executed, out: run,
    "compare": lambda run, executed, out: apbjudge.compare(
        run, run, tested_models=("alder-large", "birch-medium")
    ),
    "report": lambda run, executed, out: apbjudge.report(run, labels=LABELS),
    "doctor": lambda run, executed, out: apbjudge.doctor(ROWS)[0],
    "calibrate": lambda run, executed, out: apbjudge.calibrate(run, LABELS),
    "audit": lambda run, executed, out: apbjudge.audit("static", quick=True, bases=4),
    "plan-labels": lambda run, executed, out: apbjudge.plan_labels(run, n=20, by="none"),
    "predict": lambda run, executed, out: apbjudge.predict(CASES, model="a/b", client=_client()),
    "execute": lambda run, executed, out: executed,
    "check": lambda run, executed, out: apbjudge.check(CASES, data_root=EXAMPLES),
    "cascade": lambda run, executed, out: apbjudge.cascade(run, run, labels=LABELS),
    "shards split": lambda run, executed, out: apbjudge.shards_split(ROWS, out=out, parts=2),
}


def _client() -> apbjudge.ScriptedClient:
    return apbjudge.ScriptedClient(lambda request: "no plan")


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_prints_in_forty_lines(name: str, run: Any, executed: Any, tmp_path: Path) -> None:
    result = RESULTS[name](run, executed, tmp_path)
    text = str(result)
    assert 0 < len(text.splitlines()) <= LONGEST
    assert "object at 0x" not in text
    if hasattr(result, "text"):
        assert repr(result) == text
        html = result._repr_html_()
        assert html.startswith("<")
        assert "<script" not in html


def test_rows_may_be_a_frame_or_dicts_wherever_they_are_read(run: apbjudge.Run) -> None:
    rows = pandas.read_json(ROWS, lines=True, dtype=False)
    labels = pandas.read_json(LABELS, lines=True, dtype=False)
    again = apbjudge.grade(rows, protocol="holistic")
    assert again.summary.totals == run.summary.totals
    expected = apbjudge.calibrate(run, LABELS).judges
    assert apbjudge.calibrate(again, labels).judges[0].whole == expected[0].whole
    in_memory = [judgement.model_dump(mode="json") for judgement in run.judgements]
    assert len(apbjudge.frame(apbjudge.grade(rows))) == len(in_memory)


def test_a_run_that_scores_nothing_says_why() -> None:
    rows = [{"id": name, "query": 3, "model_response": "y"} for name in "ab"]
    with pytest.warns(UserWarning, match=r"no row has a verdict: 2 bad_input \(last: row:2: "):
        run = apbjudge.grade(rows)
    assert "unscored: 2 bad_input" in str(run)


def test_options_count_more_than_the_configuration_that_they_come_with() -> None:
    config = apbjudge.GradeConfig(protocol="holistic", judge="a/b")  # type: ignore[arg-type]
    client = apbjudge.ScriptedClient(lambda request: "{}")
    run = apbjudge.grade(ROWS, config, temperature=0.5, client=client, events=WATCHED)
    assert run.manifest["settings"]["temperature"] == 0.5
    assert run.manifest["identity"]["protocol"] == "holistic"


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: apbjudge.grade(ROWS, temprature=1), "did you mean temperature"),
        (lambda: apbjudge.grade(ROWS, panel="all"), "--panel: expected one of majority"),
        (lambda: apbjudge.grade(ROWS, judge=5), "--judge: expected a model's name"),
        (lambda: apbjudge.predict(CASES), "--model: expected a litellm model name"),
        (lambda: apbjudge.grade(ROWS, config="x"), "config: expected a GradeConfig"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(call: Callable[[], Any], complaint: str) -> None:
    with pytest.raises(apbjudge.OptionError, match=complaint):
        call()
