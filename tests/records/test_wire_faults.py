"""Fields that are missing, of another type or out of range are refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apbjudge import RowError
from tests.support.rows import plan_row, read, step, step_row

NESTED_FIELDS = (
    "tools tool_names extraneous_tool_names tool_chain trajectory_prefix ground_truth_steps "
    "replacement_tool files"
).split()
TEXT_FIELDS = (
    "split query system_prompt planning_regime unsolvable_type broken_tool_name plan source "
    "task_category modality stage"
).split()
DEEP: Any = json.loads("[" * 900 + "]" * 900)
NO_TEXT = [5, True, 0.5, ["x"], {"a": 1}, DEEP]
NO_IDENTIFIER = [None, "", "  ", True, 1.5, [], "a\ud800"]
BAD: dict[str, list[Any]] = {
    **dict.fromkeys(TEXT_FIELDS, NO_TEXT),
    "split": [*NO_TEXT, "holistic"],
    "planning_regime": [*NO_TEXT, "sideways"],
    "unsolvable_type": [*NO_TEXT, "too_hard"],
    "id": NO_IDENTIFIER,
    "tested_model": NO_IDENTIFIER,
    "model_response": [None, 5, True],
    "prediction_horizon": [0, 4, 1.5, True, "0", "two", "²", "", [1], DEEP],
}


@pytest.mark.parametrize("name", BAD)
def test_a_value_of_another_type_or_out_of_range_is_refused_by_name(name: str) -> None:
    base = step_row(step()) if name == "prediction_horizon" else plan_row("x", split=None)
    for value in BAD[name]:
        with pytest.raises(RowError) as caught:
            read(base | {name: value})
        assert caught.value.field == name
        assert str(caught.value).startswith(f"field {name}: expected ")


BAD_STRUCTURES: dict[str, list[Any]] = {
    "tools": [5, True, "text", [5], [{"name": ""}], [{}], [{"name": "a", "cost": -1}]],
    "tool_names": [5, "text", {"a": 1}, [5], [None]],
    "ends": [5, "text", {"a": 1}, [5], [None]],
    "extraneous_tool_names": [5, False, "text", {"a": 1}, [5], [["a"]]],
    "tool_chain": [5, True, 0, "text", [5], [None], ["find_trains"]],
    "trajectory_prefix": [5, False, "text", {"a": 1}, [5], ["said"]],
    "files": [5, True, 0, "text", {"a": 1}, [5], [{"path": 5}], [{"type": "image"}]],
    "replacement_tool": [5, True, 0, {"cost": 1}, {"name": ""}, [{"name": "a"}]],
}


@pytest.mark.parametrize("name", BAD_STRUCTURES)
def test_a_structure_of_another_shape_is_refused_by_name_in_both_formats(name: str) -> None:
    base = {k: v for k, v in plan_row("x").items() if k != name}
    for value in BAD_STRUCTURES[name]:
        for row in (base | {name: value}, base | {f"{name}_json": json.dumps(value)}):
            with pytest.raises(RowError) as caught:
                read(row)
            assert caught.value.field.startswith(name)


@pytest.mark.parametrize("name", NESTED_FIELDS)
def test_a_published_field_that_is_no_text_of_json_is_refused_by_its_name(name: str) -> None:
    base = plan_row("x") if name == "tool_chain" else step_row(step())
    base = {key: value for key, value in base.items() if key != name}
    texts = ["{", "[1,]", "NaN", "[Infinity]", '"\\ud800"', "[1] [2]", " "]
    for value in (*texts, 5, True, ["x"], {"a": 1}):
        with pytest.raises(RowError) as caught:
            read(base | {f"{name}_json": value})
        assert caught.value.field == f"{name}_json"
