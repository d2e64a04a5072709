"""How often intervals of ``apbjudge validate`` hold the true value; see docs/coverage.md.

    python benchmarks/coverage_execution.py [--replications 2000]

Tasks are easy or hard (a beta distribution); in easy ones plans are more often judged correct and
episodes succeed more often, and a correct plan adds 0.3 to the chance of success.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from apbjudge.agents.environments.execution.analysis import success_difference_bootstrap
from apbjudge.statistics import Estimate, IntervalSettings, Sample, auroc, part_difference
from apbjudge.statistics.entropy import slope_within
from apbjudge.statistics.estimates import Array, Ids
from apbjudge.statistics.scores import pearson

DESIGNS = (
    *((12, 1, 0.85), (30, 1, 0.9), (25, 1, 0.3), (30, 4, 0.5), (50, 4, 0.5)),
    *((100, 1, 0.2), (200, 1, 0.1), (200, 1, 0.5)),
)
"""Tasks, trials of each, share of plans judged correct."""
WITHIN = 0.3
Plans = tuple[Ids, Ids, Ids]
"""Task, whether the plan was judged correct, whether it succeeded."""


def draw(rng: np.random.Generator, n_tasks: int, n_trials: int, share: float) -> Plans:
    task = np.repeat(np.arange(n_tasks), n_trials)
    ease = rng.beta(2, 2, n_tasks)[task]
    correct = rng.random(len(task)) < (0.15 + 0.7 * ease) * share / 0.5
    success = rng.random(len(task)) < 0.1 + WITHIN * correct + 0.5 * ease
    return task, correct, success


def mover(task: Ids, correct: Ids, success: Ids) -> Estimate:
    sample = Sample(clusters=task)
    return part_difference(success.astype(float), correct, ~correct, sample).estimate


def bootstrap(task: Ids, correct: Ids, success: Ids) -> Estimate:
    return success_difference_bootstrap(success, correct, task)


def auc(task: Ids, correct: Ids, success: Ids) -> Estimate:
    return auroc(correct.astype(float), success, clusters=task)


def r(task: Ids, correct: Ids, success: Ids) -> Estimate:
    columns: tuple[Array, Array] = (correct.astype(float), success.astype(float))
    return pearson(*columns, Sample(clusters=task), IntervalSettings())


def within(task: Ids, correct: Ids, success: Ids) -> Estimate:
    return slope_within(correct.astype(float), success, task)


MEASURES: dict[str, Callable[[Ids, Ids, Ids], Estimate]] = {
    "difference": mover,
    "bootstrap": bootstrap,
    "auc": auc,
    "r": r,
    "within": within,
}


def rows(replications: int) -> Iterator[tuple[str, ...]]:
    yield ("tasks", "trials", "judged_correct", *MEASURES)
    for n_tasks, n_trials, share in DESIGNS:
        rng = np.random.default_rng(20)
        _, correct, success = draw(rng, 400_000, 1, share)
        difference = success[correct].mean() - success[~correct].mean()
        area = (
            success[correct].sum() / success.sum() + (~success & ~correct).sum() / (~success).sum()
        ) / 2
        truth = {
            "difference": difference,
            "bootstrap": difference,
            "auc": area,
            "r": np.corrcoef(correct, success)[0, 1],
            "within": WITHIN,
        }
        held: dict[str, list[bool]] = {name: [] for name in MEASURES}
        for _ in range(replications):
            plans = draw(rng, n_tasks, n_trials, share)
            for name, measure in MEASURES.items():
                if name == "within" and n_trials == 1:
                    continue
                estimate = measure(*plans)
                if estimate.low is not None and estimate.high is not None:
                    held[name].append(estimate.low <= truth[name] <= estimate.high)
        cells = (f"{100 * np.mean(of):.1f}" if of else "" for of in held.values())
        yield (str(n_tasks), str(n_trials), f"{share:.0%}", *cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--replications", type=int, default=2000)
    for row in rows(parser.parse_args().replications):
        print(",".join(row), flush=True)


if __name__ == "__main__":
    main()
