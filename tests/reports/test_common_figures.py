"""CR, Grade and E1-E6, and what unscored and bad rows do to them."""

from __future__ import annotations

import random

import pytest

from apbjudge.statistics import modified_wilson, wilson

from .rows import Row, about, bad_row, group, points, summary_of, unscored, verdict

FOUR = [
    verdict("a"),
    verdict("b", "E5", grade=0.8),
    verdict("c", "E2 E5", grade=0.4),
    verdict("d"),
]


def test_a_group_has_these_figures_in_this_order() -> None:
    names = "scored CR Grade E1 E2-H E3 E4 E5 E6"
    assert list(group(summary_of(FOUR)).figures) == names.split()


def test_figures_of_four_plans_are_what_one_counts_by_hand() -> None:
    figures = group(summary_of(FOUR)).figures
    assert points(figures) == {
        "scored": (1.0, 4),
        "CR": (0.5, 4),
        "Grade": about(0.8, 4),
        "E1": (0.0, 4),
        "E2-H": (0.25, 4),
        "E3": (0.0, 4),
        "E4": (0.0, 4),
        "E5": (0.5, 4),
        "E6": (0.0, 4),
    }


def test_rates_of_rows_without_shared_cases_have_wilson_intervals() -> None:
    figures = group(summary_of(FOUR)).figures
    for name, hits in {"scored": 4, "CR": 2, "E1": 0, "E2-H": 1, "E5": 2}.items():
        assert figures[name].method == ("wilson-modified" if 0 < hits < 4 else "wilson")
        assert (figures[name].low, figures[name].high) == modified_wilson(hits, 4)
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


def test_e2_is_named_by_its_subtype_and_forms_stand_apart() -> None:
    rows = [verdict("a", "E2"), verdict("b")]
    rows += [verdict("c", "E2", protocol="step-wise", groups={"horizon": k}) for k in (1, 2)]
    summary = summary_of(rows)
    plans, steps = group(summary, form="holistic"), group(summary, form="step-wise")
    assert points(plans.figures, "E2-H") == {"E2-H": (0.5, 2)}
    assert points(steps.figures, "E2-S") == {"E2-S": (1.0, 2)}
    assert "E2-S" not in plans.figures
    assert "E2-H" not in steps.figures


def test_tested_models_stand_apart_in_alphabetical_order() -> None:
    rows = [verdict("a", tested_model=name) for name in ("birch", "alder", "Cress", "alder 2")]
    names = [g.tested_model for g in summary_of(rows).groups]
    assert names == sorted(names)
    assert all(g.n == 1 for g in summary_of(rows).groups)


def test_protocols_stand_in_the_order_of_the_benchmark() -> None:
    order = "holistic step-wise tool-extraneous tool-broken unsolvable efficiency another".split()
    rows = [verdict(name, protocol=name, groups={"level": 2}) for name in sorted(order)]
    assert [g.protocol for g in summary_of(rows).groups] == order


def test_unscored_is_never_wrong_and_always_in_the_scored_share() -> None:
    rows = [*FOUR, unscored("e"), unscored("f", "refusal", plan_cost=3.0)]
    whole = group(summary_of(rows))
    assert (whole.n, whole.scored) == (6, 4)
    assert points(whole.figures, "scored", "CR", "Grade", "E5") == {
        "scored": about(4 / 6, 6),
        "CR": (0.5, 4),
        "Grade": about(0.8, 4),
        "E5": (0.5, 4),
    }


def test_a_group_without_any_verdict_is_listed_without_a_rate() -> None:
    whole = group(summary_of([unscored("a"), unscored("b", "budget")]))
    assert (whole.n, whole.scored) == (2, 0)
    assert points(whole.figures) == {"scored": (0.0, 2), "CR": (None, 0)}
    assert (whole.figures["CR"].low, whole.figures["CR"].high) == (None, None)


def test_verdicts_without_flags_or_grade_are_left_out_of_those_figures_only() -> None:
    rows = [verdict("a", "E1"), verdict("b", grade=None, errors=None)]
    figures = group(summary_of(rows)).figures
    assert points(figures, "CR", "Grade", "E1") == {
        "CR": (0.5, 2),
        "Grade": about(0.2, 1),
        "E1": (1.0, 1),
    }


def test_grades_of_one_value_get_an_interval_that_claims_no_certainty() -> None:
    grade = group(summary_of([verdict(name) for name in "abcd"])).figures["Grade"]
    assert (grade.value, grade.method) == (1.0, "wilson")
    assert (grade.low, grade.high) == wilson(4, 4)


def test_grades_of_one_value_over_cases_of_unequal_size_claim_no_certainty_either() -> None:
    rows = [verdict(f"{case}{i}", case_id=case) for case in "abc" for i in range(ord(case) - 96)]
    grade = group(summary_of(rows)).figures["Grade"]
    assert (grade.value, grade.n_items, grade.n_clusters) == (1.0, 6, 3)
    assert (grade.low, grade.high) == wilson(3, 3)


def test_bad_rows_count_in_the_totals_only() -> None:
    summary = summary_of([*FOUR, bad_row(5), bad_row(6), unscored("e")])
    assert (summary.totals.rows, summary.scored) == (7, 4)
    assert summary.totals.unscored == {"bad_input": 2, "timeout": 1}
    assert [g.n for g in summary.groups] == [5]


@pytest.mark.parametrize("rows", [[], [bad_row(1)], [bad_row(1), bad_row(2)]])
def test_a_run_without_items_has_totals_and_no_groups(rows: list[Row]) -> None:
    for by in ((), ("category", "horizon")):
        summary = summary_of(rows, *by)
        assert summary.groups == ()
        assert (summary.totals.rows, summary.scored) == (len(rows), 0)


def test_usage_and_price_are_added_up() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "cached_tokens": 4, "calls": 2}
    rows = [
        verdict("a", usage=usage, cost_usd=0.25, inconsistent=True),
        unscored("b", usage=usage, cost_usd=0.5),
        bad_row(3),
    ]
    totals = summary_of(rows).totals
    assert (totals.prompt_tokens, totals.completion_tokens) == (20, 6)
    assert (totals.cached_tokens, totals.calls, totals.cost_usd) == (8, 4, 0.75)
    assert totals.inconsistent == 1


def test_one_unknown_price_makes_the_total_unknown() -> None:
    usage = {"prompt_tokens": 1, "calls": 1}
    known = verdict("a", usage=usage, cost_usd=0.25)
    unknown = verdict("b", usage=usage, cost_usd=None)
    for rows in ([known, unknown], [unknown, known]):
        assert summary_of(rows).totals.cost_usd is None


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


@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_rows_finish_changes_nothing(seed: int) -> None:
    draw = random.Random(seed)
    levels = [0.2, 0.4, 0.6, 0.8]
    rows = [
        verdict(
            f"{case}-{i}",
            draw.choice(["", "E1", "E4 E5"]),
            grade=draw.choice(levels),
            case_id=f"case {case}",
            tested_model=draw.choice(["m", "n"]),
            groups={"category": draw.choice(["travel", None, "finance"])},
        )
        for case in range(15)
        for i in range(6)
    ]
    shuffled = draw.sample(rows, len(rows))
    first, second = summary_of(rows, "category"), summary_of(shuffled, "category")
    assert first.totals == second.totals
    assert len(first.groups) == len(second.groups) == 8
    for one, other in zip(first.groups, second.groups, strict=True):
        assert (one.tested_model, one.by, one.n) == (other.tested_model, other.by, other.n)
        assert one.figures.keys() == other.figures.keys()
        for name, estimate in one.figures.items():
            ends = (other.figures[name].value, other.figures[name].low, other.figures[name].high)
            assert (estimate.value, estimate.low, estimate.high) == pytest.approx(ends, abs=1e-9)
