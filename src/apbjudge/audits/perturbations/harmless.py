"""Changes that must not matter: what was correct stays so."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

import orjson

from ...records import Tool
from ..variants import Variant
from .bases import Base
from .checks import leaves_as_is, reads_as_meant
from .flow_faults import LIMIT, limited, with_limit
from .kinds import Change, Maker, kinds_of, variant_of
from .parts import (
    as_word,
    everywhere,
    in_text,
    json_text,
    one_of,
    rearranged,
    retold,
    reversed_keys,
    scalars,
    seeded,
)
from .words import is_lookup, name_words, possible_needs, properties, stems

HARMLESS = kinds_of("harmless")
"""Every way of changing a plan without harm."""

OPENINGS = (
    "To put it briefly: ",
    "In short: ",
    "In other words: ",
)


def reword(base: Base, rng: Random) -> Change | None:
    """Retells the prose of a plan from its calls; opens thoughts and refusals in another way."""
    parts = base.parts
    if parts.form == "plan" and parts.refusal is None:
        calls, opening = parts.calls, rng.choice(OPENINGS)
        changed = replace(parts, plan=opening + "\n" + retold(calls, base.item.tools))
        return Change(reply=changed) if parts.plan else None
    changed = parts.with_prose(lambda passage: rng.choice(OPENINGS) + passage.text)
    return Change(reply=changed) if changed != parts else None


def key_order(base: Base, rng: Random) -> Change | None:
    """Reverses the keys of every object in the reply."""
    return Change(reply=json_text(reversed_keys(base.parts.value)))


def valid_order(base: Base, rng: Random) -> Change | None:
    """Swaps two neighbouring lookups that have nothing to do with each other."""
    parts = base.parts
    near = [at for at in _neighbours(base) if _may_move(base, at)]
    if not near or not _is_english(base.item.query):
        return None
    bound = possible_needs(parts, base.item.tools)
    at = one_of(rng, [at for at in near if (at, at + 1) not in bound])
    if at is None:
        return None
    what = f"{parts.place(at)} and {parts.place(at + 1)}, which are independent, change places"
    if parts.form == "plan":
        order = list(range(len(parts.calls)))
        order[at], order[at + 1] = at + 1, at
        return Change(reply=rearranged(parts, order, base.item.tools), what=what)
    first, second = parts.calls[at : at + 2]
    return Change(reply=parts.with_calls(at, second).with_calls(at + 1, first), what=what)


def _neighbours(base: Base) -> Iterator[int]:
    """Places of calls that may change places with the next one as far as the form goes."""
    if base.parts.form == "plan":
        yield from range(len(base.parts.calls) - 1)
        return
    before = 0
    for step in base.parts.steps:
        yield from range(before, before + len(step.calls) - 1)
        before += len(step.calls)


_ORDER = re.compile(
    r"\b(?:first|firstly|secondly|thirdly|lastly|finally|afterwards?|subsequently|previously|"
    r"following|then|next|before|after|once|now|again|found|these|those|step|until|earlier|later|"
    r"already|when|as soon as|(?:begin|start|end|finish)(?:ing)? (?:with|by))\b",
    re.IGNORECASE,
)
_ENGLISH = frozenset("the a an and of to for in is my me i with please from what all on at".split())


def _is_english(query: str) -> bool:
    """Whether words that ask for an order would be known."""
    words = frozenset(re.findall(r"[^\W\d_]+", query.lower()))
    return not words or len(words & _ENGLISH) >= min(2, 1 + len(words) // 6)


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
    told = re.split(r"(?<=[.!?;])\s+", f"{item.query} {item.system_prompt}")
    return not any(_ORDER.search(text) and names & stems(text) for text in told)


LIKENESS = 0.6
"""Share of words that descriptions of two tools must have in common to count as equal."""


def equivalent_tool(base: Base, rng: Random) -> Change | None:
    """Calls another tool with equal parameters that does the same."""
    parts, same = base.parts, _same_tools(base)
    chosen = one_of(
        rng, [(at, name) for at, call in enumerate(parts.calls) for name in same.get(call.name, ())]
    )
    if chosen is None:
        return None
    at, name = chosen
    old = parts.calls[at].name
    is_only = sum(call.name == old for call in parts.calls) == 1
    renamed = everywhere(parts, in_text(as_word(old), name)) if is_only else parts
    renamed = renamed.with_calls(at, replace(renamed.calls[at], name=name))
    what = f"{parts.place(at)} is made of {name}, which does the same"
    return Change(reply=renamed, what=what)


def _same_tools(base: Base) -> dict[str, list[str]]:
    """By name of a called tool, the others that do the same; distractors do nothing of use."""
    tools, barred = base.item.tools, base.item.condition.distractors
    called = {call.name for call in base.parts.calls}
    alike: defaultdict[bytes, list[_Purpose]] = defaultdict(list)
    for tool in tools.checkable.values() if tools else ():
        alike[_signature(tool)].append(_Purpose.of(tool))
    return {
        one.tool.name: [o.tool.name for o in group if o.tool.name not in barred and one.is_as(o)]
        for group in alike.values()
        for one in group
        if one.tool.name in called
    }


@dataclass(frozen=True, slots=True)
class _Purpose:
    """What a tool is said to do.

    Attributes:
        described: Stems of its description.
        named: Words of its name, those for looking something up left out.
        words: Words of name and description.
        stems: Stems of these.
    """

    tool: Tool
    described: frozenset[str]
    named: frozenset[str]
    words: frozenset[str]
    stems: frozenset[str]

    @classmethod
    def of(cls, tool: Tool) -> _Purpose:
        own = name_words(tool.name)
        told = f"{' '.join(own)} {tool.description.lower()}"
        return cls(
            tool=tool,
            described=stems(tool.description),
            named=frozenset(word for word in own if not is_lookup(word, None)),
            words=frozenset(re.findall(r"[^\W_]+", told)),
            stems=stems(told),
        )

    def is_as(self, other: _Purpose) -> bool:
        """Whether another tool is no dearer, is described alike, and no name sets one apart."""
        if self.tool.name == other.tool.name or (other.tool.cost or 0) > (self.tool.cost or 0):
            return False
        both = len(self.described & other.described)
        is_like = both >= LIKENESS * len(self.described | other.described) > 0
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


def stated_limit(base: Base, rng: Random) -> Change | None:
    """States a limit in the query that the plan keeps."""
    at = limited(base)
    if at is None:
        return None
    limit = LIMIT.format(name=base.parts.calls[at].name)
    return Change(
        reply=base.parts,
        case={"query": with_limit(base, at)},
        what=f"the query also says {limit!r}, as is done",
    )


_MAKERS: Mapping[str, Maker] = {
    "reword": reword,
    "key-order": key_order,
    "valid-order": valid_order,
    "equivalent-tool": equivalent_tool,
    "stated-limit": stated_limit,
}


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
    return tuple(_changed(base, seed, kinds))


def _changed(base: Base, seed: int, kinds: Collection[str] | None) -> Iterator[Variant]:
    for kind in HARMLESS:
        if not kind.fits(base) or (kinds is not None and kind.name not in kinds):
            continue
        change = _MAKERS[kind.name](base, seeded(seed, base.name, kind.name))
        if change is None:
            continue
        variant = variant_of(base, "harmless", kind, change, truth=base.truth)
        item = base.read(variant)
        if reads_as_meant(base, item, change.reply) and leaves_as_is(base, item):
            yield variant
