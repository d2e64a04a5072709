"""How often 95 % intervals hold the true value, for each kind of interval.

    python benchmarks/coverage.py                            # as in docs/data/coverage.csv, minutes
    python benchmarks/coverage.py --jobs 4                   # on four cores
    python benchmarks/coverage.py --reps 200 --only cases    # a quick look at clustered rows
    python benchmarks/coverage.py --defaults                 # without other methods for contrast

Differences and corrected rates are in ``coverage_differences.py``.

Rates of independent rows are not simulated: the coverage of Wilson's modified interval is the sum
of binomial probabilities over all outcomes. Everything else is simulated from a population whose
values are known: humans find a plan correct with a given prevalence, the judge has a sensitivity
of 0.9 and a specificity of 0.8, gives the same grade in 70 % of items and one a step off in the
others (``gross``: a step off in 20 %, any grade at all in 10 %), and agrees on 85 % of the flags.
Where rows share cases, prevalence and errors of the judge differ between cases. Bootstraps draw
500 resamples here, 10,000 where they are used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_table import (
    CASES,
    PREVALENCES,
    SEED,
    SENSITIVITY,
    SIZES,
    SPECIFICITY,
    Row,
    Tally,
    arguments,
    beta_of,
    cells,
    heading,
    over_all,
    store,
    summed,
)
from scipy.stats import betabinom, binom

from apbjudge.statistics.agreement import (
    cohen_kappa,
    coincidences_of_table,
    gwet_ac,
    krippendorff_alpha,
    phi,
    quadratic_weights,
)
from apbjudge.statistics.bootstrap import cluster_bootstrap
from apbjudge.statistics.coded import CodedItems
from apbjudge.statistics.confusion import N_CELLS, correct_cells, grade_cells
from apbjudge.statistics.estimates import Array, Estimate, Ids
from apbjudge.statistics.measures import calibrate, paper_measures
from apbjudge.statistics.proportions import modified_wilson
from apbjudge.statistics.ratings import LEVELS, Ratings
from apbjudge.statistics.sample import IntervalSettings, Method, Sample

LEVEL = 0.95
FLAGS = 0.85
EXACT = 0.7
K = len(LEVELS)
DEFAULTS = ("score", "jeffreys")
CONTRASTS: tuple[Method, ...] = ("jackknife", "bca", "percentile")
MEANS = ("grade MAE", "grade bias", "human grade", "Err-Type (human-incorrect)")
RATES = ("human CR", "agreement", "precision", "recall", "F1")
WEIGHTS = quadratic_weights(np.asarray(LEVELS))
MASKS = np.array([63, 31, 15, 7, 3, 1, 0], dtype=np.uint8)
"""Flags of the judge that differ from those of the humans, by the number that agree."""


def of_correct(measure: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A measure of 2x2 tables, of the last four of six cells."""
    return lambda cells: measure(cells[..., 2:].reshape(*cells.shape[:-1], 2, 2))


def of_grades(measure: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A measure of 6x6 tables, of the first 36 cells."""
    return lambda cells: measure(cells[..., : K * K].reshape(*cells.shape[:-1], K, K))


def alpha(tables: Array) -> Array:
    """Ordinal alpha."""
    return krippendorff_alpha(coincidences_of_table(tables), metric="ordinal")


BINARY: Mapping[str, Callable[[Array], Array]] = {
    "kappa": cohen_kappa,
    "phi": phi,
    "AC1": gwet_ac,
}
GRADED: Mapping[str, Callable[[Array], Array]] = {
    "grade kappa (quadratic)": partial(cohen_kappa, weights=WEIGHTS),
    "grade AC2 (quadratic)": partial(gwet_ac, weights=WEIGHTS),
    "grade alpha (ordinal)": alpha,
}


Found = tuple[tuple[str, str], Estimate]


class Data(NamedTuple):
    """One replication."""

    judge: Ratings
    human: Ratings
    sample: Sample


@dataclass(frozen=True, slots=True)
class World:
    """A population and how it is sampled.

    Attributes:
        name: How the rows are sampled.
        sizes: Rows of each case; empty where rows are independent.
        n: Rows.
        prevalence: Share of correct plans.
        wild: Share of grades of the judge that have nothing to do with the plan.
    """

    name: str
    sizes: tuple[int, ...]
    n: int
    prevalence: float
    wild: float = 0.0

    def draw(self, rng: np.random.Generator) -> Data:
        """One sample."""
        n, p = self.n, self.prevalence
        cases = np.repeat(np.arange(len(self.sizes)), self.sizes) if self.sizes else None
        chance = partial(self._chances, rng, cases)
        says = rng.random((5, n))
        correct = says[0] < chance(p)
        agrees = says[1] < np.where(correct, chance(SENSITIVITY), chance(SPECIFICITY))
        grade = rng.binomial(K - 1, chance(p))
        near = np.clip(grade + np.where(says[3] < 0.5, -1, 1), 0, K - 1)
        others = np.where(says[4] < self.wild / (1 - EXACT), rng.integers(0, K, n), near)
        judged = np.where(says[2] < chance(EXACT), grade, others)
        of_item = chance(FLAGS) if self.sizes else rng.beta(*beta_of(FLAGS), size=n)
        return Data(
            _ratings(correct == agrees, judged, rng.binomial(6, of_item)),
            _ratings(correct, grade, np.full(n, 6)),
            Sample(clusters=cases),
        )

    def _chances(self, rng: np.random.Generator, cases: Ids | None, mean: float) -> Array:
        """The chance of each row: the same, or one for each case."""
        if cases is None:
            return np.full(self.n, mean)
        return rng.beta(*beta_of(mean), size=len(self.sizes))[cases]

    def truths(self) -> dict[str, float]:
        """What the intervals should hold."""
        p, cells, grades = self.prevalence, self.cells(), self.grades()
        tn, fn, fp, tp = cells[2:]
        values = np.asarray(LEVELS)
        steps = values[:, None] - values
        # alpha is corrected for few ratings: a huge table takes the correction away
        coefficients = {name: float(f(cells[2:].reshape(2, 2) * 1e9)) for name, f in BINARY.items()}
        coefficients |= {name: float(f(grades * 1e9)) for name, f in GRADED.items()}
        return {
            "human CR": p,
            "agreement": tn + tp,
            "precision": tp / (tp + fp),
            "recall": tp / (tp + fn),
            "F1": 2 * tp / (2 * tp + fp + fn),
            "grade MAE": float((np.abs(steps) * grades).sum()),
            "grade bias": float((steps * grades).sum()),
            "human grade": float((values * grades).sum()),
            "Err-Type (human-incorrect)": FLAGS,
            **coefficients,
        }

    def cells(self) -> Array:
        """Shares of the six cells of ``is_correct``."""
        p, se, sp = self.prevalence, SENSITIVITY, SPECIFICITY
        return np.array([0, 0, (1 - p) * sp, p * (1 - se), (1 - p) * (1 - sp), p * se])

    def grades(self) -> Array:
        """Shares of the 6x6 table, rows the judge."""
        levels = np.arange(K)
        if self.sizes:
            human = betabinom.pmf(levels, K - 1, *beta_of(self.prevalence))
        else:
            human = binom.pmf(levels, K - 1, self.prevalence)
        table, step_off = np.diag(human * EXACT) + human * self.wild / K, 1 - EXACT - self.wild
        for step in (-1, 1):
            row = np.clip(levels + step, 0, K - 1)
            np.add.at(table, (row, levels), human * step_off / 2)
        return table


def _ratings(correct: Ids, grade: Ids, same_flags: Ids) -> Ratings:
    n = len(correct)
    return Ratings(
        correct=correct.astype(np.int8),
        grade=grade.astype(np.int8),
        flags=MASKS[same_flags],
        known=np.full(n, 2**6 - 1, dtype=np.uint8),
    )


def worlds() -> Iterator[World]:
    """Independent rows, then rows that share cases; each with all prevalences."""
    for n in SIZES:
        for p in PREVALENCES:
            yield World(f"{n} rows", (), n, p)
            yield World(f"{n} rows, gross", (), n, p, wild=0.1)
    for name, sizes in CASES.items():
        for p in PREVALENCES:
            yield World(name, sizes, sum(sizes), p)


def simulated(world: World, *, reps: int, resamples: int, contrasts: bool) -> list[Row]:
    """Coverage by simulation, and that of rates of independent rows by enumeration."""
    tallies: dict[tuple[str, str], Tally] = {}
    truths = world.truths()
    rng = np.random.default_rng(
        [SEED, len(world.sizes), world.n, int(100 * world.prevalence), int(10 * world.wild)]
    )
    for _ in range(reps):
        for kind, estimate in estimates(world.draw(rng), world, resamples, contrasts=contrasts):
            tallies.setdefault(kind, Tally(truths[kind[0]])).add(estimate)
    exact = [] if world.sizes or world.wild else list(enumerated(world))
    return exact + summed(world.name, world.prevalence, tallies)


def estimates(data: Data, world: World, resamples: int, *, contrasts: bool) -> Iterator[Found]:
    """All intervals of one sample, by measure and method."""
    judge, human, sample = data
    without = np.zeros(len(judge), dtype=np.uint8)
    plain = replace(judge, known=without)
    settings = IntervalSettings(n_resamples=resamples, level=LEVEL)
    measures = calibrate(plain, human, sample, settings=settings).measures
    measures |= paper_measures(judge, human, sample)
    if world.wild:
        yield from (((name, "score"), measures[name]) for name in MEANS[:2])
        yield from (((name, "jeffreys"), measures[name]) for name in GRADED)
        return
    for name in (*(RATES if world.sizes else ()), *MEANS):
        yield (name, "score"), measures[name]
    yield from (((name, "jeffreys"), measures[name]) for name in (*BINARY, *GRADED))
    if not contrasts:
        return
    correct = CodedItems(correct_cells(judge, human), N_CELLS, sample)
    graded = CodedItems(grade_cells(judge, human, K), K * (K + 1), sample)
    for method in CONTRASTS:
        settings = IntervalSettings(method=method, n_resamples=resamples, level=LEVEL)
        binary = {name: correct.measure(of_correct(f), settings) for name, f in BINARY.items()}
        if binary["phi"].low is None:  # as ``calibrate`` has it
            binary["kappa"] = replace(binary["kappa"], low=None, high=None)
        yield from (((name, method), estimate) for name, estimate in binary.items())
        for name, measure in GRADED.items():
            yield (name, method), graded.measure(of_grades(measure), settings)
    if world.sizes:
        yield from percentile_of_cases(judge, human, sample, resamples)


def percentile_of_cases(
    judge: Ratings, human: Ratings, sample: Sample, resamples: int
) -> Iterator[Found]:
    """Rates by the percentile bootstrap of whole cases, for contrast."""
    yes, passed = human.correct == 1, judge.correct == 1
    n = len(yes)
    columns: dict[str, tuple[Ids, Ids]] = {
        "human CR": (yes, np.ones(n)),
        "agreement": (yes == passed, np.ones(n)),
        "precision": (yes & passed, passed),
        "recall": (yes & passed, yes),
    }
    for name, parts in columns.items():
        yield (
            (name, "percentile"),
            cluster_bootstrap(
                np.stack(parts, axis=1).astype(float),
                sample,
                lambda sums: sums[..., 0] / np.where(sums[..., 1] > 0, sums[..., 1], np.nan),
                n_items=n,
                n_resamples=resamples,
            ),
        )


def enumerated(world: World) -> Iterator[Row]:
    """Exact coverage of Wilson's interval for rates of independent rows."""
    _, _, tn, fn, fp, tp = world.cells()
    cases = {
        "human CR": (1.0, world.prevalence),
        "agreement": (1.0, tn + tp),
        "precision": (tp + fp, tp / (tp + fp)),
        "recall": (tp + fn, tp / (tp + fn)),
        "F1": (tp + fn + fp, tp / (tp + fn + fp)),
    }
    for name, (counted, rate) in cases.items():
        change = (lambda j: 2 * j / (1 + j)) if name == "F1" else (lambda j: j)
        shares = binom.pmf(np.arange(1, world.n + 1), world.n, counted)
        each = np.array([wilson_at(n, rate, change) for n in range(1, world.n + 1)])
        none = float(1 - shares.sum())
        coverage, width = shares @ each / shares.sum()
        yield Row(world.name, world.prevalence, name, "score", coverage, width, max(0.0, none))


def wilson_at(n: int, rate: float, change: Callable[[Array], Array]) -> tuple[float, float]:
    """Coverage and mean width at a fixed denominator."""
    k = np.arange(n + 1)
    low, high = np.array([modified_wilson(int(i), n, level=LEVEL) for i in k]).T
    chance = binom.pmf(k, n, rate)
    held = (low <= rate) & (rate <= high)
    return float(chance @ held), float(chance @ (change(high) - change(low)))


def main() -> None:
    """Prints the results, or renews their lines in a file."""
    parser = arguments()
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--defaults", action="store_true", help="no other methods for contrast")
    options = parser.parse_args()
    chosen = [world for world in worlds() if options.only in world.name]
    contrasts = not options.defaults
    run = partial(simulated, reps=options.reps, resamples=options.resamples, contrasts=contrasts)
    rows = over_all(run, chosen, jobs=options.jobs)
    print(heading(options.reps), file=sys.stderr)
    usual = [row for row in rows if row.method in DEFAULTS]
    others = [row for row in rows if row.method not in DEFAULTS]
    store([*cells("statistics", usual), *cells("contrast", others)], options.out)


if __name__ == "__main__":
    main()
