"""Compares our figures of a PlanBench-XL run folder with those of the authors' own evaluator.

    python examples/planbench_parity.py RUN_FOLDER DATA_FOLDER [--evaluation evaluation.json]

RUN_FOLDER is what their environment writes, DATA_FOLDER has their queries.json and tools, and
evaluation.json is what their evaluate.py writes, by default into the run folder. Exits with 1 where
a figure differs, in all or for a query.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from apbjudge.trajectories import Evaluation, EvaluatorSettings, TrajectoryMetric
from apbjudge.trajectories.planbench import PLANBENCH, read_folder

FIGURES = {
    "Accuracy": "accuracy",
    "turns": "turns.mean_turn_count",
    "EDT": "exploration.mean_explored_datatype_count",
    "S/C": "explore_exploit_balance.search_to_call_ratio",
    "EGT precision": "executed_ground_truth_datatype_coverage.mean_precision",
    "EGT recall": "executed_ground_truth_datatype_coverage.mean_recall",
    "ITCR": "invalid_tool_call.invalid_tool_call_rate",
    "UIRR": "untrusted_input_rejection.untrusted_input_rejection_rate",
    "rejected calls": "combined_invalid_tool_call.combined_invalid_tool_call_rate",
    "noisy trajectories": "noisy_tool_call.noisy_tool_query_rate",
    "noisy calls": "noisy_tool_call.mean_noisy_tool_calls_per_query",
    "noisy calls given any": "noisy_tool_call.mean_noisy_tool_calls_given_any",
    "noisy share": "noisy_tool_call.noisy_tool_call_rate_among_tool_calls",
}
MEASURES = {
    "is_correct": "answer_correct",
    "turns": "turn_count",
    "searches": "search_turns",
    "calls": "call_turns",
    "invalid calls": "invalid_tool_call_count",
    "untrusted calls": "untrusted_input_rejection_count",
    "noisy calls": "noisy_tool_call_count",
    "EDT": "explored_datatype_count",
    "EGT precision": "executed_gt_datatype_precision",
    "EGT recall": "executed_gt_datatype_recall",
}


def evaluations(run: Path, data: Path, grounding: Any) -> dict[str, Evaluation]:
    """What is found of every finished query."""
    settings = EvaluatorSettings(log=run, cases=data, grounding=grounding)
    evaluator, found = PLANBENCH.evaluator(settings), {}
    for entry in read_folder(run):
        if isinstance(entry.content, Exception):
            print(f"{run}: entry {entry.line}: {entry.content}")
        elif entry.content.infrastructure_error:
            print(f"{entry.content.case_id}: {entry.content.infrastructure_error}")
        else:
            found[entry.content.case_id] = evaluator.evaluate(entry.content)
    return found


def stated(evaluation: Evaluation, name: str) -> float | None:
    """A measure of a trajectory; None where it has none."""
    if name == "is_correct":
        return float(evaluation.is_correct)
    return evaluation.measures.get(name)


def value(figure: TrajectoryMetric, found: Mapping[str, Evaluation]) -> float | None:
    """The figure of all trajectories."""
    rows = [
        (of, 1.0 if figure.per is None else stated(evaluation, figure.per))
        for evaluation in found.values()
        if (of := stated(evaluation, figure.of)) is not None
    ]
    per = sum(row[1] for row in rows if row[1] is not None)
    return sum(row[0] for row in rows if row[1] is not None) / per if per else None


def agree(ours: float | None, theirs: float | None) -> bool:
    """Equal but for the order of additions."""
    if ours is None or theirs is None:
        return ours is theirs
    return math.isclose(ours, theirs, rel_tol=1e-12)


def shown(number: float | None) -> str:
    return f"{'–':>12}" if number is None else f"{number:12.6f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("data_folder", type=Path)
    parser.add_argument("--evaluation", type=Path)
    options = parser.parse_args()
    file = options.evaluation or options.run_folder / "evaluation.json"
    theirs = json.loads(file.read_text())

    found = evaluations(options.run_folder, options.data_folder, "released")
    figures = {figure.name: figure for figure in PLANBENCH.metrics}
    figures["Accuracy"] = TrajectoryMetric(name="Accuracy", of="is_correct")
    differ = 0
    print(f"{'figure':24}{'ours':>12}{'theirs':>12}")
    for name, path in FIGURES.items():
        ours = value(figures[name], found)
        other = reduce(lambda part, key: part[key], path.split("."), theirs["metrics"])
        differ += not agree(ours, other)
        print(f"{name:24}{shown(ours)}{shown(other)}{'' if agree(ours, other) else '  differs'}")

    rows = {row["query_id"]: row for row in theirs["per_query"]}
    for query_id in sorted({*rows, *found}):
        if query_id not in found or query_id not in rows:
            differ += 1
            print(f"{query_id}: only {'theirs' if query_id in rows else 'ours'}")
            continue
        for name, key in MEASURES.items():
            ours, other = stated(found[query_id], name), rows[query_id][key]
            if not agree(ours, other):
                differ += 1
                print(f"{query_id}: {name}: {ours} against {other}")
    print(f"{len(rows)} queries, {differ} differences")

    print(f"\n{'grounding':24}{'Accuracy':>12}{'correct':>12}")
    for grounding in ("paper", "released", "answer-only"):
        right = [evaluation.measures[f"correct ({grounding})"] for evaluation in found.values()]
        print(f"{grounding:24}{sum(right) / len(right):12.6f}{sum(right):12.0f}")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
