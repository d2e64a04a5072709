"""Keys in little memory: the same answers as a set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.records import keys
from apbjudge.records.keys import KeySet

KEYS = st.one_of(st.integers(0, 20), st.integers(0, 2**64 - 1), st.sampled_from([2**63, 2**64 - 1]))


@given(asked=st.lists(KEYS, max_size=60), recent=st.integers(1, 5))
def test_a_key_is_new_once(asked: list[int], recent: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "RECENT", recent)
        key_set, met = KeySet(), set[int]()
        for key in asked:
            assert key_set.add(key) is (key not in met)
            met.add(key)
