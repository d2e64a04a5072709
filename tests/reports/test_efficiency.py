"""C_all, C_pass and C_com."""

from __future__ import annotations

from apbjudge import Summary

from .rows import Row, about, group, points, summary_of, unscored, verdict

COSTS = ("C_all", "C_pass", "C_com")


def plan(model: str, case: str, cost: float | None, flags: str = "", **fields: object) -> Row:
    return verdict(case, flags, protocol="efficiency", tested_model=model, plan_cost=cost, **fields)


def costs(summary: Summary, model: str) -> dict[str, tuple[float | None, int]]:
    return points(group(summary, model=model).figures, *COSTS)


def test_three_tested_models_by_hand() -> None:
    """b misses case 4 and fails case 2; a fails case 4: all three have cases 1 and 3 right."""
    rows = [
        *(plan("a", case, cost) for case, cost in [("1", 10), ("2", 20), ("3", 30)]),
        plan("a", "4", 40, "E1"),
        *(plan("b", case, cost) for case, cost in [("1", 12), ("3", 32)]),
        plan("b", "2", 23, "E3"),
        *(plan("c", case, cost) for case, cost in [("1", 14), ("2", 24), ("3", 35), ("4", 44)]),
    ]
    summary = summary_of(rows)
    assert costs(summary, "a") == {"C_all": (25, 4), "C_pass": (20, 3), "C_com": (20, 2)}
    assert costs(summary, "b") == {
        "C_all": about(67 / 3, 3),
        "C_pass": (22, 2),
        "C_com": (22, 2),
    }
    assert costs(summary, "c") == {
        "C_all": about(117 / 4, 4),
        "C_pass": about(117 / 4, 4),
        "C_com": (24.5, 2),
    }


def test_an_unpriced_plan_leaves_the_averages_but_not_cr() -> None:
    rows = [plan("m", "1", 4), plan("m", "2", None), plan("m", "3", 8, "E2")]
    figures = group(summary_of(rows)).figures
    assert points(figures, "CR", *COSTS) == {
        "CR": about(2 / 3, 3),
        "C_all": (6.0, 2),
        "C_pass": (4.0, 1),
        "C_com": (4.0, 1),
    }


def test_common_costs_are_over_the_same_cases_for_every_tested_model() -> None:
    """Case 2 has no price for b, so the averages could not be compared with it in a's."""
    rows = [plan("a", "1", 10), plan("a", "2", 90), plan("b", "1", 12), plan("b", "2", None)]
    summary = summary_of(rows)
    assert costs(summary, "a")["C_com"] == (10, 1)
    assert costs(summary, "b")["C_com"] == (12, 1)


def test_a_case_that_one_tested_model_has_unscored_is_not_common() -> None:
    rows = [plan("a", "1", 10), plan("a", "2", 20), plan("b", "1", 11)]
    rows.append(unscored("2", protocol="efficiency", tested_model="b", plan_cost=21))
    summary = summary_of(rows)
    assert costs(summary, "a") == {"C_all": (15, 2), "C_pass": (15, 2), "C_com": (10, 1)}
    assert costs(summary, "b") == {"C_all": (16, 2), "C_pass": (11, 1), "C_com": (11, 1)}


def test_without_a_common_case_there_is_no_common_cost() -> None:
    rows = [plan("a", "1", 10), plan("b", "2", 20), plan("b", "1", 30, "E6")]
    summary = summary_of(rows)
    for model in "ab":
        assert costs(summary, model)["C_com"] == (None, 0)


def test_a_case_with_several_rows_is_right_when_all_of_them_are() -> None:
    rows = [
        plan("a", "1-x", 1, case_id="1"),
        plan("a", "1-y", 2, "E4", case_id="1"),
        plan("a", "2-x", 4, case_id="2"),
        plan("a", "2-y", 8, case_id="2"),
        plan("b", "1", 16),
        plan("b", "2", 32),
    ]
    summary = summary_of(rows)
    assert costs(summary, "a") == {
        "C_all": (3.75, 4),
        "C_pass": about(13 / 3, 3),
        "C_com": (6, 2),
    }
    assert costs(summary, "b")["C_com"] == (32, 1)


def test_a_plan_without_calls_costs_nothing_and_counts() -> None:
    rows = [plan("m", "1", 0.0, "E2"), plan("m", "2", 6)]
    assert costs(summary_of(rows), "m")["C_all"] == (3, 2)


def test_equal_costs_have_no_interval_and_different_ones_have() -> None:
    rows = [plan("m", str(i), 5) for i in range(4)] + [plan("m", "x", 9, "E5")]
    figures = group(summary_of(rows)).figures
    assert (figures["C_pass"].low, figures["C_pass"].high) == (None, None)
    assert figures["C_pass"].method == "no-spread"
    assert figures["C_all"].low is not None
    assert figures["C_all"].high is not None
    assert figures["C_all"].low < 5.8 < figures["C_all"].high


def test_breakdowns_keep_the_cases_that_are_common_over_the_whole_run() -> None:
    travel, retail = {"category": "travel"}, {"category": "retail"}
    rows = [
        plan("a", "1", 10, groups=travel),
        plan("a", "2", 20, groups=retail),
        plan("b", "1", 12, groups=travel),
        plan("b", "2", 22, "E1", groups=retail),
    ]
    summary = summary_of(rows, "category")
    for value, expected in (("travel", (10, 1)), ("retail", (None, 0))):
        figures = group(summary, model="a", by={"category": value}).figures
        assert points(figures, "C_com") == {"C_com": expected}
