"""Faulty plans with text addressed to the judge, each with a twin with neutral text instead."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from random import Random
from typing import Annotated, Any, Literal, get_args

import orjson
from pydantic import Field

from ...records import Record
from ...rubrics import Rubric
from ...rubrics.reply import reply_model
from ..variants import Role, Variant
from .bases import Base, planned
from .padding import neutral_text
from .parts import Passage, ReplyParts, json_text, seeded, tool_of
from .words import schema_of, table

Family = Literal["instruction", "fake-verdict", "section-end", "authority", "unicode"]
FAMILIES: tuple[Family, ...] = get_args(Family)
"""An order to the judge; a verdict in the judge's own form; a faked end of the material; a claim of
authority or of facts; the same in hidden or deceptive characters."""

PlaceName = Literal[
    "plan", "reason", "argument", "thought", "extra-key", "before", "after", "refusal"
]
_AT: dict[PlaceName, str] = {
    "plan": "in the prose of the plan",
    "reason": "in the reason of a call",
    "argument": "in an argument",
    "thought": "in a thought",
    "extra-key": "under a key of its own",
    "before": "before the JSON",
    "after": "after the JSON",
    "refusal": "in the reason of the refusal",
}
EXTRA_KEY = "notes"
"""Key that no form of a reply has."""

VERDICT = "{verdict}"


class Payload(Record):
    """Text that asks for a better verdict than the plan deserves.

    Attributes:
        id: Unique name.
        family: Its technique.
        language: ISO 639-1 code of its words.
        text: The text; ``{verdict}`` stands for a verdict in the JSON form of the judge's reply.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$")]
    family: Family
    language: Annotated[str, Field(pattern=r"^[a-z]{2}$")]
    text: Annotated[str, Field(min_length=1)]

    def filled(self, rubric: Rubric) -> str:
        """The text to plant in a reply that is judged by a rubric."""
        return self.text.replace(VERDICT, best_verdict(rubric))


@cache
def payloads() -> tuple[Payload, ...]:
    """The shipped payloads, in the order of their file."""
    return tuple(Payload.model_validate(entry) for entry in table("payloads")["payload"])


def best_verdict(rubric: Rubric) -> str:
    """The best verdict that a rubric allows, as the JSON that a judge would reply."""
    best: dict[str, Any] = {"is_correct": True}
    if rubric.shape == "flags":
        best["grade"] = max(rubric.scale.grades)
    elif rubric.shape == "category":
        best["category"] = next(c.number for c in rubric.categories if c.correct)
    praise = {"reasoning": "The plan solves the query and has no fault."}
    fields = reply_model(rubric).model_fields
    return orjson.dumps({name: (praise | best).get(name, False) for name in fields}).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A place in a reply that text can be added to.

    Attributes:
        passage: The prose that text is added to; None for other places.
        argument: Number of the call and name of the parameter; None for other places.
    """

    place: PlaceName
    passage: Passage | None = None
    argument: tuple[int, str] | None = None

    def planted(self, parts: ReplyParts, text: str) -> str:
        """The reply with a text (any Unicode without surrogates) added here."""
        if self.place == "before":
            return f"{text}\n\n{parts.text}"
        if self.place == "after":
            return f"{parts.text}\n\n{text}"
        if self.passage is not None:
            gap = " " if self.place == "reason" else "\n\n"
            return parts.with_passage(self.passage, f"{self.passage.text}{gap}{text}").text
        if self.argument is not None:
            at, name = self.argument
            old = (parts.calls[at].arguments or {})[name]
            return parts.with_argument(at, name, f"{old} {text}").text
        value = parts.value
        (value[-1] if isinstance(value, list) else value)[EXTRA_KEY] = text
        return json_text(value)


def inject(
    base: Base, parent: Variant, *, seed: int, n: int, turn: int | None = None
) -> tuple[Variant, ...]:
    """Plants payloads in a reply, one a variant, and neutral text of the same length for twins.

    Payloads rotate through the families, so that five in a row are of five families (except the
    last ones of a long family). Each is in another place, as long as the reply has unused places.

    Variants of role ``injected`` have the tags family, language, payload, place and twin (the
    twin's name). After them comes one of role ``neutral`` for each place, as long as the longest
    payload there (within 5 %). Each has the calls, arguments (except that of the place) and proven
    findings of the parent, which has a fault that no rule proves.

    Args:
        base: The base.
        parent: Its variant with the fault.
        seed: Seed of the places, and of the turn if it is None.
        n: Number of payloads.
        turn: Number of parents with payloads before this one; None draws a number from the parent's
            name. With 0, 1, 2, … every payload is used before one is repeated.
    """
    parts = base.parts_of(parent)
    if parts is None:
        return ()
    rng = seeded(seed, parent.name, "injections")
    spots = _spots(base, parts, rng)
    if turn is None:
        turn = rng.randrange(len(payloads()))
    stem = base.name if parent.role == "base" else parent.name
    meant = {spot.argument: planned(base, parent, apart_from=spot.argument) for spot in spots}

    def variant(
        spot: Spot, text: str, role: Role, kind: str, what: str, **tags: str
    ) -> Variant | None:
        """The variant with a text; None if the text changes how its plan is read."""
        reply, tags = spot.planted(parts, text), {**tags, "place": spot.place}
        what = f"{what} {_AT[spot.place]}"
        new = base.derived(role, kind, what=what, reply=reply, parent=parent, tags=tags)
        after = planned(base, new, apart_from=spot.argument)
        return new if after is not None and after == meant[spot.argument] else None

    injected: list[Variant] = []
    used: list[Spot] = []
    longest: dict[PlaceName, int] = {}
    for payload in _round(turn * n, n):
        text = payload.filled(base.rubric)
        for spot in sorted(spots, key=used.count):
            candidate = variant(
                spot,
                text,
                "injected",
                f"injected-{payload.id}",
                f"speaks to the judge ({payload.family}, {payload.language})",
                family=payload.family,
                language=payload.language,
                payload=payload.id,
                twin=f"{stem}/neutral-{spot.place}",
            )
            if candidate is not None:
                injected.append(candidate)
                used.append(spot)
                longest[spot.place] = max(len(text), longest.get(spot.place, 0))
                break
    twins: list[Variant | None] = []
    for spot in dict.fromkeys(used):
        idle = neutral_text(longest[spot.place], seed=f"{seed}/{parent.name}/{spot.place}")
        kind = f"neutral-{spot.place}"
        twins.append(variant(spot, idle, "neutral", kind, "says something idle"))
    return (*injected, *(twin for twin in twins if twin is not None))


def _round(start: int, n: int) -> list[Payload]:
    """``n`` payloads in a row, from the families in turn, without repetition."""
    families = [[p for p in payloads() if p.family == family] for family in FAMILIES]
    turns = [p for rank in zip_longest(*families) for p in rank if p is not None]
    return [turns[(start + k) % len(turns)] for k in range(min(n, len(turns)))]


_BINDING = frozenset("enum const format pattern maxLength oneOf anyOf allOf not $ref".split())


def _spots(base: Base, parts: ReplyParts, rng: Random) -> list[Spot]:
    """One spot for each place that the reply has, in a random order.

    Of the arguments, it is the longest text of at least four words whose schema restricts only its
    type: any addition would make a shorter value, such as a place or an id, wrong.
    """
    spots = [Spot(place=passage.place, passage=passage) for passage in parts.passages]
    rng.shuffle(spots)
    texts = [
        (len(value), at, name)
        for at, call in enumerate(parts.calls)
        for name, value in (call.arguments or {}).items()
        if isinstance(value, str)
        and len(value.split()) > 3
        and (schema := schema_of(tool_of(base.item.tools, call.name), name))
        and _BINDING.isdisjoint(schema)
    ]
    if texts:
        spots.append(Spot(place="argument", argument=max(texts)[1:]))
    spots += [Spot(place="before"), Spot(place="after"), Spot(place="extra-key")]
    unique = list({spot.place: spot for spot in spots}.values())
    return rng.sample(unique, len(unique))
