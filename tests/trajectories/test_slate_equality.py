"""When arguments and outputs of SLATE trajectories are equal, exactly and in other writing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.trajectories.slate.equality import is_equivalent, is_same

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text(max_size=6),
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3)
    ),
    max_leaves=8,
)
NUMBER = {"type": "number"}
ENUM = {"type": "string", "enum": ["NORTH_SIDE", "MAIN", "x", "X"]}


@given(JSON, JSON)
def test_both_are_symmetric_and_what_is_the_same_is_equivalent(one: Any, other: Any) -> None:
    assert is_same(one, one)
    assert is_same(one, other) == is_same(other, one)
    assert is_equivalent(one, other, {}) == is_equivalent(other, one, {})
    if is_same(one, other):
        assert is_equivalent(one, other, {})


@pytest.mark.parametrize(
    ("one", "other"),
    [(True, 1), (False, 0), ([True], [1]), ("1", 1), ([1, 2], [2, 1]), ({"a": 1}, {"a": 1, "b": 2}),
     ({"a": None}, {}), ({}, []), (None, False), ("a", "A"), ([1], [1, 1])],
)  # fmt: skip
def test_what_is_not_the_same(one: Any, other: Any) -> None:
    assert not is_same(one, other)


def test_a_number_is_the_same_with_a_decimal_point_and_members_have_no_order() -> None:
    assert is_same({"a": 35, "b": [1.0]}, {"b": [1], "a": 35.0})


@pytest.mark.parametrize(
    ("one", "other", "schema"),
    [
        (35, "35.00", {}),
        ("35", "35.00", NUMBER),
        ("35", "+35", {"type": ["integer", "null"]}),
        (True, "TRUE", {}),
        ("2026-03-05", "20260305", {}),
        ("2026-03-05", "5 March 2026", {}),
        ("2026-03-05", "Mar 5th, 2026 ", {}),
        ("2026-03-05T10:00+02:00", "2026-03-05 08:00:00Z", {}),
        ("Gull  Point", " gull point", {}),
        ("NORTH_SIDE", "north-side", ENUM),
    ],
)
def test_other_ways_of_writing(one: Any, other: Any, schema: dict[str, Any]) -> None:
    assert is_equivalent(one, other, schema)
    assert is_equivalent(other, one, schema)
    assert not is_same(one, other)
    nested = {"type": "object", "properties": {"of": {"type": "array", "items": schema}}}
    assert is_equivalent({"of": [one]}, {"of": [other]}, nested)


@pytest.mark.parametrize(
    ("one", "other", "schema"),
    [
        (7, "007", {}),  # an id
        ("1.10", "1.1", {}),  # versions
        (1, True, {}),
        (1, "true", {}),
        ("2026-03-05", "2026-05-03", {}),
        ("2026-03-05", "3 May 2026", {}),
        ("2026-03-05", "05/03/2026", {}),  # can be read in two ways
        ("2026-03-05T10:00Z", "2026-03-05T10:00", {}),
        ("north side", "north-side", {}),  # no enum says that hyphens are of no account
        ("x", "X", ENUM),  # two members
        ("MAIN", "NORTH_SIDE", ENUM),
        ("a b", "a-b", {"enum": ["a-b", "a_b"]}),  # it might be either
    ],
)
def test_what_only_looks_alike(one: Any, other: Any, schema: dict[str, Any]) -> None:
    assert not is_equivalent(one, other, schema)
    assert not is_equivalent(other, one, schema)
