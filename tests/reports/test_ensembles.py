"""What several judges differ in and what a cascade costs, as text and as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from apbjudge.document.text import render_text
from apbjudge.errors import visible
from apbjudge.judge.cascade import CurvePoint, curve_csv
from apbjudge.judge.panel import Disagreement, JudgePair
from apbjudge.judge.summary_text import POINTS_SHOWN, cascade_document, disagreement_document

COLUMNS = "n_escalated share cost_usd calls n_agree n_compared agreement low high".split()


def point(**changes: Any) -> CurvePoint:
    usual: dict[str, Any] = {"threshold": 0.5, "n_escalated": 3, "share": 0.3, "cost_usd": 1.25}
    usual |= {"calls": 13, "n_agree": 8, "n_compared": 10, "n_asked": 3}
    return CurvePoint(**{**usual, **changes})


def curve_text(points: list[CurvePoint], *, reference: str = "r") -> str:
    return render_text(cascade_document(points, reference=reference))


def read(points: list[CurvePoint]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(curve_csv(points))))


@pytest.mark.parametrize("name", ["b", "\x1b[2Jx\n\u202eabc"])
def test_who_differs_from_whom_and_no_name_commands_a_terminal(name: str) -> None:
    result = Disagreement(9, 8, 2, (JudgePair("a", name, 8, 6), JudgePair("a", "c", 0, 0)))
    low, high = (100 * end for end in binomtest(6, 8).proportion_ci(method="wilson"))
    text = render_text(disagreement_document(result))
    assert all(
        line.isprintable() for line in (text + curve_text([point()], reference=name)).split("\n")
    )
    assert (
        text.replace(visible(name), "b")
        == "judges are not unanimous on 2 of 8 items with two or more verdicts (9 items in all)\n"
        f"  a and b: agree on 75.0 [{low:.1f}, {high:.1f}] /8\n"
        "  a and c: no item has a verdict of both\n"
    )


def test_a_row_of_the_curve_where_what_is_not_known_is_empty_and_never_zero() -> None:
    low, high = binomtest(8, 10).proportion_ci(method="wilson")
    (row,) = read([point()])
    assert (row.pop("threshold"), [*row]) == ("0.5000", COLUMNS)
    numbers = [float(value) for value in row.values()]
    assert numbers == pytest.approx([3, 0.3, 1.25, 13, 8, 10, 0.8, low, high])
    unknown = point(cost_usd=None, n_agree=0, n_compared=0)
    (row,) = read([unknown])
    assert [row[name] for name in ("cost_usd", "agreement", "low", "high")] == [""] * 4
    assert curve_text([unknown]).rstrip().endswith("unknown  – /0")


@given(st.integers(2, 400))
def test_of_many_points_some_are_shown_first_and_last_among_them(n: int) -> None:
    points = [point(threshold=1 - i / n, n_escalated=i, share=i / (n - 1)) for i in range(n)]
    lines = curve_text(points).splitlines()[1:]
    assert lines[0] == curve_text(points[:1]).splitlines()[1]
    assert lines[-1] == curve_text(points[-1:]).splitlines()[1]
    assert len(lines) == min(n, POINTS_SHOWN)
    assert len(read(points)) == n  # the file has all of them
