"""Plain verdicts: what an interval beside a limit comes to, and how it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.audits.outcomes import MOST_NEEDED, Measure, Side, cost_of, measured, outcome_of
from apbjudge.audits.probes.base import decide
from apbjudge.audits.probes.measures import rate, shift
from apbjudge.audits.responses import Response
from apbjudge.statistics.differences import paired_test
from apbjudge.statistics.estimates import Estimate
from apbjudge.statistics.proportions import share
from apbjudge.statistics.sample import Sample

from .judges import PASS, Says, observed, variant


def estimate(
    value: float | None, low: float | None, high: float | None, n: int = 50, **more: Any
) -> Estimate:
    kept = {"level": 0.95, "method": "test", "n_items": n, "n_clusters": n, **more}
    return Estimate(value=value, low=low, high=high, **kept)


INTERVALS: dict[tuple[Side, float], dict[tuple[float, float], str]] = {
    ("at least", 0.8): {(0.8, 0.9): "passes", (0.7, 0.8): "could not tell", (0.6, 0.79): "fails"},
    ("at most", 0.1): {(0.0, 0.1): "passes", (0.1, 0.2): "could not tell", (0.11, 0.2): "fails"},
    ("within", 0.1): {(-0.1, 0.1): "passes", (-0.3, 0.3): "could not tell", (0.11, 0.2): "fails"},
    ("within", 0.2): {(-0.3, -0.21): "fails"},
}


@pytest.mark.parametrize(("side", "limit"), INTERVALS)
def test_the_interval_decides(side: Side, limit: float) -> None:
    for (low, high), outcome in INTERVALS[side, limit].items():
        result = measured("m", estimate((low + high) / 2, low, high), side, limit)
        assert result.outcome == outcome
        assert (result.needed is None) == (outcome != "could not tell")


def of_equal(value: float, n: int, side: Side, limit: float) -> Measure:
    """A measure whose rows, one a case, all have the same value."""
    rows, sample = np.full(n, value), Sample(clusters=np.arange(n))
    if side == "within":
        return measured("m", paired_test(rows, sample, level=0.95).estimate, side, limit)
    return measured("m", share(rows, np.ones(n), sample, level=0.95), side, limit)


@pytest.mark.parametrize(("value", "side", "limit"), [(1.0, "at least", 0.9), (0.0, "within", 0.1)])
def test_as_many_cases_as_were_needed_settle_it(value: float, side: Side, limit: float) -> None:
    first = of_equal(value, 10, side, limit)
    assert first.outcome == "could not tell"
    assert first.needed is not None
    assert of_equal(value, round(1.1 * first.needed), side, limit).outcome == "passes"
    assert of_equal(value, round(0.8 * first.needed), side, limit).outcome == "could not tell"


@given(
    value=st.floats(0, 1),
    below=st.floats(0.001, 0.5),
    above=st.floats(0.001, 0.5),
    limit=st.floats(0.01, 0.99),
    side=st.sampled_from(["at least", "at most", "within"]),
)
def test_whatever_is_open_asks_for_more_than_there_was(
    value: float, below: float, above: float, limit: float, side: Side
) -> None:
    result = measured("m", estimate(value, value - below, value + above), side, limit)
    assert result.needed is None or 50 < result.needed <= MOST_NEEDED
    assert result.detectable is not None
    assert result.detectable > 0


GOOD = measured("good", estimate(0.9, 0.89, 0.91), "at least", 0.8)


def test_the_reason_names_what_decided() -> None:
    bad = measured("bad", estimate(0.5, 0.49, 0.51), "at least", 0.8)
    unclear = measured("open", estimate(0.9, 0.7, 0.95), "at least", 0.8)
    bare = measured("bare", estimate(None, None, None, 0), "at least", 0.8)
    because = "bad 50.0 % [49.0 %, 51.0 %], allowed at least 80.0 %"
    assert outcome_of([GOOD, bad, unclear]) == ("fails", because)
    needed = f"not clear: open (would need {unclear.needed:,} cases)"
    assert outcome_of([unclear]) == ("could not tell", needed)
    assert outcome_of([unclear, bare])[1] == "not clear: open; bare"


def test_a_judgement_costs_once_however_often_it_is_used() -> None:
    one = observed(variant("a/base"), PASS)
    again = observed(variant("a/base"), PASS, "again-1")
    none = observed(variant("b/base"), Says(None))
    cost = cost_of([one, one, again, none])
    assert (cost.judgements, cost.unscored, cost.calls, cost.tokens) == (3, 1, 3, 300)
    assert cost.usd == pytest.approx(0.03)
    assert cost_of([one, replace(again, cost_usd=None)]).usd is None
    assert cost_of([]).usd == 0


# shares and shifts of judgements ------------------------------------------------------------------


def said_of(*cases: int) -> list[Response]:
    """One judgement for each number of a case."""
    return [observed(variant(f"c{case}/v{n}"), PASS) for n, case in enumerate(cases)]


def test_a_shift_is_the_mean_change_and_a_rate_the_share_of_hits() -> None:
    moves, hits = iter([1, -1, -1, 0]), iter([True, True, False, True])
    [moved] = decide([shift("m", said_of(1, 1, 2, 3), lambda _: next(moves), "within", 0.1)])
    assert moved.estimate.value == pytest.approx(-0.25)
    assert (moved.unit, moved.estimate.n_clusters) == ("points", 3)
    assert moved.parts == {"c1": (0.0, 2.0), "c2": (-1.0, 1.0), "c3": (0.0, 1.0)}
    [hit] = decide([rate("m", said_of(1, 2, 3, 4), lambda _: next(hits), "at least", 0.5)])
    assert (hit.estimate.value, hit.estimate.level, hit.unit) == (0.75, 0.95, "share")
    none: list[Response] = []
    assert rate("m", none, lambda _: True) is None
    assert decide([rate("shown", said_of(1), lambda _: True)]) == ()  # without a limit


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([-1.0, 0.0, 1.0])), min_size=1))
def test_the_parts_give_the_figure_again(rows: list[tuple[int, float]]) -> None:
    responses, values = said_of(*(case for case, _ in rows)), iter([value for _, value in rows])
    [result] = decide([shift("m", responses, lambda _: next(values), "within", 0.1)])
    above = sum(part[0] for part in result.parts.values())
    below = sum(part[1] for part in result.parts.values())
    assert below == len(rows)
    assert result.estimate.value == pytest.approx(above / below)
    assert all(abs(part[0]) <= part[1] for part in result.parts.values())
