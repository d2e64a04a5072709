"""The way back: an item as the row it could have come from."""

from __future__ import annotations

from typing import Any

import orjson

from .items import Item
from .tools import Tool, Toolset


def item_row(item: Item) -> dict[str, Any]:
    """A row in plain JSON that is read as this item again (its line number apart).

    Args:
        item: The item.

    Returns:
        The row; fields that say nothing are left out. The breakdown by number of steps and by
        level follows from reference and distractors and has no field of its own.
    """
    condition, groups = item.condition, item.groups
    row: dict[str, Any] = {
        "id": item.item_id,
        "case_id": item.case_id,
        "tested_model": item.tested_model,
        "split": item.split,
        "planning_regime": "Holistic" if item.form == "plan" else "Step-wise",
        "query": item.query,
        "system_prompt": item.system_prompt,
        "files": [file.model_dump() for file in item.files],
        **_tool_fields(item.tools),
        "prediction_horizon": condition.horizon,
        "trajectory_prefix": list(item.trajectory) or None,
        **_reference_fields(item),
        "extraneous_tool_names": list(condition.extraneous),
        "broken_tool_name": condition.broken_tool,
        "replacement_tool": _tool(condition.replacement),
        "unsolvable_type": condition.unsolvable_type,
        "format_demanded": item.format_demanded or None,
        "source": groups.get("dataset"),
        "task_category": groups.get("category"),
        "modality": groups.get("modality"),
        "stage": groups.get("stage"),
    }
    fields = {name: value for name, value in row.items() if value not in (None, "", [], {})}
    if item.tools is not None:
        fields["tools"] = orjson.loads(item.tools.text)
    return {**fields, "model_response": item.response}


def _tool_fields(tools: Toolset | None) -> dict[str, Any]:
    if tools is None:
        return {}
    return {"tools": orjson.loads(tools.text), "tool_names": sorted(tools.listed_names)}


def _reference_fields(item: Item) -> dict[str, Any]:
    reference = item.reference
    if reference is None:
        return {}
    name = "tool_chain" if item.form == "plan" else "ground_truth_steps"
    return {"plan": reference.plan, name: list(reference.value)}


def _tool(tool: Tool | None) -> dict[str, Any] | None:
    if tool is None:
        return None
    fields = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {k: v for k, v in {**fields, "cost": tool.cost}.items() if v is not None}
