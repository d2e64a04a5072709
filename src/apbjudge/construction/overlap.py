"""Runs of words that texts share, and cases that are the same, or nearly, under other names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from ..records import Item, Step
from ..records.keys import KeySet, short_key

NEAR = 0.8
"""Jaccard similarity of the queries' runs of words from which two cases are near duplicates."""
RUN = 5
_MOST_COMPARED = 20
_LEAST_WORDS = 8
_KEY_BITS = 2**32 - 1
"""Of a million pairs of queries of 60 words one shares a key of 32 bits by chance."""
Ids = np.ndarray[Any, np.dtype[np.uint32]]
_NO_RUNS: Ids = np.empty(0, dtype=np.uint32)
_WORD = re.compile(r"\w+")


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


def prose_of_prediction(item: Item) -> list[str]:
    """The prose of a reply; all of it where no plan can be read in it."""
    prediction = item.prediction
    if prediction.kind == "text":
        return [item.response]
    return _prose(item, prediction.plan, prediction.steps)


def prose_of_reference(item: Item) -> list[str]:
    """The prose of the expert's solution; nothing where there is none."""
    reference = item.reference
    return _prose(item, reference.plan, reference.steps) if reference else []


def _prose(item: Item, plan: str, steps: Iterable[Step]) -> list[str]:
    """What is written for people to read: plan, thoughts, reasons, a whole plan's arguments."""
    texts = [plan]
    for step in steps:
        texts.append(step.thought)
        for call in step.calls:
            texts.append(call.reason)
            texts += strings(call.arguments) if item.form == "plan" else ()
    return [text for text in texts if text]


def runs(text: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Every run of n words, in order."""
    return zip(*(text[i:] for i in range(n)), strict=False)


@lru_cache(maxsize=256)  # rows of a case share their reference
def run_hashes(texts: tuple[str, ...], n: int) -> frozenset[int]:
    """The runs of n words within each of some texts, as hashes that hold in this process."""
    return frozenset(hash(run) for text in texts for run in runs(words(text), n))


class Twin(NamedTuple):
    """What a case repeats: an earlier case, and how alike the queries are, NEAR to 1."""

    of: str
    similarity: float
    is_equal: bool = False


class Duplicates:
    """Finds cases that repeat an earlier one.

    Only cases with the same tools by name, files, earlier messages, number of steps and condition
    are compared, by the words of their queries: another truncation of one run, or another
    robustness condition of one task, is another case. Sets of which NEAR is shared have one of
    their first 1 - NEAR keys in common: only those with such a key are compared, each key with at
    most 20 cases (prefix filter of Chaudhuri et al., 2006). Memory grows by some 1,600 bytes for a
    query of 60 words.
    """

    def __init__(self) -> None:
        self._cases: list[str] = []
        self._runs: list[Ids] = []
        self._seen = KeySet()
        self._exact: dict[int, int] = {}
        self._by_key: dict[int, int | list[int]] = {}

    def __len__(self) -> int:
        """Cases that were looked at."""
        return len(self._cases)

    def add(self, item: Item) -> Twin | None:
        """Looks at a case; at one that was looked at already, and at empty ones, not again."""
        listed = words(item.query)
        if not listed or not self._seen.add(short_key(item.case_id)):
            return None
        at = len(self._cases)
        self._cases.append(item.case_id)
        self._runs.append(_NO_RUNS)
        kind = str(short_key(repr(_kind(item))))  # in every key, so that other kinds share none
        first = self._exact.setdefault(short_key(kind, *listed), at)
        if first != at:
            return Twin(self._cases[first], 1.0, is_equal=True)
        if len(listed) < _LEAST_WORDS:
            return None
        keys = [short_key(kind, *run) & _KEY_BITS for run in runs(listed, RUN)]
        own = self._runs[at] = np.unique(np.array(keys, dtype=np.uint32))
        compared: dict[int, float] = {}
        n_first = len(own) - int(np.ceil(NEAR * len(own))) + 1
        for key in own[:n_first].tolist():
            for other in self._sharing(key, at):
                if other not in compared:
                    theirs = self._runs[other]
                    both = len(np.intersect1d(own, theirs, assume_unique=True))
                    compared[other] = both / (len(own) + len(theirs) - both)
        if not compared:
            return None
        best = max(compared, key=lambda other: compared[other])
        return Twin(self._cases[best], compared[best]) if compared[best] >= NEAR else None

    def _sharing(self, key: int, at: int) -> tuple[int, ...]:
        """The earlier cases that have a key among their first; the case is put with them."""
        others = self._by_key.get(key)
        if others is None:
            self._by_key[key] = at
            return ()
        if isinstance(others, int):
            self._by_key[key] = [others, at]
            return (others,)
        found = tuple(others)
        if len(others) < _MOST_COMPARED:
            others.append(at)
        return found


def _kind(item: Item) -> Hashable:
    """What two cases must have in common to be compared."""
    condition = item.condition
    return (
        item.form,
        sorted(item.tools.names) if item.tools else None,
        [file.path for file in item.files],
        hash_of(" ".join(strings(item.trajectory))),
        condition.horizon,
        condition.broken_tool,
        condition.unsolvable_type,
    )


def hash_of(text: str) -> int:
    """A 64-bit key of the words of a text."""
    return short_key(" ".join(words(text)))
