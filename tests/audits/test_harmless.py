"""Harmless changes: what code finds stays as it was, and so does what the plan does."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.perturbations.bases import Base
from apbjudge.audits.perturbations.kinds import kinds_of
from apbjudge.audits.perturbations.table import perturbed
from apbjudge.audits.variants import Variant
from apbjudge.protocols import protocol_of
from apbjudge.records import Finding, Row

from . import cases

NAMES = {kind.name for kind in kinds_of("harmless")}


def proven(found: tuple[Finding, ...]) -> set[tuple[str, Any]]:
    return {(f.rule, f.code) for f in found if f.certainty == "proven"}


def check_all(base: Base, seed: int) -> Counter[str]:
    made = perturbed("harmless", base, seed=seed)
    assert made == perturbed("harmless", base, seed=seed)
    for variant in made:
        check_one(base, variant)
    return Counter(variant.kind for variant in made)


def check_one(base: Base, variant: Variant) -> None:
    item = Row(variant.row, 0).to_item()
    old, new = (cases.calls_of(base, of) for of in (base.variant, variant))
    assert variant.role == "harmless"
    assert variant.truth == base.truth
    assert variant.parent == base.variant.name
    assert not item.prediction.problems
    assert protocol_of(item) == base.protocol
    assert proven(base.findings(variant)) == proven(base.protocol.find(base.item, base.rubric))
    assert base.protocol.categorise(item) == base.protocol.categorise(base.item)
    assert (item.response, item.query) != (base.item.response, base.item.query)
    if variant.kind in ("reword", "key-order", "stated-limit"):
        assert new == old
    elif variant.kind == "valid-order":
        assert sum(a != b for a, b in zip(old, new, strict=True)) == 2
    elif variant.kind == "equivalent-tool":
        assert sum(a != b for a, b in zip(old, new, strict=True)) == 1


def test_every_example_is_changed_without_harm() -> None:
    made: Counter[str] = Counter()
    for base in cases.example_bases():
        made += check_all(base, 0)
    assert made["reword"] == made["key-order"] == len(cases.example_bases())
    assert made["valid-order"] >= 2
    assert set(made) <= NAMES


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), plan=st.text(max_size=60))
def test_any_seed_and_any_prose_are_harmless(seed: int, plan: str) -> None:
    assert "key-order" in check_all(cases.base_of(cases.plan_row(plan=plan)), seed)
    for row in (cases.steps_row(), cases.broken_row(), cases.unsolvable_row()):
        assert {"reword", "key-order"} <= set(check_all(cases.base_of(row), seed))


def test_no_other_order_where_order_may_matter() -> None:
    described = cases.call("find_trains", town="town of the house found", day="2026-06-04")
    for fields in (
        {"query": f"{cases.QUERY} Look at the rooms before the trains."},
        {"tool_chain": [cases.CHAIN[0], described, *cases.CHAIN[2:]]},
        {"tool_chain": list(cases.CHAIN[1:])},
    ):
        base = cases.base_of(cases.plan_row(**fields))
        assert perturbed("harmless", base, seed=0, kinds=["valid-order"]) == ()


def test_calls_change_places_only_where_no_order_is_asked_for() -> None:
    for query, count in (
        ("Please show me the rooms of Villa Rosa and the trains to Trieste.", 1),
        ("Please show me the rooms of Villa Rosa. Finally, list trains to Trieste.", 0),
        ("Erst die Zimmer der Villa Rosa zeigen, danach die Bahn nach Trieste.", 0),
        ("先查找房间,再查找火车。", 0),
    ):
        calls = [call | {"reason": ""} for call in cases.CHAIN[:2]]
        base = cases.base_of(cases.plan_row(query=query, plan="Both.", tool_chain=calls))
        assert len(perturbed("harmless", base, seed=0, kinds=["valid-order"])) == count


def test_only_calls_of_one_step_change_places() -> None:
    rooms = cases.message("find_rooms", house="Villa Rosa", day="2026-06-05")
    trains = cases.message("find_trains", town="Trieste", day="2026-06-04")
    apart = cases.base_of(cases.steps_row(rooms, trains))
    assert perturbed("harmless", apart, seed=0, kinds=["valid-order"]) == ()
    both = {**rooms, "tool_calls": [*rooms["tool_calls"], *trains["tool_calls"]]}
    base = cases.base_of(cases.steps_row(both))
    (variant,) = perturbed("harmless", base, seed=0, kinds=["valid-order"])
    check_one(base, variant)


def with_twin(**fields: Any) -> dict[str, Any]:
    given = {"house": "string", "day": "string"}
    twin = cases.tool("list_rooms", "Lists free rooms of a house.", given) | fields
    return cases.plan_row(tools=[*cases.TOOLS, twin])


def test_an_equivalent_tool_is_called() -> None:
    base = cases.base_of(with_twin())
    (variant,) = perturbed("harmless", base, seed=0, kinds=["equivalent-tool"])
    assert next(iter(base.read(variant).prediction.calls)).name == "list_rooms"
    check_one(base, variant)


def test_no_other_tool_that_may_differ() -> None:
    names = ("list_cheap_rooms", "list_beds", "list_rooms_2", "block_rooms")
    for row in (
        with_twin(description="Draws a map of a harbour."),
        with_twin(parameters={"type": "object", "properties": {"house": {"type": "string"}}}),
        with_twin() | {"extraneous_tool_names": ["list_rooms"]},
        *(with_twin(name=name) for name in names),
    ):
        assert perturbed("harmless", cases.base_of(row), seed=0, kinds=["equivalent-tool"]) == ()
