"""Figures of a run's summary by hand; all others are in the golden text of every kind of row."""

from __future__ import annotations

from typing import Any

import pytest

from apbjudge import OptionError, Summary, summary_text
from apbjudge.records import Finding
from apbjudge.statistics import modified_wilson

from .rows import Row, about, bad_row, group, points, summary_of, unscored, verdict

FOUR = [verdict("a"), verdict("b", "E5", grade=0.8), verdict("c", "E2 E5", grade=0.4), verdict("d")]


def test_figures_of_four_plans_are_what_one_counts_by_hand() -> None:
    hits = {"CR": 2, "E1": 0, "E2-H": 1, "E3": 0, "E4": 0, "E5": 2, "E6": 0}
    figures = group(summary_of(FOUR)).metrics
    assert list(figures) == ["CR", "Grade", *list(hits)[1:]]
    assert points(figures, "Grade") == {"Grade": about(0.8, 4)}
    for name, n in hits.items():
        assert points(figures, name) == {name: (n / 4, 4)}
        assert figures[name].method == ("wilson-modified" if 0 < n < 4 else "wilson")
        assert (figures[name].low, figures[name].high) == modified_wilson(n, 4)
        assert (figures[name].level, figures[name].n_clusters) == (0.95, 4)


def test_a_run_without_items_has_totals_and_no_groups() -> None:
    summary = summary_of([bad_row(1), bad_row(2)], "category", "horizon")
    assert summary.groups == ()
    assert (summary.totals.rows, summary.scored) == (2, 0)


def test_where_code_decides_in_part_the_rate_is_an_upper_bound() -> None:
    rows = [verdict("a", judge="c", decided_by="static", grade=None), verdict("b", judge="c")]
    figures = group(summary_of(rows)).metrics
    assert (figures["CR"].value, figures["CR"].bound) == (1.0, "upper")
    assert figures["Grade"].n_items == 1


def test_one_unknown_price_makes_the_total_unknown() -> None:
    known = verdict("a", usage={"calls": 1}, cost_usd=0.25)
    unknown = verdict("b", usage={"calls": 1}, cost_usd=None)
    for rows in ([known, unknown], [unknown, known]):
        assert summary_of(rows).totals.cost_usd is None


COSTS = ("C_all", "C_pass", "C_com")


def plan(model: str, case: str, cost: float | None, flags: str = "", **fields: object) -> Row:
    return verdict(case, flags, protocol="efficiency", tested_model=model, plan_cost=cost, **fields)


def costs(summary: Summary, model: str) -> dict[str, tuple[float | None, int]]:
    return points(group(summary, model=model).metrics, *COSTS)


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
    figures = group(summary, model="a", by={"category": "retail"}).metrics
    assert points(figures, "C_com") == {"C_com": (None, 0)}


def test_a_case_with_several_rows_is_right_when_all_of_them_are() -> None:
    rows = [plan("a", "1-x", 1, case_id="1"), plan("a", "1-y", 2, "E4", case_id="1")]
    rows += [plan("a", "2-x", 4, case_id="2"), plan("a", "2-y", 8, case_id="2")]
    summary = summary_of([*rows, plan("b", "1", 16), plan("b", "2", 32)])
    expected = {"C_all": (3.75, 4), "C_pass": about(13 / 3, 3), "C_com": (6, 2)}
    assert costs(summary, "a") == expected
    assert costs(summary, "b")["C_com"] == (32, 1)


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


def test_an_unknown_field_is_refused_by_name() -> None:
    expected = r"--by: expected some of category,.*finish_reason,contradiction_kind, got 'colour'"
    with pytest.raises(OptionError, match=expected):
        summary_of([], "category", "colour")
