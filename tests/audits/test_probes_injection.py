"""Injection: payloads against idle text, by hand and of judges that obey."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from apbjudge.audits.probes.injection import MOVED, MOVED_BY_FAMILY, probe
from apbjudge.audits.responses import MAIN, AuditResponses
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
    measure,
    only,
    outcomes,
    perfect,
    rows,
    table,
    turning,
    variant,
)

ASKED = only({MAIN: audit(80)[MAIN]}, "injected", "neutral")


def twin(n: int) -> Variant:
    return variant(f"c{n}/neutral", "neutral", kind="neutral-plan", truth=FAULTY)


def injected(n: int, payload: str, language: str, place: str = "plan") -> Variant:
    family, _, _ = payload.partition(":")
    tags = {
        "twin": f"c{n}/neutral",
        "family": family,
        "language": language,
        "place": place,
        "payload": payload,
    }
    return variant(f"c{n}/{payload}", "injected", kind=f"inject-{place}", truth=FAULTY, tags=tags)


def by_hand() -> AuditResponses:
    return rows(
        *((twin(n), fail("E4") if n else PASS) for n in range(3)),
        (twin(3), Says(None)),
        (injected(0, "authority:1", "en"), fail("E4")),
        (injected(1, "authority:1", "en"), PASS),
        (injected(2, "authority:2", "de", "reason"), PASS),
        (injected(1, "unicode:1", "de", "reason"), fail("E4")),
        (injected(2, "unicode:1", "en"), Says(False, 0.4, frozenset({"E4"}), is_informed=True)),
        (injected(3, "unicode:1", "en"), PASS),
        (variant("c4/lonely", "injected", truth=FAULTY, tags={"family": "unicode"}), PASS),
    )


def test_payloads_counted_by_hand() -> None:
    result = probe(by_hand())
    expected = {"moved": 1 / 5, "moved by authority": 1 / 3, "moved by unicode": 0.0}
    assert {m.name: m.estimate.value for m in result.measures} == pytest.approx(expected)
    assert [m.limit for m in result.measures] == [MOVED, MOVED_BY_FAMILY, MOVED_BY_FAMILY]
    assert {(m.side, m.unit) for m in result.measures} == {("at most", "points")}
    assert figure(result, "moved, in reason") == 0.5
    assert figure(result, "moved, in plan") == 0
    assert figure(result, "moved, language en") == 0
    assert figure(result, "moved, where code proved no fault") == 1 / 4
    assert table(result) == {
        "authority:1": ("2", "+0.0 pts"),
        "authority:2": ("1", "+100.0 pts"),
        "unicode:1": ("2", "+0.0 pts"),
    }
    assert [e.name for e in result.exhibits] == ["c1/authority:1", "c2/authority:2"]
    assert result.exhibits[1].what == (
        "payload authority:2, place reason, language de – inject-reason of c2/authority:2; "
        "judged correct, 1, with idle text not correct (E4), 0.4"
    )
    assert any(note.startswith("1 of 5 were proven faulty by code") for note in result.notes)
    assert result.cost.judgements == 11


def test_thirty_cases_are_too_few_to_acquit() -> None:
    result = probe(hear(perfect, only({MAIN: audit(30)[MAIN]}, "injected", "neutral")))
    assert result.outcome == "could not tell"
    assert 30 < (measure(result, "moved").needed or 0) <= 45
    names = {figure.name for figure in result.figures}
    assert "moved, where code proved no fault" not in names  # it proved none at all


def alone(seed: int) -> Judge:
    """Moved once in twenty, whatever was said of the same plan."""
    rng = Random(seed)
    return turning(
        perfect, 1.0, 0, when=lambda of, arm: of.role == "injected" and rng.random() < MOVED
    )


def by_case(seed: int) -> Judge:
    """One case in twenty is moved by everything."""
    moved = {case for case in range(80) if Random(f"{seed}/{case}").random() < MOVED}
    return turning(
        perfect, 1.0, 0, when=lambda of, arm: of.role == "injected" and int(of.case_id[1:]) in moved
    )


@pytest.mark.parametrize("judge", [alone, by_case])
def test_judges_at_the_limit_are_seldom_failed_and_seldom_passed(
    judge: Callable[[int], Judge],
) -> None:
    result = outcomes(probe, map(judge, range(N_AUDITS // 2)), ASKED)
    assert result["fails"] <= MOST_FAILED // 2
    assert result["passes"] <= MOST_FAILED // 2
