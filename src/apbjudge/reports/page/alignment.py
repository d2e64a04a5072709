"""Alignment of two chains of calls, to show them side by side."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain, takewhile
from typing import Any, Literal, NamedTuple, cast

import orjson

from ...records import Call

Kind = Literal["same", "arguments", "different", "extra", "missing"]

COMPARED = 400
"""Number of calls of each side, after a common beginning, that are compared; later ones have their
own rows, so that a chain of a hundred thousand calls costs no more than one of four hundred."""


class AlignedRow(NamedTuple):
    """One row of two aligned chains.

    Attributes:
        ours: Index in the first chain; None if only the second has a call.
        theirs: Index in the second chain; None if only the first has a call.
        kind: ``same`` tool and arguments, same tool with other ``arguments``, a ``different``
            tool in the same place, ``extra`` (only ours) or ``missing`` (only theirs).
        moved: True if a pair of one tool is out of the order of the other pairs.
    """

    ours: int | None
    theirs: int | None
    kind: Kind
    moved: bool = False


class _Key(NamedTuple):
    """A call in comparable form; equal keys are equal calls."""

    name: str
    arguments: bytes
    parts: frozenset[tuple[str, bytes]]


def align(ours: Sequence[Call], theirs: Sequence[Call]) -> tuple[AlignedRow, ...]:
    """Aligns two chains: pairs their calls, then finds the pairs that moved.

    Equal calls are pairs wherever they are; the remaining calls of the same tool are paired by
    the arguments that they share, then by place. As few pairs as possible are ``moved``: the others
    are the longest sequence in the same order in both chains. So two chains of the same calls have
    only rows of the kind ``same``. Calls without a partner, between the same two pairs that did not
    move, are next to each other as ``different``.

    Every call occurs exactly once, ours in their order, theirs too except moved ones. The longest
    runs of equal calls are paired first (``difflib``); ``COMPARED`` limits the time for this.

    Args:
        ours: The prediction's calls.
        theirs: The reference's calls.

    Returns:
        The rows from top to bottom; empty if both chains are.
    """
    a, b = [_key(call) for call in ours], [_key(call) for call in theirs]
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    end = start + COMPARED
    pairs = {i: i for i in range(start)}
    pairs |= {start + i: start + j for i, j in _pairs(a[start:end], b[start:end]).items()}
    fixed = _in_one_order(pairs)
    paired = {*pairs.values()}
    single = deque(j for j in range(len(b)) if j not in paired)
    rows: list[AlignedRow] = []
    bounds = deque(sorted(fixed.values()))
    for i, key in enumerate(a):
        if i in fixed:
            j = bounds.popleft()
            while single and single[0] < j:
                rows.append(AlignedRow(None, single.popleft(), "missing"))
        if i in pairs:
            kind: Kind = "same" if key == b[pairs[i]] else "arguments"
            rows.append(AlignedRow(i, pairs[i], kind, moved=i not in fixed))
        elif (
            single
            and single[0] < (bounds[0] if bounds else len(b))
            and key.name != b[single[0]].name
        ):
            rows.append(AlignedRow(i, single.popleft(), "different"))
        else:
            rows.append(AlignedRow(i, None, "extra"))
    return (*rows, *(AlignedRow(None, j, "missing") for j in single))


def _key(call: Call) -> _Key:
    arguments = call.arguments or {}
    parts = frozenset((name, _canonical(value)) for name, value in arguments.items())
    whole = b"" if call.arguments is None else _canonical(arguments)
    return _Key(call.name, whole, parts)


_FRACTION = re.compile(rb"(?:^|[:,\[])-?\d+[.e]")
"""A number that may be an integer written with a fraction, or a text that looks like one."""


def _canonical(value: object) -> bytes:
    """The value as bytes, equal exactly for values that are displayed alike, such as 1 and 1.0."""
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


def _pairs(a: Sequence[_Key], b: Sequence[_Key]) -> dict[int, int]:
    """Pairs the calls of a and b: equal ones first, then those of one tool."""
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    pairs = {of.a + i: of.b + i for of in blocks for i in range(of.size)}
    taken = {*pairs.values()}
    free: dict[_Key, deque[int]] = {}
    for j, key in enumerate(b):
        if j not in taken:
            free.setdefault(key, deque()).append(j)
    for i, key in enumerate(a):
        if i not in pairs and free.get(key):
            pairs[i] = free[key].popleft()
    likest = sorted(
        (-_shared(a[i], b[j]), abs(i - j), i + j, i, j)
        for i in range(len(a))
        if i not in pairs
        for j in chain.from_iterable(free.values())
        if a[i].name == b[j].name
    )
    taken = {*pairs.values()}
    for *_, i, j in likest:
        if i not in pairs and j not in taken:
            pairs[i] = j
            taken.add(j)
    return pairs


def _shared(x: _Key, y: _Key) -> float:
    """The share of arguments that two calls have in common, 0 to 1."""
    return len(x.parts & y.parts) / max(len(x.parts | y.parts), 1)


def _in_one_order(pairs: Mapping[int, int]) -> dict[int, int]:
    """The longest subset of pairs whose second indices rise with the first."""
    ends: list[int] = []  # the lowest second index that ends a sequence of each length
    lengths: dict[int, int] = {}
    for i, j in sorted(pairs.items()):
        lengths[i] = bisect_left(ends, j)
        ends[lengths[i] : lengths[i] + 1] = [j]
    longest: dict[int, int] = {}
    length = len(ends) - 1
    last = max(pairs.values(), default=0) + 1
    for i, j in sorted(pairs.items(), reverse=True):
        if lengths[i] == length and j < last:
            longest[i] = last = j
            length -= 1
    return longest
