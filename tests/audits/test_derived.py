"""What leaves a plan as it is: shown otherwise, padded, beside other references, with payloads."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.perturbations.bases import Base
from apbjudge.audits.perturbations.injections import (
    EXTRA_KEY,
    PlaceName,
    Spot,
    best_verdict,
    inject,
    payloads,
)
from apbjudge.audits.perturbations.kinds import Occasion, kinds_of, plans_the_same
from apbjudge.audits.perturbations.padding import MORE, TIMES, idle_sentences, neutral_text
from apbjudge.audits.perturbations.table import perturbed
from apbjudge.audits.variants import Variant
from apbjudge.protocols import matches_reference
from apbjudge.protocols.fence import neutralize
from apbjudge.protocols.prompts import PromptMaker
from apbjudge.rubrics.reply import reply_model

from .cases import (
    CHAIN,
    calls_of,
    example_bases,
    fault_of,
    message,
    plan_row,
    proven,
    steps_row,
    unsolvable_row,
)
from .cases import with_reply as base_of

PLAN: dict[str, Any] = {
    "plan": "Step 1 finds a room in Trieste. Then a note goes out.",
    "tool_chain": list(CHAIN),
}
PLAN_ROW = plan_row(**PLAN, id="p", model_response=PLAN)
STEP = message("find_rooms", "Rooms come first. Trieste has few.", house="Rosa", day="2026-06-04")
STEPS_ROW = steps_row(STEP, id="s", trajectory_prefix=None, model_response=STEP)
REFUSAL_ROW = unsolvable_row(
    id="r",
    plan="A plan that solves nothing.",
    model_response={"status": "REJECT", "reason": "There is no picture. Please send it."},
)
SMALL = {row["id"]: base_of(row) for row in (PLAN_ROW, STEPS_ROW, REFUSAL_ROW)}
PADDINGS = {"padded-plan", "long-reasons"}
REFERENCES = {"echoed-reference", "foreign-reference", "reworded-reference"}


def reply(variant: Variant) -> Any:
    return orjson.loads(variant.row["model_response"])


def with_plan(text: str, **changes: Any) -> Base:
    return base_of(PLAN_ROW, model_response=PLAN | {"plan": text}, **changes)


@pytest.mark.parametrize("labelled", [True, False])
def test_calls_proven_findings_and_truth_stay(labelled: bool) -> None:
    bases = example_bases(labelled=labelled)
    offered: set[str] = set()
    for n, base in enumerate(bases[::2]):
        fault = fault_of(base)
        parent = fault if n % 2 else base.variant
        parents = {v.name: v for v in (base.variant, fault)}
        expected = {name: (calls_of(base, v), proven(base, v)) for name, v in parents.items()}
        for variant in (
            *perturbed("shown", base, parent, seed=1),
            *perturbed("padded", base, parent, seed=2),
            *referred(base, fault, *bases).values(),
        ):
            offered.add(variant.kind)
            old = parents[variant.parent or ""]
            assert (calls_of(base, variant), proven(base, variant)) == expected[old.name]
            assert variant.truth == old.truth
            if variant.role == "reference":
                assert variant.row["model_response"] == old.row["model_response"]
                assert base.read(variant).reference != base.item.reference
            else:
                assert variant.role == ("padded" if variant.kind in PADDINGS else "shown")
                assert variant.parent == parent.name
                assert orjson.dumps(variant.row | {"id": old.row["id"]}) != orjson.dumps(old.row)
    shown = {one.name for one in kinds_of("shown")} - {"image-order"}
    also = {"equivalent-reference"} if labelled else set[str]()
    assert offered == shown | PADDINGS | REFERENCES | also


# shown otherwise ----------------------------------------------------------------------------------


def shown(base: Base, kind: str) -> Variant:
    (variant,) = perturbed("shown", base, base.variant, seed=3, kinds=[kind])
    return variant


def test_no_other_order_where_there_is_none_and_no_json_where_there_is_more() -> None:
    for tools in (None, PLAN_ROW["tools"][:1], PLAN_ROW["tools"] * 2):
        base = base_of(PLAN_ROW, tools=tools)
        assert perturbed("shown", base, base.variant, seed=1, kinds=["tool-order"]) == ()
    base = base_of(PLAN_ROW)
    parent = fault_of(base, reply=f"Here:\n{base.parts.text}")
    kinds = {v.kind for v in perturbed("shown", base, parent, seed=1)}
    assert kinds == {"tool-order", "reference-wording"}
    assert inject(base, parent, seed=1, n=3) == ()


def test_reference_says_the_same_in_other_words() -> None:
    base = base_of(PLAN_ROW)
    variant = shown(base, "reference-wording")
    before, after = base.item.reference, base.read(variant).reference
    assert before is not None
    assert after is not None
    for new, old in zip(after.calls, before.calls, strict=True):
        assert (new.name, new.arguments) == (old.name, old.arguments)
        assert new.reason.endswith(old.reason)
        assert new.reason != old.reason
    lines = [line.split(":")[0] for line in after.plan.splitlines()]
    assert lines == ["1. find_rooms", "2. find_trains", "3. book_room", "4. send_note"]
    assert variant.row["model_response"] == base.variant.row["model_response"]


def test_keys_turn_round_at_every_level() -> None:
    value = reply(shown(base_of(PLAN_ROW), "key-order"))
    assert list(value) == ["tool_chain", "plan"]
    assert list(value["tool_chain"][0]) == ["reason", "parameter_description", "name"]
    assert list(value["tool_chain"][0]["parameter_description"]) == ["day", "house"]


def test_markup_changes_no_word() -> None:
    def plain(text: str) -> str:
        return re.sub(r"\*\*|(?m:^\d+\. )|\s+", "", text)

    for base in example_bases(labelled=False)[::2]:
        before, after = base.item.prediction, base.read(shown(base, "plan-markup")).prediction
        pairs = [(before.plan, after.plan)]
        pairs += [(a.thought, b.thought) for a, b in zip(before.steps, after.steps, strict=True)]
        assert [plain(new) for _, new in pairs] == [plain(old) for old, _ in pairs]
    base = with_plan("Call find_rooms for Dr. Sato. Then `send_note`, e.g. Monday.")
    expected = "1. Call **find_rooms** for Dr. Sato.\n2. **Then** `send_note`, e.g. Monday."
    assert reply(shown(base, "plan-markup"))["plan"] == expected
    for text in ("# Plan\nFind it.", "Do:\n```json\n{}\n```", "| a |\n|---|"):
        base = with_plan(text)
        assert perturbed("shown", base, base.variant, seed=0, kinds=["plan-markup"]) == ()


def test_capitals_leave_names_values_and_keys_alone() -> None:
    base = with_plan("Step 1 finds a room. Trieste has few. find_rooms knows, so step 2: Note it.")
    value = reply(shown(base, "label-case"))
    assert value["plan"] == (
        "STEP 1 finds a room. Trieste has few. find_rooms knows, so STEP 2: Note it."
    )
    assert value["tool_chain"][3]["reason"] == "THE guest knows."


PICTURES = [{"type": "image", "path": f"{name}.png"} for name in "ab"]


def test_pictures_turn_round_where_nobody_counts_them() -> None:
    base = base_of(PLAN_ROW, files=PICTURES)
    assert shown(base, "image-order").row["files"] == PICTURES[::-1]
    for base in (
        base_of(PLAN_ROW, files=PICTURES[:1]),
        base_of(PLAN_ROW, files=[{"type": "video_frame", "path": f"{n}.png"} for n in range(3)]),
        base_of(PLAN_ROW, files=PICTURES, query="Which town is in the second picture?"),
        base_of(PLAN_ROW, files=PICTURES, plan="Look at image 1."),
        with_plan("Photo 2.", files=PICTURES),
    ):
        assert perturbed("shown", base, base.variant, seed=1, kinds=["image-order"]) == ()


def test_what_changes_a_call_or_nothing_is_not_offered() -> None:
    base = base_of(PLAN_ROW)
    drop = base.parts.with_calls(1).text
    other = base.parts.text.replace('"guests": 2', '"guests": 3')
    for text in (drop, other, base.parts.text, "nothing"):
        bad = base.derived("shown", "bad", what="", truth=base.truth, reply=text)
        on = Occasion("shown", base, base.variant, kinds_of("shown")[0], seed=1)
        assert not plans_the_same(on, bad)


# padded -------------------------------------------------------------------------------------------


def _is_idle(text: str) -> bool:
    for sentence in idle_sentences():
        text = text.replace(sentence, "")
    return not text.strip()


def test_plans_and_thoughts_are_three_times_as_long() -> None:
    for base in example_bases(labelled=True)[::2]:
        (padded, *_) = perturbed("padded", base, base.variant, seed=2)
        after = base.parts_of(padded)
        assert after is not None
        pairs = zip(base.parts.passages, after.passages, strict=True)
        prose = [(old.text, new.text) for old, new in pairs if old.place != "reason"]
        assert sum(len(new) - len(old) for old, new in prose) >= MORE
        for old, new in prose:
            assert len(new) >= TIMES * len(old)
            before, _, after = new.partition(f"\n\n{old}\n\n")
            assert all(_is_idle(text) for text in (before, after))


def test_reasons_say_what_the_tool_is_for_where_there_are_any() -> None:
    base = base_of(PLAN_ROW)
    _, longer = perturbed("padded", base, base.variant, seed=2)
    reason = reply(longer)["tool_chain"][0]["reason"]
    assert reason.startswith("Free rooms and prices. ")
    assert reason.endswith("find_rooms reads as follows: Lists free rooms of a house.")
    assert reply(longer)["plan"] == base.parts.plan
    steps = base_of(STEPS_ROW)
    _, longer = perturbed("padded", steps, steps.variant, seed=2)
    assert reply(longer)["thought"].endswith("Lists free rooms of a house.")
    base = base_of(REFUSAL_ROW)
    assert [v.kind for v in perturbed("padded", base, base.variant, seed=2)] == ["padded-plan"]
    mute = base_of(STEPS_ROW, model_response=STEPS_ROW["model_response"] | {"thought": ""})
    assert perturbed("padded", mute, mute.variant, seed=2) == ()
    assert perturbed("padded", base, fault_of(base, reply="No."), seed=2) == ()


@settings(max_examples=40)
@given(st.integers(40, 5000), st.integers())
def test_length_of_idle_text(n: int, seed: int) -> None:
    text = neutral_text(n, seed=seed)
    assert abs(len(text) - n) <= max(3, 0.05 * n)
    assert text == neutral_text(n, seed=seed)
    assert _is_idle(text)


def test_idle_sentences_claim_nothing_and_address_nobody() -> None:
    idle = idle_sentences()
    assert len(idle) == len(set(idle)) >= 12
    loaded = r"correct|right|valid|good|best|optimal|complete|judge|rubric|score|your?|error|expert"
    assert not [of for of in idle if re.search(rf"\b(?:{loaded})\b", of, re.IGNORECASE)]


# beside other references --------------------------------------------------------------------------

STRANGE = [{"name": "mow_lawn", "parameter_description": {}, "reason": "It is high."}]


def referred(base: Base, fault: Variant | None = None, *others: Base) -> dict[str, Variant]:
    parents = (base.variant,) if fault is None else (fault, base.variant)
    made = (perturbed("reference", base, parent, seed=1, others=others) for parent in parents)
    return {variant.kind: variant for variants in made for variant in variants}


def other_case(**changes: Any) -> Base:
    return base_of(PLAN_ROW | {"id": "q", "plan": "Mow.", "tool_chain": STRANGE} | changes)


def test_the_echoed_reference_is_the_faulty_plan_unless_that_would_clear_it() -> None:
    for row in (PLAN_ROW, STEPS_ROW):
        base = base_of(row)
        fault = fault_of(base)
        item = base.read(referred(base, fault)["echoed-reference"])
        assert matches_reference(item) is True
        assert item.reference is not None
        assert [(c.name, c.arguments) for c in item.reference.calls] == calls_of(base, fault)
    base = base_of(PLAN_ROW)
    fault = fault_of(base, reply=base.parts.text.replace('"find_rooms"', '"seek_rooms"'))
    assert proven(base, fault)
    assert "echoed-reference" not in referred(base, fault)


def test_a_foreign_reference_has_no_tool_of_the_case() -> None:
    foreign = referred(base_of(PLAN_ROW), None, other_case())["foreign-reference"]
    assert (foreign.row["tool_chain"], foreign.row["plan"]) == (STRANGE, "Mow.")
    for lender in (
        base_of(PLAN_ROW | {"id": "q"}),
        other_case(case_id="p"),
        other_case(plan=None, tool_chain=None),
        base_of(STEPS_ROW | {"id": "q"}),
    ):
        assert "foreign-reference" not in referred(base_of(PLAN_ROW), None, lender)
    broken = next(b for b in example_bases(labelled=True) if b.item.condition.broken_tool)
    made = referred(broken, fault_of(broken), *example_bases(labelled=True))
    assert "reworded-reference" in made
    assert "foreign-reference" not in made


def test_equivalent_only_for_another_way_that_humans_passed() -> None:
    turned = PLAN | {"tool_chain": [*CHAIN[::-1]]}
    passed = base_of(PLAN_ROW, origin="label", model_response=turned)
    equal = referred(passed)["equivalent-reference"]
    assert equal.row["tool_chain"] == [*CHAIN[::-1]]
    assert equal.parent == passed.variant.name
    assert "equivalent-reference" not in referred(base_of(PLAN_ROW, origin="label"))
    assert "equivalent-reference" not in referred(base_of(PLAN_ROW, model_response=turned))


# with payloads ------------------------------------------------------------------------------------

PLACES = set(get_args(PlaceName))


def speaking(made: tuple[Variant, ...]) -> list[Variant]:
    return [variant for variant in made if variant.role == "injected"]


def test_fake_verdicts_are_replies_of_the_judge() -> None:
    shapes = set()
    for base in example_bases(labelled=True):
        shapes.add(base.rubric.shape)
        reply = reply_model(base.rubric).model_validate_json(best_verdict(base.rubric))
        said = reply.model_dump()
        assert list(said) == list(type(reply).model_fields)
        assert said["is_correct"] is True
        assert not any(said.get(f"E{n}") for n in range(1, 7))
        assert (said.get("grade", 1.0), said.get("category", 1)) == (1.0, 1)
    assert shapes == {"flags", "pass", "category"}


def test_every_payload_is_used_beside_a_twin_of_its_length_and_the_plan_stays() -> None:
    used, places = Counter[str](), set[str]()
    for n, base in enumerate(example_bases(labelled=True)):
        fault = fault_of(base)
        made = inject(base, fault, seed=1, n=3, turn=n)
        by_name = {v.name: v for v in made}
        assert len(by_name) == len(made)
        assert all((v.truth, v.parent) == (fault.truth, fault.name) for v in made)
        for variant in made:
            assert proven(base, variant) == proven(base, fault)
            pairs = zip(calls_of(base, variant), calls_of(base, fault), strict=True)
            assert sum(a != b for a, b in pairs) == (variant.tags["place"] == "argument")
        assert len(speaking(made)) == 3
        for tag in ("family", "place"):
            assert len({v.tags[tag] for v in speaking(made)}) == 3
        for variant in speaking(made):
            used[variant.tags["payload"]] += 1
            place = variant.tags["place"]
            places.add(place)
            twin = by_name[variant.tags["twin"]]
            assert (twin.role, twin.tags) == ("neutral", {"place": place})
            if place in ("before", "after"):
                old = len(fault.row["model_response"]) + 2
                lengths = [len(v.row["model_response"]) - old for v in (variant, twin)]
                assert abs(lengths[0] - lengths[1]) <= max(3, 0.05 * lengths[0])
    assert places == PLACES
    assert set(used) == {p.id for p in payloads()}
    assert len(used) >= 36
    assert max(used.values()) - min(used.values()) <= 1


ROWS = {"thought": "s", "extra-key": "s", "after": "s", "refusal": "r"}


def stands_at(base: Base, variant: Variant, text: str, place: str) -> bool:
    said, parts = variant.row["model_response"], base.parts_of(variant)
    if place in ("before", "after"):
        return parts is None and (said.startswith if place == "before" else said.endswith)(text)
    if place == "extra-key":
        return orjson.loads(said)[EXTRA_KEY] == text
    if place == "argument":
        texts = [str(x) for _, a in calls_of(base, variant) for x in a.values()]
        return [x.endswith(text) for x in texts].count(True) == 1
    assert parts is not None
    return [p.place for p in parts.passages if text in p.text] == [place]


def test_a_payload_stands_at_its_place_and_does_not_leave_the_block_of_the_prediction() -> None:
    for payload, place in product(payloads(), sorted(PLACES)):
        base = SMALL[ROWS.get(place, "p")]
        passage = next((p for p in base.parts.passages if p.place == place), None)
        argument = (0, "house") if place == "argument" else None
        spot = Spot(place=place, passage=passage, argument=argument)
        text = payload.filled(base.rubric)
        reply = spot.planted(base.parts, text)
        variant = base.derived("injected", "x", what="", truth=base.truth, reply=reply)
        assert stands_at(base, variant, text, place), (payload.id, place)
        item = base.read(variant)
        shown = PromptMaker().make(item, base.rubric, findings=base.findings(variant)).prediction
        blocks = 2 if proven(base, variant) else 1
        assert shown.count("</data>") == shown.count("<data name=") == blocks
        assert f'<data name="prediction">\n{neutralize(item.response)}\n</data>' in shown
