"""Replies that are nearly all in another form point to whoever converted them."""

from __future__ import annotations

from typing import Any

import pytest

from apbjudge import summary_text
from apbjudge.records import Finding

from .rows import Row, bad_row, summary_of, unscored, verdict

OFF = Finding(rule="format", code="E3", certainty="suspected", where="response", message="no JSON")
OTHER = Finding(rule="repeated-call", code="E4", certainty="suspected", where="x", message="again")


def rows_of(n: int, n_off: int, **fields: Any) -> list[Row]:
    """``n`` verdicts, of which code says something against the form of the first ``n_off``."""
    return [
        verdict(f"{i}", findings=(OFF, OFF, OTHER) if i < n_off else (OTHER,), **fields)
        for i in range(n)
    ]


@pytest.mark.parametrize(
    ("n", "n_off", "warned"),
    [
        (10, 9, True),
        (10, 8, False),
        (100, 90, True),
        (100, 89, False),
        (9, 9, False),
        (0, 0, False),
    ],
)
def test_nine_tenths_of_ten_rows_point_to_a_conversion(n: int, n_off: int, warned: bool) -> None:
    summary = summary_of([*rows_of(n, n_off), bad_row(n + 1)])
    assert len(summary.warnings) == warned
    assert summary.to_json()["warnings"] == list(summary.warnings)
    sentence = f"{n_off} of {n} holistic replies of m could not be read"
    assert (sentence in summary_text(summary)) is warned


def test_protocols_and_tested_models_are_counted_apart() -> None:
    rows = [
        *rows_of(8, 8),
        *rows_of(8, 8, protocol="efficiency"),
        *rows_of(10, 10, tested_model="odd\x1b[2J"),
        *rows_of(20, 0, tested_model="fine"),
    ]
    summary = summary_of(rows)
    (warning,) = summary.warnings
    assert warning.startswith("10 of 10 holistic replies of odd")
    assert "\x1b" not in summary_text(summary)


def test_rows_without_a_verdict_and_all_groups_of_a_model_count_together() -> None:
    rows = [
        *rows_of(5, 5, groups={"category": "a"}),
        *(unscored(f"u{i}", groups={"horizon": 2}, findings=(OFF,)) for i in range(5)),
    ]
    assert len(summary_of(rows, "category").warnings) == 1
