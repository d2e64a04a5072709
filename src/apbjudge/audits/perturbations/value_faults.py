"""Faults in values: a date, a number, a choice, the object of the task, a source or an id."""

from __future__ import annotations

import re
from calendar import month_name
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, cast

import orjson

from ...protocols.tool_words import name_words
from .kinds import Change, Occasion
from .parts import Edit, as_word, case_text, everywhere, in_text, new_number, scalars
from .words import possible_needs, table, vocabulary


def is_described(value: Any, query: str) -> bool:
    """True if a value is in words and not in the query."""
    is_text = isinstance(value, str) and " " in value.strip() and value not in query
    return is_text and value[:1].islower()


def _values(on: Occasion) -> list[Any]:
    return [value for call in on.plan.calls for value in scalars(call.arguments)]


def breach_value(on: Occasion) -> Iterator[Change]:
    """Changes a date, a number or a choice of the query, everywhere in the reply."""
    sorts = [list(of_sort(on)) for of_sort in (_dates, _numbers, _choices)]
    offered = [changes for changes in sorts if changes]
    yield from on.rng.choice(offered) if offered else ()


_WEEKS = 4
_LATEST = date.max - timedelta(weeks=2 * _WEEKS)
"""Latest day that can be moved; some write a later one for "never"."""
_ISO = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_OPEN_END = re.compile(
    r"(?:since|after|not before|no earlier than)\W+(?:\w+\W+){0,2}$", re.IGNORECASE
)


def _dates(on: Occasion) -> Iterator[Change]:
    """Moves all dates of the reply by four weeks, if the query states each of them.

    Recognises only dates such as 2026-08-14: with a month in words, in query or reply, it yields
    nothing.
    """
    query, step = on.query, timedelta(weeks=_WEEKS)
    values = [value for value in _values(on) if isinstance(value, str)]
    days = sorted({day for text in values for iso in _ISO.findall(text) if (day := _day(iso))})
    if not days or days[-1] > _LATEST or (days[-1] + step).year > days[-1].year:
        return
    if any(month in text for month in month_name[1:] for text in (query, on.plan.text)):
        return
    stated = {match[0]: query[: match.start()] for match in reversed([*_ISO.finditer(query)])}
    if any(_OPEN_END.search(stated.get(f"{day}", "after ")) for day in days):
        return
    moved = {f"{day}": f"{day + step}" for day in days}
    edit = in_text(_ISO, lambda match: moved.get(match[0], match[0]))
    example = f"{days[0] + step} for {days[0]}"
    what = f"every date is {_WEEKS} weeks later than the query has it, such as {example}"
    yield Change(everywhere(on.plan, edit), what)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


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
_LONGEST_VALUE = 60
"""Largest length of an argument: a longer one is a text, which may contain the number by chance."""
_LEAST_NUMBER = 5
"""Smallest whole number: smaller ones often mean something else elsewhere in the reply."""


def _numbers(on: Occasion) -> Iterator[Change]:
    """Raises a number with a unit by half, or halves it if the query states it as a minimum."""
    query = on.query
    for stated in _NUMBER.finditer(query):
        text = stated[1]
        value = float(text.replace(",", ""))
        alone = re.compile(rf"(?<![\w.,:/-]){re.escape(text)}(?![\w:/]|-\d|[.,]\d)")
        if (value.is_integer() and value < _LEAST_NUMBER) or len(alone.findall(query)) != 1:
            continue
        if _LEAST.search(query[: stated.start()]):
            new = int(value // 2) if value.is_integer() else round(value / 2, 4)
        else:
            new = int(value + (value + 1) // 2) if value.is_integer() else round(value * 1.5, 4)
        text_now = f"{new:,}" if "," in text else f"{new}"
        edit = _exchange(alone, text_now, value)
        if any(edit(leaf) != leaf and len(str(leaf)) <= _LONGEST_VALUE for leaf in _values(on)):
            what = f"{text_now} stands where the query says {stated[0]}"
            yield Change(everywhere(on.plan, edit), what)


def _exchange(pattern: re.Pattern[str], text: str, old: float | None) -> Edit:
    """An edit that replaces a text, also if it is passed as a number."""
    in_words, digits = in_text(pattern, text), text.replace(",", "")

    def edit(leaf: Any) -> Any:
        if isinstance(leaf, bool) or not isinstance(leaf, int | float) or leaf != old:
            return in_words(leaf)
        return float(digits) if isinstance(leaf, float) else int(digits)

    return edit


def _choices(on: Occasion) -> Iterator[Change]:
    """Replaces a word that the schema allows and the query names by another allowed word."""
    query = on.query
    for _, _, name, value, schema in on.arguments:
        allowed = schema.get("enum")
        if not isinstance(value, str) or len(value) < 4 or not isinstance(allowed, list):
            continue
        if not as_word(value).search(query):
            continue
        for other in cast("list[object]", allowed):
            if isinstance(other, str) and other != value and other.lower() not in query.lower():
                what = f"{name} is {other!r} where the query says {value!r}"
                yield Change(everywhere(on.plan, _choose(value, other)), what)


def _choose(value: str, other: str) -> Edit:
    in_words = in_text(as_word(value), other.replace("_", " "))
    return lambda leaf: other if leaf == value else in_words(leaf)


_ID = re.compile(r"(?=\S*\d)(?!\S*\.[A-Za-z]\w{1,3}$)[\w./-]{4,40}")
"""A number or a mix of letters and digits, but not a file name with an extension."""


def change_goal(on: Occasion) -> Iterator[Change]:
    """Replaces the person, place or thing that the query is about in the reply.

    The object of the task is that of the first call with a value from the query, if that call is in
    the first half of the calls.
    """
    calls = on.plan.calls
    for at, call in enumerate(calls[: (len(calls) + 1) // 2]):
        changes: list[Change] = []
        for name, value in (call.arguments or {}).items():
            other = _other_object(on, call.name, name, value)
            if other is not None:
                edit = _exchange(as_word(value), other, int(value) if value.isdecimal() else None)
                what = f"the plan is about {other!r} instead of {value!r}"
                changes.append(Change(everywhere(on.plan, edit), what))
        if changes:
            yield from changes if _is_object(on, at) else ()
            return


def _other_object(on: Occasion, tool: str, name: str, value: Any) -> str | None:
    """Another id or name for one in the query; None if its kind is unclear."""
    query = on.query
    if not isinstance(value, str) or not as_word(value).search(query) or _ISO.search(value):
        return None
    if _ID.fullmatch(value) and not vocabulary("ids").isdisjoint(name_words(name)):
        return new_number(value, on.rng, case_text(on.base.item) + on.plan.text)
    if not re.fullmatch(r"[^\W\d_a-z][^\d@/\\]*", value):
        return None
    sorts = table("words")["names"]
    of_words = (
        sort
        for words in (name_words(name), name_words(tool))
        for sort in sorts
        if not set(words).isdisjoint(sort["of"].split())
    )
    sort = next(of_words, None)
    has_codes = any(isinstance(v, str) and re.fullmatch(r"[A-Z]{3}", v) for v in _values(on))
    if sort is None or (sort is sorts[0] and has_codes):  # airport codes denote places
        return None
    return on.rng.choice([other for other in sort["names"] if other not in query])


def _is_object(on: Occasion, at: int) -> bool:
    """True if at least half of the calls, itself included, are about the object of a call.

    Those calls pass one of its values, or may need its result or that of another such call.
    """
    calls, query = on.plan.calls, on.query.lower()
    values = [{v for v in scalars(call.arguments) if isinstance(v, str)} for call in calls]
    about = {n for n in range(len(calls)) if values[at] & values[n]} | {at}
    # values from the query need no call
    unstated = everywhere(
        on.plan, lambda leaf: "" if isinstance(leaf, str) and leaf.lower() in query else leaf
    )
    needs = possible_needs(unstated, on.tools)
    for earlier, later in sorted(needs, key=lambda pair: pair[1]):
        if earlier in about:
            about.add(later)
    return 2 * len(about) >= len(calls)


def unmade_result(on: Occasion) -> Iterator[Change]:
    """Takes a value from a message or result that does not exist."""
    parts, item = on.plan, on.base.item
    text = f"{case_text(item)} {parts.text} {item.tools.text if item.tools else ''}".lower()
    nowhere = table("words")["nowhere"]
    sources = [s["text"] for s in nowhere if not any(mark in text for mark in s["marks"])]
    for arg in on.arguments:
        if sources and is_described(arg.value, item.query):
            source = on.rng.choice(sources).format(name=arg.name.replace("_", " "))
            yield on.with_value(arg, source, f"{source!r}, which does not exist")


_RESULT_ID = re.compile(r"(?!\d{4}-\d\d(?:-\d\d)?$)(?=[\w-]*\d)(?:[A-Za-z][\w-]*|\d{4,})")


def invented_id(on: Occasion) -> Iterator[Change]:
    """Changes an id of a result to one that occurs nowhere."""
    item = on.base.item
    # an id from the user is not a result
    answers = [m for m in item.trajectory if m.get("role") in ("tool", "function")]
    results, taken = orjson.dumps(answers).decode(), case_text(item) + on.plan.text
    for arg in on.arguments:
        is_id = isinstance(arg.value, str) and _RESULT_ID.fullmatch(arg.value)
        if is_id and arg.value not in item.query and arg.value in results:
            other = new_number(arg.value, on.rng, taken)
            if other is not None:
                yield on.with_value(arg, other, f"{other!r}, which is in no result")
