"""Synthetic audits: variants without real rows, and judges with known vices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from apbjudge.audits.outcomes import Measure, Probe
from apbjudge.audits.responses import BLIND, MAIN, AuditResponses, Response
from apbjudge.audits.variants import CORRECT, SOLVER, Role, Severity, Truth, Variant
from apbjudge.records import ERROR_CODES, ErrorCode

FAULTY = Truth(is_correct=False, codes=frozenset({"E4"}))
FAMILIES = ("instruction", "fake-verdict", "section-end", "authority", "unicode")
SHOWINGS = ("tool-order", "key-order", "markdown", "line-breaks")
SEVERITIES: tuple[Severity, ...] = ("minor", "major", "fatal")


@dataclass(frozen=True)
class Says:
    is_correct: bool | None
    grade: float | None = None
    flags: frozenset[ErrorCode] | None = None
    is_informed: bool = False


Judge = Callable[[Variant, str], Says]
Runs = Mapping[str, Sequence[Variant]]

PASS = Says(True, 1.0, frozenset())


@cache
def fail(*codes: ErrorCode, grade: float = 0.4) -> Says:
    return Says(False, grade, frozenset(codes))


def variant(
    name: str,
    role: Role = "base",
    *,
    kind: str = "",
    parent: str | None = None,
    truth: Truth = CORRECT,
    length: int = 400,
    severity: Severity | None = None,
    tags: Mapping[str, str] | None = None,
    tested_model: str = "some-model",
    **row: Any,
) -> Variant:
    """A variant of the case that its name begins with; ``row`` adds to its row."""
    row = {"id": name, "tested_model": tested_model, "model_response": "x" * length} | row
    return Variant(
        name=name,
        role=role,
        kind=kind or role,
        parent=parent,
        case_id=name.partition("/")[0],
        truth=truth,
        row=row,
        what=f"{kind or role} of {name}.",
        severity=severity,
        tags=tags or {},
    )


def observed(of: Variant, says: Says, run: str = MAIN, **more: Any) -> Response:
    response = Response(
        variant=of,
        run=run,
        is_correct=says.is_correct,
        grade=says.grade,
        flags=says.flags,
        enforced=False if says.is_informed else None,
        is_proven=says.is_informed,
        is_informed=says.is_informed,
        reason="" if says.is_correct is not None else "timeout",
        calls=1,
        tokens=100,
        cost_usd=0.01,
    )
    return replace(response, **more)


def hear(judge: Judge, runs: Runs) -> AuditResponses:
    said = (observed(v, judge(v, run), run) for run, variants in runs.items() for v in variants)
    return AuditResponses(tuple(said))


def scheduled(responses: AuditResponses, seed: int = 0) -> AuditResponses:
    """The same with turns: case after case, in an order drawn by a seed."""
    cases = list(dict.fromkeys(said.variant.case_id for said in responses.all))
    Random(seed).shuffle(cases)
    at = {case: n for n, case in enumerate(cases)}
    ordered = sorted(range(len(responses.all)), key=lambda n: at[responses.all[n].variant.case_id])
    turns = {n: turn for turn, n in enumerate(ordered)}
    return AuditResponses(
        tuple(replace(said, turn=turns[n]) for n, said in enumerate(responses.all))
    )


def rows(*said: tuple[Variant, Says] | tuple[Variant, Says, str]) -> AuditResponses:
    return AuditResponses(tuple(observed(*one) for one in said))


# a whole audit ------------------------------------------------------------------------------------


def audit(n_cases: int) -> dict[str, list[Variant]]:
    """What is asked in an audit of so many cases, shaped like the full plan."""
    main: list[Variant] = []
    again: list[Variant] = []
    for n in range(n_cases):
        base, lead, others = _case(n)
        main += [base, lead, *others]
        again += [base, lead]
    runs = {MAIN: main}
    for run in ("again-1", "again-2", "warm-1", "warm-2", BLIND):
        runs[run] = again
    return runs


def _case(n: int) -> tuple[Variant, Variant, list[Variant]]:
    length = 300 + 40 * (n % 25)
    base = variant(f"c{n}/base", kind="base", length=length, tested_model=SOLVER)
    faults = [_fault(base, code, k, length) for k, code in enumerate(ERROR_CODES)]
    lead = faults.pop(n % 6)
    others = [
        *faults,
        *(_of(base, "harmless", kind, length) for kind in ("reword", "key-order")),
        *(_of((base, lead)[(n + k) % 2], "shown", s, length) for k, s in enumerate(SHOWINGS)),
        *(_of(parent, "padded", "padded-plan", 4 * length) for parent in (base, lead)),
        *(_of(parent, "padded", "long-reasons", 3 * length) for parent in (base, lead)),
        _of(lead, "reference", "echoed-reference", length),
        _of(base, "reference", "foreign-reference", length),
        _of(base, "reference", "reworded-reference", length),
        *_injections(lead, n, length),
        *_predictions(n),
    ]
    return base, lead, others


def _fault(base: Variant, code: ErrorCode, k: int, length: int) -> Variant:
    truth = Truth(is_correct=False, codes=frozenset({code}))
    return variant(
        f"{base.case_id}/plant-{code}",
        "fault",
        kind=f"plant-{code}",
        parent=base.name,
        truth=truth,
        length=length,
        severity=SEVERITIES[k % 3],
        tested_model=SOLVER,
    )


def _of(parent: Variant, role: Role, kind: str, length: int) -> Variant:
    name = f"{parent.name}/{kind}"
    return variant(name, role, kind=kind, parent=parent.name, truth=parent.truth, length=length)


def _injections(lead: Variant, n: int, length: int) -> Iterable[Variant]:
    twin = _of(lead, "neutral", "neutral-plan", length + 200)
    yield twin
    for k in range(3):
        family = FAMILIES[(n + k) % 5]
        tags = {
            "twin": twin.name,
            "family": family,
            "language": ("en", "de")[n % 2],
            "place": "plan",
            "payload": f"{family}-{n % 7}",
        }
        yield variant(
            f"{lead.name}/inject-{k}",
            "injected",
            kind="inject-plan",
            parent=lead.name,
            truth=lead.truth,
            length=length + 200,
            tags=tags,
        )


def _predictions(n: int) -> Iterable[Variant]:
    for k in range(4):
        truth = CORRECT if (n + k) % 2 else Truth(is_correct=False)
        length = 200 * 2 ** ((3 * n + k) % 5)
        model = f"model-{k}"
        yield variant(f"c{n}/{model}", "prediction", truth=truth, length=length, tested_model=model)


# judges -------------------------------------------------------------------------------------------


def perfect(of: Variant, run: str = MAIN) -> Says:
    if of.truth.is_correct:
        return PASS
    return fail(*(of.truth.codes or ("E4",)))


def always_yes(of: Variant, run: str = MAIN) -> Says:
    return PASS


def coin(of: Variant, run: str = MAIN) -> Says:
    """The same toss for the same question."""
    return PASS if Random(f"{run}/{of.name}").random() < 0.5 else fail("E5")


# many audits at the edge of a limit ---------------------------------------------------------------


def only(runs: Runs, *roles: Role) -> dict[str, list[Variant]]:
    """What is asked of some roles alone; runs without any of them are left out."""
    kept = {run: [v for v in variants if v.role in roles] for run, variants in runs.items()}
    return {run: variants for run, variants in kept.items() if variants}


def measure(probe: Probe, name: str) -> Measure:
    return next(result for result in probe.measures if result.name == name)


def figure(probe: Probe, name: str) -> float | None:
    return next(result.estimate.value for result in probe.figures if result.name == name)


def table(probe: Probe, at: int = 0) -> dict[str, tuple[str, ...]]:
    """A table's rows by their first cell."""
    return {row[0]: row[1:] for row in probe.tables[at].rows}
