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


DEEP: Any = json.loads("[" * 900 + "]" * 900)
WRONG = [5, True, 0.5, ["x"], {"a": 1}, DEEP]
TEXT_FIELDS = (
    "split query system_prompt planning_regime unsolvable_type broken_tool_name plan source "
    "task_category modality stage"
).split()


@pytest.mark.parametrize("name", TEXT_FIELDS)
@pytest.mark.parametrize("value", WRONG, ids=["int", "bool", "float", "list", "dict", "deep"])
def test_a_text_field_of_another_type_is_refused_by_name(name: str, value: Any) -> None:
    base = plan_row("x", split=None)
    with pytest.raises(RowError) as caught:
        read(base | {name: value})
    assert caught.value.field == name
    assert str(caught.value).startswith(f"field {name}: expected ")


@pytest.mark.parametrize("name", ["id", "tested_model"])
@pytest.mark.parametrize("value", [None, "", "  ", True, 1.5, [], {}, "a\ud800"])
def test_an_unusable_identifier_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(RowError) as caught:
        read(plan_row("x") | {name: value})
    assert caught.value.field == name


@pytest.mark.parametrize("value", [None, 5, True, 0.5])
def test_a_missing_or_odd_reply_is_refused_by_name(value: Any) -> None:
    with pytest.raises(RowError) as caught:
        read(plan_row("x") | {"model_response": value})
    assert caught.value.field == "model_response"


@pytest.mark.parametrize(
    "value", [0, 4, -1, 1.5, True, "0", "4", "two", "²", "", [1], {"k": 1}, DEEP]
)
def test_a_horizon_out_of_range_is_refused_by_name(value: Any) -> None:
    with pytest.raises(RowError) as caught:
        read(step_row(step(), prediction_horizon=value))
    assert caught.value.field == "prediction_horizon"


BAD_STRUCTURES = {
    "tools": [
        5,
        True,
        "text",
        [5],
        [{"name": ""}],
        [{"name": 5}],
        [{}],
        [{"name": "a", "cost": -1}],
    ],
    "tool_names": [5, "text", {"a": 1}, [5], [None]],
    "ends": [5, "text", {"a": 1}, [5], [None]],
    "extraneous_tool_names": [5, False, "text", {"a": 1}, [5], [["a"]]],
    "tool_chain": [5, True, 0, "text", [5], [None], ["find_trains"]],
    "trajectory_prefix": [5, False, "text", {"a": 1}, [5], ["said"]],
    "files": [5, True, 0, "text", {"a": 1}, [5], [{"path": 5}], [{"type": "image"}]],
    "replacement_tool": [5, True, 0, {"cost": 1}, {"name": ""}, [{"name": "a"}]],
}


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in BAD_STRUCTURES.items() for v in values], ids=str
)
def test_a_structure_of_another_shape_is_refused_by_name_in_both_formats(
    name: str, value: Any
) -> None:
    base = {k: v for k, v in plan_row("x").items() if k != name}
    for row in (base | {name: value}, base | {f"{name}_json": json.dumps(value)}):
        with pytest.raises(RowError) as caught:
            read(row)
        assert caught.value.field.startswith(name)


def _without(name: str) -> dict[str, Any]:
    """A row of the form that reads a field, without that field."""
    row = plan_row("x") if name == "tool_chain" else step_row(step())
    return {key: value for key, value in row.items() if key != name}


@pytest.mark.parametrize("name", NESTED_FIELDS)
@pytest.mark.parametrize("text", ["{", "[1,]", "NaN", "[Infinity]", '"\\ud800"', "[1] [2]", " "])
def test_text_that_is_no_json_is_refused_by_the_published_name(name: str, text: str) -> None:
    base = _without(name)
    with pytest.raises(RowError) as caught:
        read(base | {f"{name}_json": text})
    assert caught.value.field == f"{name}_json"


@pytest.mark.parametrize("name", NESTED_FIELDS)
@pytest.mark.parametrize("value", [5, True, ["x"], {"a": 1}])
def test_a_published_field_that_is_no_text_is_refused_by_name(name: str, value: Any) -> None:
    base = _without(name)
    with pytest.raises(RowError) as caught:
        read(base | {f"{name}_json": value})
    assert caught.value.field == f"{name}_json"
