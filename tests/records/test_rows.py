"""The way back from an item to a row: what is read again is the same item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.records import SPLITS, UNSOLVABLE_TYPES, Item, Row
from apbjudge.records.rows import item_row

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = sorted(path for path in EXAMPLES.glob("*.jsonl") if path.stem != "cases")


def check(item: Item) -> None:
    row = item_row(item)
    assert Row(row, item.line).to_item() == item
    assert Row(orjson.loads(orjson.dumps(row)), item.line).to_item() == item


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_every_example_comes_back(path: Path) -> None:
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert rows
    for number, row in enumerate(rows, start=1):
        check(Row(row, number).to_item())


ODD: dict[str, list[Any]] = {
    "case_id": ["", 0, "c"],
    "planning_regime": ["step-wise", ""],
    "query": ["", " ü\n"],
    "system_prompt": [""],
    "files": [[], ["a.txt", {"type": "x", "path": ""}]],
    "tools": [
        [],
        {"a": {"description": "x"}, "b": {"description": ""}},
        [{"name": "a", "parameters": {}}, {"name": "b", "parameters": {"c": [1]}, "cost": 0}],
        [{"type": "function", "function": {"name": "a", "parameters": None, "cost": 2}}],
    ],
    "tool_names": [[], ["a", "c", "a"]],
    "ends": [None, [], ["a"]],
    "prediction_horizon": [None, 1, "2"],
    "trajectory_prefix": [[], [{"role": "tool", "thought": "", "content": {"a": [1, None]}}]],
    "plan": [""],
    "tool_chain": [{"name": "a", "parameter_description": {}, "reason": ""}, [{"c": {"a": 1}}]],
    "ground_truth_steps": [
        [],
        {"role": "assistant", "tool_calls": [{"name": "a"}]},
    ],
    "extraneous_tool_names": [["a", "b"]],
    "broken_tool_name": ["", "a"],
    "replacement_tool": ["a", {}, {"name": "a", "parameters": {}}],
    "unsolvable_type": ["", *UNSOLVABLE_TYPES],
    "split": sorted(SPLITS),
    "modality": ["", "audio"],
    "stage": [""],
    "model_response": ["", {"a": None}],
}
EXAMPLE_ROWS = [orjson.loads(path.read_bytes().splitlines()[0]) for path in ROWS]


@settings(max_examples=60)
@given(
    row=st.sampled_from(EXAMPLE_ROWS),
    left_out=st.sets(st.sampled_from(sorted({*ODD} - {"model_response"}))),
    odd=st.fixed_dictionaries({}, optional={name: st.sampled_from(ODD[name]) for name in ODD}),
)
def test_any_readable_row_comes_back(
    row: dict[str, Any], left_out: set[str], odd: dict[str, Any]
) -> None:
    gone = left_out | odd.keys()
    kept = {name: value for name, value in row.items() if name.removesuffix("_json") not in gone}
    check(Row(kept | odd, 7).to_item())
