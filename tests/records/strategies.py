"""Strategies that several tests draw from."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TEXT = st.text(max_size=5)


def json_values(
    *more: st.SearchStrategy[Any],
    text: st.SearchStrategy[str] = TEXT,
    keys: st.SearchStrategy[str] = TEXT,
    most: int = 2,
) -> st.SearchStrategy[Any]:
    """Whatever JSON can hold of some texts, whole numbers and ``more``."""
    return st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.one_of(text, *more),
        lambda inner: st.lists(inner, max_size=most) | st.dictionaries(keys, inner, max_size=most),
        max_leaves=4 * most,
    )
