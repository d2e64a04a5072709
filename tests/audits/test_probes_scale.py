from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.probes import scale
from apbjudge.audits.responses import AuditResponses, Response
from apbjudge.audits.variants import CORRECT, Severity, Truth, Variant
from apbjudge.records import ERROR_CODES, ErrorCode

CommandResult = tuple[bool, float | None, frozenset[ErrorCode] | None]
Judge = Callable[[Variant, Random], CommandResult]
SEVERITIES: dict[ErrorCode, Severity] = {
    "E1": "fatal",
    "E2": "major",
    "E3": "fatal",
    "E4": "major",
    "E5": "minor",
    "E6": "fatal",
}
GRADE = {"minor": 0.8, "major": 0.4, "fatal": 0.2}
NONE: frozenset[ErrorCode] = frozenset()


@cache
def base(case: str) -> Variant:
    return Variant(
        name=f"{case}/base",
        role="base",
        kind="base",
        parent=None,
        case_id=case,
        truth=CORRECT,
        row={},
        what="the reference, unchanged",
    )


@cache
def fault(case: str, code: ErrorCode) -> Variant:
    return Variant(
        name=f"{case}/{code}",
        role="fault",
        kind=f"plant-{code}",
        parent=f"{case}/base",
        case_id=case,
        truth=Truth(is_correct=False, codes=frozenset({code}), also=frozenset({"E4"})),
        row={},
        what=f"planted {code}",
        severity=SEVERITIES[code],
    )


def prediction(name: str, codes: frozenset[ErrorCode]) -> Variant:
    return Variant(
        name=name,
        role="prediction",
        kind="prediction",
        parent=None,
        case_id=name,
        truth=Truth(is_correct=not codes, codes=codes),
        row={"tested_model": "m"},
        what="as it came",
    )


def observed(variant: Variant, said: CommandResult, **more: object) -> Response:
    is_correct, grade, flags = said
    return Response(variant=variant, is_correct=is_correct, grade=grade, flags=flags, **more)  # type: ignore[arg-type]


def responses(judge: Judge, *, n: int = 60, seed: int = 0) -> AuditResponses:
    rng = Random(f"scale/{seed}")
    variants = [
        v for c in range(n) for v in (base(f"c{c}"), *(fault(f"c{c}", e) for e in ERROR_CODES))
    ]
    return AuditResponses(tuple(observed(v, judge(v, rng)) for v in variants))


def perfect(variant: Variant, _: Random) -> CommandResult:
    if variant.truth.is_correct:
        return True, 1.0, NONE
    return False, GRADE[variant.severity or "minor"], variant.truth.codes


def always_no(_: Variant, rng: Random) -> CommandResult:
    return False, rng.choice([0.0, 0.2, 0.4]), frozenset({"E4"})


def one_grade(variant: Variant, rng: Random) -> CommandResult:
    said = perfect(variant, rng)
    return said if said[0] else (False, 0.2, said[2])


def halo(variant: Variant, rng: Random) -> CommandResult:
    """Flags half of all codes as soon as it sees a fault."""
    said = perfect(variant, rng)
    return said if said[0] else (False, said[1], (said[2] or NONE) | {"E1", "E2", "E3", "E6"})


@pytest.mark.parametrize(
    ("judge", "measure"),
    [
        (always_no, "lenient balance"),
        (one_grade, "one grade for all faults"),
        (halo, "further codes flagged"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_the_guilty_are_convicted_of_their_vice_alone(
    judge: Judge, measure: str, seed: int
) -> None:
    result = scale.probe(responses(judge, seed=seed))
    assert result.outcome == "fails"
    assert [m.name for m in result.measures if m.outcome == "fails"] == [measure]


def test_hand_made_balance_weighs_codes_alike() -> None:
    """Of 5 faults E1 all are passed, of 15 E5 none; one of four bases is failed."""
    said = [observed(fault(f"a{i}", "E1"), (True, 1.0, NONE)) for i in range(5)]
    said += [observed(fault(f"b{i}", "E5"), (False, 0.8, frozenset({"E5"}))) for i in range(15)]
    said += [observed(base(f"d{i}"), (i > 0, 1.0 if i else 0.6, NONE)) for i in range(4)]
    result = scale.probe(AuditResponses(tuple(said)))
    figures = {f.name: f.estimate.value for f in result.figures}
    assert figures["faulty plans passed, every code with the same weight"] == pytest.approx(0.5)
    assert figures["correct plans failed"] == pytest.approx(0.25)
    balance = next(m for m in result.measures if m.name == "lenient balance")
    assert balance.estimate.value == pytest.approx(0.25)
    assert "one grade for all faults" not in {m.name for m in result.measures}  # two codes only
    table = next(t for t in result.tables if t.columns[0] == "code")
    assert table.rows == (("E1", "5", "5", "100.0 %"), ("E5", "15", "0", "0.0 %"))
    assert not any(note.startswith("left out of the balance") for note in result.notes)


def test_what_code_proves_tells_nothing_of_leniency_grades_and_halo() -> None:
    said = [observed(base(f"c{i}"), (True, 1.0, NONE)) for i in range(10)]
    said += [
        observed(
            fault(f"c{i}", code),
            (False, 0.2, frozenset({"E1", "E2", "E3"})),
            is_proven=True,
            is_informed=True,
            is_overridden=True,
        )
        for i in range(10)
        for code in ERROR_CODES
    ]
    result = scale.probe(AuditResponses(tuple(said)))
    assert {m.name for m in result.measures} == {"contradictory replies"}
    assert any(note.startswith("60 planted faults") for note in result.notes)


def test_contradictions_count_among_scored_and_unscored() -> None:
    said = [observed(base(f"c{i}"), (True, 1.0, NONE)) for i in range(6)]
    said.append(observed(base("odd"), (True, 1.0, NONE), is_inconsistent=True))
    said.append(Response(variant=base("lost"), is_correct=None, reason="inconsistent"))
    said.append(Response(variant=base("late"), is_correct=None, reason="timeout"))
    said.append(Response(variant=base("odd"), is_correct=True, is_inconsistent=True, arm="again-1"))
    result = scale.probe(AuditResponses(tuple(said)))
    (measure,) = result.measures
    assert (measure.name, measure.estimate.value, measure.estimate.n_items) == (
        "contradictory replies",
        0.25,
        8,
    )
    assert result.n_exhibits == 2
    assert result.cost.unscored == 2


def test_further_codes_leave_out_consequences() -> None:
    flags: list[frozenset[ErrorCode]] = [
        frozenset({"E1", "E4"}),  # E4 may follow
        frozenset({"E1", "E2"}),  # one more
        frozenset({"E2", "E3"}),  # two more
        frozenset({"E1", "E2", "E3", "E6"}),  # three more
    ]
    said = [observed(fault(f"c{i}", "E1"), (False, 0.2, f)) for i, f in enumerate(flags)]
    result = scale.probe(AuditResponses(tuple(said)))
    measure = next(m for m in result.measures if m.name == "further codes flagged")
    assert measure.estimate.value == pytest.approx(0.5)
    figure = next(f for f in result.figures if f.name == "further codes a caught fault")
    assert figure.estimate.value == pytest.approx(6 / 4)
    assert [e.name for e in result.exhibits] == ["c2/E1", "c3/E1"]


def test_labelled_predictions_have_a_balance_of_their_own() -> None:
    said = [
        observed(prediction(f"p{i}", frozenset({"E2"}) if i < 4 else NONE), (i != 0, None, None))
        for i in range(10)
    ]
    result = scale.probe(AuditResponses(tuple(said)))
    balance = next(m for m in result.measures if m.name == "lenient balance, predictions")
    assert balance.estimate.value == pytest.approx(0.75)
    figures = {f.name: f.estimate.value for f in result.figures}
    assert figures["judge CR - true CR"] == pytest.approx(0.3)


def test_correlation_beyond_that_of_the_truth() -> None:
    """True flags E1 and E2 are independent, the judge always sets both."""
    sets: list[frozenset[ErrorCode]] = [
        NONE,
        frozenset({"E1"}),
        frozenset({"E2"}),
        frozenset({"E1", "E2"}),
    ]
    both: frozenset[ErrorCode] = frozenset({"E1", "E2"})
    said = [
        observed(prediction(f"p{i}", sets[i % 4]), (i % 4 == 0, None, both if i % 2 else NONE))
        for i in range(40)
    ]
    figures = {f.name: f.estimate for f in scale.probe(AuditResponses(tuple(said))).figures}
    excess = figures["correlation between flags, judge minus truth"]
    assert excess.value == pytest.approx(1.0)
    assert excess.method == "jackknife"
    assert excess.low is not None
    assert 0.5 < excess.low < 1.0


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from(ERROR_CODES),
            st.booleans(),
            st.sampled_from([None, *scale.GRADES]),
            st.frozensets(st.sampled_from(ERROR_CODES)),
            st.booleans(),
        ),
        max_size=25,
        unique_by=lambda row: row[:2],
    )
)
def test_any_verdicts_can_be_looked_at(
    rows: list[tuple[int, ErrorCode, bool, float | None, frozenset[ErrorCode], bool]],
) -> None:
    said = [
        observed(fault(f"c{c}", code), (ok, grade, flags), is_proven=proven, is_informed=proven)
        for c, code, ok, grade, flags, proven in rows
    ]
    said += [
        observed(prediction(f"p{i}", flags), (ok, g, flags))
        for i, (_, _, ok, g, flags, _) in enumerate(rows)
    ]
    result = scale.probe(AuditResponses(tuple(said)))
    for estimate in [m.estimate for m in result.measures] + [f.estimate for f in result.figures]:
        if estimate.low is not None and estimate.value is not None and estimate.high is not None:
            assert estimate.low <= estimate.value <= estimate.high
