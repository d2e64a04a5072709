"""Planted faults: counts made by hand, and judges whose rates are known."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from apbjudge.audits.probes.faults import CAUGHT, NAMED, PASSED, probe
from apbjudge.audits.responses import AuditResponses
from apbjudge.audits.variants import PASSES, Role, Truth, Variant
from apbjudge.records import ERROR_CODES, ErrorCode

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
    rows,
    table,
    variant,
)

ASKED = only(audit(60), "base", "fault", "harmless")


def fault(name: str, code: ErrorCode = "E4", *, also: str = "", **more: Any) -> Variant:
    codes = frozenset(c for c in ERROR_CODES if c in also.split())
    truth = Truth(is_correct=False, codes=frozenset({code}), also=codes)
    base = f"{name.partition('/')[0]}/base"
    return variant(name, "fault", kind=f"plant-{code}", parent=base, truth=truth, **more)


def by_hand() -> AuditResponses:
    return rows(
        (variant("a/base"), PASS),
        (variant("b/base"), Says(True, 0.8, frozenset({"E5"}))),
        (variant("c/base"), fail("E2", grade=0.6)),
        (variant("a/w", "harmless", kind="reword", parent="a/base"), fail("E6")),
        (fault("a/1", severity="minor"), Says(False, 0.6, frozenset({"E4"}), is_informed=True)),
        (fault("b/1", also="E6", severity="fatal"), fail("E1", "E6", grade=0.0)),
        (fault("c/1", severity="fatal"), PASS),
        (fault("a/2", "E5"), fail("E2")),
        (fault("b/2", "E5"), Says(False, 0.4, frozenset())),
        (fault("c/2", "E5"), Says(None)),
    )


def test_counts_made_by_hand() -> None:
    result = probe(by_hand())
    expected = {
        "caught, all codes": 4 / 5,
        "caught E4": 2 / 3,
        "caught E5": 1.0,
        "passed": 0.5,
        "named": 0.5,
    }
    assert {m.name: m.estimate.value for m in result.measures} == pytest.approx(expected)
    assert {m.limit for m in result.measures} == {CAUGHT, PASSED, NAMED}
    assert {m.side for m in result.measures} == {"at least"}
    assert {m.estimate.level for m in result.measures} == {1 - 0.05 / 5}
    assert measure(result, "caught E4").parts == {"a": (1, 1), "b": (1, 1), "c": (0, 1)}
    assert figure(result, "flagged E4") == pytest.approx(1 / 3)
    assert figure(result, "flagged E5") == 0
    assert figure(result, "grade drop, minor") == pytest.approx(0.4)
    assert figure(result, "grade drop, fatal") == pytest.approx((0.8 - 0.4) / 2)
    assert figure(result, "grade drop, E5") == pytest.approx((0.6 + 0.4) / 2)
    assert figure(result, "proven by code, E4") == pytest.approx(1 / 3)
    assert figure(result, "caught E4, not proven by code") == 0.5
    assert table(result) == {
        "E4": ("3", "1", "0", "0", "1", "0", "1", "0", "1"),
        "E5": ("2", "0", "1", "0", "0", "0", "0", "1", "0"),
    }
    assert table(result, 1)["plant-E4"] == ("E4", "3", "66.7 %", "100.0 %", "33.3 %", "+0.27")
    assert table(result, 2) == {"base": ("3", "66.7 %"), "reword": ("1", "0.0 %")}
    assert [e.name for e in result.exhibits] == ["c/1", "c/base", "a/w", "a/2", "b/2"]
    assert result.exhibits[0].what == "plant-E4 of c/1; judged correct, 1"
    assert result.n_exhibits == 5
    assert any(note.startswith("1 of 5 planted faults are proven") for note in result.notes)
    assert any(note.startswith("1 of 10 judgements have no verdict") for note in result.notes)
    assert not any("reference" in note for note in result.notes)
    assert (result.cost.judgements, result.cost.unscored) == (10, 1)


def test_what_code_proves_and_enforces_does_not_count_as_caught_by_the_judge() -> None:
    """Every fault is proven and enforced; the judge itself passes everything."""

    def judge(of: Variant, arm: str) -> Says:
        return Says(True, 1.0, frozenset(), is_informed=not of.truth.is_correct)

    result = probe(hear(judge, ASKED))
    assert result.outcome == "fails"
    assert measure(result, "caught, all codes").estimate.value == 0.0
    assert figure(result, "caught by judge and code together, all codes") == 1.0
    assert figure(result, "caught by judge and code together, E4") == 1.0


def listing(name: str, n: int, role: Role) -> Variant:
    one = fault(name) if role == "fault" else variant(name)
    return replace(one, row={**one.row, "tools": [{"name": f"t{i}"} for i in range(n)]})


def test_lists_of_tools_are_told_apart_by_length() -> None:
    said: list[tuple[Variant, Says]] = []
    for case, n in enumerate((8, 29, 30, 59, 60, 100, 120)):
        said.append((listing(f"c{case}/base", n, "base"), PASS))
        said.append((listing(f"c{case}/1", n, "fault"), fail("E4") if n < 60 else PASS))
    result = probe(rows(*said))
    assert table(result, 3) == {
        "fewer than 30 tools": ("2", "2", "100.0 %", "100.0 %", "2", "100.0 %"),
        "30 to 59 tools": ("2", "2", "100.0 %", "100.0 %", "2", "100.0 %"),
        "60 to 99 tools": ("1", "1", "0.0 %", "–", "1", "100.0 %"),
        "100 tools or more": ("2", "2", "0.0 %", "–", "2", "100.0 %"),
    }
    assert figure(result, "caught, 30 to 59 tools") == 1.0
    assert figure(result, "caught, 100 tools or more") == 0.0
    alike = probe(rows(*said[:4]))
    assert len(alike.tables) == 3


def test_kinds_without_code_have_a_measure_of_their_own() -> None:
    truth = Truth(is_correct=False)
    said = [
        (variant(f"c{n}/1", "fault", kind="give-up", truth=truth), fail() if n else Says(True))
        for n in range(4)
    ]
    result = probe(rows((variant("c0/base", truth=PASSES), Says(True)), *said))
    assert [m.name for m in result.measures] == ["caught (no code)", "passed"]
    assert measure(result, "caught (no code)").estimate.value == 0.75
    assert not [f for f in result.figures if f.name.startswith("flagged")]
    assert table(result, 1)["give-up"] == ("(no code)", "4", "75.0 %", "–", "0.0 %", "–")


def at_the_limits(seed: int) -> Judge:
    rng = Random(seed)

    def judge(of: Variant, arm: str) -> Says:
        if of.truth.is_correct:
            return PASS if rng.random() < PASSED else fail("E2")
        if rng.random() >= CAUGHT:
            return PASS
        (own,) = of.truth.codes or FAULTY.codes or ()
        return fail(own if rng.random() < NAMED else "E1" if own != "E1" else "E2")

    return judge


def test_judges_at_the_limits_are_seldom_failed_and_seldom_passed() -> None:
    asked = only(audit(30), "base", "fault")
    result = outcomes(probe, map(at_the_limits, range(N_AUDITS)), asked)
    assert result["fails"] <= MOST_FAILED
    assert result["passes"] == 0
