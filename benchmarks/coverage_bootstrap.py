"""Measures how often bootstrap intervals hold the true value, by the number of cases.

    OPENBLAS_NUM_THREADS=1 python benchmarks/coverage_bootstrap.py          # about 5 minutes

Figures of the four commands that print intervals, over cases of one row or of eight with an
intraclass correlation of 0.2: a rate, a mean grade, a ratio of two totals and the difference of
two rates on the same rows. In each line the least and the greatest coverage of nominal 95 %
intervals over these figures, at rates of 0.05, 0.5 and 0.95, with the default next to them. Where
all rows are alike an interval of no width counts as one that holds only its own value.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from apbjudge.statistics.differences import paired_test
from apbjudge.statistics.estimates import Array, Estimate, Ids
from apbjudge.statistics.proportions import bounded, ratio_of_sums
from apbjudge.statistics.sample import IntervalSettings, Sample

SEED = 20_261_126
CASES = (5, 10, 15, 30, 60, 100, 300)
RATES = (0.05, 0.5, 0.95)
METHODS = ("percentile", "bca", "jeffreys")


def rows(rng: np.random.Generator, cases: Ids, p: float) -> Array:
    """Yes or no, whose chance differs between cases."""
    chance = rng.beta(4 * p, 4 - 4 * p, int(cases.max()) + 1)
    return (rng.random(len(cases)) < chance[cases]).astype(float)


def figures(rng: np.random.Generator, cases: Ids, p: float) -> dict[str, tuple[float, Array]]:
    """True value and columns of each figure."""
    yes = rows(rng, cases, p)
    calls = 1.0 + rng.poisson(3, len(cases))
    searches = rng.binomial(calls.astype(int), np.where(yes == 1, 0.3, 0.6)).astype(float)
    other = np.where(rng.random(len(cases)) < 0.8, yes, rng.random(len(cases)) < p)
    grade = np.where(yes == 1, 1.0, rng.binomial(4, 0.5, len(cases)) / 5)
    return {
        "rate": (p, np.stack([yes, np.ones(len(yes))])),
        "mean grade": (p + (1 - p) * 0.4, np.stack([grade, np.ones(len(yes))])),
        "ratio of totals": (0.3 * p + 0.6 * (1 - p), np.stack([searches, calls])),
        "difference": (0.0, np.stack([yes - other, np.ones(len(yes))])),
    }


def estimate(name: str, columns: Array, sample: Sample) -> Estimate:
    """By the public estimators."""
    if name == "difference":
        return paired_test(columns[0], sample).estimate
    if name == "ratio of totals":
        return ratio_of_sums(*columns, sample)
    return bounded(columns[0], sample)


def coverage(
    n: int, size: int, p: float, method: str, *, replications: int, resamples: int
) -> Iterator[tuple[str, float]]:
    """Of each figure the share of intervals that hold the true value."""
    rng = np.random.default_rng([SEED, n, size, int(100 * p)])
    cases = np.repeat(np.arange(n), size)
    settings = IntervalSettings(method=method, n_resamples=resamples)  # type: ignore[arg-type]
    sample, hits = settings.of(Sample(clusters=cases)), dict[str, list[bool]]()
    for _ in range(replications):
        for name, (truth, columns) in figures(rng, cases, p).items():
            made = estimate(name, columns, sample)
            low, high = (v if v is not None else made.value for v in (made.low, made.high))
            hits.setdefault(name, []).append(low - 1e-9 <= truth <= high + 1e-9)
    yield from ((name, float(np.mean(of))) for name, of in hits.items())


def main() -> None:
    """Prints ``docs/data/coverage-bootstrap.csv``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    names = [*METHODS[:2], "default"]
    print("cases,figure," + ",".join(f"{name}_least,{name}_most" for name in names))
    for n in CASES:
        found: dict[str, dict[str, list[float]]] = {}
        for method in METHODS:
            for size in (1, 8):
                for p in RATES:
                    for name, held in coverage(n, size, p, method, **vars(options)):
                        found.setdefault(name, {}).setdefault(method, []).append(held)
        for name, by_method in found.items():
            ends = (
                f"{100 * min(of):.0f},{100 * max(of):.0f}"
                for of in (by_method[method] for method in METHODS)
            )
            print(f"{n},{name},{','.join(ends)}", flush=True)


if __name__ == "__main__":
    main()
