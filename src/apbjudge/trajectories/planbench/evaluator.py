"""The evaluator of the protocol ``planbench-xl``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ...config import Grounding
from ...errors import OptionError, RowError
from ...records.trajectories import Trajectory
from ..base import Evaluation, EvaluatorSettings, Question
from .data import DataFolder, PlanBenchData, read_data
from .diagnosis import (
    blocked_measures,
    failure_of,
    findings_of,
    first_error,
    selection_measures,
    termination_of,
    walk,
)
from .measures import measures_of, verdicts
from .single_step import SINGLE_STEP, load_single_step

NEEDS = "the folder of the benchmark's data (queries.json, …)"
SURRENDER = "Surrender"
"""Code of the rubric ``surrender``, and class of trajectories that ended so."""


@dataclass(frozen=True, slots=True)
class PlanBenchEvaluator:
    """Evaluates trajectories by the benchmark's data.

    Attributes:
        data: The queries and tools.
        cases: Ids of the queries that should have trajectories.
        grounding: Reading of "grounded" for right answers, see ``verdicts``.
    """

    data: PlanBenchData
    cases: Collection[str]
    grounding: Grounding = "paper"

    @property
    def digest(self) -> str:
        """Hash of the data."""
        return self.data.digest

    def evaluate(self, trajectory: Trajectory) -> Evaluation:
        """Evaluates a trajectory.

        Raises:
            RowError: If the data has no such query, or the trajectory does not state the
                environment's answers, as only its own logs do.
        """
        data = self.data
        query = data.queries.get(trajectory.case_id)
        if query is None:
            raise RowError("case_id", "a query of the benchmark's data", trajectory.case_id)
        for i, step in enumerate(trajectory.steps):
            is_call = step.kind == "call" or step.execution is not None
            if (is_call and not (step.calls and step.execution)) or (
                step.kind == "retrieve" and step.retrieval is None
            ):
                expected = "what the environment answered (execution, retrieval)"
                raise RowError(f"steps.{i}", expected, step.kind)
        found = walk(trajectory, query, data)
        measures = measures_of(trajectory, query, data, self.grounding)
        measures |= blocked_measures(trajectory, query, data)
        groups = {"steps": str(min(len(path.tools) for path in data.paths[query.task_id]))}
        if verdicts(trajectory, query)[self.grounding]:
            return Evaluation(
                is_correct=True,
                measures=measures,
                word=found.word,
                reasoning="The answer states the right value",
                groups=groups,
            )
        failure = failure_of(found.word, trajectory.termination)
        last = failure_of(found.word, trajectory.termination, rule="last")
        classes: dict[str, str] = {"failure": failure, "failure (last)": last}
        has_ended_by_itself = failure != "Format Error"
        if has_ended_by_itself:
            classes["termination"] = termination_of(trajectory, query)
        asks = has_ended_by_itself and trajectory.final_answer
        return Evaluation(
            is_correct=False,
            measures=measures | selection_measures(found, failure),
            classes=classes,
            word=found.word,
            first_error=first_error(trajectory, found),
            reasoning=": ".join([failure, *filter(None, [classes.get("termination")])]),
            findings=tuple(findings_of(trajectory)),
            groups=groups,
            question=Question(str(trajectory.final_answer), SURRENDER, "termination")
            if asks
            else None,
        )


def evaluator_of(settings: EvaluatorSettings) -> PlanBenchEvaluator:
    """The evaluator for a log; see ``TrajectoryProtocol``.

    Raises:
        OptionError: If the path of the data is not given.
        InputError: If the data is unusable.
    """
    if settings.cases is None:
        raise OptionError(f"--cases: expected {NEEDS}, got nothing")
    files = DataFolder(settings.cases)
    data = load_single_step(files) if _is_single_step(settings.log) else read_data(files)
    planned = None if settings.log is None else _planned(settings.log)
    cases = {i: query for i, query in data.queries.items() if planned is None or i in planned}
    return PlanBenchEvaluator(data, cases.keys(), settings.grounding)


def _is_single_step(log: Path | None) -> bool:
    """True for a log of ``simulate --with tasks=single-step``, by the manifest beside it."""
    try:
        manifest: Any = orjson.loads((log or Path()).with_name("manifest.json").read_bytes())
        return manifest["identity"]["benchmark"][1].startswith(SINGLE_STEP)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return False


def _planned(log: Path) -> set[str] | None:
    """The queries that a run folder was started with, which may be a sample; None if unknown."""
    index = log / "progress" / "index.json"
    try:
        content: Any = orjson.loads(index.read_bytes())
        return {str(entry["query_id"]) for entry in content["queries"]}
    except (OSError, ValueError, TypeError, LookupError):
        return None
