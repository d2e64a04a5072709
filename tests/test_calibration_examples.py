"""The examples of calibration: what they print, and that their numbers are what they claim.

``UPDATE_GOLDEN=1`` rewrites the golden files; read their difference before you commit it.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.judge import Source, Task
from apbjudge.records import HumanLabel, read_labels, resolve

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
GOLDEN = ROOT / "tests" / "golden"
RATERS = EXAMPLES / "labels" / "holistic_raters.csv"


def printed(name: str, *arguments: str) -> str:
    """What an example script prints; it has to end well and without a warning."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def claims() -> str:
    return printed("apb_claims.py")


@pytest.fixture(scope="module")
def apb() -> Iterator[ModuleType]:
    yield from module("apb_tables")


def module(name: str) -> Iterator[ModuleType]:
    """A script as a module, as another script beside it sees it."""
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module(name)
    sys.path.remove(str(EXAMPLES))
    del sys.modules[name]


# The benchmark's tables --------------------------------------------------------------------------


def test_the_claims_are_the_golden_ones(claims: str) -> None:
    check_golden("apb_claims.txt", claims)


def test_the_items_of_table_7_give_its_counts_and_means(apb: ModuleType) -> None:
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


def test_errors_lie_where_a_grade_can_be_off(apb: ModuleType) -> None:
    """A plan that both pass has grade 1 from both; one that they differ on is off by a step."""
    for judge in apb.TABLE_7:
        for last in (False, True):
            said = apb.verdicts(judge, last=last).correct
            for heaped in (False, True):
                errors = apb.grade_errors(judge, heaped=heaped, last=last)
                assert not errors[(said == 1) & (apb.HUMAN.correct == 1)].any()
                assert errors[said != apb.HUMAN.correct].min() >= 0.2


def test_the_items_of_table_9_give_its_counts(apb: ModuleType) -> None:
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


@given(data=st.data(), n=st.integers(1, 60), most=st.integers(1, 6), heaped=st.booleans())
def test_a_sum_is_spread_whole_and_within_bounds(
    data: st.DataObject, n: int, most: int, heaped: bool, apb: ModuleType
) -> None:
    total = data.draw(st.integers(0, n * most), label="total")
    least = data.draw(st.integers(0, min(n, total)), label="least")
    result = apb.sizes(n, total, least=least, most=most, heaped=heaped)
    even = apb.sizes(n, total, least=least, most=most, heaped=False)
    assert result.sum() == total
    assert result.min() >= 0
    assert result.max() <= most
    assert least == 0 or result[:least].min() >= 1
    assert result.var() >= even.var() - 1e-12


# Three raters of the holistic example ------------------------------------------------------------


def labels(path: Path) -> list[HumanLabel]:
    complaints: list[str] = []
    result = list(read_labels(path, bad=complaints.append))
    assert complaints == []
    return result


def test_three_raters_labelled_the_items_of_the_example_and_contradict_themselves_nowhere() -> None:
    result = labels(RATERS)
    assert {label.rater for label in result} == {"ann", "ben", "cleo"}
    rows = list(Source(EXAMPLES / "holistic.jsonl"))
    tasks = {(t.item.item_id, t.item.tested_model): t for t in rows if isinstance(t, Task)}
    keys = [(label.item_id, label.tested_model) for label in result]
    assert set(keys) == set(tasks)
    assert len({(label.rater, *key) for label, key in zip(result, keys, strict=True)}) == len(
        result
    )
    for label, key in zip(result, keys, strict=True):
        assert label.contradiction is None
        flags = [code for code, is_set in (label.errors or {}).items() if is_set]
        assert label.grade in tasks[key].rubric.scale.allowed(flags)


def test_their_majority_is_the_authors_word_wherever_there_is_one() -> None:
    author = resolve(labels(EXAMPLES / "labels" / "holistic.jsonl")).items
    together = resolve(labels(RATERS)).items
    told = {key: said for key, said in together.items() if said.is_correct is not None}
    assert len(together) - len(told) == 1  # one split, to show what becomes of it
    assert {key: said.is_correct for key, said in told.items()} == {
        key: author[key].is_correct for key in told
    }
