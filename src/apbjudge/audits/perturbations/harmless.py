"""Changes that must not matter: what was correct stays so."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

import orjson

from ...records import Form, Tool
from ...rubrics.rubric import Shape
from ..variants import Variant
from .bases import Base
from .dependencies import is_lookup, name_words, possible, properties, stems
from .edits import (
    Change,
    Maker,
    arranged,
    as_word,
    drawn,
    everywhere,
    in_text,
    place,
    scalars,
    seeded,
)
from .guards import leaves_as_is, reads_as_meant
from .plan_faults import LIMIT, limited, with_limit
from .prose import turned
from .rewording import reworded_draft


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmlessKind:
    """One way of changing a plan without harm.

    Attributes:
        name: Unique among the kinds.
        form: Form of the replies that it fits, None for both.
        shapes: Shapes of the rubrics that it fits.
        what: What is done, in one line.
        change: Makes the change.
    """

    name: str
    form: Form | None = None
    shapes: tuple[Shape, ...] = ("flags", "category", "pass")
    what: str
    change: Maker


def reword(base: Base, rng: Random) -> Change | None:
    """Says the prose in other words; calls stay."""
    draft = reworded_draft(base.draft, rng)
    if draft == base.draft:
        return None
    return Change(reply=draft, what="the prose is worded differently, the calls are the same")


def key_order(base: Base, rng: Random) -> Change | None:
    """Reverses the keys of every object in the reply."""
    text = orjson.dumps(turned(base.draft.value), option=orjson.OPT_INDENT_2).decode()
    return Change(reply=text, what="the keys of all objects stand in reverse order")


def valid_order(base: Base, rng: Random) -> Change | None:
    """Swaps two neighbouring lookups that have nothing to do with each other."""
    draft = base.draft
    near = [at for at in _free_pairs(base) if _may_move(base, at)]
    bound = possible(draft, base.item.tools) if near and _is_read(base) else None
    pairs = [at for at in near if bound is not None and (at, at + 1) not in bound]
    if not pairs:
        return None
    at = rng.choice(pairs)
    what = f"{place(draft, at)} and {place(draft, at + 1)}, which are independent, change places"
    if draft.form == "plan":
        order = list(range(len(draft.calls)))
        order[at], order[at + 1] = at + 1, at
        return Change(reply=arranged(draft, order), what=what)
    first, second = draft.calls[at : at + 2]
    return Change(reply=draft.with_calls(at, second).with_calls(at + 1, first), what=what)


def _free_pairs(base: Base) -> Iterator[int]:
    """Places of calls that may change places with the next one as far as the form goes."""
    if base.draft.form == "plan":
        yield from range(len(base.draft.calls) - 1)
        return
    before = 0
    for step in base.draft.steps:
        yield from range(before, before + len(step.calls) - 1)
        before += len(step.calls)


_ORDER = re.compile(
    r"\b(?:first|firstly|secondly|thirdly|lastly|finally|afterwards?|subsequently|previously|"
    r"following|then|next|before|after|once|now|again|found|these|those|step|until|earlier|later|"
    r"already|when|as soon as|(?:begin|start|end|finish)(?:ing)? (?:with|by))\b",
    re.IGNORECASE,
)


def _is_read(base: Base) -> bool:
    """Whether the query is in English, so that words that ask for an order would be known."""
    words = frozenset(re.findall(r"[^\W\d_]+", base.item.query.lower()))
    return not words or len(words & _ENGLISH) >= min(2, 1 + len(words) // 6)


_ENGLISH = frozenset("the a an and of to for in is my me i with please from what all on at".split())


def _may_move(base: Base, at: int) -> bool:
    """Whether a call and the next one are lookups, and nothing speaks of their order."""
    draft, tools = base.draft, base.item.tools
    first, second = draft.calls[at : at + 2]
    if first == second:
        return False
    if not (is_lookup(first.name, tools) and is_lookup(second.name, tools)):
        return False
    if not second.arguments or _ORDER.search(f"{first.reason} {second.reason}"):
        return False
    given = [v for call in (first, second) for v in scalars(call.arguments)]
    if not all(_is_concrete(base, value) for value in given):
        return False
    return not any(_orders(sentence, first.name, second.name) for sentence in _sentences(base))


def _is_concrete(base: Base, value: Any) -> bool:
    """Whether a value needs no earlier result: it is no text, or has no description in it."""
    return not isinstance(value, str) or " " not in value.strip() or value in base.item.query


def _sentences(base: Base) -> list[str]:
    return re.split(r"(?<=[.!?;])\s+", f"{base.item.query} {base.item.system_prompt}")


def _orders(sentence: str, *names: str) -> bool:
    """Whether a sentence sets an order and speaks of one of the tools."""
    words = stems(" ".join(word for name in names for word in name_words(name)))
    return _ORDER.search(sentence) is not None and bool(words & stems(sentence))


LIKENESS = 0.6
"""Share of words that descriptions of two tools must have in common to count as equal."""


def equivalent_tool(base: Base, rng: Random) -> Change | None:
    """Calls another tool with equal parameters that does the same."""
    draft, same = base.draft, _same_tools(base)
    made = [(at, name) for at, call in enumerate(draft.calls) for name in same.get(call.name, ())]
    chosen = drawn(rng, made)
    if chosen is None:
        return None
    at, name = chosen
    is_only = sum(call.name == draft.calls[at].name for call in draft.calls) == 1
    old = as_word(draft.calls[at].name)
    renamed = everywhere(draft, in_text(old, name)) if is_only else draft
    renamed = renamed.with_calls(at, replace(renamed.calls[at], name=name))
    return Change(reply=renamed, what=f"{place(draft, at)} is made of {name}, which does the same")


def _same_tools(base: Base) -> dict[str, list[str]]:
    """By name of a called tool, the others that do the same; distractors do nothing of use."""
    tools, barred = base.item.tools, base.item.condition.distractors
    called = {call.name for call in base.draft.calls}
    alike: defaultdict[bytes, list[_Said]] = defaultdict(list)
    for tool in tools.checkable.values() if tools else ():
        alike[_bare(tool)].append(_said(tool))
    return {
        said.tool.name: [o.tool.name for o in group if o.tool.name not in barred and said.is_as(o)]
        for group in alike.values()
        for said in group
        if said.tool.name in called
    }


@dataclass(frozen=True, slots=True)
class _Said:
    """What a tool is said to do.

    Attributes:
        tool: The tool.
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

    def is_as(self, other: _Said) -> bool:
        """Whether another tool is no dearer, is described alike, and no name sets one apart."""
        if self.tool.name == other.tool.name or (other.tool.cost or 0) > (self.tool.cost or 0):
            return False
        both = len(self.described & other.described)
        is_like = both >= LIKENESS * len(self.described | other.described) > 0
        return is_like and self._names_all_of(other) and other._names_all_of(self)

    def _names_all_of(self, other: _Said) -> bool:
        """Whether every word of the other tool's name, a figure too, is known of this one."""
        missing = other.named - self.words
        return all(stems(word) and stems(word) <= self.stems for word in missing)


def _said(tool: Tool) -> _Said:
    own = name_words(tool.name)
    told = f"{' '.join(own)} {tool.description.lower()}"
    return _Said(
        tool=tool,
        described=stems(tool.description),
        named=frozenset(word for word in own if not is_lookup(word, None)),
        words=frozenset(re.findall(r"[^\W_]+", told)),
        stems=stems(told),
    )


def _bare(tool: Tool) -> bytes:
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
    return Change(
        reply=base.draft,
        case={"query": with_limit(base, at)},
        what=f"the query also says {LIMIT.format(name=base.draft.calls[at].name)!r}, as is done",
    )


HARMLESS: tuple[HarmlessKind, ...] = (
    HarmlessKind(name="reword", what="prose in other words", change=reword),
    HarmlessKind(name="key-order", what="keys in reverse order", change=key_order),
    HarmlessKind(
        name="valid-order",
        shapes=("flags",),
        what="two independent lookups change places",
        change=valid_order,
    ),
    HarmlessKind(
        name="equivalent-tool",
        shapes=("flags",),
        what="a tool with equal parameters that does the same",
        change=equivalent_tool,
    ),
    HarmlessKind(
        name="stated-limit",
        form="plan",
        shapes=("flags",),
        what="the query states a limit that the plan keeps",
        change=stated_limit,
    ),
)
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
    fitting = (kind for kind in HARMLESS if kinds is None or kind.name in kinds)
    made = (_changed(base, kind, seed) for kind in fitting if _fits(base, kind))
    return tuple(variant for variant in made if variant is not None)


def _fits(base: Base, kind: HarmlessKind) -> bool:
    return base.rubric.shape in kind.shapes and kind.form in (None, base.item.form)


def _changed(base: Base, kind: HarmlessKind, seed: int) -> Variant | None:
    change = kind.change(base, seeded(seed, base.name, kind.name))
    if change is None:
        return None
    variant = base.derived(
        "harmless",
        kind.name,
        what=change.what,
        truth=base.truth,
        reply=change.reply,
        case=change.case,
    )
    item = base.read(variant)
    is_sound = reads_as_meant(base, item, change.reply) and leaves_as_is(base, item)
    return variant if is_sound else None
