"""Values of a solution in texts: word for word, or in another spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...records.loose_json import lenient
from .seeds import Leaf, Seed, SeedCall, leaves

_WORD = re.compile(r"[^\W_]+")
_NUMBERED = re.compile(
    r"(?<![^\s,;:!?()\[\]{}<>\"'“”‘’`*])"  # from the start of a word, or it takes quadratic time
    r"[^\s,;:!?()\[\]{}<>\"'“”‘’`*]*\d[^\s,;!?()\[\]{}<>\"'“”‘’`*]*"
)
_LEAST_LENGTH, _MOST_LENGTH = 3, 80
"""Shorter values may occur anywhere by chance; longer ones are prose."""


def places_of(value: str, text: str, *, any_case: bool = False) -> list[tuple[int, int]]:
    """Places of a value in a text, as a whole and not as a part of a longer one.

    Args:
        value: The value.
        text: The text.
        any_case: True if case does not matter. It never does for a value without capitals: a
            sentence may begin with it.

    Returns:
        Starts and ends; none for a blank value.
    """
    words = r"\s+".join(map(re.escape, value.split()))
    if not words:
        return []
    pattern = rf"(?<!\w)(?<!\d[.,:])(?<!\w[-/@.]){words}(?!\w)(?![.,:]\d)(?![-/@]\w)"
    flags = re.IGNORECASE if any_case or value == value.lower() else 0
    return [match.span() for match in re.finditer(pattern, text, flags)]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text in small letters, to look many values up in it.

    Attributes:
        apart: The words with one space around each.
        joined: The words without spaces.
    """

    apart: str
    joined: str

    @classmethod
    def of(cls, text: str) -> Words:
        """The words of a text."""
        words = _WORD.findall(text.casefold())
        return cls(f" {' '.join(words)} ", "".join(words))

    def state(self, value: str) -> bool:
        """True if they state a value, in any case or with other marks between its words."""
        ours = Words.of(value)
        return bool(ours.joined) and (
            ours.apart in self.apart or (len(ours.joined) >= 5 and ours.joined in self.joined)
        )


def is_worded(value: str, text: str) -> bool:
    """True if a text states a value, in any case or with other marks between its words."""
    return Words.of(text).state(value)


def numbers_in(text: str) -> list[str]:
    """The words of a text that have a digit: numbers, dates, ids; each once, in order."""
    words = (match.group().rstrip(".:") for match in _NUMBERED.finditer(text))
    return list(dict.fromkeys(words))


def literals_of(seed: Seed) -> tuple[str, ...]:
    """The values that the solution's arguments take from the query, in its spelling."""
    query = seed.trajectory.query
    stated = (_stated(value, query) for call in seed.calls for value in call.own_values)
    return tuple(dict.fromkeys(value for value in stated if value is not None))


def _stated(value: Leaf, text: str) -> str | None:
    """A value as a text writes it, with one space between its words; None if it does not."""
    places = (place for form in _forms(value) for place in places_of(form, text, any_case=True))
    place = next(places, None)
    return None if place is None else " ".join(text[slice(*place)].split())


def _forms(value: Leaf) -> Sequence[str]:
    """Spellings of a value; none if it is too short to be looked for."""
    if isinstance(value, str):
        return (value,) if len(value.strip()) > 1 or value.isdigit() else ()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (str(value), f"{value:,}") if abs(value) >= 1000 else (str(value),)


def results_of(seed: Seed) -> tuple[str, ...]:
    """Values that only results state; a query or a plan that states them gives results away."""
    trajectory = seed.trajectory
    known = Words.of("\n".join((trajectory.query, trajectory.system_prompt, seed.toolset.text)))
    own_values = [str(value) for call in seed.calls for value in call.own_values]
    brought = (text for call in seed.calls for text in _brought(call))
    return tuple(
        text for text in dict.fromkeys(brought) if text not in own_values and not known.state(text)
    )


def _brought(call: SeedCall) -> Iterator[str]:
    for parameter in call.needs:
        yield from filter(None, map(_distinctive, leaves(call.arguments.get(parameter))))
    if call.result is None:
        return
    value, is_json = lenient(call.result)
    if is_json and not isinstance(value, str):
        yield from filter(None, map(_distinctive, leaves(value)))
    else:
        yield from (word for word in numbers_in(call.result) if _distinctive(word))


def _distinctive(value: Leaf) -> str | None:
    """A value as text; None if it is a word, a small number or prose."""
    text = str(value)
    if not _LEAST_LENGTH <= len(text) <= _MOST_LENGTH:
        return None
    is_word = text.isalpha() and (text.islower() or text.istitle())
    return text if any(c.isdigit() or c.isupper() for c in text) and not is_word else None
