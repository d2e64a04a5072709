"""Presentation: flips beyond those that come about by themselves."""

from __future__ import annotations

from random import Random

import pytest

from apbjudge.audits.probes.measures import FEWEST
from apbjudge.audits.probes.presentation import SHIFT, probe
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

ASKED = only(audit(60), "base", "fault", "shown")
WITHOUT_REPEATS = {MAIN: ASKED[MAIN]}


def shown(n: int, kind: str, parent: Variant) -> Variant:
    return variant(f"c{n}/{kind}", "shown", kind=kind, parent=parent.name, truth=parent.truth)


def by_hand(n_again: int) -> AuditResponses:
    """Twelve plans, every second one faulty; the first three flip, the first two by themselves."""
    said: list[tuple[Variant, Says] | tuple[Variant, Says, str]] = []
    for n in range(12):
        truth = FAULTY if n % 2 else variant("c/base").truth
        parent = variant(f"c{n}/base", truth=truth)
        said.append((parent, fail()))
        said.append((shown(n, "markdown", parent), PASS if n < 3 else fail()))
        if n < n_again:
            said += [(parent, PASS if n < 2 else fail(), "again-1"), (parent, fail(), "again-2")]
    return rows(*said)


def test_flips_less_those_of_the_parent_itself() -> None:
    result = probe(by_hand(12))
    assert measure(result, "markdown").estimate.value == pytest.approx((3 - 2 / 2) / 12)
    assert (result.measures[0].side, result.measures[0].limit) == ("at most", SHIFT)
    assert table(result) == {"markdown": ("12", "25.0 %", "8.3 %", "+25.0 pts")}
    assert figure(result, "markdown, correct plans: change of passing") == pytest.approx(2 / 6)
    assert figure(result, "markdown, faulty plans: change of passing") == pytest.approx(1 / 6)
    assert result.cost.judgements == 12 * 4
    assert not result.notes
    assert [e.name for e in result.exhibits] == ["c0/markdown", "c1/markdown", "c2/markdown"]
    assert result.exhibits[0].what == (
        "markdown of c0/markdown; judged correct, 1, before not correct, 0.4"
    )


def test_only_pairs_asked_again_count_where_these_are_enough() -> None:
    assert FEWEST == 10
    result = probe(by_hand(10))
    assert measure(result, "markdown").estimate.n_items == 10
    assert not result.notes


def test_with_too_few_repeats_nothing_is_taken_off_and_it_is_said() -> None:
    result = probe(by_hand(0))
    assert measure(result, "markdown").estimate.value == pytest.approx(3 / 12)
    assert table(result)["markdown"][2] == "–"
    assert len(result.notes) == 1
    assert result.notes[0].startswith("markdown: fewer than 10")


def sensitive(seed: int) -> Judge:
    return turning(perfect, 0.5, seed, when=lambda of, arm: of.kind == "markdown")


def test_without_repeats_the_same_judge_is_not_convicted() -> None:
    result = probe(hear(sensitive(1), WITHOUT_REPEATS))
    assert result.outcome == "could not tell"
    assert measure(result, "markdown").needed is None


def at_the_limits(seed: int) -> Judge:
    rng = Random(seed)
    return turning(
        perfect, 1.0, 0, when=lambda of, arm: of.role == "shown" and rng.random() < SHIFT
    )


def test_judges_at_the_limits_are_seldom_failed_and_never_passed() -> None:
    asked = {arm: ASKED[arm] for arm in (MAIN, "again-1")}
    asked[MAIN] = [
        v for v in asked[MAIN] if not v.kind.startswith("plant") or v in asked["again-1"]
    ]
    result = outcomes(probe, map(at_the_limits, range(N_AUDITS)), asked)
    assert result["fails"] <= MOST_FAILED
    assert result["passes"] == 0
