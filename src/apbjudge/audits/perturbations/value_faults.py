"""Faults in values: a date, a number, a choice, the object of the task, a source or an id."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from random import Random
from typing import Any, cast

import orjson

from .bases import Base
from .flow_faults import is_described
from .kinds import Change
from .parts import (
    Edit,
    arguments_of,
    as_word,
    case_text,
    everywhere,
    in_text,
    new_number,
    one_of,
    scalars,
)
from .words import name_words, possible_needs, schema_of

WEEKS = 4
LATEST = date.max - timedelta(weeks=2 * WEEKS)
"""A later day, as some write for never, can't be moved."""
_ISO = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_OPEN_END = re.compile(
    r"(?:since|after|not before|no earlier than)\W+(?:\w+\W+){0,2}$", re.IGNORECASE
)


def breach_value(base: Base, rng: Random) -> Change | None:
    """Changes a date, a number or a choice that the query states, wherever the reply has it."""
    sorts = [changes for changes in (_dates(base), _numbers(base), _choices(base)) if changes]
    return one_of(rng, rng.choice(sorts)) if sorts else None


def _values(base: Base) -> Iterator[Any]:
    for call in base.parts.calls:
        yield from scalars(call.arguments)


def _dates(base: Base) -> list[Change]:
    """All dates of the reply moved by four weeks, where the query states each of them.

    A query that names a later month may be met by the moved dates, and gives no occasion.
    """
    query = base.item.query
    texts = [text for text in _values(base) if isinstance(text, str)]
    days = sorted({day for text in texts for found in _ISO.findall(text) if (day := _day(found))})
    if not days or days[-1] > LATEST or not all(_is_stated(day, query) for day in days):
        return []
    step = timedelta(weeks=WEEKS)
    limit = days[-1] + step
    months = [n for n in range(1, 13) if f"{date(2000, n, 1):%B}" in query]
    if limit.year > days[-1].year or any(month > limit.month for month in months):
        return []
    moved = {
        old: new
        for day in days
        for old, new in zip(_written(day), _written(day + step), strict=True)
    }
    pattern = re.compile("|".join(rf"(?<!\d){re.escape(old)}(?!\d)" for old in moved))
    moved_day = f"{days[0] + step} for {days[0]}"
    what = f"every date is {WEEKS} weeks later than the query has it, such as {moved_day}"
    reply = everywhere(base.parts, in_text(pattern, lambda match: moved[match[0]]))
    return [Change(reply=reply, what=what)]


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _written(day: date) -> tuple[str, str, str]:
    """The ways of writing a day that are recognised."""
    return day.isoformat(), f"{day.day} {day:%B}", f"{day:%B} {day.day}"


def _is_stated(day: date, query: str) -> bool:
    """Whether the query has a day, and not as the start of an open span."""
    at = [m.start() for text in _written(day) for m in as_word(text).finditer(query)]
    return bool(at) and not _OPEN_END.search(query[: min(at)])


_UNITS = (
    r"(?:€|%|euros?|EUR|dollars?|USD|pounds?|GBP|per\s?cent|minutes?|hours?|days?|weeks?|months?|"
    r"nights?|packs?|pieces?|copies|kilomet\w+|km|met(?:re|er)s?|kg|kilos?|grams?|pixels?|people|"
    r"persons?|guests?|words?|pages?|studies|items?|credits?|litres?|degrees?|points?|rows?)"
)
_NUMBER = re.compile(rf"(?<![\w.,:/-])(\d[\d,]*(?:\.\d+)?)(?:\s*|-){_UNITS}(?!\w)")
_LEAST = re.compile(
    r"(?:at least|minimum(?: of)?|(?<!no )(?<!not )more than|no(?:t)? less than|above)\W*$",
    re.IGNORECASE,
)
LONGEST_VALUE = 60
"""A longer argument is a text that may say the number for other reasons."""
LEAST_NUMBER = 5
"""Smaller whole numbers may well stand for something else elsewhere in the reply."""


def _numbers(base: Base) -> list[Change]:
    """A number with a unit, raised by half, or halved where the query gives a lower limit."""
    changes = (_other_number(base, stated) for stated in _NUMBER.finditer(base.item.query))
    return [change for change in changes if change is not None]


def _other_number(base: Base, stated: re.Match[str]) -> Change | None:
    text, query = stated[1], base.item.query
    value = float(text.replace(",", ""))
    alone = re.compile(rf"(?<![\w.,:/-]){re.escape(text)}(?![\w:/]|-\d|[.,]\d)")
    if (value.is_integer() and value < LEAST_NUMBER) or len(alone.findall(query)) != 1:
        return None
    if _LEAST.search(query[: stated.start()]):
        new = int(value // 2) if value.is_integer() else round(value / 2, 4)
    else:
        new = int(value + (value + 1) // 2) if value.is_integer() else round(value * 1.5, 4)
    shown = f"{new:,}" if "," in text else f"{new}"

    def edit(leaf: Any) -> Any:
        if isinstance(leaf, str):
            return alone.sub(shown, leaf)
        if isinstance(leaf, int | float) and not isinstance(leaf, bool) and leaf == value:
            return float(new) if isinstance(leaf, float) else new
        return leaf

    if not any(edit(leaf) != leaf and len(str(leaf)) <= LONGEST_VALUE for leaf in _values(base)):
        return None
    what = f"{shown} stands where the query says {stated[0]}"
    return Change(reply=everywhere(base.parts, edit), what=what)


def _choices(base: Base) -> list[Change]:
    """One of the words that a schema allows, where the query names it, for another of them."""
    tools, query = base.item.tools, base.item.query
    changes: list[Change] = []
    for at, name, value in arguments_of(base.parts):
        tool = tools.by_name.get(base.parts.calls[at].name) if tools else None
        allowed: Any = schema_of(tool, name).get("enum") if tool else None
        is_word = isinstance(value, str) and len(value) >= 4 and isinstance(allowed, list)
        if is_word and as_word(value).search(query):
            words = [word for word in cast("list[object]", allowed) if isinstance(word, str)]
            others = [w for w in words if w != value and w.lower() not in query.lower()]
            changes += [_chosen(base, name, value, word) for word in others]
    return changes


def _chosen(base: Base, name: str, value: str, other: str) -> Change:
    in_words = in_text(as_word(value), other.replace("_", " "))
    reply = everywhere(base.parts, lambda leaf: other if leaf == value else in_words(leaf))
    return Change(reply=reply, what=f"{name} is {other!r} where the query says {value!r}")


_PLACES = ("Seville", "Turin", "Gdansk", "Leeds", "Aarhus", "Bergen")
_PEOPLE = ("Marchetti", "Novak", "Brandt", "Kowalska", "Duarte", "Hughes")
_FIRMS = ("Calder & Voss", "Brightwater", "Tamarind Foods", "Holloway Timber")
_SORTS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (frozenset({"city", "town", "station", "place", "port", "destination", "origin"}), _PLACES),
    (frozenset("clinician patient surname employee author doctor person contact".split()), _PEOPLE),
    (frozenset({"customer", "supplier", "company", "vendor", "client"}), _FIRMS),
)
_ID_WORDS = frozenset("id number no account order case ticket file folder customer".split())
_NAME = re.compile(r"[^\W\d_a-z][^\d@/\\]*")
_ID = re.compile(r"(?=\S*\d)(?!\S*\.[A-Za-z]\w{1,3}$)[\w./-]{4,40}")
"""A number or a mix of letters and figures; the name of a file, by its ending, is none."""


def change_goal(base: Base, rng: Random) -> Change | None:
    """Puts another person, place or thing where the reply has the one that the query is about.

    Only what the first call that takes something from the query is about counts as the object
    of the task, and only in the first half of the calls.
    """
    calls = base.parts.calls
    for at, call in enumerate(calls[: (len(calls) + 1) // 2]):
        changes = [
            change
            for name, value in (call.arguments or {}).items()
            if (change := _other_object(base, call.name, name, value, rng)) is not None
        ]
        if changes:
            return rng.choice(changes) if _is_object(base, at) else None
    return None


def _is_object(base: Base, at: int) -> bool:
    """Whether half of the calls or more are about what a call is about, itself among them.

    They pass a value that it passes, or may need what it or such a call yields.
    """
    calls, query = base.parts.calls, base.item.query.lower()
    values = [{v for v in scalars(call.arguments) if isinstance(v, str)} for call in calls]
    about = {n for n in range(len(calls)) if values[at] & values[n]} | {at}
    # texts that stand in the query need no call
    unstated = everywhere(
        base.parts, lambda leaf: "" if isinstance(leaf, str) and leaf.lower() in query else leaf
    )
    needs = possible_needs(unstated, base.item.tools)
    for earlier, later in sorted(needs, key=lambda pair: pair[1]):
        if earlier in about:
            about.add(later)
    return 2 * len(about) >= len(calls)


def _other_object(base: Base, tool: str, name: str, value: Any, rng: Random) -> Change | None:
    query = base.item.query
    if not isinstance(value, str) or not as_word(value).search(query) or _ISO.search(value):
        return None
    other: str | None = None
    if _ID.fullmatch(value) and not _ID_WORDS.isdisjoint(name_words(name)):
        other = new_number(value, rng, case_text(base.item) + base.parts.text)
    elif _NAME.fullmatch(value) and (names := _names_like(base, tool, name)):
        other = rng.choice([n for n in names if n not in query])
    if other is None:
        return None
    reply = everywhere(base.parts, _exchange(value, other))
    return Change(reply=reply, what=f"the plan is about {other!r} instead of {value!r}")


def _exchange(old: str, new: str) -> Edit:
    """Puts one text in the place of another, also where it is passed as a number."""
    in_words = in_text(as_word(old), new)

    def edit(leaf: Any) -> Any:
        is_same = isinstance(leaf, int) and not isinstance(leaf, bool) and str(leaf) == old
        return int(new) if is_same else in_words(leaf)

    return edit


def _names_like(base: Base, tool: str, name: str) -> Sequence[str]:
    """Names of the sort that a parameter takes; none where that is not clear."""
    names = next(
        (of for words in (name_words(name), name_words(tool)) if (of := _sort_of(words))), ()
    )
    has_codes = any(isinstance(v, str) and re.fullmatch(r"[A-Z]{3}", v) for v in _values(base))
    return () if names is _PLACES and has_codes else names


def _sort_of(words: Sequence[str]) -> tuple[str, ...]:
    return next((names for marks, names in _SORTS if not marks.isdisjoint(words)), ())


_NOWHERE = (
    (("mail",), "the {name} named in the e-mail that came yesterday"),
    (("voice", "phone", "call "), "the {name} left in the voice message"),
    (("spreadsheet", "sheet"), "the {name} in the last row of the shared spreadsheet"),
    (("dashboard",), "the {name} shown on the dashboard"),
    (("colleague",), "the {name} that the colleague has noted down"),
)


def unmade_result(base: Base, rng: Random) -> Change | None:
    """Takes a value from a message or result that there is not."""
    parts, tools = base.parts, base.item.tools
    told = f"{case_text(base.item)} {parts.text} {tools.text if tools else ''}".lower()
    sources = [text for marks, text in _NOWHERE if not any(mark in told for mark in marks)]
    changes: list[Change] = []
    for at, name, value in arguments_of(parts):
        if sources and is_described(value, base.item.query):
            text = rng.choice(sources).format(name=name.replace("_", " "))
            what = f"{name} of {parts.place(at)} is {text!r}, which does not exist"
            changes.append(Change(reply=parts.with_argument(at, name, text), what=what))
    return one_of(rng, changes)


_RESULT_ID = re.compile(r"(?!\d{4}-\d\d(?:-\d\d)?$)(?=[\w-]*\d)(?:[A-Za-z]+[-_]?[\w-]*|\d{4,})")


def invented_id(base: Base, rng: Random) -> Change | None:
    """Changes an id that a result has given to one that stands nowhere."""
    item, parts = base.item, base.parts
    # an id that the user gave is no result
    answers = [m for m in item.trajectory if m.get("role") in ("tool", "function")]
    results, taken = orjson.dumps(answers).decode(), case_text(item) + parts.text
    changes: list[Change] = []
    for at, name, value in arguments_of(parts):
        if isinstance(value, str) and _RESULT_ID.fullmatch(value) and value not in item.query:
            other = new_number(value, rng, taken) if value in results else None
            if other is not None:
                what = f"{name} of {parts.place(at)} is {other!r}, which no result has given"
                changes.append(Change(reply=parts.with_argument(at, name, other), what=what))
    return one_of(rng, changes)
