from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from apbjudge.audits.perturbations.bases import Base, faithful
from apbjudge.audits.perturbations.format_changes import FORMAT_CHANGES, change_format
from apbjudge.audits.perturbations.parts import sentences
from apbjudge.audits.variants import Variant

from .parents import (
    PLAN_ROW,
    base_of,
    calls_of,
    example_bases,
    fault_of,
    proven,
)

PICTURES = [{"type": "image", "path": f"{name}.png"} for name in "ab"]


def shown(base: Base, kind: str, parent: Variant | None = None) -> Variant:
    (variant,) = change_format(base, parent or base.variant, seed=3, kinds=[kind])
    return variant


def reply(variant: Variant) -> Any:
    return orjson.loads(variant.row["model_response"])


@pytest.mark.parametrize("labelled", [True, False])
def test_calls_and_proven_findings_stay(labelled: bool) -> None:
    offered: set[str] = set()
    for n, base in enumerate(example_bases(labelled=labelled)[::3]):
        parent = fault_of(base) if n % 2 else base.variant
        calls, facts = calls_of(base, parent), proven(base, parent)
        for variant in change_format(base, parent, seed=1):
            offered.add(variant.kind)
            assert calls_of(base, variant) == calls
            assert proven(base, variant) == facts
            assert variant.truth == parent.truth
            assert variant.parent == parent.name
            assert variant.role == "shown"
            rows = [orjson.dumps({**v.row, "id": ""}) for v in (parent, variant)]
            assert rows[0] != rows[1]
    assert offered == {s.name for s in FORMAT_CHANGES} - {"image-order"}


@pytest.mark.parametrize("tools", [None, PLAN_ROW["tools"][:1], PLAN_ROW["tools"] * 2])
def test_no_other_order_where_there_is_none_or_it_means_something(tools: Any) -> None:
    base = base_of(PLAN_ROW, tools=tools)
    assert change_format(base, base.variant, seed=1, kinds=["tool-order"]) == ()


def test_reference_says_the_same_in_other_words() -> None:
    base = base_of(PLAN_ROW)
    variant = shown(base, "reference-wording")
    before, after = base.item.reference, base.read(variant).reference
    assert before is not None
    assert after is not None
    assert [(c.name, c.arguments) for c in after.calls] == [
        (c.name, c.arguments) for c in before.calls
    ]
    assert all(a.reason.endswith(b.reason) for a, b in zip(after.calls, before.calls, strict=True))
    assert after.calls[0].reason != before.calls[0].reason
    assert [line.split(":")[0] for line in after.plan.splitlines()] == [
        "1. find_room",
        "2. send_note",
    ]
    assert variant.row["model_response"] == base.variant.row["model_response"]


def test_keys_turn_round_at_every_level() -> None:
    value = reply(shown(base_of(PLAN_ROW), "key-order"))
    assert list(value) == ["tool_chain", "plan"]
    assert list(value["tool_chain"][0]) == ["reason", "parameter_description", "name"]
    assert list(value["tool_chain"][0]["parameter_description"]) == ["beds", "town"]


@pytest.mark.parametrize("labelled", [True, False])
def test_markup_changes_no_word(labelled: bool) -> None:
    for base in example_bases(labelled=labelled)[::2]:
        before, after = base.item.prediction, base.read(shown(base, "plan-markup")).prediction
        pairs = [(before.plan, after.plan)]
        pairs += [(a.thought, b.thought) for a, b in zip(before.steps, after.steps, strict=True)]
        for old, new in pairs:
            assert _plain(new) == _plain(old)


def _plain(text: str) -> str:
    """Without bold marks, numbers at the start of a line, and blanks."""
    return re.sub(r"\*\*|(?m:^\d+\. )|\s+", "", text)


def test_tool_names_are_bold() -> None:
    plan = "Call find_room first. Then `send_note`, at last."
    base = base_of(PLAN_ROW, model_response=PLAN_ROW["model_response"] | {"plan": plan})
    marked = reply(shown(base, "plan-markup"))["plan"]
    assert marked == "1. Call **find_room** first.\n2. **Then** `send_note`, at last."


def test_capitals_leave_names_values_and_keys_alone() -> None:
    plan = "Step 1 finds a room. Ghent has few. find_room knows, so step 2: Note the name."
    base = base_of(PLAN_ROW, model_response=PLAN_ROW["model_response"] | {"plan": plan})
    value = reply(shown(base, "label-case"))
    assert value["plan"] == (
        "STEP 1 finds a room. Ghent has few. find_room knows, so STEP 2: Note the name."
    )
    assert value["tool_chain"][1]["reason"] == "THE traveller wants to know."
    for base in example_bases():
        for variant in change_format(base, base.variant, seed=1, kinds=["label-case"]):
            old, new = base.variant.row["model_response"], variant.row["model_response"]
            assert new.lower() == old.lower()
            assert variant.row.keys() == base.variant.row.keys()


def test_pictures_turn_round_where_nobody_counts_them() -> None:
    base = base_of(PLAN_ROW, files=PICTURES)
    assert shown(base, "image-order").row["files"] == PICTURES[::-1]


@pytest.mark.parametrize(
    "changes",
    [
        {"files": PICTURES[:1]},
        {"files": [{"type": "video_frame", "path": f"{n}.png"} for n in range(3)]},
        {"files": PICTURES, "query": "Which town is in the second picture?"},
        {"files": PICTURES, "plan": "Look at image 1."},
        {"files": PICTURES, "model_response": PLAN_ROW["model_response"] | {"plan": "Photo 2."}},
    ],
)
def test_pictures_stay_where_their_place_means_something(changes: dict[str, Any]) -> None:
    base = base_of(PLAN_ROW, **changes)
    assert change_format(base, base.variant, seed=1, kinds=["image-order"]) == ()


def test_a_reply_that_is_more_than_json_is_only_shown_among_other_things() -> None:
    base = base_of(PLAN_ROW)
    parent = fault_of(base, reply=f"Here:\n{base.parts.text}")
    kinds = {v.kind for v in change_format(base, parent, seed=1)}
    assert kinds == {"tool-order", "reference-wording"}


def test_what_changes_a_call_or_nothing_is_not_offered() -> None:
    base = base_of(PLAN_ROW)
    drop = base.parts.with_calls(1).text
    other = base.parts.text.replace('"beds": 2', '"beds": 3')
    for text in (drop, other, base.parts.text, "nothing"):
        bad = base.derived("shown", "bad", what="", truth=base.truth, reply=text)
        assert faithful(base, base.variant, [bad]) == ()


def test_sentences() -> None:
    text = "1. Ask Dr. Sato. Then wait 2.5 h.\n2. Go on! With Mr. T. Blue, e.g. Monday\n\n- end"
    assert sentences(text) == [
        "1. Ask Dr. Sato.",
        "Then wait 2.5 h.",
        "2. Go on!",
        "With Mr. T. Blue, e.g. Monday",
        "- end",
    ]


@pytest.mark.parametrize("text", ["# Plan\nFind it.", "Do:\n```json\n{}\n```", "| a |\n|---|"])
def test_markdown_gets_no_list_numbers(text: str) -> None:
    row = PLAN_ROW | {"model_response": {"plan": text, "tool_chain": PLAN_ROW["tool_chain"]}}
    base = base_of(row)
    assert change_format(base, base.variant, seed=0, kinds=["plan-markup"]) == ()
