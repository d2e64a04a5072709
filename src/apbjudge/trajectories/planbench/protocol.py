"""The protocol ``planbench-xl``: runs in the benchmark's environment, graded by its data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ...config import Grounding
from ...errors import OptionError, RowError
from ...records.trajectories import Trajectory
from ..base import Evaluation, EvaluatorSettings, Figure, RunTable, TrajectoryProtocol
from .data import PlanBenchData, load_data
from .measures import measures_of, verdicts

NEEDS = "the folder of the benchmark's data (queries.json, …)"
RATE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class PlanBenchEvaluator:
    """Evaluates runs by the benchmark's data.

    Attributes:
        data: What is asked, and which tools there are.
        cases: Ids of the queries there should be runs of.
        grounding: Which right answers count, see ``verdicts``.
    """

    data: PlanBenchData
    cases: Collection[str]
    grounding: Grounding = "paper"

    @property
    def digest(self) -> str:
        """Hash of the data."""
        return self.data.digest

    def evaluate(self, trajectory: Trajectory) -> Evaluation:
        """Evaluates a run.

        Raises:
            RowError: If the data has no such query.
        """
        query = self.data.queries.get(trajectory.case_id)
        if query is None:
            raise RowError("case_id", "a query of the benchmark's data", trajectory.case_id)
        is_correct = verdicts(trajectory, query)[self.grounding]
        return Evaluation(
            is_correct=is_correct,
            measures=measures_of(trajectory, query, self.data, self.grounding),
        )


def _evaluator(settings: EvaluatorSettings) -> PlanBenchEvaluator:
    if settings.cases is None:
        raise OptionError(f"--cases: expected {NEEDS}, got nothing")
    data = load_data(settings.cases)
    planned = None if settings.log is None else _planned(settings.log)
    cases = {i: query for i, query in data.queries.items() if planned is None or i in planned}
    return PlanBenchEvaluator(data, cases.keys(), settings.grounding)


def _planned(log: Path) -> set[str] | None:
    """The queries that a run folder was started with, which may be a sample; None if unknown."""
    index = log / "progress" / "index.json"
    try:
        content: Any = orjson.loads(index.read_bytes())
        return {str(entry["query_id"]) for entry in content["queries"]}
    except (OSError, ValueError, TypeError, LookupError):
        return None


def _share(name: str, of: str, per: str, meaning: str = "") -> Figure:
    return Figure(name=name, of=of, per=per, bounds=RATE, meaning=meaning)


PLANBENCH = TrajectoryProtocol(
    name="planbench-xl",
    success="Accuracy",
    figures=(Figure(name="turns", of="turns"),),
    evaluator=_evaluator,
    needs_cases=NEEDS,
    paper="2606.22388",
    tables=(RunTable(key="planbench", title="PlanBench-XL"),),
)
