"""The plan of an audit: the same for the same input, balanced, within its sizes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.design import FULL, QUICK, QUICK_CALLS, AuditDesign, design_audit
from apbjudge.audits.perturbations.bases import Base
from apbjudge.audits.perturbations.table import perturbed
from apbjudge.audits.responses import AGAIN, BLIND, MAIN, WARM
from apbjudge.audits.variants import Variant
from apbjudge.records import ERROR_CODES

from .cases import SMALL, base_of, example_bases, plan_row, plans, small, unsolvable_row
from .judges import variant


def of_role(plan: AuditDesign, role: str) -> list[Variant]:
    return [variant for variant in plan.runs[0].variants if variant.role == role]


def offered(base: Base) -> set[str]:
    """Codes of the faults that can be planted in a base."""
    return {code for fault in perturbed("fault", base, seed=3) for code in fault.truth.codes or ()}


@cache
def everywhere() -> set[str]:
    """Codes of which a fault can be planted in every base."""
    return set[str](ERROR_CODES).intersection(*map(offered, plans()))


def run(plan: AuditDesign, name: str) -> tuple[Variant, ...]:
    return next(run.variants for run in plan.runs if run.name == name)


def prediction(n: int, case: str) -> Variant:
    return variant(f"{case}/p{n}", "prediction", **plan_row(id=f"p{n}"))


def test_the_same_input_and_seed_give_the_same_plan() -> None:
    again = design_audit(plans(), (), SMALL, seed=1, blind=False)
    assert again == small()
    assert again.fingerprint == small().fingerprint != small(seed=2).fingerprint
    assert again.schedule == small().schedule
    names = [[turn.variant.name for turn in small(seed=n).schedule] for n in (1, 2)]
    assert names[0] != names[1]


FAULTS_ALONE = replace(
    FULL, harmless=0, repeated=0, warm=0, shown=0, padded=0, referred=0, blind=0, injected=0
)


def test_codes_and_kinds_come_about_equally_often() -> None:
    faults = of_role(design_audit(plans(), (), FAULTS_ALONE, seed=1, blind=False), "fault")
    codes = Counter(code for fault in faults for code in fault.truth.codes or ())
    assert set(codes) == set(ERROR_CODES)
    counts = [codes[c] for c in everywhere()]
    assert len(counts) >= 4
    assert max(counts) - min(counts) <= 1
    kinds = {fault.kind for fault in faults}
    assert kinds == {fault.kind for base in plans() for fault in perturbed("fault", base, seed=1)}


@settings(max_examples=4)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 8), start=st.integers(0, 40))
def test_a_quick_audit_stays_below_its_calls(seed: int, n: int, start: int) -> None:
    bases = example_bases()[start : start + n]
    plan = design_audit(bases, [prediction(1, "c")], QUICK, seed=seed, blind=False)
    assert 0 < plan.n_judgements <= QUICK_CALLS
    assert of_role(plan, "prediction") == []


def test_predictions_are_judged_as_they_came_at_most_so_many() -> None:
    given_ones = [prediction(n, f"c{n}") for n in range(5)]
    sizes = replace(SMALL, predictions=3)
    plan = design_audit(plans()[:1], given_ones, sizes, seed=1, blind=False)
    assert of_role(plan, "prediction") == given_ones[:3]
    alone = design_audit((), given_ones, sizes, seed=1, blind=False)
    repeats = [f"{AGAIN}-{k + 1}" for k in range(sizes.again)]
    repeats += [f"{WARM}-{k + 1}" for k in range(sizes.warm)]
    repeated = tuple(given_ones[: min(3, 2 * sizes.repeated)])
    runs = {one.name: one.variants for one in alone.runs}
    assert runs == {MAIN: tuple(given_ones[:3]), **dict.fromkeys(repeats, repeated)}


def test_what_has_no_reference_is_not_judged_without_it_and_a_blind_judge_nothing() -> None:
    blind = small(blind=True)
    assert BLIND not in [one.name for one in blind.runs]
    assert of_role(blind, "reference") == []
    bare = base_of(unsolvable_row())
    plan = design_audit([base_of(plan_row()), bare], (), SMALL, seed=1, blind=False)
    assert {v.case_id for v in run(plan, BLIND)} == {"p1"}
    assert {v.case_id for v in run(plan, f"{AGAIN}-1")} == {"p1", "u1"}


# the schedule -------------------------------------------------------------------------------------


def test_all_arms_of_a_case_are_asked_together_one_that_shows_it_as_it_is_first() -> None:
    plan = design_audit(plans(), (), FULL.for_bases(len(plans())), seed=5, blind=False)
    cases = [turn.variant.case_id for turn in plan.schedule]
    blocks = [case for n, case in enumerate(cases) if n == 0 or case != cases[n - 1]]
    assert len(blocks) == len(set(cases)) == len(plans())
    assert blocks != [base.item.case_id for base in plans()]
    for case in blocks:
        block = [turn for turn in plan.schedule if turn.variant.case_id == case]
        (base,) = {t.variant.name: t.variant for t in block if t.variant.role == "base"}.values()
        first = dict(block[0].variant.row)
        own = {"id": base.row["id"], "model_response": base.row["model_response"]}
        assert first | own == base.row
        assert block[0].run != BLIND
        assert {turn.run for turn in block} == {one.name for one in plan.runs}


def test_what_is_compared_comes_first_as_often_as_second() -> None:
    """A plan and what is made of it: neither is always asked before the other."""
    plan = design_audit(plans(), (), FULL.for_bases(len(plans())), seed=5, blind=False)
    at = {(turn.run, turn.variant.name): n for n, turn in enumerate(plan.schedule)}
    later = [
        at[turn.run, turn.variant.name] > at[turn.run, turn.variant.parent]
        for turn in plan.schedule
        if turn.variant.parent is not None
    ]
    assert 0.35 < sum(later) / len(later) < 0.65
