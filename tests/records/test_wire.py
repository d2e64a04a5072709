"""Rows in the published format and in plain JSON become the same items; faults name their field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apbjudge.errors import RowError
from apbjudge.records import FileRef, Prediction, Row
from apbjudge.records.rows import item_row
from tests.support.rows import (
    FIND_OK,
    MAIL_OK,
    SEAT_OK,
    plan,
    plan_row,
    published,
    read,
    step,
    step_row,
)

FULL_PLAN = plan_row(
    plan(FIND_OK, SEAT_OK),
    split="holistic_tool_extraneous",
    planning_regime="Holistic",
    task_category="rail booking",
    source="own",
    files=[{"type": "image", "path": "a/b.png"}],
    tool_names=["find_trains", "extra"],
    extraneous_tool_names=["send_mail"],
    plan="Find, then reserve.",
    tool_chain=plan(FIND_OK, SEAT_OK)["tool_chain"],
)
FULL_STEPS = step_row(
    [step(FIND_OK), step(SEAT_OK)],
    k=2,
    split="step_wise_tool_broken",
    planning_regime="Step-wise",
    stage="late",
    trajectory_prefix=[step(MAIL_OK), {"role": "tool", "content": "error 503"}],
    ground_truth_steps=[step(FIND_OK)],
    reference_remaining_steps=[step(SEAT_OK)],
    broken_tool_name="send_mail",
    replacement_tool={"name": "find_trains", "parameters": {"type": "object"}},
)


@pytest.mark.parametrize("row", [FULL_PLAN, FULL_STEPS], ids=["plan", "steps"])
def test_the_published_format_and_plain_json_make_the_same_item(row: dict[str, Any]) -> None:
    assert read(published(row)) == read(row)


def test_every_field_of_a_plan_row_arrives() -> None:
    item = read(published(FULL_PLAN))
    assert (item.item_id, item.case_id) == ("case-1", "case-1")
    assert (item.tested_model, item.form) == ("alder", "plan")
    assert item.files == (FileRef(type="image", path="a/b.png"),)
    assert item.tools is not None
    assert item.tools.names == {"find_trains", "reserve_seat", "send_mail", "extra"}
    assert item.condition.extraneous == ("send_mail",)
    assert item.condition.horizon is None
    assert item.reference is not None
    assert item.reference.plan == "Find, then reserve."
    assert [c.name for c in item.reference.calls] == ["find_trains", "reserve_seat"]
    assert [c.name for c in item.prediction.calls] == ["find_trains", "reserve_seat"]
    assert item.groups == {
        "dataset": "own",
        "category": "rail booking",
        "modality": "image",
        "stage": None,
        "steps": "1-5",
        "horizon": None,
        "level": 1,
        "unsolvable_type": None,
    }


def test_every_field_of_a_step_row_arrives() -> None:
    item = read(published(FULL_STEPS))
    assert item.form == "steps"
    assert [m.get("role") for m in item.trajectory] == ["assistant", "tool"]
    assert item.condition.horizon == 2
    assert item.condition.broken_tool == "send_mail"
    assert item.condition.replacement is not None
    assert item.condition.replacement.name == "find_trains"
    assert item.reference is not None
    assert [c.name for c in item.reference.calls] == ["find_trains"]
    assert (item.groups["stage"], item.groups["horizon"], item.groups["steps"]) == ("late", 2, None)


NESTED_FIELDS = (
    "tools tool_names extraneous_tool_names tool_chain trajectory_prefix ground_truth_steps "
    "replacement_tool files"
).split()


@pytest.mark.parametrize("name", NESTED_FIELDS)
def test_an_empty_published_field_is_a_missing_one(name: str) -> None:
    base = step_row(step(), tools=None)
    for empty in ("", "null", None):
        assert read(base | {f"{name}_json": empty}) == read(base)


def test_what_is_derived_of_a_row() -> None:
    """The horizon and the groups where the row does not state them."""
    for value in (2, "3", None):
        horizon = read(step_row([step()], prediction_horizon=value)).condition.horizon
        assert horizon == int(value or 1)
    for n, steps in ((5, "1-5"), (6, "6-10"), (10, "6-10"), (15, "11-15"), (21, ">20")):
        assert read(plan_row("x", tool_chain=[{"name": "find"}] * n)).groups["steps"] == steps
    for files, modality in (
        ([], "text"),
        ([{"type": "Image", "path": "a.png"}], "image"),
        ([{"type": "image", "path": "a"}, {"type": "video", "path": "b"}], "video"),
        (["notes.txt"], "text"),
    ):
        assert read(plan_row("x", files=files)).groups["modality"] == modality
        assert read(plan_row("x", files=files, modality="audio")).groups["modality"] == "audio"


def cut_row(n_made: int, n_left: int, **fields: Any) -> dict[str, Any]:
    """A step-wise row after some answered calls, with others left after the reference."""
    answered = [
        [step(MAIL_OK) | {"role": "assistant"}, {"role": "tool", "content": "sent"}]
    ] * n_made
    prefix = [message for pair in answered for message in pair]
    rest = [step(SEAT_OK)] * n_left
    known = {"trajectory_prefix": prefix, "reference_remaining_steps": rest}
    return step_row(step(), **{"ground_truth_steps": [step(FIND_OK)], **known, **fields})


@pytest.mark.parametrize(
    ("n_made", "n_left", "stage"),
    [
        *((0, 3, "early"), (1, 2, "early"), (4, 7, "early"), (3, 4, "middle"), (3, 0, "late")),
        *((1, 0, "middle"), (4, 2, "middle"), (5, 2, "late"), (9, 0, "late")),  # .375, .625: later
    ],
)
def test_a_stage_that_is_not_stated_follows_from_the_prefix(
    n_made: int, n_left: int, stage: str
) -> None:
    row = cut_row(n_made, n_left)
    for each in (row, published(row)):
        groups = read(each).groups
        assert (groups["stage"], groups["stage_from"]) == (stage, "prefix")
    # the rest may begin with the reference
    both = row | {"reference_remaining_steps": [step(FIND_OK), *row["reference_remaining_steps"]]}
    assert read(both).groups["stage"] == stage
    again = read(item_row(read(row))).groups
    assert (again["stage"], again["stage_from"]) == (stage, "prefix")


@pytest.mark.parametrize(
    ("fields", "stage"),
    [
        ({"stage": "late"}, "late"),
        ({"reference_remaining_steps": None}, None),
        ({"broken_tool_name": "send_mail"}, None),
        ({"trajectory_prefix": [{"role": "user", "content": "Go on."}]}, None),
        ({"ground_truth_steps": None}, None),
    ],
)
def test_a_stage_is_derived_only_where_it_follows(
    fields: dict[str, Any], stage: str | None
) -> None:
    groups = read(cut_row(1, 2, **fields)).groups
    assert groups["stage"] == stage
    assert "stage_from" not in groups


@pytest.mark.parametrize("row", [FULL_PLAN, FULL_STEPS], ids=["plan", "steps"])
def test_a_case_is_its_item_without_tested_model_and_response(row: dict[str, Any]) -> None:
    case, item = Row(row, 3).to_case(), Row(row, 3).to_item()
    empty = {"tested_model": "", "response": "", "prediction": Prediction(kind="text")}
    assert case == item.model_copy(update=empty)
    assert case.content_id == item.content_id
    bare = {k: v for k, v in row.items() if k not in ("tested_model", "model_response")}
    assert Row(bare, 3).to_case() == case
    odd = row | {"tested_model": 1.5, "model_response": None}
    assert Row(odd, 3).to_case() == case


def test_the_id_of_a_case() -> None:
    for ids, expected in (
        ({"item_id": "a"}, ("a", "a")),
        ({"case_id": "a"}, ("a", "a")),
        ({"id": "a", "case_id": "b"}, ("a", "b")),
    ):
        case = Row({"query": "?"} | ids, 1).to_case()
        assert (case.item_id, case.case_id) == expected
    with pytest.raises(RowError, match="field id: expected"):
        Row({}, 1).to_case()


def test_how_a_reply_ended_is_a_group_where_the_row_says_it() -> None:
    assert "finish_reason" not in read(FULL_PLAN).groups
    assert "finish_reason" not in read(FULL_PLAN | {"finish_reason": None}).groups
    row = FULL_PLAN | {"finish_reason": "length"}
    assert read(row).groups == read(FULL_PLAN).groups | {"finish_reason": "length"}
    assert "finish_reason" not in Row(row, 1).to_case().groups
    with pytest.raises(RowError, match="field finish_reason: expected a string, got 3"):
        read(FULL_PLAN | {"finish_reason": 3})


# Missing, of another type or out of range: refused by name --------------------------------------

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
    "tools": [5, "text", [5], [{"name": ""}], [{}]],
    "tool_names": [5, "text", {"a": 1}, [5], [None]],
    "ends": [5, "text", {"a": 1}, [5]],
    "extraneous_tool_names": [False, "text", {"a": 1}, [["a"]]],
    "tool_chain": [0, "text", [None], ["find_trains"]],
    "trajectory_prefix": [False, "text", {"a": 1}, ["said"]],
    "files": [0, "text", {"a": 1}, [5], [{"path": 5}], [{"type": "image"}]],
    "replacement_tool": [0, {"cost": 1}, {"name": ""}, [{"name": "a"}]],
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
    for value in ("{", "[1,]", "NaN", '"\\ud800"', "[1] [2]", " ", 5, ["x"], {"a": 1}):
        with pytest.raises(RowError) as caught:
            read(base | {f"{name}_json": value})
        assert caught.value.field == f"{name}_json"
