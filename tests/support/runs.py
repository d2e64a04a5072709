"""Runs of agents to be graded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from apbjudge.records.trajectories import (
    LogPlace,
    Observation,
    Outcome,
    ToolCall,
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
        observations=(Observation(result, "c1", is_error=is_error),),
    )


def run_of(case: str, trial: int = 0, *, success: bool | None = True, **fields: Any) -> Trajectory:
    """A run of a case with one call and a closing message."""
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
    """Writes runs in our own format, one a line."""
    rows = (orjson.dumps(trajectory_row(run), option=orjson.OPT_APPEND_NEWLINE) for run in runs)
    path.write_bytes(b"".join(rows))
    return path
