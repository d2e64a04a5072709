"""The examples on published tables: what they print, and that their numbers are what they claim.

``UPDATE_GOLDEN=1`` rewrites the golden files; read their difference before you commit it.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apbjudge
from apbjudge.records import HumanLabel, read_labels, resolve

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
Printed = Callable[[str], tuple[str, Path]]
Script = Callable[[str], Any]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """Runs an example once: what it prints, and the folder that it leaves."""
    done: dict[str, tuple[str, Path]] = {}

    def run(name: str) -> tuple[str, Path]:
        if name not in done:
            folder = tmp_path_factory.mktemp(name) / "runs"
            keep = () if name == "apb_claims" else ("--keep", str(folder))
            command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *keep]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stderr
            done[name] = ended.stdout, folder
        return done[name]

    return run


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    """A script as a module, as another script beside it sees it."""
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module
    sys.path.remove(str(EXAMPLES))
    for path in EXAMPLES.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.parametrize(
    "name",
    [
        "apb_claims",
        pytest.param("apb_execution", marks=pytest.mark.slow),
        pytest.param("apb_refinement", marks=pytest.mark.slow),
    ],
)
def test_the_answer_is_the_golden_one(name: str, printed: Printed) -> None:
    text, _ = printed(name)
    golden = ROOT / "tests" / "golden" / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


# Judges and humans: tables 7 and 9 ----------------------------------------------------------------


def test_the_items_of_table_7_give_its_counts_and_means(script: Script) -> None:
    apb = script("apb_tables")
    human = apb.HUMAN.correct
    for judge in apb.TABLE_7:
        for last in (False, True):
            said = apb.verdicts(judge, last=last).correct
            cells = np.bincount(said * 2 + human, minlength=4).tolist()
            assert cells == [307 - judge.fp, judge.fn, judge.fp, judge.tp]
            for heaped in (False, True):
                errors = apb.grade_errors(judge, heaped=heaped, last=last)
                shares = apb.same_flags(judge, heaped=heaped, last=last)
                assert f"{errors.mean():.3f} {100 * shares.mean():.2f}" == judge.printed[-11:]


def test_the_items_of_table_9_give_its_counts(script: Script) -> None:
    apb = script("apb_tables")
    for least, n_flips in ((True, 30), (False, 56)):
        judge, human = (
            said.correct.reshape(12, 60).astype(int) for said in apb.items_9(least=least)
        )
        assert judge.sum(axis=1).tolist() == [model.judge for model in apb.TABLE_9]
        assert human.sum(axis=1).tolist() == [model.human for model in apb.TABLE_9]
        assert np.count_nonzero(judge != human) == n_flips
        biases = apb.grade_biases(least=least).reshape(12, 60).mean(axis=1)
        expected = [float(model.printed.split()[-1]) for model in apb.TABLE_9]
        np.testing.assert_allclose(biases, expected, atol=0.0005)


def labels(name: str) -> list[HumanLabel]:
    return list(read_labels(EXAMPLES / "labels" / name, bad=pytest.fail))


def test_the_majority_of_three_raters_is_the_authors_word_wherever_there_is_one() -> None:
    author = resolve(labels("holistic.jsonl")).items
    together = resolve(labels("holistic_raters.csv")).items
    assert together.keys() == author.keys()
    told = {key: said for key, said in together.items() if said.is_correct is not None}
    assert len(together) - len(told) == 1  # one split, to show what becomes of it
    assert {key: said.is_correct for key, said in told.items()} == {
        key: author[key].is_correct for key in told
    }


# Execution: table 3 -------------------------------------------------------------------------------

EXECUTED = {
    "GPT-4o": ((76.3, 79.2, 83.3), (0.54, 0.56, 0.63)),
    "Qwen3-VL-235B": ((80.7, 79.1, 84.6), (0.47, 0.58, 0.61)),
    "Gemini 2.5 Flash": ((85.5, 86.0, 89.4), (0.57, 0.62, 0.69)),
}
"""As printed: ToolSandbox in percent, tau2."""


@pytest.mark.slow
def test_executions_have_the_printed_means(printed: Printed) -> None:
    _, folder = printed("apb_execution")
    for model, by_environment in EXECUTED.items():
        for environment, unit, means in zip(
            ("ToolSandbox", "tau2"), (100, 1), by_environment, strict=True
        ):
            for second, first in (("plan-first", "direct"), ("refine", "plan-first")):
                name = f"{environment} {model} {second} {first} apart.jsonl"
                (group,) = apbjudge.validate(folder / name).groups
                found = {of.mode: of.metrics["reward"].value for of in group.modes}
                for at, mode in enumerate(("direct", "plan-first", "refine")):
                    if mode in found:
                        assert found[mode] == pytest.approx(means[at] / unit)
                assert group.n_tasks == 200


# Refinement: table 4 ------------------------------------------------------------------------------

COUNTS = {
    "InternVL3.5-241B": ([33, 77, 90, 43, 64], [119, 108, 122, 109, 123]),
    "Qwen3VL-235B": ([44, 87, 93, 53, 65], [117, 111, 125, 101, 124]),
    "InternVL3.5-30B": ([14, 33, 63, 23, 54], [90, 65, 102, 77, 102]),
    "Qwen3VL-30B": ([26, 57, 72, 32, 52], [103, 101, 117, 86, 108]),
    "InternVL3.5-38B": ([42, 70, 80, 46, 47], [101, 100, 105, 102, 106]),
    "Qwen3VL-32B": ([47, 77, 85, 40, 57], [111, 111, 112, 95, 111]),
}
"""Of 150 cases, as they were counted from the paper: the base, then the methods."""
MEANS = {"Holistic": (21.7, 30.8, 3.4, 14.8), "Step-wise": (-5.0, 4.7, -7.9, 3.7)}


def test_the_counts_behind_the_printed_rates(script: Script) -> None:
    example = script("apb_refinement")
    for model, by_form in COUNTS.items():
        for form, expected in zip(example.FORMS, by_form, strict=True):
            assert example.counts(model, form) == expected
            shown = example.TABLE_4[model][example.FORMS.index(form)].split()
            assert [f"{100 * n / 150:.2f}" for n in expected] == shown


@pytest.mark.parametrize("apart", ["", " apart"])
@pytest.mark.slow
def test_graded_and_reported_predictions_have_the_printed_table(
    printed: Printed, script: Script, apart: str
) -> None:
    """Every rate and difference of Table 4 to its two digits, with either pairing."""
    _, folder = printed("apb_refinement")
    example = script("apb_refinement")
    refined = [(method, folder / f"{method}{apart}") for method in example.METHODS]
    report = apbjudge.report(folder / "base", refined=refined, tables=["refinement"])
    rows = {row.heads: row for row in report.tables[0].lines}
    assert len(rows) == 24
    for model, by_form in COUNTS.items():
        for form, counts in zip(example.FORMS, by_form, strict=True):
            for at, method in enumerate(example.METHODS, start=1):
                cells = rows[model, method].cells
                shown = [cells[form, key].estimate.value or 0.0 for key in ("Base", "Refined", "Δ")]
                differences = [counts[0], counts[at], counts[at] - counts[0]]
                assert [f"{100 * value:.2f}" for value in shown] == [
                    f"{100 * n / 150:.2f}" for n in differences
                ]
    assert report.problems == []


def test_the_means_over_six_models_are_those_of_the_paper(script: Script) -> None:
    example = script("apb_refinement")
    for form, expected in MEANS.items():
        for column, mean in enumerate(expected, start=1):
            best, worst = example.mean_difference(example.pairs_of(form, 0, column))
            for estimate in (best, worst):
                assert round(100 * estimate.value, 1) == mean
                assert (estimate.n_items, estimate.n_clusters) == (900, 150)
            assert worst.low <= best.low <= best.high <= worst.high
