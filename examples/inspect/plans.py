"""A task of Inspect whose plans our judge scores.

pip install "apbjudge[inspect]"
inspect eval examples/inspect/plans.py --model mockllm/model
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver

from apbjudge.integrations.inspect_scorer import plan_judge, plan_metrics

ROWS = Path(__file__).parents[1] / "holistic.jsonl"


@solver
def written() -> Solver:
    """Answers with the plan that the example holds; with a real model, ``generate()``."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content(str(state.model), state.metadata["written"])
        state.messages.append(state.output.message)
        return state

    return solve


@task
def plans(judge: str = "static", **options: Any) -> Task:
    """The plans of three tested models; those of one case are a cluster."""
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    samples = [
        Sample(
            id=f"{row['id']}-{row['tested_model']}",
            input=row.pop("query"),
            metadata={"written": row.pop("model_response"), **row},
        )
        for row in rows
    ]
    metrics = plan_metrics(cluster="case_id")
    return Task(
        dataset=samples, solver=written(), scorer=plan_judge(judge, **options), metrics=metrics
    )
