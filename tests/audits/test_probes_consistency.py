"""Consistency: flips and parts of the variance, by hand and of judges that waver."""

from __future__ import annotations

from random import Random

import pytest

from apbjudge.audits.probes.consistency import SAME, WARMER, probe
from apbjudge.audits.responses import MAIN, AuditResponses
from apbjudge.audits.variants import Variant

from .judges import (
    MOST_FAILED,
    N_AUDITS,
    PASS,
    Judge,
    Says,
    always_yes,
    audit,
    fail,
    figure,
    hear,
    measure,
    outcomes,
    perfect,
    rows,
    table,
    turning,
    variant,
)

ASKED = audit(60)
A, B, C = (variant(f"{case}/base") for case in "abc")


def by_hand() -> AuditResponses:
    return rows(
        (A, PASS),
        (A, fail("E5", grade=0.8), "again-1"),
        (A, PASS, "again-2"),
        (B, PASS),
        (B, PASS, "again-1"),
        (B, Says(None), "again-2"),
        (C, PASS),
        (A, fail("E5", grade=0.8), "warm-1"),
        (A, fail("E5", grade=0.6), "warm-2"),
        (B, PASS, "warm-1"),
        (B, fail("E1", grade=0.2), "warm-2"),
    )


def test_replies_made_by_hand() -> None:
    result = probe(by_hand())
    expected = {"flips, same settings": 1 / 3, "flips, temperature 1": 0.5}
    assert {m.name: m.estimate.value for m in result.measures} == pytest.approx(expected)
    assert [(m.side, m.limit) for m in result.measures] == [("at most", SAME), ("at most", WARMER)]
    assert measure(result, "flips, same settings").parts == {"a": (2 / 3, 1), "b": (0, 1)}
    same = ((0.8 - 2.8 / 3) ** 2 + 2 * (1 - 2.8 / 3) ** 2) / 2 / 2
    warm = (0.02 + 0.32) / 2
    assert figure(result, "standard deviation of the grade, same settings") == pytest.approx(
        same**0.5
    )
    assert figure(result, "standard deviation of the grade, temperature 1") == pytest.approx(
        warm**0.5
    )
    assert table(result) == {
        "main": ("2", "100.0 %", "1.00", ""),
        "again-1": ("2", "50.0 %", "0.90", "50.0 %"),
        "again-2": ("1", "100.0 %", "1.00", "0.0 %"),
        "warm-1": ("2", "50.0 %", "0.90", "50.0 %"),
        "warm-2": ("2", "0.0 %", "0.40", "100.0 %"),
    }
    assert [(e.name, e.arm) for e in result.exhibits] == [
        ("a/base", "main"),
        ("b/base", "warm-1"),
    ]
    assert result.exhibits[0].what == (
        "base of a/base; main: correct, 1; again-1: not correct (E5), 0.8; again-2: correct, 1"
    )
    assert "no parts of the grades' variance: no item was asked with two prompts" in result.notes
    assert (result.cost.judgements, result.cost.unscored) == (10, 1)


def test_parts_of_the_variance_tell_prompt_and_repeat_apart() -> None:
    def by_prompt(of: Variant, arm: str) -> Says:
        return Says(False, Random(of.name).choice([0.2, 0.4, 0.6]), frozenset({"E4"}))

    def by_repeat(of: Variant, arm: str) -> Says:
        return Says(False, Random(arm + of.name).choice([0.2, 0.4, 0.6]), frozenset({"E4"}))

    name = "share of the grades' variance, {}"
    prompt, repeat = (
        name.format("prompt (how it is shown or worded)"),
        name.format("repeat (asked again)"),
    )
    result = probe(hear(by_prompt, ASKED))
    assert (figure(result, prompt) or 0) > 0.8
    assert figure(result, repeat) == pytest.approx(0, abs=1e-12)
    assert (figure(probe(hear(by_repeat, ASKED)), repeat) or 0) > 0.8


def test_grades_that_never_vary_have_no_parts() -> None:
    result = probe(hear(always_yes, ASKED))
    assert not [f for f in result.figures if f.name.startswith("share")]
    assert "no parts of the grades' variance: the grades are all equal" in result.notes


def at_the_limits(seed: int) -> Judge:
    """Of two replies a tenth differs, at temperature 1 three in twenty."""
    warm = Random(seed)

    def turns(of: Variant, arm: str) -> bool:
        return (arm == "again-1" and warm.random() < SAME) or (
            arm == "warm-1" and warm.random() < WARMER
        )

    return turning(perfect, 1.0, seed, when=turns)


def test_judges_at_the_limits_are_seldom_failed_and_seldom_passed() -> None:
    bases = [v for v in ASKED[MAIN] if v.role == "base"]
    asked = dict.fromkeys((MAIN, "again-1", "warm-1", "warm-2"), bases)
    result = outcomes(probe, map(at_the_limits, range(N_AUDITS)), asked)
    assert result["fails"] <= MOST_FAILED
    assert result["passes"] <= MOST_FAILED
