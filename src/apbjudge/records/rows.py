"""The reverse of reading: an item as a row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from .items import Item


def item_row(item: Item) -> dict[str, Any]:
    """A row in plain JSON that is read as this item again (apart from its line number).

    Args:
        item: The item.

    Returns:
        The row without empty fields. The breakdown by number of steps and by level follows from
        reference and distractors and has no field of its own.
    """
    condition, groups = item.condition, item.groups
    tools, reference, replacement = item.tools, item.reference, condition.replacement
    row: dict[str, Any] = {
        "id": item.item_id,
        "case_id": item.case_id,
        "tested_model": item.tested_model,
        "split": item.split,
        "planning_regime": "Holistic" if item.form == "plan" else "Step-wise",
        "query": item.query,
        "system_prompt": item.system_prompt,
        "files": [file.model_dump() for file in item.files],
        "tools": tools and orjson.loads(tools.text),
        "tool_names": tools and sorted(tools.listed_names),
        "prediction_horizon": condition.horizon,
        "trajectory_prefix": list(item.trajectory),
        "plan": reference and reference.plan,
        "tool_chain" if item.form == "plan" else "ground_truth_steps": (
            reference and list(reference.value)
        ),
        "extraneous_tool_names": list(condition.extraneous),
        "broken_tool_name": condition.broken_tool,
        "replacement_tool": replacement
        and replacement.model_dump(
            include={"name", "description", "parameters", "cost"}, exclude_none=True
        ),
        "unsolvable_type": condition.unsolvable_type,
        "format_demanded": item.format_demanded or None,
        "source": groups.get("dataset"),
        "task_category": groups.get("category"),
        "modality": groups.get("modality"),
        "stage": groups.get("stage"),
        "stage_from": groups.get("stage_from"),
        "construction": item.construction
        and item.construction.model_dump(mode="json", exclude_defaults=True),
    }
    fields = {name: value for name, value in row.items() if value not in (None, "", [], {})}
    if tools is not None:  # an empty list of tools is not the same as none
        fields["tools"] = row["tools"]
    if item.ends is not None:
        fields["ends"] = sorted(item.ends)
    return {**fields, "model_response": item.response}


def known(values: Mapping[str, Any], *names: str) -> str | None:
    """The first usable string among some fields of a row that may be bad elsewhere."""
    for name in names:
        value = values.get(name)
        if isinstance(value, str) and value.strip() and value.isprintable():
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def without_sample(name: str) -> str:
    """A name without the number of a sample after it (``CASE#2``)."""
    return _SAMPLE.sub("", name)


def sample_of(name: str) -> int:
    """The number of a sample behind a name, from 1; 1 for a name without."""
    number = re.search(r"#([0-9]{1,9})$", name, re.ASCII)
    return 1 if number is None else int(number[1])


_SAMPLE = re.compile(r"#[0-9]+$", re.ASCII)
