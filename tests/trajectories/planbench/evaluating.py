"""Short cuts from trajectories of the small world to what is found of them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from apbjudge.records.trajectories import LogPlace, Trajectory
from apbjudge.trajectories import Evaluation
from apbjudge.trajectories.planbench import PLANBENCH_RESULT
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
