"""How often 95 % intervals hold the true value through the commands, for each way to choose labels.

    python benchmarks/coverage_designs.py              # as in docs/data/coverage.csv
    python benchmarks/coverage_designs.py --jobs 2     # on two cores
    python benchmarks/coverage_designs.py --only plan --reps 200

Each replication writes the judgements of a run, has ``plan_labels`` choose the rows to label (or
chooses them as the design says), writes their labels and calls ``calibrate`` with that design:
what ``apbjudge plan-labels`` and ``apbjudge calibrate --design`` do, files included.

A plan is correct with a given prevalence, and its grade is 1.0 exactly then, as in APB; the grades
of other plans are binomial. The judge has a sensitivity and a specificity, gives plans that it
faults a grade below 1.0, and to one that it faults rightly the humans' grade in 60 %, a step off in
the others; it agrees on 85 % of the flags (E1 and E2 here). In clustered designs prevalence differs
between cases (beta-distributed, intraclass correlation 0.2).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import orjson
from coverage_table import (
    SEED,
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

from apbjudge import LabelPlanConfig, calibrate, plan_labels
from apbjudge.statistics.agreement import (
    cohen_kappa,
    coincidences_of_table,
    gwet_ac,
    krippendorff_alpha,
    phi,
    quadratic_weights,
)
from apbjudge.statistics.estimates import Array, Estimate, Ids
from apbjudge.statistics.ratings import CODES, LEVELS

K = len(LEVELS)
BEST = K - 1
EXACT = 0.6
FLAGS = 0.85
FLAGGED = CODES[:2]
PREVALENCES = (0.05, 0.5, 0.95)
JUDGES = {"good": (0.95, 0.9), "fair": (0.9, 0.8), "weak": (0.7, 0.5)}
VALUES = np.asarray(LEVELS)
JUDGED, LABELLED = np.divmod(np.arange(K * K), K)
WEIGHTS = quadratic_weights(VALUES)
MODELS = 3


@dataclass(frozen=True, slots=True)
class World:
    """A run, its judge, and how labels are chosen.

    Attributes:
        name: For the table.
        design: ``plan`` (by ``plan-labels``), ``random``, ``half`` (half of the labels on each
            verdict) or ``all`` (each row has a label, and no design is stated).
        n: Labels.
        n_rows: Rows of the run.
        prevalence: Share of correct plans.
        judge: A key of ``JUDGES``.
        cases: Cases that rows are of; 0 where each is of its own.
    """

    name: str
    design: str
    n: int
    n_rows: int
    prevalence: float
    judge: str
    cases: int = 0

    def shares(self) -> Array:
        """Shape (36,): of each pair of grades, the judge's first."""
        p, (se, sp) = self.prevalence, JUDGES[self.judge]
        cells = np.zeros((K, K))
        cells[BEST, BEST] = p * se
        cells[:BEST, BEST] = p * (1 - se) * binom.pmf(np.arange(BEST), BEST - 1, 0.7)
        for grade, share in enumerate((1 - p) * binom.pmf(np.arange(BEST), BEST - 1, 0.5)):
            cells[BEST, grade] = share * (1 - sp)
            cells[grade, grade] += share * sp * EXACT
            for step in (-1, 1):
                cells[np.clip(grade + step, 0, BEST - 1), grade] += share * sp * (1 - EXACT) / 2
        return cells.ravel()

    def truths(self) -> Mapping[str, float]:
        """What the intervals should hold."""
        shares = self.shares()
        yes, right = JUDGED == BEST, LABELLED == BEST
        fp, fn = float(shares[yes & ~right].sum()), float(shares[~yes & right].sum())
        tn, tp = float(shares[~yes & ~right].sum()), float(shares[yes & right].sum())
        pair = np.array([[tn, fn], [fp, tp]])
        grades = shares.reshape(K, K) * 1e9
        steps = VALUES[JUDGED] - VALUES[LABELLED]
        return {
            "agreement": tn + tp,
            "precision": tp / (tp + fp),
            "recall": tp / (tp + fn),
            "specificity": tn / (tn + fp),
            "F1": 2 * tp / (2 * tp + fp + fn),
            "human CR": self.prevalence,
            "kappa": float(cohen_kappa(pair)),
            "phi": float(phi(pair)),
            "AC1": float(gwet_ac(pair)),
            "grade MAE": float(shares @ np.abs(steps)),
            "grade bias": float(shares @ steps),
            "human grade": float(shares @ VALUES[LABELLED]),
            "grade kappa (quadratic)": float(cohen_kappa(grades, WEIGHTS)),
            "grade AC2 (quadratic)": float(gwet_ac(grades, WEIGHTS)),
            "grade alpha (ordinal)": float(
                krippendorff_alpha(coincidences_of_table(grades), metric="ordinal")
            ),
            "Err-Type (human-incorrect)": FLAGS,
            "corrected CR": self.prevalence,
            "corrected Grade": float(shares @ VALUES[LABELLED]),
        }

    def estimates(self, rng: np.random.Generator, folder: Path) -> Iterator[tuple[str, Estimate]]:
        """All intervals of one replication."""
        run = self.draw(rng)
        judgements, labels = folder / "judgements.jsonl", folder / "labels.jsonl"
        write(judgements, run.judgements())
        design, rows = self.choose(rng, run, judgements)
        write(labels, run.labels(rows))
        report = calibrate(judgements, labels, design=design, n_resamples=RESAMPLES)
        (judge,) = report.judges
        yield from judge.whole.measures.items()
        for figure in judge.corrected:
            yield f"corrected {figure.figure}", figure.result.rectified

    def draw(self, rng: np.random.Generator) -> Run:
        """A run and what humans would say of it."""
        cells = self.shares()
        right = LABELLED == BEST
        chance = np.full(self.n_rows, self.prevalence)
        if self.cases:
            of_case = rng.beta(*beta_of(self.prevalence), size=self.cases)
            chance = of_case[np.arange(self.n_rows) % self.cases]
        correct = rng.random(self.n_rows) < chance
        codes = np.empty(self.n_rows, dtype=np.int64)
        for outcome in (False, True):
            part = np.where(right == outcome, cells, 0.0)
            some = correct == outcome
            codes[some] = rng.choice(K * K, int(some.sum()), p=part / part.sum())
        flags = rng.random((self.n_rows, len(FLAGGED))) < 0.3
        agree = rng.random((self.n_rows, len(FLAGGED))) < FLAGS
        return Run(JUDGED[codes], LABELLED[codes], flags, flags == agree, self.cases)

    def choose(self, rng: np.random.Generator, run: Run, path: Path) -> tuple[str | None, Ids]:
        """The design as ``calibrate`` takes it, and the rows to be labelled."""
        if self.design == "all":
            return None, np.arange(self.n_rows)
        if self.design == "random":
            return "random", rng.choice(self.n_rows, self.n, replace=False)
        plan = path.with_name("plan.jsonl")
        plan.unlink(missing_ok=True)
        if self.design == "plan":
            order = LabelPlanConfig(judgements=path, n=self.n, seed=int(rng.integers(2**31)))
            result = plan_labels(order, out=plan)
            chosen = [int(row.item_id[1:]) for row in result.rows if row.order is not None]
            return str(plan), np.array(chosen)
        yes = run.judged == BEST
        sampled = [rng.permutation(np.flatnonzero(yes == v))[: self.n // 2] for v in (False, True)]
        place = {int(row): i + 1 for i, row in enumerate(np.concatenate(sampled))}
        rows = (
            {**key, "stratum": str(bool(yes[i])), "order": place.get(i)}
            for i, key in enumerate(run.keys())
        )
        write(plan, rows)
        return str(plan), np.array(list(place))


@dataclass(frozen=True, slots=True)
class Run:
    """Judged rows with what humans would say of them."""

    judged: Ids
    labelled: Ids
    judged_flags: Ids
    labelled_flags: Ids
    cases: int

    def keys(self) -> Iterator[dict[str, Any]]:
        """What tells rows apart."""
        for i in range(len(self.judged)):
            case = f"c{i % self.cases}" if self.cases else f"i{i}"
            yield {"item_id": f"i{i}", "case_id": case, "tested_model": f"m{i % MODELS}"}

    def judgements(self) -> Iterator[dict[str, Any]]:
        """Rows of a run."""
        common = {"protocol": "holistic", "rubric": "apb-holistic@1", "judge": "openai/simulated"}
        for i, key in enumerate(self.keys()):
            ours = _answer(int(self.judged[i]), self.judged_flags[i])
            yield {**key, **common, "kind": "verdict", **ours, "category": None, "groups": {}}

    def labels(self, rows: Ids) -> Iterator[dict[str, Any]]:
        """Labels of some rows."""
        keys = list(self.keys())
        for i in rows.tolist():
            theirs = _answer(int(self.labelled[i]), self.labelled_flags[i])
            yield {**keys[i], "rater": "simulated", **theirs}


def _answer(grade: int, flags: Ids) -> dict[str, Any]:
    errors = {code: bool(flag) for code, flag in zip(FLAGGED, flags, strict=True)}
    return {"is_correct": grade == BEST, "grade": LEVELS[grade], "errors": errors}


def write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    """One row a line."""
    option = orjson.OPT_APPEND_NEWLINE
    path.write_bytes(b"".join(orjson.dumps(row, option=option) for row in rows))


RESAMPLES = 400


def worlds() -> Iterator[World]:
    """Every design with every prevalence; small samples with several judges."""
    for judge in JUDGES:
        for n in (30, 100):
            for p in PREVALENCES:
                yield World(f"{n} rows, {judge} judge", "all", n, n, p, judge)
    for judge in ("good", "fair"):
        for design in ("plan", "random"):
            for p in PREVALENCES:
                yield World(f"{design}: 100 of 500, {judge} judge", design, 100, 500, p, judge)
    for p in PREVALENCES:
        yield World("plan: 200 of 600, 60 cases", "plan", 200, 600, p, "fair", cases=60)
        yield World("half per verdict: 360 of 750", "half", 360, 750, p, "fair")
    for p in PREVALENCES:
        yield World("plan: 400 of 1,500", "plan", 400, 1500, p, "fair")


def simulated(world: World, *, reps: int) -> list[Row]:
    """Coverage by simulation."""
    tallies: dict[tuple[str, str], Tally] = {}
    truths = world.truths()
    rng = np.random.default_rng([SEED, crc32(world.name.encode()), int(100 * world.prevalence)])
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(reps):
            for name, estimate in world.estimates(rng, Path(folder)):
                if name in truths:
                    tallies.setdefault((name, ""), Tally(truths[name])).add(estimate)
    return summed(world.name, world.prevalence, tallies)


def main() -> None:
    """Prints the results, or renews their lines in a file."""
    options = arguments().parse_args()
    chosen = [world for world in worlds() if options.only in world.name]
    print(heading(options.reps), file=sys.stderr)
    rows = over_all(partial(simulated, reps=options.reps), chosen, jobs=options.jobs)
    store(cells("commands", rows), options.out)


if __name__ == "__main__":
    main()
