"""Alignment of two chains of calls, to show them side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple, cast

import orjson

from ...records import Call

Kind = Literal["same", "arguments", "different", "extra", "missing"]

COMPARED = 400
"""Calls of each side, after a common beginning, that are compared; those beyond have rows of
their own, so that a chain of a hundred thousand calls costs no more than one of four hundred."""

_UNIT = COMPARED + 1
"""Outweighs all pairs of different tools together: these only fill up gaps."""


class AlignedRow(NamedTuple):
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
    end = start + COMPARED
    rows = [AlignedRow(i, i, "same") for i in range(start)]
    for i, j, kind in _best(a[start:end], b[start:end]):
        rows.append(
            AlignedRow(None if i is None else start + i, None if j is None else start + j, kind)
        )
    rows.extend(AlignedRow(i, None, "extra") for i in range(end, len(a)))
    rows.extend(AlignedRow(None, j, "missing") for j in range(end, len(b)))
    return tuple(rows)


def _key(call: Call) -> _Key:
    arguments = call.arguments or {}
    parts = frozenset((name, _canonical(value)) for name, value in arguments.items())
    whole = b"" if call.arguments is None else _canonical(arguments)
    return _Key(call.name, whole, parts)


_FRACTION = re.compile(rb"(?:^|[:,\[])-?\d+[.e]")
"""A number that may be whole and yet be written with a fraction, or a text that looks like one."""


def _canonical(value: object) -> bytes:
    """The value as bytes: equal exactly for values that are shown alike, such as 1 and 1.0."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        if _FRACTION.search(written) is None:
            return written
        return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, RecursionError):
        return repr(value)[:1000].encode(errors="replace")  # nested too deeply, or a huge number


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(child) for child in cast("list[Any]", value)]
    return value


def _score(x: _Key, y: _Key) -> int:
    """Worth of a pair: 10 units for equal calls, 6 to 9 for one tool, next to nothing else."""
    if x.name != y.name:
        return 1
    if x == y:
        return 10 * _UNIT
    return 6 * _UNIT + 3 * _UNIT * len(x.parts & y.parts) // max(len(x.parts | y.parts), 1)


def _best(a: Sequence[_Key], b: Sequence[_Key]) -> Iterator[AlignedRow]:
    """The rows of the best alignment."""
    worth = _worth(a, b)
    i = j = 0
    while i < len(a) or j < len(b):
        if i == len(a) or j == len(b):
            is_extra = j == len(b)
        elif worth[i][j] == worth[i + 1][j + 1] + _score(a[i], b[j]):
            kind: Kind = "same" if a[i] == b[j] else "arguments"
            yield AlignedRow(i, j, kind if a[i].name == b[j].name else "different")
            i, j = i + 1, j + 1
            continue
        elif worth[i + 1][j] != worth[i][j + 1]:
            is_extra = worth[i + 1][j] > worth[i][j + 1]
        else:  # as good either way: by content, not by side, so that swapping the sides mirrors
            is_extra = a[i][:2] < b[j][:2]
        if is_extra:
            yield AlignedRow(i, None, "extra")
            i += 1
        else:
            yield AlignedRow(None, j, "missing")
            j += 1


def _worth(a: Sequence[_Key], b: Sequence[_Key]) -> list[list[int]]:
    """``worth[i][j]`` is the best total of what follows call i of one side and j of the other."""
    rows = [[0] * (len(b) + 1)]
    for x in reversed(a):
        below, row = rows[-1], [0] * (len(b) + 1)
        for j in reversed(range(len(b))):
            row[j] = max(_score(x, b[j]) + below[j + 1], below[j], row[j + 1])
        rows.append(row)
    return rows[::-1]
