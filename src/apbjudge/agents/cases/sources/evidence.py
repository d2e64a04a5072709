"""Search for the place where a value was stated: the user's words, or the result of a call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ....records.loose_json import MAX_DEPTH, as_list, as_object, is_shallow
from ....records.parameters import parsed
from ..seeds import Leaf, leaves

_COMMA = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ZEROS = re.compile(r"(?<=\d)\.0+(?!\d|\.\d)")


def normal(leaf: Leaf) -> str:
    """A text or number as texts are compared: ``1,250.0`` and 1250 are the same."""
    text = leaf if isinstance(leaf, str) else repr(leaf)
    text = " ".join(text.casefold().split())
    return _ZEROS.sub("", _COMMA.sub("", text)) if any(map(str.isdigit, text)) else text


def distinctive(value: object) -> list[Leaf]:
    """The leaves of a value that show where it comes from.

    A single character, such as the number 2, occurs anywhere by chance.
    """
    return [leaf for leaf in leaves(value) if len(normal(leaf)) > 1]


def states(text: str, leaf: Leaf) -> bool:
    """True if a text, itself ``normal``, states a leaf as words or a number of its own."""
    wanted = normal(leaf)
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        before, after = text[max(at - 2, 0) : at], text[end : end + 2][::-1]
        if not _goes_on(before, wanted[0], leaf) and not _goes_on(after, wanted[-1], leaf):
            return True
        at = text.find(wanted, at + 1)
    return False


def _goes_on(adjacent: str, edge: str, leaf: Leaf) -> bool:
    """True if the two characters next to a leaf, the nearest last, belong to the same word."""
    if not adjacent or not _is_word(edge):
        return False
    near, far = adjacent[-1], adjacent[:-1]
    is_sign = near == "-" and not isinstance(leaf, str)
    return _is_word(near) or is_sign or (near == "." and far.isdigit())


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


class Result:
    """The values that a result states.

    Args:
        text: The result; JSON counts by its names and values.
    """

    def __init__(self, text: str) -> None:
        value: object = parsed(text)
        if len(text) > 2 * MAX_DEPTH and not is_shallow(value):
            value = text
        self._is_json = not isinstance(value, str)
        parts = [normal(part) for part in leaves(value, names=True)]  # ids may be names of fields
        self._parts = frozenset(parts)
        self._text = "\n".join(parts)

    def states(self, leaf: Leaf) -> bool:
        """True if the result states a leaf; a number in JSON only as a value of its own."""
        if normal(leaf) in self._parts:
            return True
        return not (self._is_json and not isinstance(leaf, str)) and states(self._text, leaf)


class CallResults:
    """Results of calls in order; each leaf is looked for in each of them once at most."""

    def __init__(self) -> None:
        self._results: list[Result | None] = []
        self._looked: dict[str, tuple[int, int | None]] = {}

    def add(self, text: str | None) -> None:
        """Adds the result of the next call; None if it is not known."""
        self._results.append(None if text is None else Result(text))

    def last(self, leaf: Leaf) -> int | None:
        """Index of the last call whose result states a leaf; None without."""
        key = f"{type(leaf) is str}{normal(leaf)}"
        start, last = self._looked.get(key, (0, None))
        for at in range(len(self._results) - 1, start - 1, -1):
            result = self._results[at]
            if result is not None and result.states(leaf):
                last = at
                break
        self._looked[key] = (len(self._results), last)
        return last


def allowed_values(schema: Mapping[str, Any]) -> frozenset[str]:
    """The values that a schema lists, which are known without a result."""
    values: list[Leaf] = []
    pending: list[Any] = [schema]
    while pending:
        part = pending.pop()
        if (spec := as_object(part)) is None:
            pending.extend(as_list(part) or ())
            continue
        values.extend(leaves([spec.get("enum"), spec.get("const"), spec.get("default")]))
        pending.extend(spec.values())
    return frozenset(map(normal, values))
