"""Intervals hold the true value as often as they say; docs/coverage.md has the long version.

Bounds are wide enough for the number of replications (three standard errors), and narrow enough
that the intervals beside them, which are known to be too narrow, fall out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.stats import binom

from apbjudge.statistics import Estimate
from apbjudge.statistics.agreement import (
    cohen_kappa,
    coincidences_of_table,
    gwet_ac,
    krippendorff_alpha,
    phi,
)
from apbjudge.statistics.coded import CodedItems
from apbjudge.statistics.estimates import Array, Ids
from apbjudge.statistics.measures import calibrate, grade_prior
from apbjudge.statistics.proportions import bounded
from apbjudge.statistics.sample import METHODS, IntervalSettings, Method, Sample, Strata
from tests.statistics.builders import ends, ratings, square

LEVELS = np.linspace(0, 1, 6)


def held(result: Iterator[Estimate], truth: float) -> float:
    """Share of intervals that hold the truth; each has to have one."""
    return float(np.mean([low <= truth <= high for low, high in map(ends, result)]))


def of_cases(rng: np.random.Generator, sizes: list[int], p: float) -> tuple[Array, Ids]:
    """Yes or no with a chance that differs between cases, an intraclass correlation of 0.2."""
    cases = np.repeat(np.arange(len(sizes)), sizes)
    chance = rng.beta(4 * p, 4 - 4 * p, len(sizes))
    return (rng.random(len(cases)) < chance[cases]).astype(float), cases


@pytest.mark.parametrize(
    ("sizes", "p"),
    [([12] * 60, 0.5), ([12] * 60, 0.95), ([8] * 15, 0.5), ([1, 4, 10, 20] * 10, 0.5)],
    ids=["60 of 12", "60 of 12, rare", "15 of 8", "uneven"],
)
def test_rates_by_case_are_covered_while_rows_taken_for_independent_are_not(
    sizes: list[int], p: float
) -> None:
    rng = np.random.default_rng(20)
    drawn = [of_cases(rng, sizes, p) for _ in range(500)]
    by_case = held((bounded(yes, Sample(clusters=cases)) for yes, cases in drawn), p)
    by_row = held((bounded(yes, Sample()) for yes, _ in drawn), p)
    assert 0.92 <= by_case <= 0.98
    assert by_row < 0.88


@pytest.mark.parametrize(("n", "p"), [(30, 0.5), (100, 0.1), (300, 0.02)])
def test_means_of_grades_are_covered(n: int, p: float) -> None:
    """Steps between two grades, most of them 0: skewed towards the bound."""
    rng = np.random.default_rng(23)
    off = rng.binomial(5, p / 2, (600, n)) / 5
    assert 0.92 <= held((bounded(rows, Sample()) for rows in off), p / 2) <= 0.985


SENSITIVITY, SPECIFICITY = 0.9, 0.8


def cells(p: float) -> Array:
    se, sp = SENSITIVITY, SPECIFICITY
    return np.array([(1 - p) * sp, p * (1 - se), (1 - p) * (1 - sp), p * se])


@pytest.mark.slow
@pytest.mark.parametrize("measure", [cohen_kappa, phi, gwet_ac])
@pytest.mark.parametrize("method", METHODS)
def test_coefficients_are_covered(measure: Callable[[Array], Array], method: Method) -> None:
    rng = np.random.default_rng(24)
    of, truth = square(measure), float(square(measure)(cells(0.5)))
    settings = IntervalSettings(method=method, n_resamples=400)
    reps = 600 if method == "jackknife" else 300
    codes = [rng.choice(4, 100, p=cells(0.5)) for _ in range(reps)]
    result = held((CodedItems(c, 4, Sample()).measure(of, settings) for c in codes), truth)
    assert 0.92 <= result <= 0.985 if method == "jackknife" else 0.90 <= result <= 0.985


# Under a label plan -------------------------------------------------------------------------------


def planned(
    rng: np.random.Generator, p: float, n: int, n_rows: int, n_cases: int
) -> tuple[Ids, Ids, Sample]:
    """Verdicts and labels of n rows of a run, half of them drawn from each verdict."""
    clusters = np.arange(n_rows) % n_cases
    rate = rng.beta(4 * p, 4 - 4 * p, n_cases)[clusters] if n_cases < n_rows else p
    human = rng.random(n_rows) < rate
    right = rng.random(n_rows) < np.where(human, SENSITIVITY, SPECIFICITY)
    judge = (human == right).astype(np.int64)
    rows = np.concatenate([rng.permutation(np.flatnonzero(judge == v))[: n // 2] for v in (0, 1)])
    sizes, drawn = np.bincount(judge), np.bincount(judge[rows])
    sample = Sample(
        clusters=clusters[rows],
        weights=(sizes / drawn)[judge[rows]],
        strata=judge[rows],
        design=Strata.counted(judge[rows], judge, clusters),
    )
    return judge[rows], human[rows].astype(np.int64), sample


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "n", "n_rows", "n_cases"), [(0.9, 200, 750, 750), (0.7, 200, 1000, 60)]
)
def test_measures_under_a_label_plan_are_covered(
    p: float, n: int, n_rows: int, n_cases: int
) -> None:
    _, fn, fp, tp = cells(p)
    truths = {"recall": SENSITIVITY, "F1": 2 * tp / (2 * tp + fp + fn), "human CR": p}
    hits: dict[str, list[bool]] = {name: [] for name in truths}
    rng, settings = np.random.default_rng(26), IntervalSettings(n_resamples=300)
    for _ in range(300):
        judge, human, sample = planned(rng, p, n, n_rows, n_cases)
        measures = calibrate(ratings(judge), ratings(human), sample, settings=settings).measures
        for name, truth in truths.items():
            low, high = ends(measures[name])
            hits[name].append(low <= truth <= high)
    for name, of in hits.items():
        assert 0.92 <= np.mean(of) <= 0.995, name


# Rare classes -------------------------------------------------------------------------------------


def graded(p: float, se: float, sp: float) -> Array:
    """Shares of the 36 cells, rows the judge: the best grade is that of correct plans alone."""
    table = np.zeros((6, 6))
    table[5, 5] = p * se
    table[:5, 5] = p * (1 - se) * binom.pmf(np.arange(5), 4, 0.7)
    for grade, share_of in enumerate((1 - p) * binom.pmf(np.arange(5), 4, 0.5)):
        table[5, grade] = share_of * (1 - sp)
        table[grade, grade] += share_of * sp * 0.6
        for step in (-1, 1):
            table[min(4, max(0, grade + step)), grade] += share_of * sp * 0.2
    return table.ravel()


@pytest.mark.slow
@pytest.mark.parametrize("sensitivity", [0.9, 0.7])
def test_ordinal_alpha_of_a_rare_class_is_covered_and_by_the_jackknife_it_is_not(
    sensitivity: float,
) -> None:
    shares = graded(0.95, sensitivity, sensitivity - 0.1)
    of = square(lambda t: krippendorff_alpha(coincidences_of_table(t), metric="ordinal"), 6)
    truth, rng = float(of(shares * 1e9)), np.random.default_rng(28)
    drawn = [CodedItems(rng.choice(36, 30, p=shares), 36, Sample()) for _ in range(300)]
    drawn = [items for items in drawn if not np.isnan(of(items.counts))]

    def hits(settings: IntervalSettings) -> float:
        prior = grade_prior(LEVELS.tolist())
        estimates = (items.measure(of, settings, prior=prior) for items in drawn)
        return held((one for one in estimates if one.low is not None), truth)

    assert 0.92 <= hits(IntervalSettings(n_resamples=500)) <= 0.995
    assert hits(IntervalSettings(method="jackknife")) < 0.85
