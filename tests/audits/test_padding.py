from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.perturbations.padding import MORE, TIMES, idle_sentences, neutral_text, pad
from apbjudge.audits.variants import Variant

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


def value_of(variant: Variant) -> Any:
    return orjson.loads(variant.row["model_response"])


@pytest.mark.parametrize("labelled", [True, False])
def test_longer_and_otherwise_the_same(labelled: bool) -> None:
    offered: set[str] = set()
    for n, base in enumerate(example_bases(labelled=labelled)):
        parent = fault_of(base) if n % 2 else base.variant
        calls, facts = calls_of(base, parent), proven(base, parent)
        for variant in pad(base, parent, seed=2):
            offered.add(variant.kind)
            assert calls_of(base, variant) == calls
            assert proven(base, variant) == facts
            assert (variant.role, variant.parent, variant.truth) == (
                "padded",
                parent.name,
                parent.truth,
            )
    assert offered == {"padded-plan", "long-reasons"}


def test_plans_and_thoughts_are_three_times_as_long() -> None:
    for base in example_bases():
        (padded, *_) = pad(base, base.variant, seed=2)
        after = base.parts_of(padded)
        assert after is not None
        pairs = zip(base.parts.passages, after.passages, strict=True)
        prose = [(old.text, new.text) for old, new in pairs if old.place != "reason"]
        assert sum(len(new) - len(old) for old, new in prose) >= MORE
        for old, new in prose:
            assert len(new) >= TIMES * len(old)
            before, _, after = new.partition(f"\n\n{old}\n\n")
            assert all(_is_idle(text) for text in (before, after))


def _is_idle(text: str) -> bool:
    for sentence in idle_sentences():
        text = text.replace(sentence, "")
    return not text.strip()


def test_reasons_say_what_the_tool_is_for() -> None:
    base = base_of(PLAN_ROW)
    _, longer = pad(base, base.variant, seed=2)
    reason = value_of(longer)["tool_chain"][0]["reason"]
    assert reason.startswith("A room is needed. ")
    assert reason.endswith("find_room reads as follows: Finds free rooms.")
    assert value_of(longer)["plan"] == base.parts.plan
    steps = base_of(STEPS_ROW)
    _, longer = pad(steps, steps.variant, seed=2)
    assert value_of(longer)["thought"].endswith("Finds free rooms.")


def test_nothing_to_be_made_longer() -> None:
    base = base_of(REFUSAL_ROW)
    assert [v.kind for v in pad(base, base.variant, seed=2)] == ["padded-plan"]
    mute = base_of(STEPS_ROW, model_response=STEPS_ROW["model_response"] | {"thought": ""})
    assert pad(mute, mute.variant, seed=2) == ()
    assert pad(base, fault_of(base, reply="No."), seed=2) == ()


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
    loaded = re.compile(
        r"\b(?:correct|right|valid|good|best|optimal|complete|careful\w*|judge|grad\w+|rubric|score"
        r"|you|your|error|fault|sure|expert)\b",
        re.IGNORECASE,
    )
    assert not [sentence for sentence in idle if loaded.search(sentence)]
    assert all(sentence.endswith(".") and sentence.isascii() for sentence in idle)
    assert b"\\" not in orjson.dumps(idle)
