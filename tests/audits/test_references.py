from __future__ import annotations

from typing import Any

import pytest

from apbjudge.audits.perturbations.bases import Base
from apbjudge.audits.perturbations.references import other_references
from apbjudge.audits.variants import Variant
from apbjudge.protocols import matches_reference

from .parents import (
    CHAIN,
    PLAN_ROW,
    STEPS_ROW,
    base_of,
    calls_of,
    example_bases,
    fault_of,
    proven,
)

KINDS = {"echoed-reference", "foreign-reference", "reworded-reference", "equivalent-reference"}
STRANGE = [{"name": "mow_lawn", "parameter_description": {}, "reason": "It is high."}]


def kinds(base: Base, fault: Variant | None = None, *others: Base) -> dict[str, Variant]:
    return {v.kind: v for v in other_references(base, fault, others, seed=1)}


def other_case(**changes: Any) -> Base:
    return base_of(PLAN_ROW | {"id": "q", "plan": "Mow.", "tool_chain": STRANGE} | changes)


@pytest.mark.parametrize("labelled", [True, False])
def test_reply_and_proven_findings_stay(labelled: bool) -> None:
    bases = example_bases(labelled=labelled)
    seen: set[str] = set()
    for base in bases[::2]:
        fault = fault_of(base)
        parents = {v.name: v for v in (base.variant, fault)}
        for variant in other_references(base, fault, bases, seed=1):
            seen.add(variant.kind)
            parent = parents[variant.parent or ""]
            assert variant.row["model_response"] == parent.row["model_response"]
            assert variant.role == "reference"
            assert variant.truth == parent.truth
            assert proven(base, variant) == proven(base, parent)
            assert base.read(variant).reference != base.item.reference
    assert seen == (KINDS if labelled else KINDS - {"equivalent-reference"})


def test_the_echoed_reference_is_the_faulty_plan() -> None:
    for row in (PLAN_ROW, STEPS_ROW):
        base = base_of(row)
        fault = fault_of(base)
        echoed = kinds(base, fault)["echoed-reference"]
        item = base.read(echoed)
        assert matches_reference(item) is True
        assert item.reference is not None
        assert [(c.name, c.arguments) for c in item.reference.calls] == calls_of(base, fault)
        assert echoed.truth == fault.truth


def test_a_fault_that_the_echo_would_clear_is_not_echoed() -> None:
    base = base_of(PLAN_ROW)
    fault = fault_of(base, reply=base.parts.text.replace('"find_room"', '"seek_room"'))
    assert proven(base, fault)
    assert "echoed-reference" not in kinds(base, fault)


def test_a_foreign_reference_has_no_tool_of_the_case() -> None:
    base = base_of(PLAN_ROW)
    foreign = kinds(base, None, other_case())["foreign-reference"]
    assert foreign.row["tool_chain"] == STRANGE
    assert foreign.row["plan"] == "Mow."
    assert foreign.truth == base.truth


@pytest.mark.parametrize(
    "lender",
    [
        base_of(PLAN_ROW | {"id": "q"}),
        other_case(case_id="p"),
        other_case(plan=None, tool_chain=None),
        base_of(STEPS_ROW | {"id": "q"}),
    ],
    ids=["same tools", "same case", "no reference", "other form"],
)
def test_who_lends_no_reference(lender: Base) -> None:
    assert "foreign-reference" not in kinds(base_of(PLAN_ROW), None, lender)


def test_equivalent_only_for_another_way_that_humans_passed() -> None:
    turned = PLAN_ROW["model_response"] | {"tool_chain": CHAIN[::-1]}
    passed = base_of(PLAN_ROW, origin="label", model_response=turned)
    equal = kinds(passed)["equivalent-reference"]
    assert equal.row["tool_chain"] == CHAIN[::-1]
    assert equal.parent == passed.variant.name
    assert "equivalent-reference" not in kinds(base_of(PLAN_ROW, origin="label"))
    assert "equivalent-reference" not in kinds(base_of(PLAN_ROW, model_response=turned))


def test_a_broken_tool_borrows_nothing() -> None:
    broken = [b for b in example_bases() if b.item.condition.broken_tool]
    assert broken
    for base in broken:
        made = kinds(base, fault_of(base), *example_bases())
        assert "foreign-reference" not in made
        assert "reworded-reference" in made
