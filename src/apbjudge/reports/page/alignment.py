"""Alignment of two chains of calls, to show them side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, NamedTuple, cast

import orjson

from ...records import Call

Kind = Literal["same", "arguments", "different", "extra", "missing"]

COMPARED = 400
"""Calls of each side, after a common beginning, that are compared; those beyond have rows of
their own, so that a chain of a hundred thousand calls costs no more than one of four hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedRow:
    """One row of two aligned chains.

    Attributes:
        ours: Index in the first chain; None where only the second has a call.
        theirs: Index in the second chain; None where only the first has a call.
        kind: ``same`` tool and arguments, same tool with other ``arguments``, a ``different``
            tool in the same place, ``extra`` (only ours) or ``missing`` (only theirs).
    """

    ours: int | None
    theirs: int | None
    kind: Kind


class _Key(NamedTuple):
    """A call as it is compared; equal keys are equal calls."""

    name: str
    arguments: bytes
    parts: frozenset[tuple[str, bytes]]


def align(ours: Sequence[Call], theirs: Sequence[Call]) -> tuple[AlignedRow, ...]:
    """Aligns two chains so that as many calls as possible are beside equal ones.

    Every call occurs exactly once and in its order. What counts is, in this order: calls of the
    same tool (more the more arguments they share, most when all are equal), then few rows. The
    best alignment is found by dynamic programming (Needleman and Wunsch,
    doi:10.1016/0022-2836(70)90057-4), in time and memory of ``len(ours) * len(theirs)`` up to
    ``COMPARED`` calls. Swapping the sides gives the same rows with the sides swapped. Two calls
    whose order is exchanged show as one pair, one ``missing`` and one ``extra``.

    Args:
        ours: The prediction's calls.
        theirs: The reference's calls.

    Returns:
        The rows from top to bottom; empty when both chains are.
    """
    a, b = [_key(call) for call in ours], [_key(call) for call in theirs]
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    rows = [_pair(i, i, a, b) for i in range(start)]
    i, j = start, start
    end_a, end_b = min(len(a), start + COMPARED), min(len(b), start + COMPARED)
    for both, first in _path(a[start:end_a], b[start:end_b]):
        rows.append(_pair(i if both or first else None, j if both or not first else None, a, b))
        i, j = i + (both or first), j + (both or not first)
    rows.extend(_pair(i, None, a, b) for i in range(end_a, len(a)))
    rows.extend(_pair(None, j, a, b) for j in range(end_b, len(b)))
    return tuple(rows)


def _pair(i: int | None, j: int | None, a: Sequence[_Key], b: Sequence[_Key]) -> AlignedRow:
    if i is None or j is None:
        return AlignedRow(ours=i, theirs=j, kind="extra" if j is None else "missing")
    if a[i].name != b[j].name:
        return AlignedRow(ours=i, theirs=j, kind="different")
    return AlignedRow(ours=i, theirs=j, kind="same" if a[i] == b[j] else "arguments")


# What is alike -----------------------------------------------------------------------------------


def _key(call: Call) -> _Key:
    arguments: Mapping[str, Any] = call.arguments or {}
    parts = frozenset((name, _canonical(value)) for name, value in arguments.items())
    whole = b"" if call.arguments is None else _canonical(arguments)
    return _Key(call.name, whole, parts)


def _canonical(value: object) -> bytes:
    """The value as bytes: equal exactly for values that are shown alike, such as 1 and 1.0."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        if _FRACTION.search(written) is None:
            return written
        return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, RecursionError):
        return repr(value)[:1000].encode(errors="replace")  # nested too deeply, or a huge number


_FRACTION = re.compile(rb"(?:^|[:,\[])-?\d+[.e]")
"""A number that may be whole and yet be written with a fraction, or a text that looks like one."""


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(child) for child in cast("list[Any]", value)]
    return value


def _score(x: _Key, y: _Key, unit: int) -> int:
    """Worth of a pair: 10 units for equal calls, 6 to 9 for one tool, next to nothing else."""
    if x.name != y.name:
        return 1
    if x == y:
        return 10 * unit
    shared, all_parts = len(x.parts & y.parts), len(x.parts | y.parts)
    return 6 * unit + 3 * unit * shared // max(all_parts, 1)


# The best way ------------------------------------------------------------------------------------


def _path(a: Sequence[_Key], b: Sequence[_Key]) -> list[tuple[bool, bool]]:
    """The steps of the best alignment: (both, only the first) per row."""
    # A unit outweighs all pairs of different tools together: these only fill up gaps.
    unit = min(len(a), len(b)) + 1
    worth = _worth(a, b, unit)
    steps: list[tuple[bool, bool]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        both = False
        if i == len(a) or j == len(b):
            first = j == len(b)
        elif worth[i][j] == worth[i + 1][j + 1] + _score(a[i], b[j], unit):
            both = first = True
        elif worth[i + 1][j] != worth[i][j + 1]:
            first = worth[i + 1][j] > worth[i][j + 1]
        else:  # as good either way: by content, not by side, so that swapping the sides mirrors
            first = a[i][:2] < b[j][:2]
        steps.append((both, first))
        i, j = i + (both or first), j + (both or not first)
    return steps


def _worth(a: Sequence[_Key], b: Sequence[_Key], unit: int) -> list[list[int]]:
    """``worth[i][j]`` is the best total of what follows call i of one side and j of the other."""
    below = [0] * (len(b) + 1)
    rows = [below]
    for x in reversed(a):
        row = [0] * (len(b) + 1)
        for j in range(len(b) - 1, -1, -1):
            pair = _score(x, b[j], unit) + below[j + 1]
            row[j] = max(pair, below[j], row[j + 1])
        rows.append(row)
        below = row
    rows.reverse()
    return rows
