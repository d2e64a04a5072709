"""Probes that hold verdicts against the truth: faults, refusals, drift and the scale, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from apbjudge.audits.probes import drift, faults, refusals, scale
from apbjudge.audits.responses import MAIN, AuditResponses, Response
from apbjudge.audits.variants import PASSES, Truth, Variant
from apbjudge.records import ERROR_CODES, ErrorCode

from .judges import (
    PASS,
    Judge,
    Says,
    audit,
    fail,
    figure,
    hear,
    measure,
    observed,
    only,
    perfect,
    rows,
    scheduled,
    table,
    variant,
)

EVERYTHING = audit(60)
ASKED = only(EVERYTHING, "base", "fault", "harmless")
NONE = Says(None)


def fault(name: str, code: ErrorCode = "E4", *, also: str = "", **more: Any) -> Variant:
    codes = frozenset(c for c in ERROR_CODES if c in also.split())
    truth = Truth(is_correct=False, codes=frozenset({code}), also=codes)
    base = f"{name.partition('/')[0]}/base"
    return variant(name, "fault", kind=f"plant-{code}", parent=base, truth=truth, **more)


# faults -------------------------------------------------------------------------------------------


def test_faults_counted_by_hand() -> None:
    result = faults.Faults.of(
        rows(
            (variant("a/base"), PASS),
            (variant("b/base"), Says(True, 0.8, frozenset({"E5"}))),
            (variant("c/base"), fail("E2", grade=0.6)),
            (variant("a/w", "harmless", kind="reword", parent="a/base"), fail("E6")),
            (fault("a/1", severity="minor"), Says(False, 0.6, frozenset({"E4"}), is_informed=True)),
            (fault("b/1", also="E6", severity="fatal"), fail("E1", "E6", grade=0.0)),
            (fault("c/1", severity="fatal"), PASS),
            (fault("a/2", "E5"), fail("E2")),
            (fault("b/2", "E5"), Says(False, 0.4, frozenset())),
            (fault("c/2", "E5"), NONE),
        )
    )
    assert {m.name: (m.limit, m.estimate.value) for m in result.measures} == {
        "caught, all codes": (faults.CAUGHT, 4 / 5),
        "caught E4": (faults.CAUGHT, pytest.approx(2 / 3)),
        "caught E5": (faults.CAUGHT, 1.0),
        "passed": (faults.PASSED, 0.5),
        "named": (faults.NAMED, 0.5),
    }
    assert {(m.side, m.estimate.level) for m in result.measures} == {("at least", 1 - 0.05 / 5)}
    assert measure(result, "caught E4").parts == {"a": (1, 1), "b": (1, 1), "c": (0, 1)}
    figures = {
        "flagged E4": 1 / 3,
        "flagged E5": 0,
        "grade drop, minor": 0.4,
        "grade drop, fatal": (0.8 - 0.4) / 2,
        "grade drop, E5": (0.6 + 0.4) / 2,
        "proven by rule, E4": 1 / 3,
        "caught E4, not proven by rule": 0.5,
    }
    assert {name: figure(result, name) for name in figures} == pytest.approx(figures)
    assert table(result) == {
        "E4": ("3", "1", "0", "0", "1", "0", "1", "0", "1"),
        "E5": ("2", "0", "1", "0", "0", "0", "0", "1", "0"),
    }
    assert table(result, 1)["plant-E4"] == ("E4", "3", "66.7 %", "100.0 %", "33.3 %", "+0.27")
    assert table(result, 2) == {"base": ("3", "66.7 %"), "reword": ("1", "0.0 %")}
    assert [e.name for e in result.examples] == ["c/1", "c/base", "a/w", "a/2", "b/2"]
    assert result.examples[0].what == "plant-E4 of c/1; judged correct, 1"
    assert any(note.startswith("1 of 5 planted faults are proven") for note in result.notes)
    assert any(note.startswith("1 of 10 judgements have no verdict") for note in result.notes)
    assert (result.cost.judgements, result.cost.unscored) == (10, 1)


def test_what_code_proves_and_enforces_does_not_count_as_caught_by_the_judge() -> None:
    """Every fault is proven and enforced; the judge itself passes everything."""

    def judge(of: Variant, run: str) -> Says:
        return Says(True, 1.0, frozenset(), is_informed=not of.truth.is_correct)

    result = faults.Faults.of(hear(judge, ASKED))
    assert result.outcome == "fails"
    assert measure(result, "caught, all codes").estimate.value == 0.0
    assert figure(result, "caught by judge and code together, all codes") == 1.0


def test_lists_of_tools_are_told_apart_by_length() -> None:
    said: list[tuple[Variant, Says]] = []
    for case, n in enumerate((8, 29, 30, 59, 60, 100, 120)):
        tools = [{"name": f"t{i}"} for i in range(n)]
        said.append((variant(f"c{case}/base", tools=tools), PASS))
        said.append((fault(f"c{case}/1", tools=tools), fail("E4") if n < 60 else PASS))
    result = faults.Faults.of(rows(*said))
    assert table(result, 3) == {
        "fewer than 30 tools": ("2", "2", "100.0 %", "100.0 %", "2", "100.0 %"),
        "30 to 59 tools": ("2", "2", "100.0 %", "100.0 %", "2", "100.0 %"),
        "60 to 99 tools": ("1", "1", "0.0 %", "–", "1", "100.0 %"),
        "100 tools or more": ("2", "2", "0.0 %", "–", "2", "100.0 %"),
    }
    assert figure(result, "caught, 100 tools or more") == 0.0
    assert len(faults.Faults.of(rows(*said[:4])).tables) == 3  # all lists are short


def test_kinds_without_code_have_a_measure_of_their_own() -> None:
    truth = Truth(is_correct=False)
    said = [
        (variant(f"c{n}/1", "fault", kind="give-up", truth=truth), fail() if n else Says(True))
        for n in range(4)
    ]
    result = faults.Faults.of(rows((variant("c0/base", truth=PASSES), Says(True)), *said))
    assert [m.name for m in result.measures] == ["caught (no code)", "passed"]
    assert measure(result, "caught (no code)").estimate.value == 0.75
    assert table(result, 1)["give-up"] == ("(no code)", "4", "75.0 %", "–", "0.0 %", "–")


# refusals -----------------------------------------------------------------------------------------


def test_each_fault_is_held_against_the_sound_plans_of_its_case() -> None:
    said = rows(
        (variant("a/base"), PASS),
        (variant("a/w", "harmless"), NONE),
        (fault("a/1"), NONE),
        (fault("a/2"), fail("E4")),
        (variant("b/base"), PASS),
        (fault("b/1"), NONE),
        (fault("c/1"), NONE),  # nothing sound of this case
        (variant("a/s", "shown"), NONE),
        (fault("a/2"), NONE, "again-1"),  # counts in no table of the main run
    )
    lost = (observed(fault(f"a/{why}"), NONE, reason=why) for why in refusals.NOT_THE_JUDGE)
    result = refusals.Refusals.of(AuditResponses((*said.all, *lost)))
    (gap,) = result.measures
    assert gap.estimate.value == pytest.approx((0.5 - 0.5 + 1.0) / 3)
    assert (gap.side, gap.limit, gap.unit) == ("within", refusals.UNEVEN, "points")
    assert figure(result, "without verdict, faulty plans") == 0.75
    assert figure(result, "without verdict, sound plans") == pytest.approx(1 / 3)
    assert [e.name for e in result.examples] == ["a/1", "b/1"]
    assert table(result)["fault, faulty"] == ("4", "75.0 %", "3")
    assert table(result)["shown, sound"] == ("1", "100.0 %", "1")
    mute = refusals.Refusals.of(hear(lambda of, run: NONE, ASKED))
    assert (mute.outcome, mute.because) == ("could not tell", refusals.Refusals.nothing)


# drift --------------------------------------------------------------------------------------------


def turned(
    when: Callable[[float], bool], *, passes: bool, asked: Any = None
) -> tuple[Response, ...]:
    """Of a perfect judge that passes or fails everything at some parts of the run."""
    said = scheduled(hear(perfect, asked or {MAIN: ASKED[MAIN]})).all
    return tuple(
        replace(r, is_correct=passes) if when((r.turn or 0) / len(said)) else r for r in said
    )


@pytest.mark.parametrize(("passes", "which"), [(True, "faulty"), (False, "sound")])
def test_a_judge_that_turns_lenient_or_severe_fails_for_what_it_judges_wrongly(
    passes: bool, which: str
) -> None:
    result = drift.Drift.of(AuditResponses(turned(lambda done: done > 0.5, passes=passes)))
    failed = f"passed in the second half minus the first, {which} plans"
    assert [m.name for m in result.measures if m.outcome == "fails"] == [failed]
    assert abs(measure(result, failed).estimate.value or 0.0) > 0.9
    assert result.n_examples > 0
    first, *_, last = table(result).values()
    shown = (first[1], last[1]) if passes else (last[3], first[3])
    assert shown == ("0.0 %", "100.0 %")
    first_calls, *_, last_calls = table(result)
    assert first_calls.startswith("1 to ")
    assert last_calls.endswith(f" to {len(ASKED[MAIN])}")


def test_few_cases_and_replies_from_the_cache_are_not_compared() -> None:
    few = only({MAIN: audit(2 * drift.LEAST_CASES - 2)[MAIN]}, "base", "fault")
    result = drift.Drift.of(scheduled(hear(perfect, few)))
    assert not result.measures
    assert result.because == f"needs {drift.LEAST_CASES} cases in each half of the calls"
    said = turned(lambda done: done > 0.5, passes=True)
    odd = [replace(r, is_reused=r.is_correct is False and r.variant.role == "base") for r in said]
    whole = drift.Drift.of(AuditResponses(said))
    assert drift.Drift.of(AuditResponses(tuple(odd))).measures == whole.measures
    reused = AuditResponses(tuple(replace(r, is_reused=True) for r in said))
    assert drift.Drift.of(reused).outcome == "could not tell"


# scale --------------------------------------------------------------------------------------------


def always_no(of: Variant, run: str) -> Says:
    return fail("E4", grade=[0.0, 0.2, 0.4][len(of.name) % 3])


def graded(of: Variant, run: str) -> Says:
    says = perfect(of)
    return replace(says, grade={"minor": 0.8, "major": 0.4, "fatal": 0.2}.get(of.severity or "", 1))


def one_grade(of: Variant, run: str) -> Says:
    return replace(perfect(of), grade=1.0 if of.truth.is_correct else 0.2)


def halo(of: Variant, run: str) -> Says:
    """Flags half of all codes as soon as it sees a fault."""
    says = graded(of, run)
    return says if says.is_correct else replace(says, flags=frozenset(ERROR_CODES[:3]))


@pytest.mark.parametrize(
    ("judge", "failed"),
    [
        (graded, []),
        (always_no, ["lenient balance"]),
        (one_grade, ["one grade for all faults"]),
        (halo, ["further codes flagged"]),
    ],
)
def test_judges_are_convicted_of_their_vice_alone(judge: Judge, failed: list[str]) -> None:
    result = scale.Scale.of(hear(judge, only({MAIN: ASKED[MAIN]}, "base", "fault")))
    assert [m.name for m in result.measures if m.outcome == "fails"] == failed


def test_the_balance_weighs_codes_alike() -> None:
    """Of 5 faults E1 all are passed, of 15 E5 none; one of four bases is failed."""
    result = scale.Scale.of(
        rows(
            *((fault(f"a{i}/1", "E1"), PASS) for i in range(5)),
            *((fault(f"b{i}/1", "E5"), fail("E5", grade=0.8)) for i in range(15)),
            *((variant(f"d{i}/base"), PASS if i else fail(grade=0.6)) for i in range(4)),
        )
    )
    passed = "faulty plans passed, every code with the same weight"
    assert figure(result, passed) == pytest.approx(0.5)
    assert figure(result, "correct plans failed") == pytest.approx(0.25)
    assert measure(result, "lenient balance").estimate.value == pytest.approx(0.25)
    assert "one grade for all faults" not in {m.name for m in result.measures}  # two codes only
    codes = next(t for t in result.tables if t.columns[0] == "code")
    assert codes.rows == (("E1", "5", "5", "100.0 %"), ("E5", "15", "0", "0.0 %"))


def test_what_code_proves_tells_nothing_of_leniency_grades_and_halo() -> None:
    says = Says(False, 0.2, frozenset({"E1", "E2", "E3"}), is_informed=True)
    said = [observed(variant(f"c{i}/base"), PASS) for i in range(10)]
    said += [
        observed(fault(f"c{i}/{code}", code), says, is_overridden=True)
        for i in range(10)
        for code in ERROR_CODES
    ]
    result = scale.Scale.of(AuditResponses(tuple(said)))
    assert {m.name for m in result.measures} == {"contradictory replies"}
    assert any(note.startswith("60 planted faults") for note in result.notes)


def test_contradictions_and_further_codes_are_counted() -> None:
    flags = ["E1 E4", "E1 E2", "E2 E3", "E1 E2 E3 E6"]  # E4 may follow: 0, 1, 2 and 3 more
    said = [
        observed(fault(f"c{i}/1", "E1", also="E4"), fail(*(c for c in ERROR_CODES if c in of)))
        for i, of in enumerate(flags)
    ]
    said += [observed(variant(f"c{i}/base"), PASS) for i in range(2)]
    said.append(observed(variant("odd/base"), PASS, is_inconsistent=True))
    said.append(observed(variant("lost/base"), NONE, reason="inconsistent"))
    said.append(observed(variant("late/base"), NONE))
    said.append(observed(variant("odd/base"), PASS, "again-1", is_inconsistent=True))
    result = scale.Scale.of(AuditResponses(tuple(said)))
    share = measure(result, "contradictory replies").estimate
    assert (share.value, share.n_items) == (0.25, 8)
    assert measure(result, "further codes flagged").estimate.value == pytest.approx(0.5)
    assert figure(result, "further codes a caught fault") == pytest.approx(6 / 4)
    assert [e.name for e in result.examples] == ["odd/base", "lost/base", "c2/1", "c3/1"]
    assert result.cost.unscored == 2


def test_labelled_predictions_have_a_balance_and_correlations_of_their_own() -> None:
    """True flags E1 and E2 are independent, the judge always sets both; it passes one in four."""
    sets: list[frozenset[ErrorCode]] = [
        frozenset(),
        frozenset({"E1"}),
        frozenset({"E2"}),
        frozenset({"E1", "E2"}),
    ]
    said: list[tuple[Variant, Says]] = []
    for i in range(40):
        codes, flags = sets[i % 4], sets[3] if i % 2 else sets[0]
        truth = Truth(is_correct=not codes, codes=codes)
        said.append((variant(f"p{i}/1", "prediction", truth=truth), Says(i % 4 == 1, None, flags)))
    result = scale.Scale.of(rows(*said))
    balance = measure(result, "lenient balance, predictions")
    assert balance.estimate.value == pytest.approx(1 / 3 - 1)
    assert figure(result, "judge CR - true CR") == pytest.approx(0)
    name = "correlation between flags, judge minus truth"
    excess = next(f.estimate for f in result.figures if f.name == name)
    assert excess.value == pytest.approx(1.0)
    assert excess.method == "jackknife"
    assert excess.low is not None
    assert 0.5 < excess.low < 1.0
