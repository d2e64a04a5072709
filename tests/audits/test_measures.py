"""Shares and shifts of judgements: the figure by hand, the case as cluster, the parts by case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.audits.outcomes import decide
from apbjudge.audits.probes.measures import rate, share_of, shift, shift_of
from apbjudge.audits.responses import Response

from .judges import PASS, observed, variant


def said(*cases: int) -> list[Response]:
    """One judgement for each number of a case."""
    return [observed(variant(f"c{case}/v{n}"), PASS) for n, case in enumerate(cases)]


def test_a_rate_is_the_share_of_hits() -> None:
    [result] = decide([rate("m", said(1, 2, 3, 4), [True, True, False, True], "at least", 0.5)])
    estimate = result.estimate
    assert (estimate.value, estimate.level) == (0.75, 0.95)
    assert (estimate.n_items, estimate.n_clusters) == (4, 4)
    assert (result.unit, result.side, result.limit) == ("share", "at least", 0.5)


def test_a_shift_is_the_mean_change() -> None:
    [result] = decide([shift("m", said(1, 1, 2, 3), [1, -1, -1, 0], "within", 0.1)])
    assert result.estimate.value == pytest.approx(-0.25)
    assert (result.unit, result.estimate.n_clusters) == ("points", 3)
    assert result.parts == {"c1": (0.0, 2.0), "c2": (-1.0, 1.0), "c3": (0.0, 1.0)}


def test_judgements_of_one_case_stay_together() -> None:
    values = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0] * 4
    alone = share_of(said(*range(24)), values, level=0.95)
    together = share_of(said(*(n // 3 for n in range(24))), values, level=0.95)
    assert alone.value == together.value == 0.5
    assert (alone.n_clusters, together.n_clusters) == (24, 8)
    assert width(together) > 1.2 * width(alone)


def width(estimate: object) -> float:
    return getattr(estimate, "high") - getattr(estimate, "low")  # noqa: B009


def test_nothing_is_no_figure() -> None:
    for estimate in (share_of([], [], level=0.95), shift_of([], [], level=0.95)):
        assert (estimate.value, estimate.low, estimate.high) == (None, None, None)
    assert decide([rate("m", [], [], "at least", 0.5), shift("m", [], [], "within", 0.5)]) == ()


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([-1.0, 0.0, 1.0])), min_size=1))
def test_the_parts_give_the_figure_again(rows: list[tuple[int, float]]) -> None:
    responses, values = said(*(case for case, _ in rows)), [value for _, value in rows]
    [result] = decide([shift("m", responses, values, "within", 0.1)])
    above = sum(part[0] for part in result.parts.values())
    below = sum(part[1] for part in result.parts.values())
    assert below == len(rows)
    assert result.estimate.value == pytest.approx(above / below)
    assert all(abs(part[0]) <= part[1] for part in result.parts.values())
