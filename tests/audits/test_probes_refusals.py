"""Selective refusal: counts made by hand, and judges that leave plans without a verdict."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from apbjudge.audits.probes.refusals import NOT_THE_JUDGE, UNEVEN, probe
from apbjudge.audits.responses import AuditResponses
from apbjudge.audits.variants import Truth, Variant
from apbjudge.errors import UnscoredReason

from .judges import (
    MOST_FAILED,
    N_AUDITS,
    PASS,
    Judge,
    Says,
    audit,
    fail,
    figure,
    hear,
    observed,
    only,
    outcomes,
    perfect,
    rows,
    table,
    variant,
)

ASKED = only(audit(60), "base", "fault", "harmless")
NONE = Says(None)


def fault(name: str) -> Variant:
    truth = Truth(is_correct=False, codes=frozenset({"E4"}))
    return variant(name, "fault", kind="plant-E4", parent=f"{name[0]}/base", truth=truth)


def refusing(of_faulty: float, of_sound: float, seed: int) -> Judge:
    rng = Random(seed)

    def judge(of: Variant, arm: str) -> Says:
        chance = of_sound if of.truth.is_correct else of_faulty
        return NONE if rng.random() < chance else perfect(of)

    return judge


def test_each_fault_is_held_against_the_sound_plans_of_its_case() -> None:
    result = probe(
        rows(
            (variant("a/base"), PASS),
            (variant("a/w", "harmless"), NONE),
            (fault("a/1"), NONE),
            (fault("a/2"), fail("E4")),
            (variant("b/base"), PASS),
            (fault("b/1"), NONE),
            (fault("c/1"), NONE),  # nothing sound of this case
            (variant("a/s", "shown"), NONE),
            (fault("a/2"), NONE, "again-1"),  # counts in no table of the main arm
        )
    )
    (measure,) = result.measures
    assert measure.estimate.value == pytest.approx((0.5 - 0.5 + 1.0) / 3)
    assert (measure.side, measure.limit, measure.unit) == ("within", UNEVEN, "points")
    assert figure(result, "without verdict, faulty plans") == 0.75
    assert figure(result, "without verdict, sound plans") == pytest.approx(1 / 3)
    assert [e.name for e in result.exhibits] == ["a/1", "b/1"]
    assert table(result)["fault, faulty"] == ("4", "75.0 %", "3")
    assert table(result)["shown, sound"] == ("1", "100.0 %", "1")


@pytest.mark.parametrize("reason", NOT_THE_JUDGE)
def test_what_never_reached_the_judge_counts_nowhere(reason: UnscoredReason) -> None:
    said = [observed(variant("a/base"), PASS), observed(fault("a/1"), fail("E4"))]
    lost = replace(observed(fault("a/2"), NONE), reason=reason)
    assert (
        probe(AuditResponses((*said, lost))).measures == probe(AuditResponses(tuple(said))).measures
    )


def test_a_judge_without_any_verdict_is_not_said_to_refuse_evenly() -> None:
    result = probe(hear(lambda of, arm: NONE, ASKED))
    assert (result.outcome, result.because) == ("could not tell", "nothing has a verdict")


def test_a_judge_that_refuses_a_quarter_of_everything_does_not_fail() -> None:
    judges = (refusing(0.25, 0.25, seed) for seed in range(20))
    assert outcomes(probe, judges, ASKED)["fails"] == 0


def test_judges_at_the_limit_are_seldom_failed() -> None:
    asked = only(audit(30), "base", "fault")
    judges = (refusing(UNEVEN + 0.05, 0.05, seed) for seed in range(N_AUDITS))
    assert outcomes(probe, judges, asked)["fails"] <= MOST_FAILED
