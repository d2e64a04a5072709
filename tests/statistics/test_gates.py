"""Conditions on estimates: how they are written, and when they hold."""

from __future__ import annotations

from typing import Any

import pytest

from apbjudge import OptionError
from apbjudge.judge.metrics import code_kind, stated_kind, stated_kinds
from apbjudge.statistics.estimates import Estimate, nothing
from apbjudge.statistics.gates import GateResult, check
from apbjudge.statistics.kinds import GRADE_MAE, KAPPA
from apbjudge.statistics.metric import MetricKind, Metrics, neutral

ALDER = {"protocol": "holistic", "form": "holistic", "tested_model": "alder"}
BIRCH = {**ALDER, "tested_model": "birch:7b"}


def estimate(value: float, low: float | None = None, high: float | None = None, **more: Any):
    return Estimate(value=value, low=low, high=high, level=0.95, n_items=30, n_clusters=30, **more)


NOT_CLEAR = ": not clear: the limit is within the interval"
ESTIMATES = {
    "CR": estimate(0.8, 0.62, 0.91),
    "E2-H": estimate(0.05, 0.01, 0.16),
    "C_all": estimate(3.2, 2.5, 4.0),
    "TC": estimate(3),
    "Grade": nothing(note="no row with a verdict"),
    "most": estimate(0.8, bound="upper"),
    "least": estimate(0.8, bound="lower"),
    "2 alternative": estimate(0.1, 0.0, 0.2),
    "code Q1": estimate(0.2, 0.1, 0.3),
    "grade MAE": estimate(0.1, 0.05, 0.2),
}


KINDS = {
    **stated_kinds(),
    **{kind.name: kind for kind in (code_kind("Q1", "holistic"), GRADE_MAE, neutral("most"))},
}


def metrics(estimates: dict[str, Estimate]) -> Metrics:
    return {name: KINDS.get(name, neutral(name)).of(of) for name, of in estimates.items()}


FIGURES = metrics(ESTIMATES)


def one(condition: str, **options: Any) -> GateResult:
    (result,) = check([condition], [(ALDER, FIGURES)], **options)
    return result


OF_ALDER = " (holistic, alder)"
TEXTS = {
    "CR=0.8": "passed: CR >= 0.8: 0.800 [0.620, 0.910] /30" + OF_ALDER + NOT_CLEAR,
    "  cr >=  60% ": "passed: CR >= 0.6: 0.800 [0.620, 0.910] /30" + OF_ALDER,
    "CR==0.95": "failed: CR >= 0.95: 0.800 [0.620, 0.910] /30" + OF_ALDER,
    "e2-h = 1e-2": "failed: E2-H <= 0.01: 0.050 [0.010, 0.160] /30" + OF_ALDER,
    "C_all <= 4.5": "passed: C_all <= 4.5: 3.200 [2.500, 4.000] /30" + OF_ALDER,
    "Q1=.1": "failed: code Q1 <= 0.1: 0.200 [0.100, 0.300] /30" + OF_ALDER,
    "low CR=0.63": "failed: CR >= 0.63 at the low end: 0.800 [0.620, 0.910] /30" + OF_ALDER,
    "low E2<=0.16": "passed: E2-H <= 0.16 at the high end: 0.050 [0.010, 0.160] /30" + OF_ALDER,
    "low TC=5": "missing: TC <= 5 at the high end: 3.000 /30"
    + OF_ALDER
    + ": it has no interval; --gate point checks the value",
    "grade=0.5": "missing: Grade >= 0.5" + OF_ALDER + ": no row with a verdict",
    # a bound refutes or shows, and the rest is said
    "most>=0.7": "passed: most >= 0.7: ≤ 0.800 /30" + OF_ALDER + ": not refuted: an upper bound",
    "most>=0.9": "failed: most >= 0.9: ≤ 0.800 /30" + OF_ALDER,
    "most<=0.7": "failed: most <= 0.7: ≤ 0.800 /30" + OF_ALDER + ": not shown: an upper bound",
    "least<=0.9": "passed: least <= 0.9: ≥ 0.800 /30" + OF_ALDER + ": not refuted: a lower bound",
    "least>=0.9": "failed: least >= 0.9: ≥ 0.800 /30" + OF_ALDER + ": not shown: a lower bound",
}


@pytest.mark.parametrize("condition", TEXTS)
def test_a_condition_on_the_value_or_the_harder_end(condition: str) -> None:
    at = "low" if condition.startswith("low ") else "point"
    result = one(condition.removeprefix("low "), at=at)
    assert result.text == TEXTS[condition]
    assert result.passed is result.text.startswith("passed: ")
    assert result.to_json()["condition"] == result.condition


def test_a_figure_that_no_group_or_only_another_has_is_missing() -> None:
    _, second = check(["CR=0.5"], [(ALDER, FIGURES), (BIRCH, {})])
    assert second.text == (
        "missing: CR=0.5 (holistic, birch:7b): no such measure here; to check only a part of the "
        "groups write 'GROUP: CR=0.5'"
    )
    (empty,) = check(["CR=0.5"], [])
    assert (empty.outcome, empty.reason) == ("missing", "no rows")


def test_a_condition_on_one_group() -> None:
    of = [(ALDER, FIGURES), (BIRCH, FIGURES)]
    assert [r.place for r in check(["CR=0.8"], of)] == ["holistic, alder", "holistic, birch:7b"]
    assert [r.place for r in check(["Birch:7B: CR=0.8"], of)] == ["holistic, birch:7b"]
    assert len(check(["holistic:CR=0.8", "alder:CR=0.8"], of)) == 3
    with pytest.raises(OptionError, match=r"among holistic, alder, birch:7b, got 'cedar'"):
        check(["cedar: CR=0.8"], of)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("=0.8", "expected a condition such as CR=0.8"),
        ("CR=0.8.1", "expected a condition such as CR=0.8"),
        ("CR=80", "CR: expected a limit from 0 to 1, such as 0.8 or 80%, got 80"),
        ("C_all=1e999", "expected a limit such as 0.8 or 80%"),
        ("C=0.8", "expected a measure among CR, E2-H, C_all, TC, Grade"),
        ("2 alternative=0.1", "2 alternative: expected >= or <=, since it is not stated whether"),
    ],
)
def test_what_can_not_be_checked_is_refused(condition: str, text: str) -> None:
    with pytest.raises(OptionError) as refused:
        one(condition)
    assert text in str(refused.value)
    several = metrics({"E2-H": estimate(0.1), "E2-S": estimate(0.1)})
    with pytest.raises(OptionError, match="among E2-H, E2-S; got 'E2'"):
        check(["E2=0.1"], [(ALDER, several)])


@pytest.mark.parametrize(
    ("kind", "better", "bounds"),
    [
        (stated_kind("E2"), "lower", (0, 1)),
        (stated_kind("no provable fault, base@2"), "higher", (0, 1)),
        (stated_kind("code Q1"), "lower", (0, 1)),
        (KINDS["refusal tool_removal"], "higher", (0, 1)),
        (KINDS["C_all"], "lower", None),
        (KAPPA, "higher", (-1, 1)),
    ],
)
def test_direction_and_bounds_are_those_that_are_stated(
    kind: MetricKind, better: str | None, bounds: tuple[float, float] | None
) -> None:
    assert (kind.better, kind.bounds) == (better, bounds)
