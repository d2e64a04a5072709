"""Figures of a run's summary, by hand: rates, grades, behaviours, refusals, costs, and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from apbjudge import OptionError, Summary, summary_text
from apbjudge.records import Finding
from apbjudge.statistics import modified_wilson, wilson

from .rows import Row, about, bad_row, figures_of, group, points, summary_of, unscored, verdict

# CR, Grade and E1-E6 ------------------------------------------------------------------------------


FOUR = [verdict("a"), verdict("b", "E5", grade=0.8), verdict("c", "E2 E5", grade=0.4), verdict("d")]


def test_figures_of_four_plans_are_what_one_counts_by_hand() -> None:
    hits = {"CR": 2, "E1": 0, "E2-H": 1, "E3": 0, "E4": 0, "E5": 2, "E6": 0}
    figures = group(summary_of(FOUR)).figures
    assert list(figures) == ["CR", "Grade", *list(hits)[1:]]
    assert points(figures, "Grade") == {"Grade": about(0.8, 4)}
    for name, n in hits.items():
        assert points(figures, name) == {name: (n / 4, 4)}
        assert figures[name].method == ("wilson-modified" if 0 < n < 4 else "wilson")
        assert (figures[name].low, figures[name].high) == modified_wilson(n, 4)
        assert (figures[name].level, figures[name].n_clusters) == (0.95, 4)


def test_rows_that_share_cases_are_taken_by_case() -> None:
    rows = [
        verdict(f"{case}{i}", "E4" if case == "c" and i else "", case_id=case, tested_model="m")
        for case in "abcdef"
        for i in range(3)
    ]
    figures = group(summary_of(rows)).figures
    assert points(figures, "CR") == {"CR": about(16 / 18, 18)}
    assert (figures["CR"].method, figures["CR"].n_clusters) == ("wilson-effective", 6)
    assert (figures["E1"].method, figures["E1"].high) == ("wilson-clusters", wilson(0, 6)[1])


def test_a_group_without_any_verdict_is_listed_without_a_rate() -> None:
    whole = group(summary_of([unscored("a"), unscored("b", "budget")]))
    assert (whole.n, whole.scored) == (2, 0)
    assert points(whole.figures) == {"CR": (None, 0), "CR bounds": (None, 2)}
    bounds = whole.figures["CR bounds"]
    assert (bounds.low, bounds.high) == (0.0, 1.0)
    assert (whole.figures["CR"].low, whole.figures["CR"].high) == (None, None)


def test_a_run_without_items_has_totals_and_no_groups() -> None:
    summary = summary_of([bad_row(1), bad_row(2)], "category", "horizon")
    assert summary.groups == ()
    assert (summary.totals.rows, summary.scored) == (2, 0)


def test_usage_and_price_are_added_up_and_one_unknown_price_makes_the_total_unknown() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "cached_tokens": 4, "calls": 2}
    rows = [verdict("a", usage=usage, cost_usd=0.25), unscored("b", usage=usage, cost_usd=0.5)]
    totals = summary_of([*rows, bad_row(3)]).totals
    assert (totals.prompt_tokens, totals.completion_tokens) == (20, 6)
    assert (totals.cached_tokens, totals.calls, totals.cost_usd) == (8, 4, 0.75)
    unknown = verdict("c", usage=usage, cost_usd=None)
    for several in ([*rows, unknown], [unknown, *rows]):
        assert summary_of(several).totals.cost_usd is None


def test_overridden_and_inconsistent_verdicts_are_counted_per_group() -> None:
    override = {"field": "is_correct", "was": True, "now": False, "because": "proven: x"}
    rows = [
        verdict("a", "E5", overrides=(override, {**override, "field": "grade"})),
        verdict("b", inconsistent=True),
        verdict("c", tested_model="other", inconsistent=True, overrides=(override,)),
    ]
    summary = summary_of(rows)
    counts = {g.tested_model: (g.inconsistent, g.overridden) for g in summary.groups}
    assert counts == {"m": (1, 1), "other": (1, 1)}
    assert (summary.totals.inconsistent, summary.totals.overridden) == (2, 2)


def test_where_code_decides_alone_or_in_part_figures_are_bounds() -> None:
    rows = [
        verdict(name, flags, judge="static", grade=None) for name, flags in (("a", ""), ("b", "E5"))
    ]
    figures = group(summary_of(rows)).figures
    assert "CR" not in figures
    assert (figures["no provable fault"].value, figures["no provable fault"].bound) == (
        0.5,
        "upper",
    )
    assert (figures["E5"].value, figures["E5"].bound) == (0.5, "lower")
    assert "no grade" in figures["Grade"].note
    rows = [verdict("a", judge="c", decided_by="static", grade=None), verdict("b", judge="c")]
    figures = group(summary_of(rows)).figures
    assert (figures["CR"].value, figures["CR"].bound) == (1.0, "upper")
    assert figures["Grade"].n_items == 1


def test_over_refusals_are_of_the_rows_that_code_read_whoever_judges() -> None:
    rows = [verdict(str(i), over_refusal=i < 3, judge="j") for i in range(8)]
    rows += [unscored("u", over_refusal=True), verdict("old"), verdict("steps", over_refusal=None)]
    over = group(summary_of(rows)).figures["over-refusal"]
    assert (over.value, over.n_items, over.bound) == (4 / 9, 9, "")
    assert (over.low, over.high) == wilson(4, 9)
    alone = [{**row, "judge": "static"} for row in rows]
    assert group(summary_of(alone)).figures["over-refusal"] == over


def test_truncated_replies_are_counted_among_those_that_say_how_they_ended() -> None:
    ends = ["stop", "length", "LENGTH", "max_tokens", "MAX_TOKENS", "tool_calls", None]
    rows = [verdict(str(i), groups={"finish_reason": end}) for i, end in enumerate(ends)]
    rows += [verdict("old"), unscored("u", groups={"finish_reason": "length"})]
    cut = group(summary_of(rows)).figures["truncated"]
    assert (cut.value, cut.n_items, cut.bound) == (5 / 7, 7, "")


# Behaviours after a broken tool, refusals ---------------------------------------------------------


def test_behaviours_and_refusals_are_over_the_scored_rows() -> None:
    of: dict[str, Any] = {"protocol": "tool-broken", "groups": {"horizon": 1}}
    rows = [
        verdict(str(i), category=category, is_correct=category in (1, 2, None), **of)
        for i, category in enumerate([1, 1, 2, None, 3, 3, 4, 5])
    ]
    assert figures_of([*rows, unscored("x", **of), unscored("y", **of)]) == {
        "CR": (0.5, 8),
        "CR bounds": (None, 10),
        "1 replacement": (0.25, 8),
        "2 alternative": (0.125, 8),
        "3 retry": (0.25, 8),
        "4 refusal": (0.125, 8),
        "5 other": (0.125, 8),
        "undecided": (0.125, 8),
    }
    passes = {"information_missing": [1, 0, 0, 0], "tool_removal": [0], "visual_missing": [1, 1, 0]}
    late = {"unsolvable_type": "tool_removal"}
    rows = [unscored("late", protocol="unsolvable", groups=late)]
    for kind, oks in passes.items():
        of = {"protocol": "unsolvable", "groups": {"unsolvable_type": kind}}
        rows += [verdict(f"{kind}{i}", is_correct=bool(ok), **of) for i, ok in enumerate(oks)]
    figures = figures_of(rows)
    assert {name: of for name, of in figures.items() if name.startswith("refusal")} == {
        "refusal information_missing": (0.25, 4),
        "refusal tool_removal": (0.0, 1),
        "refusal visual_missing": about(2 / 3, 3),
    }


# Costs --------------------------------------------------------------------------------------------


COSTS = ("C_all", "C_pass", "C_com")


def plan(model: str, case: str, cost: float | None, flags: str = "", **fields: object) -> Row:
    return verdict(case, flags, protocol="efficiency", tested_model=model, plan_cost=cost, **fields)


def costs(summary: Summary, model: str) -> dict[str, tuple[float | None, int]]:
    return points(group(summary, model=model).figures, *COSTS)


def test_a_case_that_one_tested_model_has_unscored_is_not_common_in_any_part() -> None:
    rows = [
        plan("a", "1", 10),
        plan("a", "2", 20, groups={"category": "retail"}),
        plan("b", "1", 11),
    ]
    rows.append(unscored("2", protocol="efficiency", tested_model="b", plan_cost=21))
    summary = summary_of(rows, "category")
    assert costs(summary, "a") == {"C_all": (15, 2), "C_pass": (15, 2), "C_com": (10, 1)}
    assert costs(summary, "b") == {"C_all": (16, 2), "C_pass": (11, 1), "C_com": (11, 1)}
    figures = group(summary, model="a", by={"category": "retail"}).figures
    assert points(figures, "C_com") == {"C_com": (None, 0)}


def test_a_case_with_several_rows_is_right_when_all_of_them_are() -> None:
    rows = [plan("a", "1-x", 1, case_id="1"), plan("a", "1-y", 2, "E4", case_id="1")]
    rows += [plan("a", "2-x", 4, case_id="2"), plan("a", "2-y", 8, case_id="2")]
    summary = summary_of([*rows, plan("b", "1", 16), plan("b", "2", 32)])
    expected = {"C_all": (3.75, 4), "C_pass": about(13 / 3, 3), "C_com": (6, 2)}
    assert costs(summary, "a") == expected
    assert costs(summary, "b")["C_com"] == (32, 1)


# Replies in another form --------------------------------------------------------------------------


OFF = Finding(rule="format", code="E3", certainty="suspected", where="response", message="no JSON")
OTHER = Finding(rule="repeated-call", code="E4", certainty="suspected", where="x", message="again")


def rows_of(n: int, n_off: int, **fields: Any) -> list[Row]:
    """``n`` verdicts, of which code says something against the form of the first ``n_off``."""
    return [
        verdict(f"{i}", findings=(OFF, OFF, OTHER) if i < n_off else (OTHER,), **fields)
        for i in range(n)
    ]


@pytest.mark.parametrize(
    ("n", "n_off", "warned"), [(10, 9, True), (10, 8, False), (100, 89, False)]
)
def test_nine_tenths_of_ten_rows_point_to_a_conversion(n: int, n_off: int, warned: bool) -> None:
    summary = summary_of([*rows_of(n, n_off), bad_row(n + 1)])
    assert len(summary.warnings) == warned
    assert summary.to_json()["warnings"] == list(summary.warnings)
    sentence = f"{n_off} of {n} holistic replies of m could not be read"
    assert (sentence in summary_text(summary)) is warned


# Parts of the rows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "first", "second"), [("modality", "text", "image"), ("horizon", 1, 3)]
)
def test_each_part_has_its_own_figures_and_missing_values_stand_last(
    field: str, first: Any, second: Any
) -> None:
    base = {"horizon": 2} if field != "horizon" else {}
    values = [second, first, None, first, second, second, None]
    rows = [
        verdict(str(i), "" if i % 2 else "E3", protocol="step-wise", groups={**base, field: value})
        for i, value in enumerate(values)
    ]
    rows += [unscored("x", protocol="step-wise", groups={**base, field: second}), bad_row(9)]
    parts = [g for g in summary_of(rows, field).groups if g.by]
    shown = [(g.by[field], g.n, g.scored, points(g.figures, "CR")["CR"]) for g in parts]
    stated = [(str(first), 2, 2, (1.0, 2)), (str(second), 4, 3, about(1 / 3, 3))]
    missing = (None, 2, 2, (0.0, 2))
    # without a horizon a row is of the other form, which comes first
    assert shown == ([missing, *stated] if field == "horizon" else [*stated, missing])


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
        ("category", ["Finance", "travel", "web", None]),
    ],
)
def test_parts_stand_in_the_order_of_the_tables(field: str, values: list[str | None]) -> None:
    rows = [verdict(str(value), groups={field: value}) for value in reversed(values)]
    parts = [g.by[field] for g in summary_of(rows, field).groups if g.by]
    assert parts == values


def test_an_unknown_field_is_refused_by_name() -> None:
    expected = r"--by: expected some of category,.*dataset,finish_reason, got 'colour'"
    with pytest.raises(OptionError, match=expected):
        summary_of([], "category", "colour")
