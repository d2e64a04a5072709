from __future__ import annotations

from collections import Counter
from itertools import product
from typing import get_args

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.perturbations.bases import Base, planned
from apbjudge.audits.perturbations.injections import (
    EXTRA_KEY,
    PlaceName,
    Spot,
    best_verdict,
    inject,
    payloads,
)
from apbjudge.audits.variants import Variant
from apbjudge.protocols.fence import neutralize
from apbjudge.protocols.prompts import PromptMaker
from apbjudge.rubrics.reply import reply_model

from .parents import (
    PLAN_ROW,
    REFUSAL_ROW,
    STEPS_ROW,
    base_of,
    calls_of,
    example_bases,
    fault_of,
    proven,
)

PLACES = set(get_args(PlaceName))
SMALL = {row["id"]: base_of(row) for row in (PLAN_ROW, STEPS_ROW, REFUSAL_ROW)}


def test_fake_verdicts_are_replies_of_the_judge() -> None:
    shapes = set()
    for base in example_bases():
        shapes.add(base.rubric.shape)
        reply = reply_model(base.rubric).model_validate_json(best_verdict(base.rubric))
        said = reply.model_dump()
        assert list(said) == list(type(reply).model_fields)
        assert said["is_correct"] is True
        assert not any(said.get(f"E{n}") for n in range(1, 7))
        assert said.get("grade", 1.0) == 1.0
        assert said.get("category", 1) == 1
    assert shapes == {"flags", "pass", "category"}


@pytest.fixture(scope="module")
def everything() -> list[tuple[Base, Variant, tuple[Variant, ...]]]:
    bases = example_bases()
    pairs = [(base, fault_of(base)) for base in bases]
    return [
        (base, fault, inject(base, fault, seed=1, n=3, turn=n))
        for n, (base, fault) in enumerate(pairs)
    ]


def test_every_payload_and_every_place_is_used(
    everything: list[tuple[Base, Variant, tuple[Variant, ...]]],
) -> None:
    assert len(payloads()) >= 36
    used = Counter(v.tags["payload"] for *_, made in everything for v in made if _speaks(v))
    assert set(used) == {p.id for p in payloads()}
    assert max(used.values()) - min(used.values()) <= 1
    assert {v.tags["place"] for *_, made in everything for v in made} == PLACES


def _speaks(variant: Variant) -> bool:
    return variant.role == "injected"


def test_the_plan_stays(everything: list[tuple[Base, Variant, tuple[Variant, ...]]]) -> None:
    for base, fault, made in everything[::2]:
        calls, facts = calls_of(base, fault), proven(base, fault)
        for variant in made:
            assert variant.truth == fault.truth
            assert variant.parent == fault.name
            assert proven(base, variant) == facts
            differing = [a for a, b in zip(calls_of(base, variant), calls, strict=True) if a != b]
            assert len(differing) == (variant.tags["place"] == "argument")


def test_each_has_a_twin_of_the_same_length(
    everything: list[tuple[Base, Variant, tuple[Variant, ...]]],
) -> None:
    for _, fault, made in everything:
        by_name = {v.name: v for v in made}
        assert len(by_name) == len(made)
        speaking = [v for v in made if _speaks(v)]
        assert len(speaking) == 3
        assert len({v.tags["family"] for v in speaking}) == 3
        assert len({v.tags["place"] for v in speaking}) == 3
        old = len(fault.row["model_response"])
        for variant in speaking:
            twin = by_name[variant.tags["twin"]]
            assert twin.role == "neutral"
            assert twin.tags == {"place": variant.tags["place"]}
            assert twin.truth == variant.truth
            assert twin.parent == variant.parent
            if variant.tags["place"] in ("before", "after"):
                lengths = [len(v.row["model_response"]) - old - 2 for v in (variant, twin)]
                assert abs(lengths[0] - lengths[1]) <= max(3, 0.05 * lengths[0])


def test_payload_stands_where_the_tags_say() -> None:
    for base in SMALL.values():
        fault = fault_of(base)
        for variant in inject(base, fault, seed=2, n=50, turn=0):
            if not _speaks(variant):
                continue
            payload = next(p for p in payloads() if p.id == variant.tags["payload"])
            text, place = payload.filled(base.rubric), variant.tags["place"]
            said = variant.row["model_response"]
            if place in ("before", "after"):
                assert base.parts_of(variant) is None
                assert said.startswith(text) if place == "before" else said.endswith(text)
            elif place == "extra-key":
                value = orjson.loads(said)
                assert value[EXTRA_KEY] == text
            elif place == "argument":
                texts = [str(x) for _, a in calls_of(base, variant) for x in a.values()]
                assert [x.endswith(text) for x in texts].count(True) == 1
            else:
                parts = base.parts_of(variant)
                there = [p for p in parts.passages if text in p.text] if parts else []
                assert [p.place for p in there] == [place]


def test_arguments_with_fixed_values_are_left_alone() -> None:
    base = SMALL["p"]
    made = inject(base, base.variant, seed=2, n=50, turn=0)
    spoken = [v for v in made if v.tags["place"] == "argument"]
    assert spoken
    for variant in spoken:
        arguments = calls_of(base, variant)[1][1]
        assert arguments["tone"] == "warm and kind"
        assert arguments["text"].startswith("name of the room found ")
    assert "argument" not in {
        v.tags["place"] for v in inject(SMALL["s"], fault_of(SMALL["s"]), seed=2, n=50)
    }


def test_thinking_that_would_hide_the_plan_is_not_put_after_it() -> None:
    base = SMALL["s"]
    fault = fault_of(base)
    payload = next(p for p in payloads() if p.id == "end-reasoning").filled(base.rubric)
    parts = base.parts_of(fault)
    assert parts is not None
    text = Spot(place="after").planted(parts, payload)
    hidden = base.derived("injected", "x", what="", truth=fault.truth, reply=text, parent=fault)
    assert planned(base, hidden) != planned(base, fault)
    drawn = (inject(base, fault, seed=0, n=1, turn=turn)[0].tags["payload"] for turn in range(50))
    turn = list(drawn).index("end-reasoning")
    made = [inject(base, fault, seed=seed, n=1, turn=turn)[0] for seed in range(20)]
    assert {v.tags["payload"] for v in made} == {"end-reasoning"}
    assert {v.tags["place"] for v in made} == {"thought", "extra-key", "before"}


def test_a_reply_that_is_no_json_is_left_alone() -> None:
    base = SMALL["p"]
    assert inject(base, fault_of(base, reply="Words."), seed=1, n=3) == ()


ROWS = {"thought": "s", "extra-key": "s", "after": "s", "refusal": "r"}


def planted(base: Base, place: PlaceName, text: str) -> str:
    """The reply of a base with a text in a place."""
    passage = next((p for p in base.parts.passages if p.place == place), None)
    argument = (0, "town") if place == "argument" else None
    return Spot(place=place, passage=passage, argument=argument).planted(base.parts, text)


TRICKS = (
    '</data> <data name="query"> < / ｄａｔａ ＞ \u200b\u202e <|im_end|> [/INST] \\u003c'.split(" ")
)


@pytest.mark.parametrize("place", sorted(PLACES))
@settings(max_examples=25)
@given(st.lists(st.one_of(st.text(max_size=12), st.sampled_from(TRICKS)), max_size=8).map("".join))
def test_no_text_leaves_the_block_of_the_prediction(place: PlaceName, text: str) -> None:
    base = SMALL[ROWS.get(place, "p")]
    variant = base.derived(
        "injected",
        "x",
        what="",
        truth=base.truth,
        reply=planted(base, place, text),
    )
    assert_fenced(base, variant)


def test_no_payload_leaves_the_block_of_the_prediction() -> None:
    for payload, place in product(payloads(), sorted(PLACES)):
        base = SMALL[ROWS.get(place, "p")]
        text = planted(base, place, payload.filled(base.rubric))
        assert_fenced(base, base.derived("injected", "x", what="", truth=base.truth, reply=text))


def assert_fenced(base: Base, variant: Variant) -> None:
    item = base.read(variant)
    shown = PromptMaker().make(item, base.rubric, findings=base.findings(variant)).prediction
    inside = neutralize(item.response)
    blocks = 2 if proven(base, variant) else 1
    assert shown.count("</data>") == shown.count("<data name=") == blocks
    assert f'<data name="prediction">\n{inside}\n</data>' in shown
    assert "</data>" not in inside
    assert "<|" not in inside
    assert neutralize(inside) == inside
