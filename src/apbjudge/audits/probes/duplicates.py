"""Cases that are the same, or nearly, under different names."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from ...records import Item
from ...records.keys import short_key
from .texts import Runs, Vocabulary, mixed, set_of, strings, words

NEAR = 0.8
"""Jaccard similarity of the queries' runs of words from which two cases are near duplicates."""

RUN = 5
_BANDS, _ROWS = 20, 4
"""Two queries at 0.8 share a band with a chance of 1 - (1 - 0.8^4)^20 = 0.99997."""
_MOST_COMPARED = 20
_LEAST_WORDS = 8
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SALTS = mixed(np.arange(1, _BANDS * _ROWS + 1, dtype=np.uint64))


@dataclass(frozen=True, slots=True)
class Twin:
    """A case that repeats an earlier one.

    Attributes:
        case_id: The case.
        of: The earlier one.
        similarity: How alike the queries are, NEAR to 1.
        is_equal: Whether they are equal word for word.
    """

    case_id: str
    of: str
    similarity: float
    is_equal: bool = False


@dataclass(slots=True)
class Duplicates:
    """Finds cases that repeat an earlier one.

    Only cases with the same tools by name, files, earlier messages, number of steps and condition
    are compared, by the words of their queries: another truncation of one run, or another
    robustness condition of one task, is another case. Near duplicates are looked for among cases
    that share a band of minimum hashes, each against at most 20 of them a band.

    Attributes:
        vocabulary: Numbers of words.
    """

    vocabulary: Vocabulary
    _seen: set[str] = field(default_factory=set[str])
    _kinds: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    _exact: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    _bands: dict[Hashable, list[tuple[str, Runs]]] = field(
        default_factory=dict[Hashable, list[tuple[str, Runs]]]
    )

    @property
    def n_cases(self) -> int:
        """Cases looked at."""
        return len(self._seen)

    def add(self, item: Item) -> Twin | None:
        """Looks at a case; at a case that was looked at already, and at empty ones, not again.

        Args:
            item: An item of the case.

        Returns:
            What it repeats, None where it repeats nothing.
        """
        listed = words(item.query)
        if item.case_id in self._seen or not listed:
            return None
        self._seen.add(item.case_id)
        kind = self._kinds.setdefault(_kind(item), len(self._kinds))
        query = (kind, " ".join(listed))
        first = self._exact.setdefault(query, item.case_id)
        if first != item.case_id:
            return Twin(item.case_id, first, 1.0, is_equal=True)
        if len(listed) < _LEAST_WORDS:
            return None
        return self._near(item.case_id, kind, set_of(self.vocabulary.runs([listed], RUN)))

    def _near(self, case_id: str, kind: int, runs: Runs) -> Twin | None:
        best = Twin(case_id, "", 0.0)
        compared: set[str] = set()
        for band in _bands(runs):
            others = self._bands.setdefault((kind, band), [])
            for other, theirs in others:
                if other not in compared:
                    compared.add(other)
                    similarity = _jaccard(runs, theirs)
                    best = max(best, Twin(case_id, other, similarity), key=lambda t: t.similarity)
            if len(others) < _MOST_COMPARED:
                others.append((case_id, runs))
        return best if best.similarity >= NEAR else None


def _kind(item: Item) -> Hashable:
    """What two cases must have in common to be compared."""
    condition = item.condition
    earlier = hash_of(" ".join(strings(item.trajectory))) if item.trajectory else 0
    return (
        item.form,
        item.tools.names if item.tools else None,
        tuple(file.path for file in item.files),
        earlier,
        condition.horizon,
        condition.broken_tool,
        condition.unsolvable_type,
    )


def hash_of(text: str) -> int:
    """A 64-bit key of the words of a text."""
    return short_key(" ".join(words(text)))


def _bands(runs: Runs) -> list[tuple[int, bytes]]:
    """Minimum hashes of a set of runs, a few together."""
    least = ((runs[:, None] ^ _SALTS) * _SPREAD).min(axis=0).reshape(_BANDS, _ROWS)
    return [(n, band.tobytes()) for n, band in enumerate(least)]


def _jaccard(first: Runs, second: Runs) -> float:
    """Of two sorted arrays without repeats."""
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both / (len(first) + len(second) - both)
