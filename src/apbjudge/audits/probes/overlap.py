"""Runs of words that texts share, and cases that are the same, or nearly, under other names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

import numpy as np

from ...records import Item, Step
from ...records.keys import short_key

Runs = np.ndarray[Any, np.dtype[np.uint64]]

_WORD = re.compile(r"\w+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def words(text: str) -> list[str]:
    """The words of a text, letter case, spaces and punctuation apart."""
    return _WORD.findall(text.casefold())


def strings(value: object) -> Iterator[str]:
    """Every string within a JSON value, names of fields left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in cast("Mapping[object, object]", value).values():
            yield from strings(part)
    elif isinstance(value, Sequence):
        for part in cast("Sequence[object]", value):
            yield from strings(part)


def prose(plan: str, steps: Iterable[Step], *, with_arguments: bool) -> list[str]:
    """What is written in a plan or in steps for people to read: plan, thoughts, reasons.

    Args:
        plan: Prose of a plan; empty where there is none.
        steps: The steps.
        with_arguments: Whether arguments are descriptions (a whole plan's), which then count.
    """
    result = [plan]
    for step in steps:
        result.append(step.thought)
        for call in step.calls:
            result.append(call.reason)
            result += strings(call.arguments) if with_arguments else ()
    return [text for text in result if text]


def prose_of_prediction(item: Item) -> list[str]:
    """The prose of a reply; all of it where no plan can be read in it."""
    prediction = item.prediction
    if prediction.kind == "text":
        return [item.response]
    return prose(prediction.plan, prediction.steps, with_arguments=item.form == "plan")


def prose_of_reference(item: Item) -> list[str]:
    """The prose of the expert's solution; nothing where there is none."""
    reference = item.reference
    if reference is None:
        return []
    return prose(reference.plan, reference.steps, with_arguments=item.form == "plan")


@dataclass(slots=True)
class Vocabulary:
    """Numbers for words, so that runs of words become numbers too.

    Attributes:
        ids: The number of each word met so far, from 1.
    """

    ids: defaultdict[str, int] = field(default_factory=lambda: defaultdict(count(1).__next__))

    def runs(self, texts: Sequence[Sequence[str]], n: int) -> Runs:
        """Every run of n words, in order, as a 64-bit number.

        Args:
            texts: The words of each text; no run goes beyond one.
            n: Words in a run, 1 to LONGEST.

        Returns:
            A number for each word of all texts with which a run begins, 0 where its text ends
            before. Different runs have different numbers but for about one pair in 10^19.
        """
        numbers: list[int] = []
        for text in texts:
            numbers += map(self.ids.__getitem__, text)
            numbers.append(0)
        flat = np.array(numbers, dtype=np.uint64)
        size = len(flat) - n + 1
        if size < 1:
            return np.zeros(len(flat), dtype=np.uint64)
        ends = np.concatenate([[0], np.cumsum(flat == 0)])
        spread, result = mixed(flat), np.zeros(len(flat), dtype=np.uint64)
        for i in range(n):
            result[:size] += spread[i : size + i] * _PLACES[i]
        result[:size][ends[n:] > ends[:size]] = 0
        return result


def among(runs: Runs, known: Runs) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Marks the runs that are among others.

    Args:
        runs: Shape (n,).
        known: Sorted, without 0; may be empty.
    """
    if not len(known):
        return np.zeros(len(runs), dtype=np.bool_)
    return known[np.minimum(np.searchsorted(known, runs), len(known) - 1)] == runs


def set_of(runs: Runs) -> Runs:
    """Each run once, in order; 0, which is none, left out."""
    return np.unique(runs[runs != 0])


def mixed(numbers: Runs) -> Runs:
    """Scatters numbers over 64 bits, one to one."""
    for _ in range(2):
        numbers = numbers * _FACTOR
        numbers = numbers ^ (numbers >> _SHIFT)
    return numbers


LONGEST = 16
_PLACES = mixed(np.arange(1, LONGEST + 1, dtype=np.uint64)) | np.uint64(1)


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
