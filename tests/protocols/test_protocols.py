"""Which protocol grades a row, what it needs of it, and which rubric it takes."""

from __future__ import annotations

from typing import Any

import pytest

from apbjudge import OptionError, RowError, grade
from apbjudge.protocols import get_protocol, protocol_of
from apbjudge.rubrics import load_rubric
from tests.support.rows import (
    FIND_OK,
    SEAT_OK,
    TOOLS,
    findings,
    plan,
    plan_row,
    published,
    read,
    step,
    step_row,
)

BY_SPLIT = {
    "holistic_planning": ("holistic", {}),
    "holistic_tool_extraneous": ("tool-extraneous", {"extraneous_tool_names": ["paint"]}),
    "holistic_unsolvable": ("unsolvable", {"unsolvable_type": "tool_removal"}),
    "step_wise_planning": ("step-wise", {}),
    "step_wise_tool_extraneous": ("tool-extraneous", {"extraneous_tool_names": ["paint"]}),
    "step_wise_tool_broken": ("tool-broken", {"broken_tool_name": "send_mail"}),
}


@pytest.mark.parametrize("split", BY_SPLIT)
def test_auto_takes_the_protocol_of_the_split(split: str) -> None:
    name, fields = BY_SPLIT[split]
    is_plan = split.startswith("holistic")
    row = plan_row(plan(FIND_OK), split=split) if is_plan else step_row(step(SEAT_OK), split=split)
    judged = grade([row | fields, published(row | fields | {"id": "b"})]).judgements
    assert [(of.kind, of.protocol) for of in judged] == [("verdict", name)] * 2


PRICED = [spec | {"cost": 1} for spec in TOOLS]
BY_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "holistic"),
    "regime in small letters": ({"planning_regime": "step-wise"}, "step-wise"),
    "horizon": ({"prediction_horizon": 2}, "step-wise"),
    "distractors": ({"extraneous_tool_names": ["paint"]}, "tool-extraneous"),
    "distractors in steps": (
        {"extraneous_tool_names": ["paint"], "prediction_horizon": 1},
        "tool-extraneous",
    ),
    "broken tool": ({"broken_tool_name": "find_trains", "prediction_horizon": 1}, "tool-broken"),
    "broken tool alone": ({"broken_tool_name": "find_trains"}, "tool-broken"),
    "unsolvable": ({"unsolvable_type": "visual_missing"}, "unsolvable"),
    "costs": ({"tools": PRICED}, "efficiency"),
    "costs of some": ({"tools": [PRICED[0], TOOLS[1]]}, "holistic"),
    "unsolvable with costs": ({"unsolvable_type": "visual_missing", "tools": PRICED}, "unsolvable"),
}


@pytest.mark.parametrize(("fields", "name"), BY_FIELDS.values(), ids=BY_FIELDS)
def test_without_a_split_auto_goes_by_the_fields(fields: dict[str, Any], name: str) -> None:
    row = plan_row(plan(FIND_OK), split=None) | fields
    assert protocol_of(read(row)).name == name


def test_an_empty_field_does_not_make_a_row_step_wise() -> None:
    for name, value in (
        ("ground_truth_steps", []),
        ("ground_truth_steps_json", "[]"),
        ("trajectory_prefix", []),
        ("planning_regime", ""),
    ):
        assert read(plan_row(plan(FIND_OK), split=None, **{name: value})).form == "plan", name


@pytest.mark.parametrize(
    ("name", "row", "field"),
    [
        ("tool-broken", step_row(step(FIND_OK)), "broken_tool_name"),
        ("unsolvable", plan_row(plan(FIND_OK)), "unsolvable_type"),
        ("efficiency", plan_row(plan(FIND_OK)), "tools"),
    ],
)
def test_a_protocol_names_the_field_it_misses(name: str, row: dict[str, Any], field: str) -> None:
    with pytest.raises(RowError) as caught:
        findings(row, protocol=name)
    assert caught.value.field == field


def test_a_rubric_that_does_not_fit_is_refused_by_name() -> None:
    for protocol, rubric in (("holistic", "apb-step-wise@1"), ("tool-broken", "apb-step-wise@1")):
        with pytest.raises(OptionError, match=rubric):
            get_protocol(protocol).check_rubric(load_rubric(rubric))


def test_the_strict_rubric_without_distractors_is_refused_where_there_are_some() -> None:
    named = "expected apb-extraneous-step-strict@1 for protocol tool-extraneous"
    strict = load_rubric("apb-step-wise-strict@1")
    with pytest.raises(OptionError, match=f"--rubric: {named}"):
        get_protocol("tool-extraneous").check_rubric(strict)
    rows = [
        step_row(step(SEAT_OK), id=name, split=split)
        for name, split in (("a", "step_wise_tool_extraneous"), ("b", "step_wise_planning"))
    ]
    refused, judged = grade(rows, rubric="apb-step-wise-strict@1").judgements
    assert (refused.reason, judged.rubric) == ("bad_input", strict.ref)
    assert f"field rubric: {named}" in str(refused.detail)
    read_right = grade(rows[:1], rubric="apb-extraneous-step-strict@1").judgements
    assert [of.kind for of in read_right] == ["verdict"]


@pytest.mark.parametrize("tools", [PRICED, [*PRICED, {"name": "bundle", "cost": 0}]])
def test_efficiency_checks_a_plan_like_any_other_and_adds_its_cost(tools: Any) -> None:
    row = plan_row(plan(FIND_OK, SEAT_OK, ("reserve_seat", {})), split=None, tools=tools)
    (judged,) = grade([row], protocol="efficiency").judgements
    assert judged.kind == "verdict"
    assert judged.plan_cost == 3.0
    assert [(f.code, f.rule) for f in judged.findings] == [("E5", "missing-parameter")]
