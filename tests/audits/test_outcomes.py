"""Plain verdicts: what an interval beside a limit comes to, and how it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.audits.outcomes import (
    LISTED,
    MOST_NEEDED,
    Measure,
    ProbeSpec,
    Side,
    amount,
    cost_of,
    measured,
    outcome_of,
    verdict_text,
)
from apbjudge.statistics.differences import paired_test
from apbjudge.statistics.estimates import Estimate
from apbjudge.statistics.proportions import share
from apbjudge.statistics.sample import Sample

from .judges import PASS, Says, fail, observed, variant

SPEC = ProbeSpec(name="n", title="T", question="Q?")


def estimate(
    value: float | None, low: float | None, high: float | None, n: int = 50, **more: Any
) -> Estimate:
    kept = {"level": 0.95, "method": "test", "n_items": n, "n_clusters": n, **more}
    return Estimate(value=value, low=low, high=high, **kept)


def sure(value: float, half: float = 0.01) -> Estimate:
    return estimate(value, value - half, value + half)


@pytest.mark.parametrize(
    ("side", "limit", "low", "high", "outcome"),
    [
        ("at least", 0.8, 0.8, 0.9, "passes"),
        ("at least", 0.8, 0.79, 0.9, "could not tell"),
        ("at least", 0.8, 0.7, 0.8, "could not tell"),
        ("at least", 0.8, 0.6, 0.79, "fails"),
        ("at most", 0.1, 0.0, 0.1, "passes"),
        ("at most", 0.1, 0.05, 0.11, "could not tell"),
        ("at most", 0.1, 0.1, 0.2, "could not tell"),
        ("at most", 0.1, 0.11, 0.2, "fails"),
        ("within", 0.1, -0.1, 0.1, "passes"),
        ("within", 0.1, -0.11, 0.1, "could not tell"),
        ("within", 0.1, -0.3, 0.3, "could not tell"),
        ("within", 0.1, 0.11, 0.2, "fails"),
        ("within", 0.1, -0.2, -0.11, "fails"),
    ],
)
def test_the_interval_decides(
    side: Side, limit: float, low: float, high: float, outcome: str
) -> None:
    result = measured("m", estimate((low + high) / 2, low, high), side, limit)
    assert result.outcome == outcome
    assert (result.needed is None) == (outcome != "could not tell")


def of_equal(value: float, n: int, side: Side, limit: float) -> Measure:
    """A measure whose rows, one a case, all have the same value."""
    rows, sample = np.full(n, value), Sample(clusters=np.arange(n))
    if side == "within":
        return measured("m", paired_test(rows, sample, level=0.95).estimate, side, limit)
    return measured("m", share(rows, np.ones(n), sample, level=0.95), side, limit)


@pytest.mark.parametrize(
    ("value", "side", "limit"),
    [(1.0, "at least", 0.9), (0.0, "at most", 0.05), (0.0, "within", 0.1)],
)
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


def of(*outcomes: str) -> list[Measure]:
    made = {
        "passes": measured("good", sure(0.9), "at least", 0.8),
        "fails": measured("bad", sure(0.5), "at least", 0.8),
        "could not tell": measured("open", estimate(0.9, 0.7, 0.95), "at least", 0.8),
    }
    return [made[outcome] for outcome in outcomes]


def test_the_reason_names_what_decided() -> None:
    assert outcome_of(of("passes", "fails", "could not tell"))[1] == (
        "bad 50.0 % [49.0 %, 51.0 %], allowed at least 80.0 %"
    )
    open_one = of("could not tell")[0]
    because = outcome_of([open_one])[1]
    assert because == f"not clear: open (would need {open_one.needed:,} cases)"
    bare = measured("bare", estimate(None, None, None, 0), "at least", 0.8)
    assert outcome_of([open_one, bare])[1] == "not clear: open; bare"


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("share", 0.1234, "12.3 %"),
        ("points", 0.1234, "+12.3 pts"),
        ("points", -0.05, "-5.0 pts"),
        ("plain", 1.23456, "1.23"),
        ("plain", None, "–"),
    ],
)
def test_figures_read_in_their_unit(unit: Any, value: float | None, text: str) -> None:
    assert amount(unit, value) == text


def test_a_judgement_costs_once_however_often_it_is_used() -> None:
    one = observed(variant("a/base"), PASS)
    again = observed(variant("a/base"), PASS, "again-1")
    none = observed(variant("b/base"), Says(None))
    cost = cost_of([one, one, again, none])
    assert (cost.judgements, cost.unscored, cost.calls, cost.tokens) == (3, 1, 3, 300)
    assert cost.usd == pytest.approx(0.03)
    assert cost_of([one, replace(again, cost_usd=None)]).usd is None
    assert cost_of([]).usd == 0


def test_long_lists_of_items_are_cut_and_counted() -> None:
    said = [observed(variant(f"c{n}/base"), PASS) for n in range(LISTED + 5)]
    probe = SPEC.result(of("passes"), said, exhibits=((r, verdict_text(r)) for r in said))
    listed = probe.exhibits
    assert (len(listed), probe.n_exhibits) == (LISTED, LISTED + 5)
    assert (listed[0].name, listed[0].arm, listed[0].what) == ("c0/base", "main", "correct, 1")


@pytest.mark.parametrize(
    ("says", "text"),
    [
        (PASS, "correct, 1"),
        (fail("E6", "E4", grade=0.2), "not correct (E4, E6), 0.2"),
        (Says(False), "not correct"),
        (Says(None), "unscored (timeout)"),
    ],
)
def test_a_verdict_in_words(says: Says, text: str) -> None:
    assert verdict_text(observed(variant("a/base"), says)) == text
