"""Faults in values that the query states: a date, a number, a choice, the thing it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from random import Random
from typing import Any

from .bases import Base
from .dependencies import name_words, possible, schema_of
from .drafts import Draft
from .edits import Change, Edit, as_word, at_hand, drawn, everywhere, in_text, new_number, scalars

MONTHS: Sequence[str] = (
    "January February March April May June July August September October November December"
).split()
WEEKS = 4
LATEST = date.max - timedelta(weeks=2 * WEEKS)
"""A later day, as some write for never, can't be moved."""
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_MONTH = "|".join(MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(st|nd|rd|th)?\s+({_MONTH})(\s+\d{{4}})?\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\s+(\d{{1,2}})(st|nd|rd|th)?(,?\s+\d{{4}})?\b")
_OPEN_END = re.compile(
    r"(?:since|after|not before|no earlier than)\W+(?:\w+\W+){0,2}$", re.IGNORECASE
)


def breach_value(base: Base, rng: Random) -> Change | None:
    """Changes a date, a number or a choice that the query states, wherever the reply has it."""
    sorts = [found for found in (_dates(base), _numbers(base), _choices(base)) if found]
    return drawn(rng, rng.choice(sorts)) if sorts else None


def _arguments(base: Base) -> Iterator[Any]:
    for call in base.draft.calls:
        yield from scalars(call.arguments)


def _dates(base: Base) -> list[Change]:
    """All dates of the reply moved by four weeks, where the query states what they are."""
    query = base.item.query
    texts = [text for text in _arguments(base) if isinstance(text, str)]
    days = (_as_date(match) for text in texts for match in _ISO.finditer(text))
    found = {day for day in days if day is not None and day < LATEST}
    stated = sorted(day for day in found if _is_stated(day, query))
    earlier = at_hand(base.item).removeprefix(query)
    strange = [day for day in found if day not in stated and day.isoformat() in earlier]
    if not stated or strange or _mentions_later(stated[-1], query):
        return []
    day, moved = stated[0], stated[0] + timedelta(weeks=WEEKS)
    what = f"every date is {WEEKS} weeks later than the query has it, such as {moved} for {day}"
    return [Change(reply=_shifted(base.draft, day.year), what=what)]


def _as_date(found: re.Match[str]) -> date | None:
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None


def _is_stated(day: date, query: str) -> bool:
    month = MONTHS[day.month - 1]
    listed = r"(?:[\s,]|st|nd|rd|th|and|to|till|until|or|of|-|–|[A-Z][a-z]+day|\d)*?"
    forms = rf"\b{day.day}{listed}\s*{month}|{month}\s+{day.day}\b|{day.isoformat()}"
    found = re.search(forms, query)
    return found is not None and not _OPEN_END.search(query[: found.start()])


def _mentions_later(day: date, query: str) -> bool:
    """Whether the query has a later date, so that a moved one might still lie within a span."""
    limit = day + timedelta(weeks=WEEKS)
    months = [MONTHS.index(m) + 1 for m in re.findall(_MONTH, query)]
    return any(month > limit.month for month in months) or limit.year > day.year


def _shifted(draft: Draft, year: int) -> Draft:
    step = timedelta(weeks=WEEKS)

    def iso(found: re.Match[str]) -> str:
        day = _as_date(found)
        return (day + step).isoformat() if day and day < LATEST else found[0]

    def worded(day: int, month: str, given: str | None) -> date | None:
        try:
            return date(int(given or year), MONTHS.index(month) + 1, day) + step
        except (ValueError, OverflowError):
            return None

    def day_first(found: re.Match[str]) -> str:
        new = worded(int(found[1]), found[3], found[4])
        return f"{new.day} {MONTHS[new.month - 1]}{_year(new, found[4])}" if new else found[0]

    def month_first(found: re.Match[str]) -> str:
        new = worded(int(found[2]), found[1], (found[4] or "").strip(" ,"))
        return f"{MONTHS[new.month - 1]} {new.day}{_year(new, found[4])}" if new else found[0]

    for pattern, made in ((_ISO, iso), (_DAY_FIRST, day_first), (_MONTH_FIRST, month_first)):
        draft = everywhere(draft, in_text(pattern, made))
    return draft


def _year(day: date, given: str | None) -> str:
    return re.sub(r"\d{4}", str(day.year), given) if given else ""


_UNITS = (
    r"(?:€|%|euros?|EUR|dollars?|USD|pounds?|GBP|per\s?cent|minutes?|hours?|days?|weeks?|months?|"
    r"nights?|packs?|pieces?|copies|kilomet\w+|km|met(?:re|er)s?|kg|kilos?|grams?|pixels?|people|"
    r"persons?|guests?|words?|pages?|studies|items?|credits?|litres?|degrees?|points?|rows?)"
)
_NUMBER = rf"(?<![\w.,:/-])(\d[\d,]*(?:\.\d+)?)(?:\s*|-){_UNITS}(?!\w)"
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
    query = base.item.query
    found = list(re.finditer(_NUMBER, query))
    made = (_other_number(base, match) for match in found)
    return [change for change in made if change is not None]


def _other_number(base: Base, stated: re.Match[str]) -> Change | None:
    text, query = stated[1], base.item.query
    value = float(text.replace(",", ""))
    alone = re.compile(rf"(?<![\w.,:/-]){re.escape(text)}(?![\w:/]|-\d|[.,]\d)")
    if (value.is_integer() and value < LEAST_NUMBER) or len(alone.findall(query)) != 1:
        return None
    is_lower = _LEAST.search(query[: stated.start()]) is not None
    new = _half(value) if is_lower else _raised(value)
    shown = f"{new:,}" if "," in text else f"{new}"

    def edit(leaf: Any) -> Any:
        if isinstance(leaf, str):
            return alone.sub(shown, leaf)
        if isinstance(leaf, int | float) and not isinstance(leaf, bool) and leaf == value:
            return float(new) if isinstance(leaf, float) else new
        return leaf

    draft = everywhere(base.draft, edit)
    if not any(edit(leaf) != leaf and len(str(leaf)) <= LONGEST_VALUE for leaf in _arguments(base)):
        return None
    return Change(reply=draft, what=f"{shown} stands where the query says {stated[0]}")


def _raised(value: float) -> float:
    return int(value + (value + 1) // 2) if value.is_integer() else round(value * 1.5, 4)


def _half(value: float) -> float:
    return int(value // 2) if value.is_integer() else round(value / 2, 4)


def _choices(base: Base) -> list[Change]:
    """One of the words that a schema allows, where the query names it, for another of them."""
    tools, query = base.item.tools, base.item.query
    made: list[Change] = []
    for call in base.draft.calls:
        tool = tools.by_name.get(call.name) if tools else None
        for name, value in (call.arguments or {}).items() if tool else ():
            allowed: Any = schema_of(tool, name).get("enum") if tool else None
            if _is_choice(value, allowed, query):
                others = [w for w in allowed if w != value and isinstance(w, str)]
                unsaid = [w for w in others if w.lower() not in query.lower()]
                made += [_chosen(base, name, value, other) for other in unsaid]
    return made


def _is_choice(value: Any, allowed: Any, query: str) -> bool:
    is_word = isinstance(value, str) and len(value) >= 4 and isinstance(allowed, list)
    return is_word and as_word(value).search(query) is not None


def _chosen(base: Base, name: str, value: str, other: str) -> Change:
    word, said = as_word(value), other.replace("_", " ")

    def edit(leaf: Any) -> Any:
        if leaf == value:
            return other
        return word.sub(said, leaf) if isinstance(leaf, str) else leaf

    what = f"{name} is {other!r} where the query says {value!r}"
    return Change(reply=everywhere(base.draft, edit), what=what)


_PLACES = ("Seville", "Turin", "Gdansk", "Leeds", "Aarhus", "Bergen")
_PEOPLE = ("Marchetti", "Novak", "Brandt", "Kowalska", "Duarte", "Hughes")
_FIRMS = ("Calder & Voss", "Brightwater", "Tamarind Foods", "Holloway Timber")
_SORTS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (frozenset({"city", "town", "station", "place", "port", "destination", "origin"}), _PLACES),
    (
        frozenset("clinician patient surname employee author doctor person contact".split()),
        _PEOPLE,
    ),
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
    calls = base.draft.calls
    for at, call in enumerate(calls[: (len(calls) + 1) // 2]):
        given = list((call.arguments or {}).items())
        made = [
            c for name, value in given for c in _other_object(base, call.name, name, value, rng)
        ]
        if made:
            return rng.choice(made) if _is_object(base, at) else None
    return None


def _is_object(base: Base, at: int) -> bool:
    """Whether half of the calls or more are about what a call is about, itself among them.

    They pass a value that it passes, or may need what it or such a call yields.
    """
    draft = base.draft
    given = _texts(draft.calls[at].arguments)
    about = {n for n, call in enumerate(draft.calls) if given & _texts(call.arguments)} | {at}
    open_ones = everywhere(draft, _unless_in(base.item.query.lower()))
    for earlier, later in sorted(possible(open_ones, base.item.tools), key=lambda pair: pair[1]):
        if earlier in about:
            about.add(later)
    return 2 * len(about) >= len(draft.calls)


def _unless_in(query: str) -> Edit:
    """Empties texts that stand in the query, since they need no call."""
    return lambda leaf: "" if isinstance(leaf, str) and leaf.lower() in query else leaf


def _texts(value: Any) -> set[str]:
    return {leaf for leaf in scalars(value) if isinstance(leaf, str)}


def _other_object(base: Base, tool: str, name: str, value: Any, rng: Random) -> Iterator[Change]:
    query = base.item.query
    if not isinstance(value, str) or not as_word(value).search(query) or _ISO.search(value):
        return
    other: str | None = None
    if _ID.fullmatch(value) and not _ID_WORDS.isdisjoint(name_words(name)):
        other = new_number(value, rng, at_hand(base.item) + base.draft.text)
    elif _NAME.fullmatch(value) and (names := _names_like(base, tool, name)):
        other = rng.choice([n for n in names if n not in query])
    if other is not None:
        draft = everywhere(base.draft, _exchange(value, other))
        yield Change(reply=draft, what=f"the plan is about {other!r} instead of {value!r}")


def _exchange(old: str, new: str) -> Edit:
    """Puts one text in the place of another, also where it is passed as a number."""
    in_words = in_text(as_word(old), new)

    def edit(leaf: Any) -> Any:
        is_same = isinstance(leaf, int) and not isinstance(leaf, bool) and str(leaf) == old
        return int(new) if is_same else in_words(leaf)

    return edit


def _names_like(base: Base, tool: str, name: str) -> tuple[str, ...]:
    """Names of the sort that a parameter takes; none where that is not clear."""
    has_codes = any(isinstance(v, str) and re.fullmatch(r"[A-Z]{3}", v) for v in _arguments(base))
    sorts = (_sort_of(words) for words in (name_words(name), name_words(tool)))
    names = next((names for names in sorts if names), ())
    return () if names is _PLACES and has_codes else names


def _sort_of(words: Sequence[str]) -> tuple[str, ...]:
    return next((names for marks, names in _SORTS if not marks.isdisjoint(words)), ())
