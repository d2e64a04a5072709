"""Executions of plans, and runs of judges over the plans, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apbjudge
from tests.support.judging import plan_row

MODEL = "planner"


def execution(
    case: int, mode: str = "plan-first", *, success: bool, trial: int = 0, **changes: Any
) -> dict[str, Any]:
    """A row of executed.jsonl; plans are named as predict names samples."""
    name = f"task-{case}" if mode != "direct" else f"task-{case}/direct"
    return {
        "item_id": name if trial == 0 else f"{name}#{trial + 1}",
        "case_id": f"task-{case}",
        "tested_model": MODEL,
        "rater": "execution",
        "is_correct": success,
        "reward": 1.0 if success else 0.0,
        "null_reward": 0.0,
        "mode": mode,
        "trial": trial,
        "environment": "tau2-telecom",
        "termination": "agent_stop",
        **changes,
    }


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def judge_plans(
    folder: Path,
    verdicts: Mapping[str, bool | None],
    *,
    grades: Mapping[str, float] | None = None,
    name: str = "scripted",
    fields: Mapping[str, Any] | None = None,
) -> Path:
    """A run over plans by id, whose judge says what ``verdicts`` say; None gives no verdict."""

    def judge(item: apbjudge.Item) -> dict[str, Any]:
        is_correct = verdicts[item.item_id]
        if is_correct is None:
            raise ValueError("no answer")
        grade = (grades or {}).get(item.item_id)
        return {"is_correct": is_correct} | ({} if grade is None else {"grade": grade})

    judge.__name__ = name
    judge.evidence = False  # type: ignore[attr-defined]
    rows = [plan_row(item, case_id=item.partition("#")[0], **(fields or {})) for item in verdicts]
    predictions = write(folder / f"{name}-plans.jsonl", rows)
    apbjudge.grade(predictions, judge=judge, out=folder / name, overwrite=True)
    return folder / name


def cells(
    counts: Sequence[int], mode: str = "plan-first"
) -> tuple[list[dict[str, Any]], dict[str, bool]]:
    """Executions and verdicts of the four cells.

    ``counts``: correct and succeeded, correct and failed, wrong and succeeded, wrong and failed.
    """
    rows: list[dict[str, Any]] = []
    verdicts: dict[str, bool] = {}
    kinds = [(True, True), (True, False), (False, True), (False, False)]
    for (correct, success), n in zip(kinds, counts, strict=True):
        for _ in range(n):
            row = execution(len(rows), mode, success=success)
            rows.append(row)
            verdicts[row["item_id"]] = correct
    return rows, verdicts
