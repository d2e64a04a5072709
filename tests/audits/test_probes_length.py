"""Length: padding by hand, the regression against statsmodels, and judges with known vices."""

from __future__ import annotations

from math import log2
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.probes.length import PADDED, PER_DOUBLING, probe, slope
from apbjudge.audits.responses import MAIN, AuditResponses
from apbjudge.audits.variants import CORRECT, Truth, Variant
from apbjudge.statistics.sample import Sample

from .judges import (
    FAULTY,
    MOST_FAILED,
    N_AUDITS,
    PASS,
    Judge,
    Says,
    always_yes,
    audit,
    coin,
    fail,
    figure,
    hear,
    only,
    outcomes,
    perfect,
    rows,
    table,
    turning,
    variant,
)

ASKED = only({MAIN: audit(60)[MAIN]}, "base", "fault", "padded", "prediction")
ERROR = "error per doubling of length"
WRONG = Truth(is_correct=False)


def padded(n: int, kind: str, parent: Variant, *, length: int = 1200) -> Variant:
    name = f"c{n}/{kind}"
    return variant(name, "padded", kind=kind, parent=parent.name, truth=parent.truth, length=length)


def by_hand() -> AuditResponses:
    """Four sound plans, of which one fails when padded; four faulty ones, of which two pass."""
    said: list[tuple[Variant, Says]] = []
    for n in range(8):
        base = variant(f"c{n}/base", truth=CORRECT if n < 4 else FAULTY, length=400)
        said.append((base, PASS if n < 4 else fail()))
        said.append((padded(n, "padded-plan", base), PASS if 0 < n < 6 else fail()))
        said.append((padded(n, "long-reasons", base, length=800), PASS if n < 4 else fail()))
    return rows(*said)


def test_padding_counted_by_hand() -> None:
    result = probe(by_hand())
    expected = {"padded, correct plans": -1 / 8, "padded, faulty plans": 2 / 8}
    assert {m.name: m.estimate.value for m in result.measures} == pytest.approx(expected)
    assert {(m.side, m.limit) for m in result.measures} == {("within", PADDED)}
    assert figure(result, "padded-plan, faulty plans: change of passing") == 0.5
    assert figure(result, "long-reasons, faulty plans: change of passing") == 0
    assert result.tables[0].rows[-1] == ("padded-plan", "faulty plans", "4", "3.0", "+50.0 pts")
    assert table(result)["long-reasons"][2] == "2.0"


def predictions(n_cases: int, *, length: int = 0, truth: Truth | None = None) -> list[Variant]:
    """Two a case, one correct and one not, of lengths that differ unless one is given."""
    return [
        variant(
            f"c{n}/p{k}",
            "prediction",
            truth=truth or (CORRECT if k else WRONG),
            length=length or 200 * 2 ** ((n + k) % 4),
        )
        for n in range(n_cases)
        for k in (0, 1)
    ]


@pytest.mark.parametrize(
    ("asked", "is_told"),
    [
        (predictions(10), True),
        (predictions(9), False),
        (predictions(20, length=500), False),
        (predictions(20, truth=Truth(is_correct=None)), False),
        (predictions(20, truth=CORRECT), True),
    ],
)
def test_the_regression_takes_ten_cases_labels_and_different_lengths(
    asked: list[Variant], is_told: bool
) -> None:
    responses = hear(always_yes, {MAIN: [*asked, *ASKED[MAIN][:20]]})
    responses = AuditResponses(tuple(s for s in responses.all if s.variant in asked))
    result = probe(responses)
    assert [m.name for m in result.measures] == [ERROR] * is_told


def test_lengths_that_hardly_differ_have_no_slope_and_no_slope_exceeds_what_errors_can() -> None:
    asked = [
        variant(v.name, "prediction", truth=v.truth, length=1000 + n)
        for n, v in enumerate(predictions(20))
    ]
    assert not probe(hear(coin(1), {MAIN: asked})).measures
    x, errors = np.tile([0.0, 0.01], 20), np.tile([0.0, 1.0], 20)
    assert slope(errors, x, np.zeros(40), Sample(), 0.95).value == 1


def test_lengths_that_differ_with_the_truth_alone_say_nothing() -> None:
    asked = [
        variant(v.name, "prediction", truth=v.truth, length=800 if v.truth == CORRECT else 200)
        for v in predictions(20)
    ]
    assert not probe(hear(perfect, {MAIN: asked})).measures


def test_the_slope_and_its_error_are_those_of_statsmodels_in_many_rows() -> None:
    from statsmodels.regression.linear_model import OLS  # takes a second to import

    rng = np.random.default_rng(3)
    cases = np.repeat(np.arange(800), 3)
    truths = (rng.random(2400) < 0.6).astype(float)
    x = rng.normal(9, 1, 2400) + truths
    passed = rng.random(2400) < 0.2 + 0.6 * truths + 0.04 * (x - 9)
    result = slope(passed - truths, x, truths, Sample(clusters=cases), level=0.95)
    design = np.stack([x, truths, np.ones(2400)], axis=1)
    fitted = OLS(passed - truths, design).fit(
        cov_type="cluster", cov_kwds={"groups": cases}, use_t=True
    )
    low, high = fitted.conf_int(0.05)[0]
    assert result.value == pytest.approx(fitted.params[0], abs=1e-12)
    assert (result.low, result.high) == pytest.approx((low, high), abs=5e-4)
    assert (result.n_items, result.n_clusters) == (2400, 800)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.booleans(), st.booleans(), st.integers(1, 4000), st.integers(0, 8)),
        min_size=12,
        max_size=60,
    ).filter(lambda rows: len({case for *_, case in rows}) > 1)
)
def test_slopes_lie_in_their_intervals_and_turn_with_the_verdicts(
    said: list[tuple[bool, bool, int, int]],
) -> None:
    truths = np.array([float(truth) for truth, *_ in said])
    errors = np.array([float(ok) - truth for truth, ok, *_ in said])
    x = np.array([log2(length) for *_, length, _ in said])
    sample = Sample(clusters=np.array([case for *_, case in said]))
    if all(np.ptp(x[truths == t]) < 1e-9 for t in np.unique(truths)):
        return
    there = slope(errors, x, truths, sample, level=0.95)
    back = slope(errors, -x, truths, sample, level=0.95)
    assert there.low is not None
    assert there.high is not None
    assert there.low <= (there.value or 0) <= there.high
    assert there.low < there.high
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low), abs=1e-9)


def length_of(of: Variant) -> int:
    return len(of.row["model_response"])


def at_the_limits(seed: int) -> Judge:
    """Padding turns a tenth of the faulty plans; a doubling makes five in a hundred more pass."""
    rng = Random(seed)

    def turns(of: Variant, arm: str) -> bool:
        if of.role == "padded":
            return not of.truth.is_correct and rng.random() < PADDED
        if of.role != "prediction":
            return False
        chance = 0.2 + PER_DOUBLING * log2(length_of(of) / 800)
        return rng.random() < (chance if not of.truth.is_correct else 0.4 - chance)

    return turning(perfect, 1.0, 0, when=turns)


def test_judges_at_the_limits_are_seldom_failed_and_never_passed() -> None:
    parents = {v.parent for v in ASKED[MAIN] if v.kind == "padded-plan"}
    wanted = [v for v in ASKED[MAIN] if v.kind in {"padded-plan", "prediction"}]
    asked = {MAIN: [*wanted, *(v for v in ASKED[MAIN] if v.name in parents)]}
    result = outcomes(probe, map(at_the_limits, range(N_AUDITS)), asked)
    assert result["fails"] <= MOST_FAILED
    assert result["passes"] == 0
