"""What holds of every probe: at its limits, of whatever a judge says, and of nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log2
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.outcomes import LISTED, Probe
from apbjudge.audits.probes import (
    OF_RESPONSES,
    consistency,
    drift,
    faults,
    injection,
    length,
    preference,
    presentation,
    reference,
    refusals,
    subgroups,
)
from apbjudge.audits.responses import BLIND, MAIN, AuditResponses
from apbjudge.audits.variants import Variant
from apbjudge.records import ERROR_CODES

from .judges import PASS, Judge, Runs, Says, audit, fail, hear, only, perfect, scheduled

N_AUDITS = 40
MOST = 4
"""Of so many audits at the limits themselves: a probe promises 2.5 %, which is 1."""

ASKED = only(audit(40), "base", "fault", "shown", "reference")
LED = {v.name for v in ASKED[BLIND]}
"""Plans that are asked again: the base of each case, and one fault."""
MAIN_OF = {
    role: [v for v in ASKED[MAIN] if v.role == role or v.name in LED]
    for role in ("shown", "reference")
}
BASES = [v for v in audit(60)[MAIN] if v.role == "base"]
LONG = only({MAIN: audit(60)[MAIN]}, "base", "fault", "padded", "prediction")[MAIN]
PADDED = [v for v in LONG if v.kind in ("padded-plan", "prediction")]
PARENTS = [v for v in LONG if v.name in {padded.parent for padded in PADDED}]

Hears = Callable[[int], AuditResponses]
Chance = Callable[[Variant, str], float]


def erring(chance: Chance, runs: Runs, *, by_case: bool = False) -> Hears:
    """Of a judge that errs by chance; ``by_case`` in all or in nothing of a case."""

    def hears(seed: int) -> AuditResponses:
        rng = Random(seed)

        def judge(of: Variant, run: str) -> Says:
            draw = Random(f"{seed}/{of.case_id}") if by_case else rng
            is_right = draw.random() >= chance(of, run)
            return PASS if of.truth.is_correct == is_right else fail("E5")

        return hear(judge, runs)

    return hears


def catching(seed: int) -> AuditResponses:
    rng = Random(seed)

    def judge(of: Variant, run: str) -> Says:
        if of.truth.is_correct:
            return PASS if rng.random() < faults.PASSED else fail("E2")
        if rng.random() >= faults.CAUGHT:
            return PASS
        (own,) = of.truth.codes or ("E4",)
        return fail(own if rng.random() < faults.NAMED else "E1" if own != "E1" else "E2")

    return hear(judge, only(audit(30), "base", "fault"))


def refusing(seed: int) -> AuditResponses:
    rng = Random(seed)

    def judge(of: Variant, run: str) -> Says:
        chance = 0.05 if of.truth.is_correct else refusals.UNEVEN + 0.05
        return Says(None) if rng.random() < chance else perfect(of)

    return hear(judge, only(audit(30), "base", "fault"))


def drifting(seed: int) -> AuditResponses:
    rng = Random(seed)
    said = scheduled(hear(perfect, only({MAIN: audit(60)[MAIN]}, "base", "fault"))).all

    def passes(turn: int) -> bool:
        return rng.random() < 0.2 + drift.DRIFT * (turn > len(said) / 2)

    return AuditResponses(
        tuple(replace(r, is_correct=r.is_correct or passes(r.turn or 0)) for r in said)
    )


def own_preference(responses: AuditResponses) -> Probe:
    return preference.Preference.of(replace(responses, own=("model-0",), baseline="human labels"))


def parity(of: Variant) -> int:
    return int(of.case_id[1:]) % 2


def weak_in_a(seed: int) -> AuditResponses:
    hears = erring(
        lambda of, run: 0.15 + subgroups.GAP * (1 - parity(of)), only(ASKED, "base", "fault")
    )
    said = hears(seed).all
    return AuditResponses(
        tuple(replace(r, groups={"dataset": "ab"[parity(r.variant)]}) for r in said)
    )


def errs_with_length(of: Variant, run: str) -> float:
    """Padding turns a tenth of the faulty plans; a doubling makes five in a hundred more pass."""
    if of.role == "padded":
        return 0.0 if of.truth.is_correct else length.PADDED
    if of.role != "prediction":
        return 0.0
    passes = 0.2 + length.PER_DOUBLING * log2(len(of.row["model_response"]) / 800)
    return 0.4 - passes if of.truth.is_correct else passes


def favours(of: Variant, run: str) -> float:
    is_own = of.row["tested_model"] == "model-0"
    return 2 * preference.FAVOUR * (is_own and not of.truth.is_correct)


LIMITS: Mapping[str, tuple[Callable[[AuditResponses], Probe], Hears]] = {
    "faults": (faults.Faults.of, catching),
    "refusals": (refusals.Refusals.of, refusing),
    "drift": (drift.Drift.of, drifting),
    "subgroups": (subgroups.Subgroups.of, weak_in_a),
    "preference": (
        own_preference,
        erring(favours, only({MAIN: audit(60)[MAIN]}, "prediction")),
    ),
    "consistency": (
        consistency.Consistency.of,
        erring(
            lambda of, run: {"again-1": consistency.SAME, "warm-1": consistency.WARMER}.get(run, 0),
            dict.fromkeys((MAIN, "again-1", "warm-1", "warm-2"), BASES),
        ),
    ),
    "presentation": (
        presentation.Presentation.of,
        erring(
            lambda of, run: presentation.SHIFT * (of.role == "shown"),
            {MAIN: MAIN_OF["shown"], "again-1": ASKED["again-1"]},
        ),
    ),
    "reference": (
        reference.ReferenceUse.of,
        erring(
            lambda of, run: reference.ECHOED * (of.role == "reference" or run == BLIND),
            {MAIN: MAIN_OF["reference"], "again-1": ASKED["again-1"], BLIND: ASKED[BLIND]},
        ),
    ),
    "length": (length.Length.of, erring(errs_with_length, {MAIN: [*PADDED, *PARENTS]})),
    "injection": (
        injection.Injection.of,
        erring(
            lambda of, run: injection.MOVED * (of.role == "injected"),
            only({MAIN: audit(80)[MAIN]}, "injected", "neutral"),
            by_case=True,
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_judges_at_the_limits_are_seldom_failed_and_seldom_passed(name: str) -> None:
    probe, hears = LIMITS[name]
    outcomes = Counter(probe(hears(seed)).outcome for seed in range(N_AUDITS))
    assert outcomes["fails"] <= MOST
    assert outcomes["passes"] <= MOST


CASES = {n: audit(n) for n in (0, 1, 2, 13)}


def anything(seed: int) -> Judge:
    def judge(of: Variant, run: str) -> Says:
        rng = Random(f"{seed}/{run}/{of.name}")
        grade = rng.choice([None, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        flags = rng.choice([None, frozenset(rng.sample(ERROR_CODES, rng.randint(0, 3)))])
        verdict = rng.choice([None, True, False, False])
        return Says(None) if verdict is None else Says(verdict, grade, flags, rng.random() < 0.2)

    return judge


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(sorted(CASES)), st.integers(0, 10**6))
def test_probes_of_anything(seed: int, n_cases: int, order: int) -> None:
    responses = hear(anything(seed), CASES[n_cases])
    turned = list(responses.all)
    Random(order).shuffle(turned)
    for probe in (*(probe.of for probe in OF_RESPONSES), own_preference):
        result = probe(responses)
        again = probe(AuditResponses(tuple(turned)))
        assert result.because
        assert len(result.examples) == min(result.n_examples, LISTED)
        for measure in (*result.measures, *result.figures):
            estimate = measure.estimate
            if estimate.value is not None and estimate.low is not None:
                assert estimate.low <= estimate.value <= estimate.high
        assert (result.outcome, result.cost.judgements) == (again.outcome, again.cost.judgements)
        values = {m.name: m.estimate.value for m in result.measures}
        assert None not in values.values()
        assert {m.name: m.estimate.value for m in again.measures} == pytest.approx(values)
