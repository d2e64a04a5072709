from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from apbjudge.audits.probes import subgroups
from apbjudge.audits.probes.measures import Split, evenly, mixed_alike
from apbjudge.audits.responses import AuditResponses, Response
from apbjudge.audits.variants import CORRECT, Role, Truth, Variant

Rate = Callable[[str, str], float]
FAULTS = ("drop-call", "swap-order", "change-goal")


def judged(
    case: str, kind: str, is_right: bool, *, groups: dict[str, str | int | None], **more: bool
) -> Response:
    role: Role = "fault" if kind in FAULTS else "base"
    truth = CORRECT if role == "base" else Truth(is_correct=False, codes=frozenset({"E2"}))
    variant = Variant(
        name=f"{case}/{kind}",
        role=role,
        kind=kind,
        parent=None,
        case_id=case,
        truth=truth,
        row={},
        what=kind,
    )
    return Response(
        variant=variant, is_correct=bool(truth.is_correct) == is_right, groups=groups, **more
    )


def responses(rate: Rate, *, n: int, seed: int, parts: int = 3) -> AuditResponses:
    rng = Random(f"subgroups/{seed}")
    said: list[Response] = []
    for case in range(n):
        dataset = "abcdef"[case % parts]
        groups: dict[str, str | int | None] = {
            "dataset": dataset,
            "modality": ("text", "image")[case % 2],
            "horizon": None,
        }
        for kind in ("base", *FAULTS):
            is_right = rng.random() < rate(dataset, kind)
            said.append(judged(f"c{case}", kind, is_right, groups=groups))
    return AuditResponses(tuple(said))


def weak_in_a(dataset: str, _: str) -> float:
    return 0.60 if dataset == "a" else 0.95


def even(_: str, kind: str) -> float:
    """Equally often right everywhere; some faults are harder."""
    return {"base": 0.95, "drop-call": 0.9, "swap-order": 0.5}.get(kind, 0.8)


def perfect(_: str, __: str) -> float:
    return 1.0


@pytest.mark.parametrize("seed", range(2))
def test_a_judge_that_is_weak_in_one_dataset_is_convicted(seed: int) -> None:
    result = subgroups.probe(responses(weak_in_a, n=120, seed=seed))
    assert result.outcome == "fails"
    assert "dataset a" in result.because
    assert result.n_exhibits > 0
    assert "dataset a" in result.exhibits[0].what
    rows = {row[0]: row[-1] for row in result.tables[0].rows}
    assert rows["dataset a"] == "< 0.001"


@pytest.mark.parametrize(("judge", "n"), [(even, 500), (perfect, 240)])
def test_and_acquitted_with_enough_cases(judge: Rate, n: int) -> None:
    assert subgroups.probe(responses(judge, n=n, seed=1)).outcome == "passes"


def test_a_gap_at_the_limit_is_failed_rarely() -> None:
    def at_limit(dataset: str, _: str) -> float:
        return 0.70 if dataset == "a" else 0.70 + subgroups.GAP

    n_failed = sum(
        subgroups.probe(responses(at_limit, n=60, seed=seed, parts=2)).outcome == "fails"
        for seed in range(60)
    )
    assert n_failed <= 5


def test_hand_made_counts() -> None:
    """Ten cases a side: 6 of 10 bases right against 9 of 10."""
    said = [
        judged(f"{value}{i}", "base", i < right, groups={"stage": value})
        for value, right in (("early", 6), ("late", 9))
        for i in range(10)
    ]
    result = subgroups.probe(AuditResponses(tuple(said)))
    (measure,) = result.measures  # two values: one comparison
    assert measure.name == "stage early"
    assert measure.estimate.value == pytest.approx(-0.3)
    assert measure.estimate.level == 0.95
    assert result.tables[0].rows[0][:5] == ("stage early", "10", "10", "60.0 %", "90.0 %")
    assert {note.split(":")[0] for note in result.notes} >= {
        "dataset",
        "modality",
        "steps",
        "horizon",
    }


def test_the_mix_of_faults_is_no_gap() -> None:
    """Part a has mostly the hard fault, b mostly the easy one; each is judged alike in both."""
    said: list[Response] = []
    for value, hard in (("a", 8), ("b", 2)):
        for i in range(10):
            for j in range(10):
                kind, right = ("swap-order", i % 2 == 0) if j < hard else ("drop-call", True)
                said.append(judged(f"{value}{i}", f"{kind}", right, groups={"dataset": value}))
    said = [
        judged(s.variant.case_id, s.variant.kind, not s.is_correct, groups=dict(s.groups))
        for s in said
    ]
    (measure,) = subgroups.probe(AuditResponses(tuple(said))).measures
    assert measure.estimate.value == pytest.approx(0.0)


def test_what_only_one_part_has_and_what_code_proves_does_not_count() -> None:
    def both(kind: str, right: int, **more: bool) -> list[Response]:
        return [
            judged(f"{value}{i}", kind, i < right, groups={"dataset": value}, **more)
            for value in "ab"
            for i in range(8)
        ]

    plain = subgroups.probe(AuditResponses(tuple(both("base", 8)))).measures[0]
    alone = [s for s in both("drop-call", 0) if s.groups["dataset"] == "a"]
    proven = [s for s in both("change-goal", 0, is_informed=True) if s.groups["dataset"] == "a"]
    more = subgroups.probe(AuditResponses((*both("base", 8), *alone, *proven))).measures[0]
    assert more.estimate == plain.estimate


def test_weights_give_one_mix() -> None:
    first = np.array([True, True, True, False, False, False])
    weights = mixed_alike(["x", "x", "y", "x", "y", "z"], first)
    assert weights.tolist() == [1, 1, 1, 2, 1, 0]
    assert evenly(["x", "x", "y"]).tolist() == [0.5, 0.5, 1]


def test_what_cases_add_is_the_difference() -> None:
    said = responses(even, n=12, seed=3).all
    rng = np.random.default_rng(1)
    split = Split(
        responses=said,
        values=rng.random(len(said)),
        first=rng.random(len(said)) < 0.4,
        weights=rng.random(len(said)) + 0.5,
    )
    parts = split.parts()
    assert len(parts) == 12
    mean = sum(above for above, _ in parts.values()) / 12
    assert mean == pytest.approx(split.difference(0.95).value)
