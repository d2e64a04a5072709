"""Many 64-bit keys in little memory: 8 bytes each, where a set of integers takes a hundred."""

from __future__ import annotations

from typing import Any

import numpy as np

RECENT = 1 << 16
"""Keys that are held in a set before they are sorted in among the others."""


class KeySet:
    """Tells whether a key has been met before."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._sorted: np.ndarray[Any, np.dtype[np.uint64]] = np.empty(0, dtype=np.uint64)

    def __contains__(self, key: int) -> bool:
        return key in self._recent or self._is_sorted_in(key)

    def add(self, key: int) -> bool:
        """Takes a key in; returns whether it is new.

        Args:
            key: 0 to 2**64 - 1.
        """
        if key in self:
            return False
        self._recent.add(key)
        if len(self._recent) == RECENT:
            recent = np.fromiter(self._recent, dtype=np.uint64, count=RECENT)
            self._sorted = np.sort(np.concatenate([self._sorted, recent]))
            self._recent = set()
        return True

    def _is_sorted_in(self, key: int) -> bool:
        at = int(np.searchsorted(self._sorted, np.uint64(key)))
        return at < len(self._sorted) and int(self._sorted[at]) == key
