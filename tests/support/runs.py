"""Trajectories of agents to be graded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from apbjudge.records.trajectories import (
    LogPlace,
    Outcome,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
    trajectory_row,
)


def call_step(name: str = "find", *, result: Any = "found", is_error: bool | None = None) -> Any:
    """A step of the agent with one call and its answer."""
    return TrajectoryStep(
        "agent",
        "call",
        calls=(ToolCall(name, {"a": 1}, "c1"),),
        observations=(ToolResult(result, "c1", is_error=is_error),),
    )


def run_of(case: str, trial: int = 0, *, success: bool | None = True, **fields: Any) -> Trajectory:
    """A trajectory of a case with one call and a closing message."""
    steps = (TrajectoryStep("user", text="Where is it?"), call_step())
    given: dict[str, Any] = {
        "tested_model": "alder",
        "query": "Where is it?",
        "steps": (*steps, TrajectoryStep("agent", text="It is here.")),
        "outcome": None if success is None else Outcome(success=success),
        "place": LogPlace("trajectories"),
        **fields,
    }
    return Trajectory(trajectory_id=f"{case}-{trial}", case_id=case, trial=trial, **given)


def write_runs(path: Path, *runs: Trajectory) -> Path:
    """Writes trajectories in our own format, one a line."""
    rows = (orjson.dumps(trajectory_row(run), option=orjson.OPT_APPEND_NEWLINE) for run in runs)
    path.write_bytes(b"".join(rows))
    return path


def write_judged(folder: Path, setting: str, rows: list[dict[str, Any]], **fields: Any) -> Path:
    """A finished trajectory under planbench-xl, as the run loop leaves it.

    Args:
        folder: Where it goes.
        setting: Condition of all trajectories.
        rows: Of each run: is_correct, measures, classes, and perhaps steps.
        **fields: Further columns of all rows.
    """
    folder.mkdir(parents=True)
    lines: list[bytes] = []
    for i, row in enumerate(rows):
        judgement: dict[str, Any] = {
            "item_id": f"q{i}",
            "case_id": f"q{i}",
            "tested_model": "alder",
            "protocol": "planbench-xl",
            "rubric": "planbench-xl@1",
            "judge": "code",
            "kind": "verdict",
            "grade": None,
            "errors": None,
            "category": None,
            "is_correct": row["is_correct"],
            "diagnosis": {"measures": row.get("measures", {}), "classes": row.get("classes", {})},
            "groups": {"setting": setting, "steps": row.get("steps")},
            **fields,
        }
        lines.append(orjson.dumps(judgement, option=orjson.OPT_APPEND_NEWLINE))
    (folder / "judgements.jsonl").write_bytes(b"".join(lines))
    identity = {"judge": {"model": "static"}, "protocol": "planbench-xl"}
    manifest = {"identity": identity, "settings": {"model": "code"}, "state": "done"}
    (folder / "manifest.json").write_bytes(orjson.dumps(manifest))
    return folder
