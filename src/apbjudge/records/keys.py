"""Many 64-bit keys in little memory: 8 bytes each, instead of a hundred in a set of integers."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from hashlib import blake2b

import numpy as np

RECENT = 1 << 16
"""Keys that are held in a set before they are sorted in among the others."""


class KeySet:
    """A set of keys."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._view = np.empty(0, dtype=np.uint64).data

    def __contains__(self, key: int) -> bool:
        return key in self._recent or self._is_sorted_in(key)

    def add(self, key: int) -> bool:
        """Adds a key; returns True if it is new.

        Args:
            key: 0 to 2**64 - 1.
        """
        if key in self:
            return False
        self._recent.add(key)
        if len(self._recent) == RECENT:
            recent = np.fromiter(self._recent, dtype=np.uint64, count=RECENT)
            self._view = np.sort(np.concatenate([self._view, recent])).data
            self._recent = set()
        return True

    def _is_sorted_in(self, key: int) -> bool:
        keys = self._view  # a view yields integers, which are faster than NumPy scalars
        at = bisect_left(keys, key)
        return at < len(keys) and keys[at] == key


class KeyMap:
    """Keys with some 64-bit values each, 8 bytes a number; filled first, then looked up.

    Args:
        n_values: Values of each key.
    """

    def __init__(self, n_values: int = 1) -> None:
        self._width = n_values + 1
        self._added = array("Q")
        self.keys = np.empty(0, dtype=np.uint64)  # sorted
        self._view = self.keys.data
        self._values = self.keys.reshape(0, 1)

    def add(self, key: int, *values: int) -> None:
        """Adds a key, to be found after ``sort``."""
        self._added.extend(array("Q", (key, *values)))  # all of them or none

    def sort(self, *, last_counts: bool = False) -> None:
        """Sorts the keys that were added; of equal ones the first is found, or the last."""
        added = np.asarray(self._added, dtype=np.uint64).reshape(-1, self._width)
        added = added[::-1] if last_counts else added
        order = np.argsort(added[:, 0], kind="stable")
        self.keys, self._values = added[order, 0], added[order, 1:]
        self._view = self.keys.data
        self._added = array("Q")

    def __len__(self) -> int:
        return len(self.keys)

    def index(self, key: int) -> int | None:
        """Place of a key among the sorted keys; None if it is missing."""
        keys = self._view  # a view yields integers, which are faster than NumPy scalars
        at = bisect_left(keys, key)
        return at if at < len(keys) and keys[at] == key else None

    def value(self, index: int) -> int:
        """The first value of the key at a place."""
        return int(self._values[index, 0])

    def values(self, index: int) -> list[int]:
        """All values of the key at a place."""
        return self._values[index].tolist()


def short_key(*parts: str) -> int:
    """A 64-bit key of some strings.

    Two of a million keys are equal with a probability of 3 in 100 million; a key takes a tenth of
    the memory of its strings.
    """
    return bytes_key("\x00".join(parts).encode(errors="surrogatepass"))


def bytes_key(data: bytes) -> int:
    """A 64-bit key of some bytes."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def model_key(tested_model: str | None) -> int:
    """The number that, by ``^``, turns an item's key into the key of item and tested model."""
    return 0 if tested_model is None else short_key("tested_model", tested_model)
