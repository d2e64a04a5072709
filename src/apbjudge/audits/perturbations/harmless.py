"""Harmless changes: a correct plan stays correct."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import orjson

from ...protocols.tool_words import name_words, properties
from ...records import Tool
from .faults import lookup_with_limit, renamed
from .kinds import Change, Makers, Occasion, by_name
from .parts import rearranged, retold, scalars, with_reversed_keys
from .words import is_lookup, possible_needs, stems, vocabulary


def reword(on: Occasion) -> Iterator[Change]:
    """Rewrites the prose of a plan from its calls; adds an opening to thoughts and refusals."""
    parts = on.plan
    if parts.form == "steps" or parts.refusal is not None:
        changed = parts.with_prose(lambda passage: on.rng.choice(on.kind.texts) + passage.text)
        yield Change(changed)
    elif parts.plan:
        plan = retold(parts.calls, on.tools)
        yield from (Change(replace(parts, plan=f"{text}\n{plan}")) for text in on.kind.texts)


def key_order(on: Occasion) -> Iterator[Change]:
    """Reverses the keys of every object in the reply."""
    yield Change(with_reversed_keys(on.plan))


_ORDER = re.compile(
    r"\b(?:first|firstly|secondly|thirdly|lastly|finally|afterwards?|subsequently|previously|"
    r"following|then|next|before|after|once|now|again|found|these|those|step|until|earlier|later|"
    r"already|when|as soon as|(?:begin|start|end|finish)(?:ing)? (?:with|by))\b",
    re.IGNORECASE,
)


def valid_order(on: Occasion) -> Iterator[Change]:
    """Swaps two neighbouring lookups that are independent."""
    parts, tools = on.plan, on.tools
    words = frozenset(re.findall(r"[^\W\d_]+", on.query.lower()))
    # in other languages, words that demand an order are not recognised
    is_english = not words or len(words & vocabulary("english")) >= min(2, 1 + len(words) // 6)
    step_of = [n for n, step in enumerate(parts.steps) for _ in step.calls]
    pairs = pairwise(step_of)
    near = [at for at, (n, m) in enumerate(pairs) if n == m or parts.form == "plan"]
    near = [at for at in near if is_english and _may_move(on, at)]
    bound = possible_needs(parts, tools) if near else ()
    for at in (at for at in near if (at, at + 1) not in bound):
        what = f"{parts.place(at)} and {parts.place(at + 1)}, which are independent, change places"
        order = list(range(len(parts.calls)))
        order[at], order[at + 1] = at + 1, at
        first, second = parts.calls[at : at + 2]
        is_plan = parts.form == "plan"
        swapped = parts.with_calls(at, second).with_calls(at + 1, first)
        yield Change(rearranged(parts, order, tools) if is_plan else swapped, what)


def _may_move(on: Occasion, at: int) -> bool:
    """True if a call and the next one are independent lookups, and no words order them."""
    item, (first, second) = on.base.item, on.plan.calls[at : at + 2]
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
"""Share of common words from which on the descriptions of two tools count as equal."""


def equivalent_tool(on: Occasion) -> Iterator[Change]:
    """Calls another tool with equal parameters that does the same; a distractor does not."""
    parts, known, barred = on.plan, on.checkable, on.base.item.condition.distractors
    signatures = {name: _signature(tool) for name, tool in known.items()}
    for at, call in enumerate(parts.calls):
        for name, tool in known.items() if call.name in known else ():
            is_like = name != call.name and signatures[name] == signatures[call.name]
            if is_like and name not in barred and _does_as(tool, known[call.name]):
                what = f"{parts.place(at)} is made of {name}, which does the same"
                yield Change(renamed(parts, at, name), what)


def _does_as(other: Tool, tool: Tool) -> bool:
    """True if a tool costs no more than another and has a similar description and name."""
    described, required = stems(other.description), stems(tool.description)
    is_alike = len(described & required) >= _LIKENESS * len(described | required) > 0
    if not is_alike or (other.cost or 0) > (tool.cost or 0):
        return False
    for candidate, named in ((other, tool), (tool, other)):
        text = f"{' '.join(name_words(candidate.name))} {candidate.description.lower()}"
        # every word of the other's name, a number too, must occur in this one's texts
        words = {word for word in name_words(named.name) if not is_lookup(word, None)}
        missing = words.difference(re.findall(r"[^\W_]+", text))
        if not all(stems(word) and stems(word) <= stems(text) for word in missing):
            return False
    return True


def _signature(tool: Tool) -> bytes:
    """Names and types of a tool's parameters, without their descriptions, in any order."""
    bare = {
        name: {k: v for k, v in spec.items() if k != "description"}
        for name, spec in properties(tool).items()
    }
    return orjson.dumps([bare, sorted(tool.required)], option=orjson.OPT_SORT_KEYS)


def stated_limit(on: Occasion) -> Iterator[Change]:
    """States a limit in the query that the plan keeps."""
    if limited := lookup_with_limit(on):
        _, limit, case = limited
        yield Change(on.plan, f"the query also says {limit!r}, as is done", case)


MAKERS: Makers = by_name(reword, key_order, valid_order, equivalent_tool, stated_limit)
