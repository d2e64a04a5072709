"""Two limits on a number that exclude each other, as a user might write them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from random import Random

from ...records import Bound
from .likeness import name_words, stems
from .queries import UNIT

_NO_AMOUNT = frozenset(
    "account age card code coordinate date day emissions floor hour id identifier ids income "
    "index isbn lat latitude line lng lon longitude mass month no page phone pin population port "
    "position postal postcode score seed ssn telephone time version x y year z zip zipcode".split()
)
"""Words in the names of numbers that are no amounts: nobody sets limits on them."""
_FILLERS = frozenset("amount count desired max maximum min minimum new no num of total".split())
_AT_MOST = (
    "The {subject} must not be more than {limit}.",
    "Please keep the {subject} at {limit} or below.",
    "The {subject} can be {limit} at most.",
)
_AT_LEAST = (
    "The {subject} must be at least {limit}.",
    "Please don't let the {subject} go below {limit}.",
    "I need the {subject} to be {limit} or more.",
)
_LINKS = ("At the same time, ", "Also, ", "In addition, ")


def is_amount(parameter: str, value: object) -> bool:
    """Whether an argument is a number that limits can be set on, by its name and value.

    Names such as ``order_id``, ``zip`` or ``flight_number`` and numbers that may be years are not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return False
    words = name_words(parameter)
    is_numbered = "number" in words and words[words.index("number") + 1 :][:1] != ["of"]
    is_year = float(value).is_integer() and 1800 <= value <= 2100
    counts_days = words[-1:] in (["days"], ["hours"], ["months"], ["years"])
    return not (is_numbered or is_year or (not counts_days and not _NO_AMOUNT.isdisjoint(words)))


def exclusive_bounds(
    query: str, parameter: str, value: float, *, others: Collection[str] = (), rng: Random
) -> tuple[Bound, Bound] | None:
    """Two limits on an amount that a query states, one below and one above it.

    Args:
        query: States the amount once, in digits, with words of the parameter's name.
        parameter: Its name.
        value: The amount, above 0.
        others: Names of the other numbers that the query may state.
        rng: Draws limits, words and order.

    Returns:
        The limits with the sentences to add, in the order to add them; None where the query does
        not state the amount in such a way, or no number fits below it.
    """
    stated = _stated(query, parameter, value)
    if stated is None:
        return None
    subject, number, prefix, suffix = stated
    if any(stems(subject.split()[-1]) <= stems(" ".join(name_words(name))) for name in others):
        return None  # one limit may be read as that of the other number
    limits = _around(value, number, rng)
    if limits is None or ("%" in suffix and value <= 100 < limits[1]):
        return None
    grouped = "," in number or (value < 1000 <= limits[1] and prefix != "")
    texts = [f"{prefix}{limit:{',f' if grouped else 'f'}}{suffix}" for limit in limits]
    templates = rng.choice(_AT_MOST), rng.choice(_AT_LEAST)
    sentences = [
        template.format(subject=subject, limit=text)
        for template, text in zip(templates, texts, strict=True)
    ]
    first = rng.randrange(2)
    link = rng.choice(_LINKS)
    later = sentences[1 - first]
    sentences[1 - first] = link + (
        later if later.startswith("I ") else later[0].lower() + later[1:]
    )
    at_most, at_least = (
        Bound(subject=subject, kind=kind, value=float(limit), text=text)
        for kind, limit, text in zip(("at most", "at least"), limits, sentences, strict=True)
    )
    return (at_least, at_most) if first else (at_most, at_least)


def _stated(query: str, parameter: str, value: float) -> tuple[str, str, str, str] | None:
    """What the query calls an amount, its digits, and what stands before and after them."""
    numbers = [m for m in _NUMBER.finditer(query) if float(m[2].replace(",", "")) == value]
    named = name_words(parameter)
    words = [word for word in named if word not in _FILLERS]
    if not numbers or not words or not "".join(named).isalpha():
        return None
    if len(words) == 1:
        found = (re.match(r"\s+([a-z]+)\b", query[m.end() :]) for m in numbers)
        counted = [m[1] for m in found if m and stems(m[1]) == stems(words[0]) != frozenset()]
        if len(counted) == 1 and not numbers[0][1]:
            return f"number of {counted[0]}", numbers[0][2], "", ""
    stated = stems(query)
    subject = next((" ".join(part) for part in (named, words) if _are_in(part, stated)), "")
    if len(numbers) > 1 or not subject:
        return None
    number, after = numbers[0], query[numbers[0].end() :]
    if _FACT.search(query[: number.start()]):
        return None
    unit = re.match(UNIT, after)
    if unit is None and re.match(rf"-?\s?(?!{_FUNCTION_WORDS}\b)[a-zA-Z°]", after):
        return None  # a unit that is not known
    return subject, number[2], number[1], unit.group() if unit else ""


def _are_in(words: Sequence[str], stated: frozenset[str]) -> bool:
    """Whether a text with these stems has all the words; too short ones can't be looked for."""
    found = stems(" ".join(words))
    return len(found) == len(words) and found <= stated


_FACT = re.compile(
    r"\b(?:achieved|contains?|had|has|have|is|observed|was|were)(?:\s+(?:a|an|the|about))?"
    r"(?:\s+[a-z]+){0,4}\s+$",
    re.IGNORECASE,
)
"""Words before a number that is as it is: a limit on it would make no sense."""
_NUMBER = re.compile(r"(?<![\w.,])([$€£]?)(\d[\d,]*(?<!,)(?:\.\d+)?)(?![\d\w]|[.,:/-]\d)")
_FUNCTION_WORDS = (
    "(?:and|as|at|before|but|by|during|for|from|if|in|on|or|over|so|that|then|to|when|which|while|"
    "with)"
)


def _around(value: float, digits: str, rng: Random) -> tuple[Decimal, Decimal] | None:
    """A number below and one above, as round as the given one; None where none fits below."""
    exact = Decimal(digits.replace(",", ""))
    places = max(-int(exact.as_tuple().exponent), 0)
    least = Decimal(1).scaleb(-places)
    low, high = (
        _round(exact * Decimal(rng.choice(factors)), places)
        for factors in (("0.5", "0.6", "0.75", "0.8"), ("1.25", "1.5", "1.75", "2"))
    )
    low, high = min(low, exact - least), max(high, exact + least)
    return (low, high) if 0 < low < Decimal(value) < high else None


def _round(number: Decimal, places: int) -> Decimal:
    """To two digits that count, and to no more places than are given."""
    shown = min(places, 1 - number.adjusted())
    return number.quantize(Decimal(1).scaleb(-shown)).normalize()
