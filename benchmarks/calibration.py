"""Measures how long bootstrap intervals of all measures of APB Table 7 take.

    OPENBLAS_NUM_THREADS=1 python benchmarks/calibration.py      # minutes, mostly for the others
    OPENBLAS_NUM_THREADS=1 python benchmarks/calibration.py --no-million

Ours against scikit-learn's metrics in a loop over resamples (100 are timed and scaled to 10,000)
and against ``scipy.stats.bootstrap`` with one vectorised numpy statistic for all six measures
(20 are timed and scaled where there are a million items). CPU seconds on one core, the best of
several runs of ours and one of theirs. The same run checks that values are those of scikit-learn
and intervals those of scipy within Monte Carlo error.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats
from sklearn import metrics

from apbjudge.statistics.estimates import Array, Estimate, Ids
from apbjudge.statistics.measures import PAPER, paper_measures
from apbjudge.statistics.ratings import LEVELS, Ratings
from apbjudge.statistics.sample import IntervalSettings, Sample

ALL_KNOWN = 2**6 - 1
SEED = 20_261_122
RESAMPLES = 10_000
METHODS = ("percentile", "bca")
VALUES = np.asarray(LEVELS)
MONTE_CARLO = 0.06
"""Allowed difference of an end, as a share of the interval's width: about four standard errors."""


class Pair(NamedTuple):
    """A judge and humans on the same items, and the case of each item."""

    judge: Ratings
    human: Ratings
    cases: Ids


def made_up(n: int, cases: int) -> Pair:
    """Items about as in the paper: 57 % correct, the judge agrees on 90 % of them."""
    rng = np.random.default_rng(SEED)
    correct = rng.random(n) < 0.57
    says = np.where(rng.random(n) < 0.9, correct, ~correct)
    grade = np.where(correct, 5 - rng.binomial(2, 0.2, n), rng.binomial(4, 0.4, n))
    graded = np.clip(grade + rng.choice([-1, 0, 0, 0, 1], n), 0, 5)
    flags = np.where(correct, 0, rng.integers(1, 64, n)).astype(np.uint8)
    noise = rng.integers(0, 64, n) & rng.integers(0, 64, n) & rng.integers(0, 64, n)
    return Pair(
        _ratings(says, graded, flags ^ noise.astype(np.uint8)),
        _ratings(correct, grade, flags),
        rng.integers(0, cases, n),
    )


def _ratings(correct: Ids, grade: Ids, flags: Ids) -> Ratings:
    return Ratings(
        correct=correct.astype(np.int8),
        grade=grade.astype(np.int8),
        flags=flags,
        known=np.full(len(correct), ALL_KNOWN, dtype=np.uint8),
    )


def ours(pair: Pair, method: str, *, by_case: bool = False) -> dict[str, Estimate]:
    """All six measures with bootstrap intervals."""
    settings = IntervalSettings(method=method, n_resamples=RESAMPLES, seed=SEED)
    sample = Sample(clusters=pair.cases) if by_case else None
    return paper_measures(pair.judge, pair.human, sample, settings=settings)


def columns(pair: Pair) -> Array:
    """Shape (8, n): what the sums behind the six measures are made of."""
    judge, human = pair.judge, pair.human
    says, correct = judge.correct == 1, human.correct == 1
    same = 6 - np.bitwise_count(judge.flags ^ human.flags)
    return np.stack(
        [
            says == correct,
            np.ones(len(says)),
            says & correct,
            says,
            correct,
            np.abs(VALUES[judge.grade] - VALUES[human.grade]),
            np.where(correct, 0, same),
            6 * ~correct,
        ]
    ).astype(float)


def statistic(*parts: Array, axis: int = -1) -> Array:
    """The six measures of rows of columns, for ``scipy.stats.bootstrap``."""
    agreed, n, both, says, correct, off, same, flags = (part.sum(axis=axis) for part in parts)
    return np.stack(
        [
            agreed / n,
            both / says,
            both / correct,
            2 * both / (says + correct),
            off / n,
            same / flags,
        ]
    )


def scipys(parts: Array, method: str, n_resamples: int) -> stats._resampling.BootstrapResult:
    """The same six by scipy; rows are items, or sums over a case."""
    return stats.bootstrap(
        tuple(parts),
        statistic,
        paired=True,
        vectorized=True,
        axis=-1,
        method=method,
        n_resamples=n_resamples,
        batch=max(1, 4_000_000 // parts.shape[1]),
        rng=np.random.default_rng(SEED),
    )


def sklearns(pair: Pair, rows: Ids | slice) -> list[float]:
    """The same six by scikit-learn, for one resample."""
    judge, human = pair.judge, pair.human
    says, correct = judge.correct[rows], human.correct[rows]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        correct, says, average="binary"
    )
    wrong = correct == 0
    bits = [
        np.unpackbits(of.flags[rows][wrong][:, None], axis=1, count=6, bitorder="little").ravel()
        for of in (human, judge)
    ]
    return [
        metrics.accuracy_score(correct, says),
        precision,
        recall,
        f1,
        metrics.mean_absolute_error(VALUES[human.grade[rows]], VALUES[judge.grade[rows]]),
        metrics.accuracy_score(*bits),
    ]


def looped(pair: Pair, n_resamples: int) -> None:
    """scikit-learn in a loop."""
    rng = np.random.default_rng(SEED)
    n = len(pair.cases)
    for _ in range(n_resamples):
        sklearns(pair, rng.integers(0, n, n))


def cpu(run: Callable[[], object], times: int = 1) -> float:
    """CPU seconds, the least of several."""
    spent: list[float] = []
    for _ in range(times):
        begun = time.process_time()
        run()
        spent.append(time.process_time() - begun)
    return min(spent)


def same(ours: dict[str, Estimate], theirs: stats._resampling.BootstrapResult) -> float:
    """The largest difference of an end, as a share of the width."""
    low, high = theirs.confidence_interval
    ends = zip(PAPER, low, high, strict=True)
    worst = max(
        max(abs((ours[name].low or 0) - a), abs((ours[name].high or 0) - b)) / (b - a)
        for name, a, b in ends
    )
    if worst > MONTE_CARLO:
        raise SystemExit(f"intervals differ by {worst:.1%} of their width")
    return worst


def items(n: int, *, theirs: int, loops: int) -> float:
    """Independent items: ours, scipy, scikit-learn. Returns our slower time."""
    pair = made_up(n, cases=n)
    mine = {method: cpu(lambda m=method: ours(pair, m), 7) for method in METHODS}
    values = [ours(pair, "bca")[name].value for name in PAPER]
    np.testing.assert_allclose(values, sklearns(pair, slice(None)), rtol=1e-9)
    loop = cpu(lambda: looped(pair, loops)) * RESAMPLES / loops
    parts = columns(pair)
    for method in METHODS:
        if theirs < RESAMPLES and method == "bca":
            print(f"  bca: {mine[method] * 1e3:.0f} ms (scipy's leaves out each item: not timed)")
            continue
        scipy_s = cpu(lambda m=method: scipys(parts, m, theirs)) * RESAMPLES / theirs
        check = ""
        if theirs == RESAMPLES:
            worst = same(ours(pair, method), scipys(parts, method, theirs))
            check = f"; ends differ by up to {worst:.1%} of the width"
        print(
            f"  {method}: {mine[method] * 1e3:.0f} ms; scipy {scipy_s:.1f} s, "
            f"{scipy_s / mine[method]:.0f} x; scikit-learn {loop:.0f} s, "
            f"{loop / mine[method]:.0f} x{check}"
        )
    return max(mine.values())


def clusters(n: int, cases: int) -> None:
    """Whole cases: ours against scipy on sums over cases."""
    pair = made_up(n, cases=cases)
    sums = np.stack([np.bincount(pair.cases, weights=part) for part in columns(pair)])
    for method in METHODS:
        mine = cpu(lambda m=method: ours(pair, m, by_case=True), 3)
        theirs = cpu(lambda m=method: scipys(sums, m, RESAMPLES))
        worst = same(ours(pair, method, by_case=True), scipys(sums, method, RESAMPLES))
        print(
            f"  {method}: {mine * 1e3:.0f} ms; scipy on sums {theirs:.1f} s, "
            f"{theirs / mine:.0f} x; ends differ by up to {worst:.1%} of the width"
        )


def main() -> None:
    """Prints times and ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--no-million", action="store_true", help="720 items and clusters only")
    options = parser.parse_args()
    print(f"{RESAMPLES} resamples of {len(PAPER)} measures\n720 items")
    few = items(720, theirs=RESAMPLES, loops=100)
    print("12,000 items in 1,000 cases, whole cases resampled")
    clusters(12_000, 1_000)
    if not options.no_million:
        print("1,000,000 items")
        many = items(1_000_000, theirs=20, loops=20)
        print(f"  that is {many / few:.1f} x the time of 720 items")


if __name__ == "__main__":
    main()
