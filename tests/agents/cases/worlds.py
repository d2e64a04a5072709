"""A small town: seeds for the tests of construction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from apbjudge.agents.cases.cases import Context
from apbjudge.agents.cases.pool import ToolPool
from apbjudge.agents.cases.seeds import Seed, SeedCall
from apbjudge.records import FileRef
from apbjudge.records.trajectories import (
    LogPlace,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)

Call = tuple[str, dict[str, Any], Any]
"""Name, arguments and result of a call; None for a result that nobody knows."""


def tool(name: str, description: str, /, *optional: str, **types: str) -> dict[str, Any]:
    """A definition; the names in ``optional`` are not required."""
    return {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in types.items()},
            "required": [key for key in types if key not in optional],
        },
    }


FERRY = (
    tool("find_sailings", "Lists sailings between two harbours.", origin="string", day="string"),
    tool("check_space", "States how much room a sailing has left.", sailing_id="string"),
    tool("book_crossing", "Books places on a sailing.", sailing_id="string", people="integer"),
    tool("pay_crossing", "Pays a crossing from an account.", booking_id="string", account="string"),
    tool("get_tides", "Gives high and low water at a harbour.", harbour="string"),
    tool("report_loss", "Reports a thing left on board.", thing="string"),
)
CROSSING: tuple[Call, ...] = (
    ("find_sailings", {"origin": "Vik", "day": "2026-08-14"}, {"sailing_id": "S-310"}),
    ("check_space", {"sailing_id": "S-310"}, {"left": 14}),
    ("book_crossing", {"sailing_id": "S-310", "people": 4}, {"booking_id": "B-9021"}),
    ("pay_crossing", {"booking_id": "B-9021", "account": "T-7715"}, {"paid": True}),
)
QUERY = "Four of us (4 people) sail from Vik on 2026-08-14. Book it and pay from account T-7715."


def seed_of(
    *calls: Call,
    name: str = "ferry-1",
    query: str = QUERY,
    tools: tuple[dict[str, Any], ...] = FERRY,
    files: tuple[FileRef, ...] = (),
    needs: dict[int, dict[str, int]] | None = None,
    **fields: Any,
) -> Seed:
    """A seed whose solution is these calls, each a step of its own; a crossing by default."""
    calls = calls or CROSSING
    if needs is None and calls == CROSSING:
        needs = {1: {"sailing_id": 0}, 2: {"sailing_id": 0}, 3: {"booking_id": 2}}
    steps = [TrajectoryStep(source="user", text=query)]
    listed: list[SeedCall] = []
    for at, (tool_name, arguments, result) in enumerate(calls):
        text = None if result is None else json.dumps(result)
        observed = () if text is None else (ToolResult(content=text, call_id=f"call_{at}"),)
        steps.append(
            TrajectoryStep(
                source="agent",
                kind="call",
                calls=(ToolCall(tool_name, arguments, f"call_{at}"),),
                observations=observed,
            )
        )
        listed.append(SeedCall(tool_name, arguments, at + 1, text, (needs or {}).get(at, {})))
    run = Trajectory(
        trajectory_id=name,
        case_id=name,
        tested_model="",
        query=query,
        system_prompt="You help travellers.",
        tools=tools,
        steps=tuple(steps),
        place=LogPlace("messages", "", "town.jsonl", 1),
    )
    return Seed(trajectory=run, calls=tuple(listed), files=files, source="town", **fields)


def context_of(*seeds: Seed, **settings: Any) -> Context:
    """What transforms know, with the tools of some seeds as the pool."""
    pool = ToolPool()
    for seed in seeds:
        pool.add(seed)
    pool.close()
    return Context(**{"seed": 7, "pool": pool, **settings})


BAKERY = seed_of(
    name="bakery",
    category="Shopping",
    tools=tuple(
        tool(name, f"{text}.", thing="string")
        for name, text in (
            ("list_breads", "Lists the breads of a bakery"),
            ("order_loaves", "Orders loaves to be collected"),
            ("rate_bakery", "Leaves a mark for a bakery"),
            ("water_garden", "Waters a bed of the garden"),
            ("lend_novel", "Lends a novel to a reader"),
            ("tune_piano", "Sends somebody who tunes a piano"),
            ("sharpen_knife", "Sharpens a kitchen knife"),
            ("paint_fence", "Paints a wooden fence"),
            ("walk_dog", "Walks a dog in the park"),
            ("mend_shoe", "Mends the sole of a shoe"),
        )
    ),
)
"""Another seed, whose tools are of no use for a crossing."""
TOWN = Path(__file__).parents[3] / "examples" / "trajectories" / "town.jsonl"
"""Runs of an agent in a small town, with results, as ``build`` takes them."""
