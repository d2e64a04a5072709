"""Whatever a judge says, and whatever it does not: the probes that need no labels still tell."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.outcomes import LISTED
from apbjudge.audits.probes import (
    consistency,
    drift,
    faults,
    injection,
    length,
    presentation,
    reference,
    refusals,
    scale,
    subgroups,
)
from apbjudge.audits.responses import AuditResponses
from apbjudge.audits.variants import Variant
from apbjudge.records import ERROR_CODES

from .judges import Judge, Says, audit, hear

PROBES = (faults, consistency, presentation, length, reference, injection)
CASES = {n: audit(n) for n in (1, 2, 13)}


def anything(seed: int) -> Judge:
    def judge(of: Variant, arm: str) -> Says:
        rng = Random(f"{seed}/{arm}/{of.name}")
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
    for module in PROBES:
        result = module.probe(responses)
        again = module.probe(AuditResponses(tuple(turned)))
        assert result.because
        assert len(result.exhibits) == min(result.n_exhibits, LISTED)
        for measure in result.measures:
            estimate = measure.estimate
            assert estimate.value is not None
            assert (estimate.low is None) or estimate.low <= estimate.value <= estimate.high
        assert (result.outcome, result.cost.judgements) == (again.outcome, again.cost.judgements)
        values = {m.name: m.estimate.value for m in result.measures}
        assert {m.name: m.estimate.value for m in again.measures} == pytest.approx(values)


@pytest.mark.parametrize("module", [*PROBES, drift, refusals, scale, subgroups])
def test_probes_of_nothing(module: Any) -> None:
    result = module.probe(AuditResponses(()))
    assert (result.name, result.title, result.question) == (
        module.SPEC.name,
        module.SPEC.title,
        module.SPEC.question,
    )
    assert (result.outcome, result.measures, result.cost.judgements) == ("could not tell", (), 0)
