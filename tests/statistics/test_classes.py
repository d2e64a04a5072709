"""A judge of classes against humans: PandaLM's printed figures, scikit-learn, laws, and no data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, precision_recall_fscore_support

from apbjudge.statistics.confusion import Nominal, nominal
from apbjudge.statistics.measures import calibrate
from apbjudge.statistics.sample import Sample

from .builders import ends, ratings

NAMES = ("tie", "first", "second")
MACRO = ("macro precision", "macro recall", "macro F1")

# PandaLM's 999 human-labelled pairs (arXiv:2306.05087): a judge's replies (tie, first, second,
# unusable) against the majority of three annotators (tie, first, second)
GPT_35 = ((5, 13, 20), (42, 332, 86), (45, 71, 360), (13, 6, 6))
PANDALM_7B = ((32, 40, 35), (35, 298, 100), (38, 84, 337), (0, 0, 0))


def answers(table: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """The items behind a table whose fourth row, if any, holds unusable replies."""
    counts = np.asarray(table)
    row, column = np.indices(counts.shape)
    judge = np.where(row == 3, -1, row)
    return np.repeat(judge, counts.ravel()), np.repeat(column, counts.ravel())


def of_table(table: Sequence[Sequence[int]], unscored: str = "exclude") -> Nominal:
    return nominal(*answers(table), NAMES, unscored=unscored)


def printed(result: Nominal, names: Sequence[str] = ("agreement", *MACRO)) -> list[str]:
    return [f"{100 * (result.measures[name].value or 0):.2f}" for name in names]


def value(result: Nominal, name: str) -> float | None:
    return result.measures[name].value


# PandaLM's README prints these for its test data; unusable replies were taken for ties.
def test_pandalm_s_printed_figures_come_out() -> None:
    assert printed(of_table(GPT_35, "tie")) == ["71.07", "58.79", "57.36", "57.55"]
    assert printed(of_table(PANDALM_7B, "tie")) == ["66.77", "57.38", "57.50", "57.43"]


def test_unusable_replies_have_a_say_in_three_ways() -> None:
    for unscored, n, figures in (
        ("exclude", 974, ["71.56", "53.31"]),
        ("wrong", 999, ["69.77", "52.74"]),
        ("tie", 999, ["71.07", "57.55"]),
    ):
        result = of_table(GPT_35, unscored)
        assert printed(result, ("agreement", "macro F1")) == figures
        assert result.measures["agreement"].n_items == n
        assert result.scored.value == pytest.approx(974 / 999)
        assert result.table is not None
        assert result.table.counts == GPT_35
        assert result.table.first == (*NAMES, "unscored")


CLASSES = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=1, max_size=60
).filter(lambda pairs: any(judge >= 0 for judge, _ in pairs))
FOUR = ("a", "b", "c", "d")


def split(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    judge, human = np.array(pairs, dtype=np.int64).T
    return judge, human


@given(CLASSES, st.sampled_from(["exclude", "wrong"]))
def test_scikit_learn_has_the_same_values(pairs: list[tuple[int, int]], unscored: str) -> None:
    judge, human = split(pairs)
    result = nominal(judge, human, FOUR, unscored=unscored)
    if unscored == "exclude":
        judge, human = judge[judge >= 0], human[judge >= 0]
    judge = np.where(judge < 0, 4, judge)  # else a class of their own
    occurring = sorted({*judge, *human} - {4})
    reference = precision_recall_fscore_support(
        human, judge, labels=occurring, average="macro", zero_division=0
    )
    assert value(result, "agreement") == pytest.approx(accuracy_score(human, judge))
    assert [value(result, name) for name in MACRO] == pytest.approx(reference[:3])
    kappa = value(result, "kappa")
    if kappa is None:
        assert len({*judge, *human}) == 1
    else:
        assert kappa == pytest.approx(cohen_kappa_score(judge, human), abs=1e-9)


def test_items_without_label_do_not_count() -> None:
    judge, human = answers(GPT_35)
    more = nominal(np.append(judge, [0, 1, -1]), np.append(human, [-1, -1, -1]), NAMES)
    assert more == nominal(judge, human, NAMES)


def test_two_classes_in_clusters_have_the_intervals_of_yes_and_no() -> None:
    rng = np.random.default_rng(3)
    human = rng.integers(0, 2, 90)
    judge = np.where(rng.random(90) < 0.8, human, 1 - human)
    sample = Sample(clusters=np.repeat(np.arange(30), 3))
    two = nominal(judge, human, ("no", "yes"), sample).measures
    same = calibrate(ratings(judge), ratings(human), sample).measures
    for name in ("agreement", "kappa", "AC1"):
        assert ends(two[name]) == pytest.approx(ends(same[name]), abs=1e-12), name


@pytest.mark.parametrize("unscored", ["exclude", "wrong", "tie"])
@pytest.mark.parametrize("judge", [[], [1], [2, 2, 2], [0, -1]])
def test_degenerate_items_give_a_value_or_a_reason(unscored: str, judge: list[int]) -> None:
    said = np.array(judge, dtype=np.int64)
    for human in (said, np.full(len(said), -1)):
        result = nominal(said, human, NAMES, unscored=unscored)
        for estimate in result.measures.values():
            assert None not in (estimate.value, estimate.low) or estimate.note
        json.dumps(asdict(result), allow_nan=False)


def test_what_is_no_class_or_no_way_is_refused() -> None:
    zero, three = np.array([0]), np.array([3])
    with pytest.raises(ValueError, match=r"judge: expected -1 to 2, got 3"):
        nominal(three, zero, NAMES)
    with pytest.raises(ValueError, match=r"human: expected -1 to 2, got 3"):
        nominal(zero, three, NAMES)
    with pytest.raises(ValueError, match=r"unscored: expected one of exclude, wrong, tie"):
        nominal(zero, zero, NAMES, unscored="bounds")
