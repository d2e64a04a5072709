"""The table of several samples of a case."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge import Item, grade, report
from apbjudge.errors import OptionError
from apbjudge.reports.paper.formatting import tables_text
from apbjudge.reports.paper.samples import sample_figures
from tests.support.judging import plan_row


def rows(*outcomes: str) -> list[dict[str, Any]]:
    """A case for each text, a sample for each letter: R for right, W for wrong."""
    return [
        plan_row(
            f"case-{n}",
            id=f"case-{n}" if s == 0 else f"case-{n}#{s + 1}",
            case_id=f"case-{n}",
            model_response=letter,
        )
        for n, letters in enumerate(outcomes)
        for s, letter in enumerate(letters)
    ]


def judge(item: Item) -> dict[str, Any]:
    right = item.response == "R"
    errors = {f"E{n}": n == 4 and not right for n in range(1, 7)}
    return {"is_correct": right, "grade": 1.0 if right else 0.6, "errors": errors}


def table_of(data: list[dict[str, Any]]) -> Any:
    run = grade(data, judge=judge, protocol="holistic")
    return report(run, tables=("samples",)).tables[0]


@pytest.fixture
def unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    judge.evidence = False  # pyright: ignore[reportFunctionMemberAccess]


def figures(*outcomes: str) -> dict[str, float | None]:
    case = np.repeat(np.arange(len(outcomes)), [len(o) for o in outcomes])
    correct = np.array([letter == "R" for letter in "".join(outcomes)], float)
    found = sample_figures(case, correct, np.where(correct > 0, 1.0, 0.6))
    return {name: estimate.value for name, estimate in found.items()}


def test_by_hand() -> None:
    """Two cases of four samples, 3 and 1 right: C(4, 2) = 6 pairs."""
    of = figures("RRRW", "RWWW")
    assert of["CR"] == 0.5
    assert of["pass@2"] == pytest.approx((1 + 3 / 6) / 2)
    assert of["pass^2"] == pytest.approx((3 / 6 + 0) / 2)
    assert of["pass@4"] == 1.0
    assert of["pass^4"] == 0.0
    assert of["Disagree"] == 1.0
    assert of["SD within"] == pytest.approx(0.5)  # 3 · 1 / (4 · 3) in both
    assert of["SD between"] == pytest.approx(np.sqrt(0.125 - 0.25 / 4))
    assert of["Within"] == pytest.approx(0.25 / (0.25 + 0.0625))
    assert of["Grade SD"] == pytest.approx(0.2)


def test_samples_that_agree_leave_all_variance_to_the_cases() -> None:
    of = figures("RR", "WW", "RR")
    assert (of["Disagree"], of["SD within"], of["Within"]) == (0.0, 0.0, 0.0)
    assert of["pass@2"] == of["pass^2"] == pytest.approx(of["CR"])


OUTCOMES = st.lists(st.text("RW", min_size=2, max_size=5), min_size=2, max_size=6)


@given(OUTCOMES)
def test_passes_equal_a_count_of_all_subsets(outcomes: list[str]) -> None:
    of = figures(*outcomes)
    for k in range(2, max(map(len, outcomes)) + 1):
        has = [o for o in outcomes if len(o) >= k]
        subsets = [list(combinations(o, k)) for o in has]
        some = np.mean([np.mean(["R" in c for c in each]) for each in subsets])
        every = np.mean([np.mean(["W" not in c for c in each]) for each in subsets])
        assert of[f"pass@{k}"] == pytest.approx(some)
        assert of[f"pass^{k}"] == pytest.approx(every)


@given(OUTCOMES)
def test_variances_add_up(outcomes: list[str]) -> None:
    of = figures(*outcomes)
    within, between = of["SD within"], of["SD between"]
    assert within is not None
    assert between is not None
    share = of["Within"]
    if share is not None:
        assert share == pytest.approx(within**2 / (within**2 + between**2))


def test_the_table_has_a_row_for_each_model_with_several_samples(unproven: None) -> None:
    data = rows("RRW", "RW", "W")
    data += [row | {"tested_model": "single"} for row in rows("R", "W")]
    (row,) = (table := table_of(data)).rows
    assert row.heads == ("planner", "holistic", "1 to 3")
    assert (row.counts[""].rows, row.counts[""].scored) == (6, 6)
    cells = {key: cell.estimate for (_, key), cell in row.cells.items()}
    assert cells["pass@2"].n_items == 2
    assert cells["pass@3"].n_items == 1
    assert cells["CR"].n_clusters == 3
    text = tables_text([table])
    assert "Several samples of a case" in text
    assert "pass^3" in text


def test_other_rows_of_a_case_are_no_samples(unproven: None) -> None:
    levels = [
        plan_row(f"base-{n}", case_id="base", model_response="R", query=f"q {n}") for n in (1, 2)
    ]
    run = grade(levels, judge=judge, protocol="holistic")
    with pytest.raises(OptionError, match=r"--table samples: .* predict --samples"):
        _ = report(run, tables=("samples",)).tables
    assert not [t for t in report(run).tables if t.key == "samples"]
