"""Likeness of two tools, by which one might serve in place of the other."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, cast

from ...protocols.tool_words import name_words
from ...records import Tool
from ...records.items import PUBLISHED_ENDS
from ...records.parameters import COERCIBLE

LIKE = 0.5
"""Likeness from which a tool might serve in place of another."""

_WORD = re.compile(r"[^\W\d_]{3,}")
_STOP = frozenset(
    "the and for from with that this given all any are its into onto over about such based by via "
    "can has have will not use used using tool tools function api call calls returns return".split()
)
_LEARNING = (
    "get retrieve fetch obtain read look lookup search find query list show view see describe",
    "calculate compute estimate determine",
    "analyze analyse evaluate assess",
    "predict forecast",
    "check verify validate confirm inspect",
    "track monitor watch follow",
)
_CHANGING = (
    "create make add generate build compose write",
    "update modify change edit adjust set revise",
    "delete remove cancel erase revoke",
    "book reserve order buy purchase arrange",
    "send deliver dispatch submit post forward transmit",
    "convert translate transform",
)
_VERBS = tuple(tuple(verbs.split()) for verbs in (*_LEARNING, *_CHANGING))
"""Verbs that begin the names of tools, grouped by similar meaning."""
_FILLERS = frozenset("a an by data details for from in info information of on the to with".split())
_GENERAL = frozenset("bash browser code google internet python shell sql terminal web".split())
"""Words in names of tools that may serve nearly any purpose."""


def stems(text: str) -> frozenset[str]:
    """The words of a text that carry meaning, singular, cut to six letters."""
    words = (word.lower() for word in _WORD.findall(text))
    return frozenset(re.sub(r"(?<!s)s$", "", word)[:6] for word in words if word not in _STOP)


@lru_cache(maxsize=8192)
def _words(name: str, description: str) -> frozenset[str]:
    return stems(f"{' '.join(name_words(name))} {description}")


def likeness(tool: Tool, *others: Tool) -> float:
    """Share of words in name and description that two tools have in common, 0 to 1 (Jaccard).

    Of several others the most similar one counts.
    """
    ours, most = _words(tool.name, tool.description), 0.0
    for other in others:
        theirs = _words(other.name, other.description)
        if both := len(ours & theirs):
            most = max(most, both / (len(ours) + len(theirs) - both))
    return most


def is_same(tool: Tool, other: Tool) -> bool:
    """True if two tools differ only in their names: equal parameters, equal words otherwise."""
    if tool.parameters != other.parameters:
        return False
    texts = {" ".join(each.description.casefold().split()) for each in (tool, other)}
    return len(texts) == 1 and texts != {""}


def is_like(tool: Tool, other: Tool) -> bool:
    """True if two tools are much alike in words, or have names of the same words."""
    is_near = likeness(tool, other) >= LIKE or is_same(tool, other)
    return is_near or set(name_words(tool.name)) == set(name_words(other.name))


def synonyms(verb: str) -> tuple[str, ...]:
    """The verbs of tools' names that mean nearly the same as this verb, which is included."""
    return next((verbs for verbs in _VERBS if verb in verbs), ())


def in_style_of(name: str, words: Sequence[str]) -> str:
    """Words joined in the style of a name."""
    titled = [word.title() for word in words]
    style = style_of(name)
    if style in ("PascalCase", "camelCase"):
        return "".join(titled if name[0].isupper() else [words[0], *titled[1:]])
    joined = _MARKS.get(style, "_").join(titled if name[0].isupper() else words)
    return joined.upper() if name.isupper() else joined


_MARKS = {"snake_case": "_", "kebab-case": "-", "dotted.case": "."}


def style_of(name: str) -> str:
    """The naming style of a name of several words, such as ``snake_case``; empty for one word."""
    style = next((style for style, mark in _MARKS.items() if mark in name), "")
    if style or not re.search(r"[a-z0-9][A-Z]", name):
        return style
    return "PascalCase" if name[0].isupper() else "camelCase"


@lru_cache(maxsize=8192)
def object_words(name: str) -> frozenset[str]:
    """The object of a tool, by its name: stems of all words except verbs and fillers."""
    first, *others = name_words(name) or [""]
    words = others if synonyms(first) else [first, *others]
    return stems(" ".join(word for word in words if word not in _FILLERS))


def does_work(name: str, ends: Collection[str] | None = None) -> bool:
    """True if a tool does more than note a thought or end the task.

    Args:
        name: The tool's.
        ends: Names of those that end it; None if the source does not say, as published splits,
            which cases are built for, do not.
    """
    ends = PUBLISHED_ENDS if ends is None else ends
    return name not in ends and "think" not in name_words(name)


def may_serve(tool: Tool, other: Tool) -> bool:
    """True if a tool might do another's work, as far as words tell.

    Either the two are alike, or the name or description of the first mentions all objects of the
    other and their verbs do not differ. If the other's name has no object, any tool might.
    """
    if is_like(tool, other) or not _GENERAL.isdisjoint(name_words(tool.name)):
        return True
    spoken_of = object_words(tool.name) | stems(tool.description)
    return object_words(other.name) <= spoken_of and _action(tool.name) == _action(other.name)


def does_learn(name: str) -> bool:
    """True if a tool obtains information, by the verb of its name, and changes nothing."""
    first = _group(name)
    return first is not None and first < len(_LEARNING)


def _action(name: str) -> int:
    """Index of the group of the name's verb; all groups of learning something count as one."""
    first = _group(name) or 0
    return 0 if first < len(_LEARNING) else first


def _group(name: str) -> int | None:
    """Index of the group of the name's verb; None if none has it."""
    words = name_words(name)
    return next((i for word in words for i, verbs in enumerate(_VERBS) if word in verbs), None)


def definition_of(tool: Tool) -> dict[str, Any]:
    """The definition of a tool as cases have it, whatever its source called the fields."""
    fields = {
        "name": tool.name,
        "description": tool.description,
        "parameters": _without_marks(tool.parameters),
        "cost": tool.cost,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _without_marks(schema: Any) -> Any:
    """A schema without the keys that only our reader adds."""
    if isinstance(schema, dict):
        parts = cast("dict[str, Any]", schema).items()
        return {
            key: _without_marks(part) if isinstance(part, dict | list) else part
            for key, part in parts
            if key != COERCIBLE
        }
    if isinstance(schema, list):
        return [_without_marks(part) for part in cast("list[Any]", schema)]
    return schema
