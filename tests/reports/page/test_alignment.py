"""Two chains side by side."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.records import Call
from apbjudge.reports.page.alignment import COMPARED, AlignedRow, align


def calls(text: str) -> list[Call]:
    """``"Ax B"``: tool A with argument x, then tool B with none."""
    return [Call(word[0], {"x": word[1:]}) for word in text.split()]


def drawn(rows: tuple[AlignedRow, ...]) -> str:
    signs = {"same": "=", "arguments": "~", "different": "#", "extra": "+", "missing": "-"}
    return "".join(signs[row.kind] + ("m" if row.moved else "") for row in rows)


@pytest.mark.parametrize(
    ("ours", "theirs", "rows"),
    [
        ("A B", "B A", "=m="),  # exchanged
        ("A1 A2", "A2 A1", "=m="),  # equal calls before those at the same place
        ("A1 B C", "B C A2", "~m=="),
        ("A B C", "A X C", "=#="),
        ("A1", "A2 A1", "-="),  # equal arguments before the first of its name
        ("X A B", "A B", "+=="),
        ("P Q R A", "A S T U", "+++=---"),  # one tool in common outweighs any number of others
    ],
)
def test_reads_well(ours: str, theirs: str, rows: str):
    assert drawn(align(calls(ours), calls(theirs))) == rows


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ({"n": 1}, {"n": 1.0}, "same"),
        ({"n": 0}, {"n": -0.0}, "same"),
        ({"n": {"a": "b", "m": 10**15}}, {"n": {"m": 1e15, "a": "b"}}, "same"),
        ({"n": 1}, {"n": 1.5}, "arguments"),
        ({"n": 1}, {"n": True}, "arguments"),
        ({"a": 1, "b": [{"x": 2, "y": 3}]}, {"b": [{"y": 3, "x": 2}], "a": 1}, "same"),
    ],
)
def test_equal_as_json(ours: dict[str, object] | None, theirs: dict[str, object] | None, kind: str):
    assert [row.kind for row in align([Call("A", ours)], [Call("A", theirs)])] == [kind]


CALL = st.builds(
    lambda name, x, y: Call(name, {"x": x, "y": y}),
    st.sampled_from("ABC"),
    st.integers(0, 1),
    st.integers(0, 1),
)
CHAIN = st.lists(CALL, max_size=7)


def n_common(ours: list[str], theirs: list[str]) -> int:
    """How many of two lists belong together if each has one partner at most."""
    return (Counter(ours) & Counter(theirs)).total()


@settings(max_examples=100)
@given(CHAIN, CHAIN)
def test_every_call_is_there_once_and_all_that_can_be_are_paired(
    ours: list[Call], theirs: list[Call]
):
    rows = align(ours, theirs)
    assert [row.ours for row in rows if row.ours is not None] == list(range(len(ours)))
    assert sorted(row.theirs for row in rows if row.theirs is not None) == list(range(len(theirs)))
    fixed = [row.theirs for row in rows if row.theirs is not None and not row.moved]
    assert fixed == sorted(fixed)
    assert all(row.ours is not None or row.theirs is not None for row in rows)
    assert all(row.kind in ("same", "arguments") for row in rows if row.moved)
    kinds = Counter(row.kind for row in rows)
    equal = n_common([str(call) for call in ours], [str(call) for call in theirs])
    named = n_common([call.name for call in ours], [call.name for call in theirs])
    assert (kinds["same"], kinds["arguments"]) == (equal, named - equal)


@settings(max_examples=100)
@given(st.permutations(range(6)))
def test_no_fewer_could_have_moved(order: list[int]):
    ours, theirs = ([Call(str(n)) for n in chain] for chain in (range(6), order))
    in_order = max(
        size
        for size in range(1, 7)
        if any(list(some) == sorted(some) for some in combinations(order, size))
    )
    assert sum(row.moved for row in align(ours, theirs)) == 6 - in_order


def test_long_chains_stay_bounded():
    ours = [Call("A", {"i": i % 7}) for i in range(COMPARED + 50)]
    rows = align(ours, list(reversed(ours)))
    assert [row.ours for row in rows if row.ours is not None] == list(range(len(ours)))
    assert {row.kind for row in align(ours * 4, ours * 4)} == {"same"}
    assert len(align(ours * 4, calls("B C"))) == len(ours) * 4
