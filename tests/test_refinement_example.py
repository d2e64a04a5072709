"""The example on the published table about refinement: its digits, its bounds, its verdicts.

``UPDATE_GOLDEN=1`` rewrites the golden file; read its difference before you commit it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import apbjudge
from apbjudge.statistics import mcnemar

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "apb_refinement.txt"
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


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "examples"))
    yield importlib.import_module("apb_refinement")
    sys.path.remove(str(ROOT / "examples"))
    del sys.modules["apb_refinement"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the example prints, and the folder that it leaves."""
    folder = tmp_path_factory.mktemp("example") / "runs"
    script = str(ROOT / "examples" / "apb_refinement.py")
    command = [sys.executable, "-W", "error", script, "--keep", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, folder


@pytest.mark.slow
def test_the_answer_is_the_golden_one(runs: tuple[str, Path]) -> None:
    text, _ = runs
    if os.environ.get("UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 75  # a page
    assert max(map(len, text.splitlines())) <= 113


def test_the_counts_behind_the_printed_rates(example: ModuleType) -> None:
    for model, by_form in COUNTS.items():
        for form, expected in zip(example.FORMS, by_form, strict=True):
            assert example.counts(model, form) == expected
            printed = example.TABLE_4[model][example.FORMS.index(form)].split()
            assert [f"{100 * n / 150:.2f}" for n in expected] == printed


@pytest.mark.parametrize("apart", ["", " apart"])
@pytest.mark.slow
def test_graded_and_reported_predictions_have_the_printed_table(
    runs: tuple[str, Path], example: ModuleType, apart: str
) -> None:
    """Every rate and difference of Table 4 to its two digits, with either pairing."""
    _, folder = runs
    refined = [(method, folder / f"{method}{apart}") for method in example.METHODS]
    report = apbjudge.report(folder / "base", refined=refined, tables=["refinement"])
    rows = {row.heads: row for row in report.tables[0].rows}
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


def test_the_transitions_are_those_of_the_pairing(
    runs: tuple[str, Path], example: ModuleType
) -> None:
    _, folder = runs
    for apart, at in (("", 0), (" apart", 1)):
        refined = [("Critic_R-", folder / f"Critic_R-{apart}")]
        names = ["refinement-changes"]
        (table,) = apbjudge.report(folder / "base", refined=refined, tables=names).tables
        for row in table.rows:
            for form, counts in zip(example.FORMS, COUNTS[row.heads[0]], strict=True):
                fixed, spoiled = (
                    row.cells[form, key].estimate.value for key in ("Fixed", "Spoiled")
                )
                assert (fixed, spoiled) == example.pairings(counts[0], counts[4])[at]


def test_the_means_over_six_models_are_those_of_the_paper(example: ModuleType) -> None:
    for form, expected in MEANS.items():
        for column, mean in enumerate(expected, start=1):
            best, worst = example.mean_difference(example.pairs_of(form, 0, column))
            for estimate in (best, worst):
                assert round(100 * estimate.value, 1) == mean
                assert estimate.n_items == 900
                assert estimate.n_clusters == 150
            assert worst.low <= best.low <= best.high <= worst.high


@given(first=st.integers(0, 150), second=st.integers(0, 150))
def test_no_pairing_is_more_or_less_sure_than_the_two(
    first: int, second: int, example: ModuleType
) -> None:
    """Every number that both have right is compatible with the rates; p grows as it falls."""
    few, many = example.pairings(first, second)
    assert min(*few, *many) >= 0
    possible = range(max(0, first + second - 150), min(first, second) + 1)
    pairings = [(second - both, first - both) for both in possible]
    assert {few, many} == {pairings[-1], pairings[0]}
    p_values = [mcnemar(lost, gained).p_mid for gained, lost in pairings]
    assert all(a >= b - 1e-12 for a, b in pairwise(p_values))


@given(
    pairs=st.lists(st.tuples(st.integers(0, 150), st.integers(0, 150)), min_size=1, max_size=6),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_mean_is_as_sure_and_as_unsure_as_any_arrangement(
    pairs: list[tuple[int, int]], seed: int, example: ModuleType
) -> None:
    """Cases and pairings at random give an interval between the two."""
    best, worst = example.mean_difference(pairs)
    rng = np.random.default_rng(seed)
    rows = np.zeros((len(pairs), 150))
    for at, (first, second) in enumerate(pairs):
        before, after = (rng.permutation(np.arange(150) < n) for n in (first, second))
        rows[at] = after.astype(float) - before
    cases = apbjudge.statistics.Sample(clusters=np.tile(np.arange(150), len(pairs)))
    any_one = apbjudge.statistics.paired_test(rows.ravel(), cases).estimate
    assert any_one.value == pytest.approx(best.value)
    assert any_one.value == pytest.approx(worst.value)
    least, some, most = (of.high - of.low for of in (best, any_one, worst))
    assert least - 1e-12 <= some <= most + 1e-12


@pytest.mark.slow
def test_the_refined_predictions_state_how_they_were_made(runs: tuple[str, Path]) -> None:
    _, folder = runs
    first = json.loads((folder / "Critic_R+.jsonl").read_text(encoding="utf-8").partition("\n")[0])
    assert (first["mode"], first["guide"], first["is_oracle"]) == ("critic", "codes", False)
    refined = [("Critic_R+", folder / "Critic_R+")]
    (table,) = apbjudge.report(folder / "base", refined=refined, tables=["refinement"]).tables
    assert "Critic_R+: mode critic, guide codes, critic Claude Sonnet 4.5" in table.notes
    assert any("Claude Sonnet 4.5 is right itself is not known" in note for note in table.notes)
