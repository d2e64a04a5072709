"""Parents of derived variants: bases of the examples and small ones made here."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from apbjudge.audits.perturbations.bases import Base, Origin, find_bases
from apbjudge.audits.perturbations.parts import ReplyParts
from apbjudge.audits.variants import Truth, Variant
from apbjudge.protocols import protocol_of
from apbjudge.records import Row, read_labels

from .cases import EXAMPLES, NAMES, call, example_tasks, message, tool


@lru_cache(maxsize=2)
def example_bases(*, labelled: bool = True) -> tuple[Base, ...]:
    """Bases of all examples; with labels, passed predictions come before references."""
    result: list[Base] = []
    for name in NAMES:
        labels = read_labels(EXAMPLES / "labels" / f"{name}.jsonl", bad=print)
        passed = {(x.item_id, x.tested_model) for x in labels if x.is_correct}
        result += find_bases(example_tasks(name), passed if labelled else None).bases
    return tuple(result)


TOOLS = [
    tool("find_room", "Finds free rooms.", {"town": "string"}, beds="integer"),
    tool(
        "send_note",
        "Sends a note to the traveller.",
        {"text": "string"},
        tone={"type": "string", "enum": ["warm and kind", "dry"]},
    ),
]
CHAIN = [
    call("find_room", "A room is needed.", town="Ghent", beds=2),
    call(
        "send_note",
        "The traveller wants to know.",
        text="name of the room found",
        tone="warm and kind",
    ),
]
STEP = message("find_room", "Rooms come first. Ghent has few.", town="Ghent")
QUERY = "Find a room in Ghent and send me a note."
PLAN: dict[str, Any] = {
    "plan": "Step 1 finds a room in Ghent. Then a note goes out.",
    "tool_chain": CHAIN,
}
COMMON = {"tested_model": "reference", "query": QUERY, "tools": TOOLS}
PLAN_ROW: dict[str, Any] = {"id": "p", **COMMON, **PLAN, "model_response": PLAN}
STEPS_ROW: dict[str, Any] = {
    "id": "s",
    **COMMON,
    "prediction_horizon": 1,
    "ground_truth_steps": [STEP],
    "model_response": STEP,
}
REFUSAL_ROW: dict[str, Any] = {
    "id": "r",
    **COMMON,
    "query": "Book the room in the picture.",
    "unsolvable_type": "visual_missing",
    "plan": "A plan that solves nothing.",
    "model_response": {"status": "REJECT", "reason": "There is no picture. Please send it."},
}


def base_of(row: dict[str, Any], *, origin: Origin = "reference", **changes: Any) -> Base:
    """A base from a row, some of its fields changed; None takes a field out."""
    values = {key: value for key, value in (row | changes).items() if value is not None}
    item = Row(values, 1).to_item()
    parts = ReplyParts.of_prediction(item)
    assert parts is not None
    protocol = protocol_of(item)
    item = Row(values | {"model_response": parts.text}, 1).to_item()
    return Base(
        name=item.item_id,
        item=item,
        parts=parts,
        origin=origin,
        protocol=protocol,
        rubric=protocol.rubric_for(item),
    )


def fault_of(base: Base, *, reply: ReplyParts | str | None = None) -> Variant:
    """A variant with a fault that no code proves: its first call, if it has one, comes again."""
    if reply is None:
        reply = base.parts.with_calls(0, *base.parts.calls[:1] * 2) if base.parts.calls else None
    truth = Truth(is_correct=False, codes=frozenset({"E4"}), also=frozenset({"E2"}))
    return base.derived(
        "fault", "twice", what="the first call comes twice", truth=truth, reply=reply
    )


def calls_of(base: Base, variant: Variant) -> list[tuple[str, Any]]:
    """Names and arguments of a variant's calls."""
    return [(call.name, call.arguments) for call in base.read(variant).prediction.calls]


def proven(base: Base, variant: Variant) -> list[tuple[str, str | None, str]]:
    """What code proves of a variant."""
    result = base.findings(variant)
    return sorted((f.rule, str(f.code), f.where) for f in result if f.certainty == "proven")
