"""How often 95 % intervals of differences and of corrected rates hold the true value.

    python benchmarks/coverage_differences.py              # as in docs/data/coverage.csv, minutes
    python benchmarks/coverage_differences.py --jobs 4     # on four cores
    python benchmarks/coverage_differences.py --only weighted

Two judges on the same items: the first has a sensitivity of 0.9 and a specificity of 0.8, the
second the reverse and an opinion of its own (*apart*: they differ on 26 % of the items) or the
first one's verdict on nine of ten items (*alike*: on 2.6 %). Two parts of the items: the rate of
the first is 0.9 times that of the second plus 0.05; the *excess* is the judge's verdict less the
humans'. Corrected rates: n labels and 5 n judged rows. Where rows share cases, prevalence and
errors of the judges differ between cases. The size of McNemar's test is no simulation: it is a
sum of binomial probabilities.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
from coverage_table import (
    CASES,
    PREVALENCES,
    SEED,
    SENSITIVITY,
    SIZES,
    SPECIFICITY,
    Cell,
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
from scipy.stats import binom

from apbjudge.statistics.differences import mcnemar, paired_test, part_difference
from apbjudge.statistics.estimates import Array, Estimate, Ids
from apbjudge.statistics.paired import ratio_differences
from apbjudge.statistics.prediction_powered import Design, rectify
from apbjudge.statistics.ratings import Ratings
from apbjudge.statistics.sample import IntervalSettings, Sample

COPIED = {"alike": 0.9, "apart": 0.0}
"""Share of the first judge's verdicts that the second takes over."""
DISCORDANT = (0.02, 0.1, 0.3)
JUDGED = 5
"""Judged rows for each labelled one."""

METHODS: Mapping[Design, str] = {
    "random": "ppi++",
    "stratified": "ppi-stratified",
    "weighted": "ppi-weighted",
    "other-population": "lang-reiczigel",
}

Found = tuple[str, Estimate]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The rows of one replication: which case each is of, and chances that differ by case."""

    rng: np.random.Generator
    n: int
    cases: Ids | None

    def happens(self, mean: float | Array) -> Ids:
        """Shape (n,): whether something with these chances came about."""
        return self.rng.random(self.n) < mean

    def chance(self, mean: float) -> Array:
        """Of each row: the same, or one for each case."""
        if self.cases is None:
            return np.full(self.n, mean)
        return self.rng.beta(*beta_of(mean), size=int(self.cases.max()) + 1)[self.cases]

    def verdicts(self, correct: Ids, sensitivity: float, specificity: float) -> Ids:
        """What a judge says of plans that are correct or not."""
        right = np.where(correct, self.chance(sensitivity), self.chance(specificity))
        return correct == self.happens(right)


def sample_rows(rng: np.random.Generator, sizes: tuple[int, ...], n: int) -> Drawn:
    """Independent rows, or cases of these sizes."""
    return Drawn(rng, n, np.repeat(np.arange(len(sizes)), sizes) if sizes else None)


RATIOS = ("precision", "recall", "F1")


def ratings_of(correct: Ids) -> Ratings:
    """A rater who says nothing but yes or no."""
    nothing = np.zeros(len(correct), dtype=np.uint8)
    grade = np.full(len(correct), -1, dtype=np.int8)
    return Ratings(correct=correct.astype(np.int8), grade=grade, flags=nothing, known=nothing)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two judges on the same items."""

    name: str
    sizes: tuple[int, ...]
    n: int
    prevalence: float
    copied: float

    def method(self, name: str) -> str:
        """Of the interval."""
        return "jackknife" if name in RATIOS else "t-bonett-price"

    def truths(self) -> Mapping[str, float]:
        """First judge less second."""
        own, p = 1 - self.copied, self.prevalence
        first = _measures(p, SENSITIVITY, SPECIFICITY)
        change = own * (SPECIFICITY - SENSITIVITY)
        second = _measures(p, SENSITIVITY + change, SPECIFICITY - change)
        return {name: first[name] - second[name] for name in first}

    def estimates(self, rng: np.random.Generator) -> Iterator[Found]:
        """Differences in one sample."""
        rows = sample_rows(rng, self.sizes, self.n)
        correct = rows.happens(rows.chance(self.prevalence))
        first = rows.verdicts(correct, SENSITIVITY, SPECIFICITY)
        own = rows.verdicts(correct, SPECIFICITY, SENSITIVITY)
        second = np.where(rows.happens(self.copied), first, own)
        sample = Sample(clusters=rows.cases)
        for name, a, b in (
            ("CR", first, second),
            ("agreement", first == correct, second == correct),
        ):
            yield name, paired_test(a.astype(float) - b, sample).estimate
        raters = [ratings_of(first), ratings_of(second), ratings_of(correct)]
        for result in ratio_differences(raters, sample, IntervalSettings()):
            yield result.name, result.difference


def _measures(p: float, sensitivity: float, specificity: float) -> dict[str, float]:
    tp, fp = p * sensitivity, (1 - p) * (1 - specificity)
    return {
        "CR": tp + fp,
        "agreement": tp + (1 - p) * specificity,
        "precision": tp / (tp + fp),
        "recall": sensitivity,
        "F1": 2 * tp / (p + tp + fp),
    }


@dataclass(frozen=True, slots=True)
class Parts:
    """Two parts of the items, whose rows share cases where there are any."""

    name: str
    rows: tuple[int, int]
    n_cases: int
    prevalence: float

    def method(self, name: str) -> str:
        """Of the interval."""
        return "mover"

    def truths(self) -> Mapping[str, float]:
        """First part less second."""
        first, second = self._rates()
        return {
            "rates of two parts": first - second,
            "excess in two parts": (SENSITIVITY + SPECIFICITY - 2) * (first - second),
        }

    def _rates(self) -> tuple[float, float]:
        return 0.9 * self.prevalence + 0.05, self.prevalence

    def estimates(self, rng: np.random.Generator) -> Iterator[Found]:
        """Differences in one sample."""
        n = sum(self.rows)
        first = np.arange(n) < self.rows[0]
        place = np.where(first, np.arange(n), np.arange(n) - self.rows[0])
        rows = Drawn(rng, n, place % self.n_cases if self.n_cases else None)
        chance = rows.chance(self.prevalence)
        correct = rows.happens(np.where(first, 0.9 * chance + 0.05, chance))
        excess = rows.verdicts(correct, SENSITIVITY, SPECIFICITY).astype(float) - correct
        for name, values, least in (("rates of", correct, 0.0), ("excess in", excess, -1.0)):
            result = part_difference(
                values.astype(float), first, ~first, Sample(clusters=rows.cases), bounds=(least, 1)
            )
            yield f"{name} two parts", result.estimate


@dataclass(frozen=True, slots=True)
class Labels:
    """A judge's rate over 5 n rows, with n labels.

    Attributes:
        name: How rows and labels are sampled.
        sizes: Judged rows of each case; empty where rows are independent.
        n: Labels.
        prevalence: Share of correct plans among the judged rows.
        design: How the labelled rows are chosen.
        elsewhere: Share of correct plans among the labelled rows of another population.
    """

    name: str
    sizes: tuple[int, ...]
    n: int
    prevalence: float
    design: Design
    elsewhere: float = 0.5

    def method(self, name: str) -> str:
        """Of the interval."""
        return METHODS[self.design] if name == "corrected rate" else "wilson-effective"

    def truths(self) -> Mapping[str, float]:
        """The rate by humans."""
        return dict.fromkeys(("corrected rate", "corrected rate: labels only"), self.prevalence)

    def estimates(self, rng: np.random.Generator) -> Iterator[Found]:
        """The rate corrected, and for contrast from labels alone where they are a random draw."""
        rows = sample_rows(rng, self.sizes, JUDGED * self.n)
        correct = rows.happens(rows.chance(self.prevalence))
        judged = rows.verdicts(correct, SENSITIVITY, SPECIFICITY)
        if self.design == "other-population":
            yield "corrected rate", self._from_elsewhere(rows, judged)
            return
        on, sample = self._labelled(rows, correct, judged)
        labels = np.where(on, correct, np.nan)
        result = rectify(judged.astype(float), labels, design=self.design, sample=sample)
        yield "corrected rate", result.rectified
        if self.design == "random":
            yield "corrected rate: labels only", result.labelled_only

    def _labelled(self, rows: Drawn, correct: Ids, judged: Ids) -> tuple[Ids, Sample]:
        on = np.zeros(rows.n, dtype=bool)
        if self.design == "random":
            on[rows.rng.choice(rows.n, self.n, replace=False)] = True
            return on, Sample(clusters=rows.cases)
        if self.design == "stratified":
            for verdict in (False, True):
                those = np.flatnonzero(judged == verdict)
                wanted = min(len(those), self.n // 2)
                on[rows.rng.choice(those, wanted, replace=False)] = True
            return on, Sample(clusters=rows.cases, strata=judged.astype(np.int64))
        # what looks hard is labelled three times as often, and is hard for the judge too
        hard = np.where(rows.happens(np.where(judged == correct, 0.3, 0.6)), 3.0, 1.0)
        on = rows.happens(np.minimum(1.0, self.n * hard / hard.sum()))
        return on, Sample(clusters=rows.cases, weights=1 / hard)

    def _from_elsewhere(self, rows: Drawn, judged: Ids) -> Estimate:
        """Labels of items, and of cases, that are none of the judged ones."""
        sizes = tuple(size // JUDGED for size in self.sizes)
        there = sample_rows(rows.rng, sizes, self.n)
        correct = there.happens(there.chance(self.elsewhere))
        verdicts = there.verdicts(correct, SENSITIVITY, SPECIFICITY)
        cases = None
        if rows.cases is not None and there.cases is not None:
            cases = np.concatenate([rows.cases, there.cases + len(sizes)])
        labels = np.concatenate([np.full(rows.n, np.nan), correct])
        return rectify(
            np.concatenate([judged, verdicts]).astype(float),
            labels,
            design=self.design,
            sample=Sample(clusters=cases),
        ).rectified


World = Pair | Parts | Labels


def pairs(p: float) -> Iterator[Pair]:
    """Two judges that differ little or much."""
    for how, copied in COPIED.items():
        for n in SIZES:
            yield Pair(f"{n} rows, {how}", (), n, p, copied)
        for name, sizes in CASES.items():
            yield Pair(f"{name}, {how}", sizes, sum(sizes), p, copied)


def parts(p: float) -> Iterator[Parts]:
    """Parts as large as those of tables 8 and 9 of the benchmark's paper (arXiv:2606.04874)."""
    for rows, cases in (((54, 213), (0, 30, 15)), ((60, 660), (0, 60, 15))):
        for n_cases in cases:
            of = f" of {n_cases} cases" if n_cases else " rows"
            yield Parts(f"{rows[0]} and {rows[1]}{of}", rows, n_cases, p)


def corrections(p: float) -> Iterator[Labels]:
    """Designs of labelling."""
    designs: dict[str, tuple[Design, float]] = {
        "random": ("random", 0.5),
        "stratified by verdict": ("stratified", 0.5),
        "weighted": ("weighted", 0.5),
        "elsewhere, half correct": ("other-population", 0.5),
        "elsewhere, 9 in 10 correct": ("other-population", 0.9),
    }
    for how, (design, elsewhere) in designs.items():
        for n in SIZES:
            yield Labels(f"{n} labels, {how}", (), n, p, design, elsewhere)
        for n_cases, size in ((60, 12), (15, 8)) if elsewhere == 0.5 else ():
            sizes = (JUDGED * size,) * n_cases
            name = f"{n_cases * size} labels, {n_cases} cases, {how}"
            yield Labels(name, sizes, n_cases * size, p, design, elsewhere)


def simulated(world: World, *, reps: int) -> list[Row]:
    """Coverage by simulation."""
    tallies: dict[tuple[str, str], Tally] = {}
    truths = world.truths()
    rng = np.random.default_rng([SEED, crc32(world.name.encode()), int(100 * world.prevalence)])
    for _ in range(reps):
        for name, estimate in world.estimates(rng):
            tallies.setdefault((name, world.method(name)), Tally(truths[name])).add(estimate)
    return summed(world.name, world.prevalence, tallies)


def mcnemar_sizes() -> str:
    """CSV: how often the tests find a difference where there is none, in percent."""
    lines = [",".join(["rows", "test", *(f"{share:.0%}" for share in DISCORDANT)])]
    for n in SIZES:
        sizes = np.array([mcnemar_size(n, share) for share in DISCORDANT])
        for name, column in zip(("exact", "mid-p"), 100 * sizes.T, strict=True):
            lines.append(",".join([str(n), name, *(f"{x:.1f}" for x in column)]))
    return "\n".join(lines) + "\n"


def mcnemar_size(n: int, share: float) -> tuple[float, float]:
    """Chances of p at most 0.05, exact and mid-p, if both judges are right equally often."""
    exact = mid = 0.0
    for discordant, chance in enumerate(binom.pmf(np.arange(n + 1), n, share)):
        if chance < 1e-12:
            continue
        ours = np.arange(discordant + 1)
        tests = [mcnemar(int(b), discordant - int(b)) for b in ours]
        each = chance * binom.pmf(ours, discordant, 0.5)
        exact += float(each @ [test.p_exact <= 0.05 for test in tests])
        mid += float(each @ [test.p_mid <= 0.05 for test in tests])
    return exact, mid


def main() -> None:
    """Prints the results, or renews their lines in files; McNemar's go next to ``--out``."""
    options = arguments().parse_args()
    print(heading(options.reps), file=sys.stderr)
    found = list[Cell]()
    for study, designs in {"differences": pairs, "parts": parts, "corrected": corrections}.items():
        worlds = [world for p in PREVALENCES for world in designs(p) if options.only in world.name]
        rows = over_all(partial(simulated, reps=options.reps), worlds, jobs=options.jobs)
        found += cells(study, rows)
    store(found, options.out)
    if options.out:
        path = Path(options.out).with_name("coverage-mcnemar.csv")
        path.write_text(mcnemar_sizes(), encoding="utf-8")
    else:
        print(mcnemar_sizes(), end="")


if __name__ == "__main__":
    main()
