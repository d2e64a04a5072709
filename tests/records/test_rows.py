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


TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
NAME = st.text("abc_XY 1", min_size=1, max_size=6).filter(str.strip)
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)
OBJECT = st.dictionaries(st.text("abc", max_size=3), VALUE, max_size=3)
SCHEMA = st.one_of(
    st.none(),
    st.just({}),
    OBJECT,
    st.fixed_dictionaries({"type": st.just("object"), "properties": st.just({"a": {}})}),
)
TOOL = st.fixed_dictionaries(
    {"name": NAME}, optional={"description": TEXT, "parameters": SCHEMA, "cost": st.integers(0, 9)}
)
WRAPPED = st.one_of(TOOL, TOOL.map(lambda spec: {"type": "function", "function": spec}))
CALL = st.one_of(
    st.fixed_dictionaries({"name": NAME, "parameter_description": OBJECT, "reason": TEXT}), OBJECT
)
STEP = st.fixed_dictionaries(
    {"role": st.sampled_from(["assistant", "tool"]), "thought": TEXT},
    optional={"tool_calls": st.lists(CALL, max_size=2), "content": VALUE},
)
FILE = st.one_of(TEXT, st.fixed_dictionaries({"type": TEXT, "path": TEXT}))
ROWS = st.fixed_dictionaries(
    {"id": NAME, "tested_model": NAME, "model_response": st.one_of(TEXT, OBJECT)},
    optional={
        "case_id": st.one_of(st.just(""), st.just(0), NAME),
        "split": st.sampled_from(sorted(SPLITS)),
        "planning_regime": st.sampled_from(["Holistic", "step-wise", ""]),
        "query": TEXT,
        "system_prompt": TEXT,
        "files": st.lists(FILE, max_size=2),
        "tools": st.one_of(
            st.lists(WRAPPED, max_size=3),
            st.dictionaries(NAME, st.fixed_dictionaries({"description": TEXT}), max_size=2),
        ),
        "tool_names": st.lists(NAME, max_size=3),
        "ends": st.none() | st.lists(NAME, max_size=2),
        "prediction_horizon": st.sampled_from([None, 1, 2, 3, "2"]),
        "trajectory_prefix": st.lists(STEP, max_size=2),
        "plan": TEXT,
        "tool_chain": st.one_of(CALL, st.lists(CALL, max_size=3)),
        "ground_truth_steps": st.one_of(STEP, st.lists(STEP, max_size=3)),
        "extraneous_tool_names": st.lists(NAME, max_size=3),
        "broken_tool_name": TEXT,
        "replacement_tool": st.one_of(NAME, WRAPPED, st.just({})),
        "unsolvable_type": st.sampled_from([*UNSOLVABLE_TYPES, ""]),
        "source": TEXT,
        "task_category": TEXT,
        "modality": TEXT,
        "stage": TEXT,
    },
)


@settings(max_examples=40)
@given(row=ROWS)
def test_any_readable_row_comes_back(row: dict[str, Any]) -> None:
    check(Row(row, 7).to_item())
