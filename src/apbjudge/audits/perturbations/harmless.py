"""Changes that must not matter: what was correct stays so."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any, cast

import orjson

from ...records import Tool
from ..variants import Variant
from .bases import Base
from .faults import lookup_with_limit, renamed
from .kinds import Change, Kind, Maker, kinds_of, leaves_as_is, reads_as_meant, variants
from .parts import one_of, rearranged, retold, scalars, with_reversed_keys
from .words import is_lookup, name_words, possible_needs, properties, stems, vocabulary

HARMLESS = kinds_of("harmless")
"""Every way of changing a plan without harm."""


def harmless(base: Base, *, seed: int, kinds: Collection[str] | None = None) -> tuple[Variant, ...]:
    """Changes a base in every way that must not matter.

    Args:
        base: A plan taken as correct.
        seed: Decides between several places; equal seeds give equal variants.
        kinds: Names of kinds, None for all.

    Returns:
        Variants of role ``harmless``, at most one of each kind, in the order of HARMLESS. A kind
        is left out where the base gives no occasion for it, or where code finds anything else
        in the variant than in the base.
    """
    parent = base.variant
    changed = variants(
        base, "harmless", "harmless", _MAKERS, base, parent=parent, seed=seed, kinds=kinds
    )
    return tuple(
        variant
        for _, change, variant in changed
        if reads_as_meant(base, variant, change.reply) and leaves_as_is(base, variant)
    )


def reword(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Retells the prose of a plan from its calls; opens thoughts and refusals in another way."""
    parts = base.parts
    if parts.form == "plan" and parts.refusal is None:
        plan = f"{rng.choice(kind.texts)}\n{retold(parts.calls, base.item.tools)}"
        return Change(replace(parts, plan=plan)) if parts.plan else None
    changed = parts.with_prose(lambda passage: rng.choice(kind.texts) + passage.text)
    return Change(changed) if changed != parts else None


def key_order(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Reverses the keys of every object in the reply."""
    return Change(with_reversed_keys(base.parts))


_ORDER = re.compile(
    r"\b(?:first|firstly|secondly|thirdly|lastly|finally|afterwards?|subsequently|previously|"
    r"following|then|next|before|after|once|now|again|found|these|those|step|until|earlier|later|"
    r"already|when|as soon as|(?:begin|start|end|finish)(?:ing)? (?:with|by))\b",
    re.IGNORECASE,
)


def valid_order(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Swaps two neighbouring lookups that have nothing to do with each other."""
    parts, tools = base.parts, base.item.tools
    words = frozenset(re.findall(r"[^\W\d_]+", base.item.query.lower()))
    # in another language, words that ask for an order would not be known
    is_english = not words or len(words & vocabulary("english")) >= min(2, 1 + len(words) // 6)
    step_of = [n for n, step in enumerate(parts.steps) for _ in step.calls]
    pairs = pairwise(step_of)
    near = [at for at, (n, m) in enumerate(pairs) if n == m or parts.form == "plan"]
    near = [at for at in near if is_english and _may_move(base, at)]
    bound = possible_needs(parts, tools) if near else ()
    at = one_of(rng, [at for at in near if (at, at + 1) not in bound])
    if at is None:
        return None
    what = f"{parts.place(at)} and {parts.place(at + 1)}, which are independent, change places"
    if parts.form == "plan":
        order = list(range(len(parts.calls)))
        order[at], order[at + 1] = at + 1, at
        return Change(rearranged(parts, order, tools), what)
    first, second = parts.calls[at : at + 2]
    return Change(parts.with_calls(at, second).with_calls(at + 1, first), what)


def _may_move(base: Base, at: int) -> bool:
    """Whether a call and the next one are lookups of their own, and no words order them."""
    item, (first, second) = base.item, base.parts.calls[at : at + 2]
    if first == second or not second.arguments:
        return False
    if not all(is_lookup(call.name, item.tools) for call in (first, second)):
        return False
    if _ORDER.search(f"{first.reason} {second.reason}"):
        return False
    values = [v for call in (first, second) for v in scalars(call.arguments) if isinstance(v, str)]
    if any(" " in value.strip() and value not in item.query for value in values):
        return False  # a description, which may need an earlier result
    names = stems(" ".join([*name_words(first.name), *name_words(second.name)]))
    texts = re.split(r"(?<=[.!?;])\s+", f"{item.query} {item.system_prompt}")
    return not any(_ORDER.search(text) and names & stems(text) for text in texts)


_LIKENESS = 0.6
"""Share of words that descriptions of two tools must have in common to count as equal."""


def equivalent_tool(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Calls another tool with equal parameters that does the same; a distractor does not."""
    parts, tools, barred = base.parts, base.item.tools, base.item.condition.distractors
    alike: defaultdict[bytes, list[_Purpose]] = defaultdict(list)
    for tool in tools.checkable.values() if tools else ():
        alike[_signature(tool)].append(_Purpose.of(tool))
    purposes = {one.tool.name: (one, group) for group in alike.values() for one in group}
    offered = [
        (at, other.tool.name)
        for at, call in enumerate(parts.calls)
        if call.name in purposes
        for one, group in [purposes[call.name]]
        for other in group
        if other.tool.name not in barred and one.is_as(other)
    ]
    if not offered:
        return None
    at, name = rng.choice(offered)
    what = f"{parts.place(at)} is made of {name}, which does the same"
    return Change(renamed(parts, at, name), what)


@dataclass(frozen=True, slots=True)
class _Purpose:
    """What a tool is said to do.

    Words of its name (those for looking something up left out), stems of its description, words
    and stems of both.
    """

    tool: Tool
    named: frozenset[str]
    described: frozenset[str]
    words: frozenset[str]
    stems: frozenset[str]

    @classmethod
    def of(cls, tool: Tool) -> _Purpose:
        own = name_words(tool.name)
        text = f"{' '.join(own)} {tool.description.lower()}"
        named = frozenset(word for word in own if not is_lookup(word, None))
        words = frozenset(re.findall(r"[^\W_]+", text))
        return cls(tool, named, stems(tool.description), words, stems(text))

    def is_as(self, other: _Purpose) -> bool:
        """Whether another tool is no dearer, is described alike, and no name sets one apart."""
        if self.tool.name == other.tool.name or (other.tool.cost or 0) > (self.tool.cost or 0):
            return False
        both = len(self.described & other.described)
        is_like = both >= _LIKENESS * len(self.described | other.described) > 0
        return is_like and self._names_all_of(other) and other._names_all_of(self)

    def _names_all_of(self, other: _Purpose) -> bool:
        """Whether every word of the other tool's name, a figure too, is known of this one."""
        missing = other.named - self.words
        return all(stems(word) and stems(word) <= self.stems for word in missing)


def _signature(tool: Tool) -> bytes:
    """Names and types of a tool's parameters, without their descriptions, in any order."""
    bare = {
        name: {k: v for k, v in cast("dict[str, Any]", spec).items() if k != "description"}
        for name, spec in properties(tool).items()
        if isinstance(spec, dict)
    }
    return orjson.dumps([bare, sorted(tool.required)], option=orjson.OPT_SORT_KEYS)


def stated_limit(base: Base, kind: Kind, rng: Random) -> Change | None:
    """States a limit in the query that the plan keeps."""
    limited = lookup_with_limit(base)
    if limited is None:
        return None
    _, limit, case = limited
    return Change(base.parts, f"the query also says {limit!r}, as is done", case)


_MAKERS: dict[str, Maker[Base]] = {
    maker.__name__.replace("_", "-"): maker
    for maker in (reword, key_order, valid_order, equivalent_tool, stated_limit)
}
