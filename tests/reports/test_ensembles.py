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
from apbjudge.judge.cascade import CurvePoint, curve_csv
from apbjudge.judge.panel import Disagreement, Pair
from apbjudge.judge.summary_text import (
    POINTS_SHOWN,
    cascade_document,
    disagreement_document,
)

COLUMNS = "threshold n_escalated share cost_usd calls n_agree n_compared agreement low high".split()


def point(**changes: Any) -> CurvePoint:
    usual: dict[str, Any] = {
        "threshold": 0.5,
        "n_escalated": 3,
        "share": 0.3,
        "cost_usd": 1.25,
        "calls": 13,
        "n_agree": 8,
        "n_compared": 10,
        "n_asked": 3,
    }
    return CurvePoint(**{**usual, **changes})


def disagreement_text(found: Disagreement) -> str:
    return render_text(disagreement_document(found))


def curve_text(points: list[CurvePoint], *, reference: str) -> str:
    return render_text(cascade_document(points, reference=reference))


def read(points: list[CurvePoint]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(curve_csv(points))))


def test_who_differs_from_whom() -> None:
    result = Disagreement(9, 8, 2, (Pair("a", "b", 8, 6), Pair("a", "c", 0, 0)))
    interval = binomtest(6, 8).proportion_ci(method="wilson")
    assert disagreement_text(result) == (
        "judges are not unanimous on 2 of 8 items with two or more verdicts (9 items in all)\n"
        f"  a and b: agree on 75.0 [{100 * interval.low:.1f}, {100 * interval.high:.1f}] /8\n"
        "  a and c: no item has a verdict of both\n"
    )


@pytest.mark.parametrize("name", ["\x1b[2Jx", "a\nb", "\u202eabc"])
def test_a_judge_s_name_commands_no_terminal(name: str) -> None:
    result = Disagreement(1, 1, 0, (Pair(name, name, 1, 1), Pair(name, "b", 0, 0)))
    for text in (disagreement_text(result), curve_text([point()], reference=name)):
        assert all(line.isprintable() for line in text.split("\n"))
        assert name not in text


def test_a_row_of_the_curve() -> None:
    interval = binomtest(8, 10).proportion_ci(method="wilson")
    (row,) = read([point()])
    assert list(row) == COLUMNS
    assert row["threshold"] == "0.5000"
    numbers = {name: float(row[name]) for name in COLUMNS[1:]}
    assert numbers == pytest.approx(
        {
            "n_escalated": 3,
            "share": 0.3,
            "cost_usd": 1.25,
            "calls": 13,
            "n_agree": 8,
            "n_compared": 10,
            "agreement": 0.8,
            "low": interval.low,
            "high": interval.high,
        }
    )


def test_what_is_not_known_is_empty_and_never_zero() -> None:
    (row,) = read([point(cost_usd=None, n_agree=0, n_compared=0)])
    assert [row[name] for name in ("cost_usd", "agreement", "low", "high")] == [""] * 4
    text = curve_text([point(cost_usd=None, n_agree=0, n_compared=0)], reference="r")
    assert text.rstrip().endswith("unknown  – /0")


def along(n: int) -> list[CurvePoint]:
    return [point(threshold=1 - i / n, n_escalated=i, share=i / (n - 1)) for i in range(n)]


@given(st.integers(2, 400))
def test_of_many_points_some_are_shown_first_and_last_among_them(n: int) -> None:
    points = along(n)
    lines = curve_text(points, reference="r").splitlines()[1:]
    every = curve_text(points[:1], reference="r").splitlines()[1:]
    assert lines[0] == every[0]
    assert lines[-1] == curve_text(points[-1:], reference="r").splitlines()[1]
    assert len(lines) == min(n, POINTS_SHOWN)
    assert len(read(points)) == n  # the file has all of them
