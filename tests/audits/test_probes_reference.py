"""Reference dependence: changes by hand, and judges that compare instead of examining."""

from __future__ import annotations

from random import Random

import pytest

from apbjudge.audits.probes.reference import ECHOED, EQUIVALENT, FOREIGN, WITHOUT, probe
from apbjudge.audits.responses import BLIND, MAIN, AuditResponses
from apbjudge.audits.variants import Variant

from .judges import (
    FAULTY,
    MOST_FAILED,
    N_AUDITS,
    PASS,
    Judge,
    Says,
    audit,
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

ASKED = only(audit(60), "base", "fault", "reference")


def other_references(kind: str, parent: Variant) -> Variant:
    name = f"{parent.name}/{kind}"
    return variant(name, "reference", kind=kind, parent=parent.name, truth=parent.truth)


def by_hand() -> AuditResponses:
    said: list[tuple[Variant, Says] | tuple[Variant, Says, str]] = []
    for n in range(4):
        base = variant(f"c{n}/base")
        fault = variant(f"c{n}/fault", "fault", parent=base.name, truth=FAULTY)
        said += [
            (base, PASS),
            (fault, fail("E4") if n else PASS),
            (other_references("echoed-reference", fault), PASS if n < 3 else fail("E4")),
            (other_references("foreign-reference", base), fail("E1") if n < 1 else PASS),
            (other_references("reworded-reference", base), PASS),
            (other_references("equivalent-reference", base), fail("E1") if n < 1 else PASS),
            (base, PASS, BLIND),
            (fault, PASS if n < 2 else fail("E4"), BLIND),
        ]
    return rows(*said)


def test_references_counted_by_hand() -> None:
    result = probe(by_hand())
    expected = {
        "echoed": 2 / 4,
        "foreign": -1 / 4,
        "blind, correct plans": 0.0,
        "blind, faulty plans": 1 / 4,
        "equivalent": 1 / 8,
    }
    assert {m.name: m.estimate.value for m in result.measures} == pytest.approx(expected)
    assert {m.name: (m.side, m.limit) for m in result.measures} == {
        "echoed": ("at most", ECHOED),
        "foreign": ("within", FOREIGN),
        "blind, correct plans": ("within", WITHOUT),
        "blind, faulty plans": ("within", WITHOUT),
        "equivalent": ("at most", EQUIVALENT),
    }
    assert figure(result, "equivalent-reference: change of passing") == -1 / 4
    assert table(result)["echoed-reference"] == ("4", "25.0 %", "75.0 %", "+50.0 pts")
    assert table(result)["no reference, faulty plans"] == ("4", "25.0 %", "50.0 %", "+25.0 pts")
    assert [(e.name, e.arm) for e in result.exhibits] == [
        ("c1/fault/echoed-reference", MAIN),
        ("c2/fault/echoed-reference", MAIN),
        ("c0/base/foreign-reference", MAIN),
        ("c0/base/equivalent-reference", MAIN),
        ("c1/fault", BLIND),
    ]
    assert result.exhibits[-1].what.endswith(
        "judged correct, 1, with the reference not correct (E4), 0.4"
    )
    assert result.notes[0].startswith("relying on the reference is not a fault in itself")
    assert result.notes[1].startswith("equivalent: fewer than 10")
    assert result.cost.judgements == 4 * 8


def test_a_judge_that_sees_no_reference_anyway_is_asked_nothing_of_blindness() -> None:
    asked = {arm: variants for arm, variants in ASKED.items() if arm != BLIND}
    names = [m.name for m in probe(hear(perfect, asked)).measures]
    assert names == ["echoed", "foreign", "equivalent"]


def at_the_limits(seed: int) -> Judge:
    """A tenth of the verdicts changes wherever a reference does, and without one."""
    rng = Random(seed)

    def turns(of: Variant, arm: str) -> bool:
        return (of.role == "reference" or arm == BLIND) and rng.random() < ECHOED

    return turning(perfect, 1.0, 0, when=turns)


def test_judges_at_the_limits_are_seldom_failed_and_never_passed() -> None:
    whole = only(audit(40), "base", "fault", "reference")
    lead = {v.name for v in whole[BLIND]}
    asked = {arm: whole[arm] for arm in (MAIN, "again-1", BLIND)}
    asked[MAIN] = [v for v in whole[MAIN] if v.role == "reference" or v.name in lead]
    result = outcomes(probe, map(at_the_limits, range(N_AUDITS)), asked)
    assert result["fails"] <= MOST_FAILED
    assert result["passes"] == 0
