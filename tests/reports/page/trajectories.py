"""Trajectories of agents made by hand, and the entries of a report page that they are judged in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apbjudge.records.judgements import Diagnosis
from apbjudge.records.trajectories import (
    Execution,
    LogPlace,
    Outcome,
    Retrieval,
    RetrievedTool,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from apbjudge.reports.page.entries import Entry

from ..rows import verdict

LONG_ANSWER = "\n".join(f"shelf {n}: 4 boxes of tea" for n in range(400))
SEARCH = TrajectoryStep(
    "agent",
    "retrieve",
    thought="Which tool knows shipments?",
    calls=(ToolCall("by_inputs", {"input_information": ["order id"]}),),
    observations=(ToolResult("track_order, track_order_old"),),
    retrieval=Retrieval(
        by_inputs=True,
        inputs=("order_id",),
        tools=(
            RetrievedTool("track_order", ("order_id",), "shipment_id", "baseline"),
            RetrievedTool("track_order_old", ("order_id",), "shipment_id", "noisy_misleading"),
            RetrievedTool("track_parcel", ("order_id",), "parcel_id", "blocker_misleading"),
        ),
    ),
)
FAILED_SEARCH = TrajectoryStep("agent", "retrieve", text="?", retrieval=Retrieval(by_output=True))
EXECUTED = TrajectoryStep(
    "agent",
    "call",
    calls=(ToolCall("track_order", {"order_id": "O-7"}, "c1"),),
    observations=(ToolResult({"shipment_id": "S-9"}, "c1"),),
    execution=Execution(
        was_executed=True,
        success=True,
        output_datatype="shipment_id",
        output_value="S-9",
        provenance="trusted",
        tool_type="baseline",
    ),
)
REJECTED = TrajectoryStep(
    "agent",
    "call",
    calls=(ToolCall("track_parcel", {"order_id": "O-8"}),),
    observations=(ToolResult("not accepted", is_error=True),),
    execution=Execution(rejection="untrusted_input_rejected"),
)
BLOCKED = TrajectoryStep(
    "agent",
    "call",
    calls=(ToolCall("track_parcel", {"order_id": "O-7"}),),
    observations=(ToolResult(LONG_ANSWER),),
    execution=Execution(
        was_executed=True,
        success=False,
        output_datatype="parcel_id",
        provenance="untrusted",
        tool_type="blocker_misleading",
    ),
)
INVALID = TrajectoryStep("agent", "invalid", text="<tool_call>{")
ANSWER = TrajectoryStep("agent", "answer", text="It is shipment S-9.")


def trajectory(*steps: TrajectoryStep, **fields: Any) -> Trajectory:
    """A trajectory that begins with what the user asks."""
    given: dict[str, Any] = {
        "trajectory_id": "run-1",
        "case_id": "case-1",
        "tested_model": "oak",
        "query": "Where is order O-7?",
        "steps": (TrajectoryStep("user", text="Where is order O-7?"), *steps),
        "final_answer": "It is shipment S-9.",
        "place": LogPlace("planbench-xl", file="result.jsonl", line=3),
    }
    return Trajectory(**{**given, **fields})


def explored(n_steps: int, **fields: Any) -> tuple[Trajectory, Diagnosis]:
    """So many steps with their diagnosis; the fifth step is where it first went wrong."""
    cycle = (SEARCH, EXECUTED, REJECTED, BLOCKED, FAILED_SEARCH, INVALID)
    steps = [cycle[n % len(cycle)] for n in range(n_steps - 2)]
    given: dict[str, Any] = {
        "trial": 2,
        "setting": "block",
        "termination": "final_answer_wrong",
        "outcome": Outcome(reward=0.25),
        "usage": {"prompt_tokens": 181234.0},
        "scores": {"f1": 0.5},
        "system_prompt": "You are an agent of a shop.",
        "tools": ({"name": "track_order", "description": "Tracks.", "parameters": {}},),
        "remarks": {"cut content": 3},
    }
    run = trajectory(*steps, ANSWER, **{**given, **fields})
    word = "".join({id(EXECUTED): "P", id(BLOCKED): "N"}.get(id(step), "") for step in steps)
    measures = {"turns": float(n_steps - 1), "EGT precision": 2 / 3}
    classes = {"failure": "Weak Recovery"}
    return run, Diagnosis(measures=measures, classes=classes, word=word, first_error=4)


def judged(
    run: Trajectory | None, *diagnoses: Diagnosis | Mapping[str, Any] | None, **fields: Any
) -> Entry:
    """An entry with one verdict by code a diagnosis."""
    given = {"protocol": "planbench-xl", "is_correct": False, "grade": None, "errors": None}
    of = run or trajectory()
    rows = [
        verdict("run-1", reasoning="the answer is not grounded", **given)
        | {"diagnosis": one.model_dump() if isinstance(one, Diagnosis) else one, **fields}
        for one in diagnoses
    ]
    return Entry(
        item_id=of.trajectory_id,
        tested_model=of.tested_model,
        case_id=of.case_id,
        protocol="planbench-xl",
        judgements=tuple(rows),
        trajectory=run,
    )
