"""--by: the same figures for parts of the rows."""

from __future__ import annotations

import pytest

from apbjudge import OptionError
from apbjudge.judge.summary import check_by
from apbjudge.records.judgement_table import BY_FIELDS

from .rows import about, bad_row, group, points, summary_of, unscored, verdict

VALUES = {
    "category": ("finance", "travel"),
    "modality": ("text", "image"),
    "stage": ("early", "late"),
    "steps": ("1-5", ">20"),
    "horizon": (1, 3),
    "dataset": ("GAIA", "GTA"),
}


def test_every_field_of_the_tables_can_be_asked_for() -> None:
    assert set(BY_FIELDS) == set(VALUES)


@pytest.mark.parametrize("field", VALUES)
def test_each_part_has_its_own_figures_and_missing_values_stand_last(field: str) -> None:
    first, second = VALUES[field]
    protocol = "holistic" if field == "steps" else "step-wise"
    base = {"horizon": 2} if protocol == "step-wise" else {}
    values = [second, first, None, first, second, second, None]
    rows = [
        verdict(str(i), "" if i % 2 else "E3", protocol=protocol, groups={**base, field: value})
        for i, value in enumerate(values)
    ]
    rows += [unscored("x", protocol=protocol, groups={**base, field: second}), bad_row(9)]
    parts = [g for g in summary_of(rows, field).groups if g.by]
    shown = [(g.by[field], g.n, g.scored, points(g.figures, "CR")["CR"]) for g in parts]
    expected = {
        str(first): (str(first), 2, 2, (1.0, 2)),
        str(second): (str(second), 4, 3, about(1 / 3, 3)),
        "": (None, 2, 2, (0.0, 2)),
    }
    if field == "horizon":  # without a horizon a row is of the other form, which comes first
        assert shown == [expected[""], expected[str(first)], expected[str(second)]]
    else:
        assert shown == [expected[str(first)], expected[str(second)], expected[""]]


def test_a_field_that_no_row_states_gives_one_part_without_a_value() -> None:
    summary = summary_of([verdict("a"), verdict("b", "E1")], "stage")
    part = group(summary, by={"stage": None})
    assert points(part.figures, "CR") == {"CR": (0.5, 2)}


def test_whole_groups_come_first_and_several_fields_are_not_crossed() -> None:
    groups = {"category": "travel", "dataset": "GTA"}
    rows = [verdict("a", groups=groups), verdict("b", tested_model="n", groups=groups)]
    shown = [(g.tested_model, g.by) for g in summary_of(rows, "dataset", "category").groups]
    assert shown == [
        ("m", {}),
        ("n", {}),
        ("m", {"dataset": "GTA"}),
        ("n", {"dataset": "GTA"}),
        ("m", {"category": "travel"}),
        ("n", {"category": "travel"}),
    ]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("steps", ["1-5", "6-10", "11-15", "16-20", ">20", None]),
        ("stage", ["early", "middle", "late", None]),
        ("modality", ["text", "image", "video", None]),
        ("category", ["Finance", "travel", "web", None]),
    ],
)
def test_parts_stand_in_the_order_of_the_tables(field: str, values: list[str | None]) -> None:
    rows = [verdict(str(value), groups={field: value}) for value in reversed(values)]
    parts = [g.by[field] for g in summary_of(rows, field).groups if g.by]
    assert parts == values


def test_the_parts_of_a_group_add_up_to_it() -> None:
    names = ["travel", "retail", None]
    rows = [
        verdict(str(i), "E4" if i % 7 == 0 else "", groups={"category": names[i % 3]})
        for i in range(40)
    ]
    summary = summary_of(rows, "category")
    parts = [g for g in summary.groups if g.by]
    whole = group(summary).figures["E4"]
    assert sum(g.n for g in parts) == 40
    hits = sum((g.figures["E4"].value or 0) * g.figures["E4"].n_items for g in parts)
    assert hits / 40 == pytest.approx(whole.value)


def test_an_unknown_field_is_refused_by_name() -> None:
    expected = r"--by: expected some of category,.*dataset, got 'colour'"
    with pytest.raises(OptionError, match=expected):
        summary_of([], "category", "colour")
    with pytest.raises(OptionError, match=expected):
        check_by(["colour"])
    check_by(["stage", "steps"])
