"""The five behaviours after a tool's failure, and refusals by unsolvable type."""

from __future__ import annotations

import pytest

from apbjudge.records import UNSOLVABLE_TYPES

from .rows import Row, about, group, points, summary_of, unscored, verdict

NAMES = ("1 replacement", "2 alternative", "3 retry", "4 refusal", "5 other")


def broken(item: str, category: int | None, **fields: object) -> Row:
    correct = category in (1, 2, None)
    return verdict(
        item,
        protocol="tool-broken",
        category=category,
        is_correct=correct,
        groups={"horizon": 1},
        **fields,
    )


def unsolvable(item: str, kind: str, *, passes: bool) -> Row:
    groups = {"unsolvable_type": kind}
    return verdict(item, protocol="unsolvable", is_correct=passes, groups=groups)


def test_each_behaviour_s_share_is_over_the_scored_rows() -> None:
    categories = [1, 1, 1, 2, 3, 3, 4, 5]
    rows = [broken(str(i), category) for i, category in enumerate(categories)]
    rows += [unscored("x", protocol="tool-broken", groups={"horizon": 1}) for _ in range(2)]
    figures = group(summary_of(rows)).figures
    assert points(figures) == {
        "scored": (0.8, 10),
        "CR": (0.5, 8),
        "1 replacement": (0.375, 8),
        "2 alternative": (0.125, 8),
        "3 retry": (0.25, 8),
        "4 refusal": (0.125, 8),
        "5 other": (0.125, 8),
    }


def test_undecided_behaviour_is_shown_and_the_shares_add_up_to_one() -> None:
    rows = [broken(str(i), category) for i, category in enumerate([1, None, None, 4])]
    figures = group(summary_of(rows)).figures
    assert points(figures, "undecided") == {"undecided": (0.5, 4)}
    assert sum(figures[name].value or 0 for name in (*NAMES, "undecided")) == pytest.approx(1)


def test_tool_broken_rows_have_neither_grade_nor_error_rates() -> None:
    names = list(group(summary_of([broken("a", 3)])).figures)
    assert names == ["scored", "CR", *NAMES]


def test_refusals_are_counted_per_type_over_its_scored_rows() -> None:
    passes = {
        "contradictory_constraints": [True, True],
        "information_missing": [True, False, False, False],
        "tool_removal": [False],
        "visual_missing": [True, True, False],
    }
    rows = [
        unsolvable(f"{kind}-{i}", kind, passes=ok)
        for kind, oks in passes.items()
        for i, ok in enumerate(oks)
    ]
    late = {"unsolvable_type": "tool_removal"}
    rows += [unscored("late", protocol="unsolvable", groups=late)]
    whole = group(summary_of(rows))
    assert points(whole.figures) == {
        "scored": about(10 / 11, 11),
        "CR": (0.5, 10),
        "refusal contradictory_constraints": (1.0, 2),
        "refusal information_missing": (0.25, 4),
        "refusal tool_removal": (0.0, 1),
        "refusal visual_missing": about(2 / 3, 3),
    }


def test_a_type_that_a_tested_model_has_no_row_of_is_left_out() -> None:
    rows = [unsolvable("a", "tool_removal", passes=True)]
    rows.append({**unsolvable("b", "visual_missing", passes=True), "tested_model": "n"})
    summary = summary_of(rows)
    for model, kind in {"m": "tool_removal", "n": "visual_missing"}.items():
        names = list(group(summary, model=model).figures)
        assert names == ["scored", "CR", f"refusal {kind}"]


@pytest.mark.parametrize("kind", UNSOLVABLE_TYPES)
def test_a_type_of_which_nothing_was_scored_has_no_rate(kind: str) -> None:
    row = unscored("a", protocol="unsolvable", groups={"unsolvable_type": kind})
    figures = group(summary_of([row])).figures
    assert points(figures, f"refusal {kind}") == {f"refusal {kind}": (None, 0)}
