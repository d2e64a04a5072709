"""Two limits on a number that exclude each other, as sentences to add to a query."""

from __future__ import annotations

import re
from collections.abc import Collection
from decimal import Decimal
from random import Random

from ...protocols.tool_words import name_words
from ...records import Bound
from .likeness import stems

_NO_AMOUNT = frozenset(
    "account age card code coordinate date day emissions floor hour id identifier ids income "
    "index isbn lat latitude line lng lon longitude mass month no page phone pin population port "
    "position postal postcode score seed ssn telephone time version x y year z zip zipcode".split()
)
"""Words in the names of numbers that are not amounts, so that no limits are set on them."""
_FILLERS = frozenset("amount count desired max maximum min minimum new no num number of".split())
_SENTENCES = {
    "at most": (
        "The {subject} must not be more than {limit}.",
        "Please keep the {subject} at {limit} or below.",
        "The {subject} can be {limit} at most.",
    ),
    "at least": (
        "The {subject} must be at least {limit}.",
        "Please don't let the {subject} go below {limit}.",
        "The {subject} has to be {limit} or more.",
    ),
}


def is_amount(parameter: str, value: object) -> bool:
    """True if an argument is a number that limits can be set on, by its name and value.

    Names such as ``order_id``, ``zip`` or ``flight_number`` and numbers that may be years are not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return False
    words = name_words(parameter)
    is_numbered = "number" in words and words[words.index("number") + 1 :][:1] != ["of"]
    is_year = float(value).is_integer() and 1800 <= value <= 2100
    counts_days = words[-1:] in (["days"], ["hours"], ["months"], ["years"])
    return not (is_numbered or is_year or (not counts_days and not _NO_AMOUNT.isdisjoint(words)))


_NUMBER = re.compile(r"(?<![\w.,])([$€£]?)(\d[\d,]*(?<!,)(?:\.\d+)?)(\s?%)?(?![\d\w]|[.,:/-]\d)")


def exclusive_bounds(
    query: str, parameter: str, value: float, *, others: Collection[str] = (), rng: Random
) -> tuple[Bound, Bound] | None:
    """Two limits on an amount that a query states, one below and one above it.

    Args:
        query: States the amount once, in digits, and has the words of the parameter's name.
        parameter: Its name.
        value: The amount, above 0.
        others: Names of the other numbers; none of them may have all of these words.
        rng: Draws limits, words and order.

    Returns:
        The limits with the sentences to add, in the order to add them; None if the query does
        not state the amount in this way, or no number fits below it.
    """
    stated = [m for m in _NUMBER.finditer(query) if float(m[2].replace(",", "")) == value]
    words = [word for word in name_words(parameter) if word not in _FILLERS]
    known = stems(" ".join(words))
    if len(stated) != 1 or not words or len(known) < len(words) or not known <= stems(query):
        return None
    if any(known <= stems(" ".join(name_words(other))) for other in others):
        return None  # a limit could be read as a limit on the other number
    prefix, number, suffix = stated[0].groups(default="")
    limits = _around(value, number, rng)
    if limits is None or (suffix and value <= 100 < limits[1]):
        return None
    comma = "," if "," in number or (value < 1000 <= limits[1] and prefix) else ""
    counts = len(words) == 1 and words[0].endswith("s")
    subject = f"number of {words[0]}" if counts else " ".join(words)
    texts = [
        rng.choice(templates).format(subject=subject, limit=f"{prefix}{limit:{comma}f}{suffix}")
        for templates, limit in zip(_SENTENCES.values(), limits, strict=True)
    ]
    below, above = (
        Bound(subject=subject, kind=kind, value=float(limit), text=text)
        for kind, limit, text in zip(("at most", "at least"), limits, texts, strict=True)
    )
    return (above, below) if rng.randrange(2) else (below, above)


def _around(value: float, digits: str, rng: Random) -> tuple[Decimal, Decimal] | None:
    """A number below and one above, as round as the number itself; None if none fits below."""
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
    """Rounds to two significant digits, and to ``places`` decimals at most."""
    shown = min(places, 1 - number.adjusted())
    return number.quantize(Decimal(1).scaleb(-shown)).normalize()
