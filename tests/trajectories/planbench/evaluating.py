"""Short cuts from runs of the small world to what is found of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from apbjudge.records.trajectories import LogPlace, Trajectory
from apbjudge.trajectories import Evaluation, Figure
from apbjudge.trajectories.planbench import PLANBENCH, PLANBENCH_RESULT
from apbjudge.trajectories.planbench.data import PlanBenchData, load_data
from apbjudge.trajectories.planbench.evaluator import PlanBenchEvaluator

from .world import LibraryRun, write_data


def _data() -> PlanBenchData:
    with TemporaryDirectory() as folder:
        return load_data(write_data(Path(folder)))


DATA = _data()


def trajectory(run: LibraryRun) -> Trajectory:
    return PLANBENCH_RESULT.read(run.result(), LogPlace("planbench-xl"), {})


def evaluate(run: LibraryRun, grounding: Any = "paper") -> Evaluation:
    return PlanBenchEvaluator(DATA, DATA.queries, grounding).evaluate(trajectory(run))


def figures(evaluations: Iterable[Evaluation]) -> dict[str, float]:
    """Every figure of some runs, as its definition says; classes by value only."""
    rows = [
        {
            **found.measures,
            "is_correct": float(found.is_correct),
            **{f"{name}={value}": 1.0 for name, value in found.classes.items()},
            "classes": found.classes,
        }
        for found in evaluations
    ]

    def stated(row: dict[str, Any], name: str) -> float | None:
        of, is_class, _ = name.partition("=")
        return row.get(name, 0.0 if is_class and of in row["classes"] else None)

    made: dict[str, float] = {}
    for figure in (Figure(name="Accuracy", of="is_correct"), *PLANBENCH.figures):
        pairs = [(stated(r, figure.of), stated(r, figure.per) if figure.per else 1) for r in rows]
        known = [(of, per) for of, per in pairs if of is not None and per is not None]
        if total := sum(per for _, per in known):
            made[figure.name] = sum(of for of, _ in known) / total
    return made
