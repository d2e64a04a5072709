"""Runs of words that texts share, and cases that are the same, or nearly, under other names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from ..records import Item, Step
from ..records.keys import short_key

NEAR = 0.8
"""Jaccard similarity of the queries' runs of words from which two cases are near duplicates."""
RUN = 5
_MOST_COMPARED = 20
_LEAST_WORDS = 8
Ids = np.ndarray[Any, np.dtype[np.uint64]]
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


@dataclass(slots=True)
class Duplicates:
    """Finds cases that repeat an earlier one.

    Only cases with the same tools by name, files, earlier messages, number of steps and condition
    are compared, by the words of their queries: another truncation of one run, or another
    robustness condition of one task, is another case. Sets of which NEAR is shared have one of
    their first 1 - NEAR keys in common: only those with such a key are compared, each key with at
    most 20 cases (prefix filter of Chaudhuri et al., 2006).
    """

    cases: set[str] = field(default_factory=set[str])
    _exact: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    _by_key: dict[Hashable, list[tuple[str, Ids]]] = field(
        default_factory=dict[Hashable, list[tuple[str, Ids]]]
    )

    def add(self, item: Item) -> Twin | None:
        """Looks at a case; at one that was looked at already, and at empty ones, not again."""
        listed = words(item.query)
        if item.case_id in self.cases or not listed:
            return None
        self.cases.add(item.case_id)
        kind = short_key(repr(_kind(item)))
        first = self._exact.setdefault((kind, " ".join(listed)), item.case_id)
        if first != item.case_id:
            return Twin(first, 1.0, is_equal=True)
        if len(listed) < _LEAST_WORDS:
            return None
        keys = np.unique([short_key(" ".join(run)) for run in runs(listed, RUN)])
        compared: dict[str, float] = {}
        n_first = len(keys) - int(np.ceil(NEAR * len(keys))) + 1
        for key in keys[:n_first].tolist():
            others = self._by_key.setdefault((kind, key), [])
            for case_id, theirs in others:
                if case_id not in compared:
                    both = len(np.intersect1d(keys, theirs, assume_unique=True))
                    compared[case_id] = both / (len(keys) + len(theirs) - both)
            if len(others) < _MOST_COMPARED:
                others.append((item.case_id, keys))
        if not compared:
            return None
        best = max(compared, key=lambda case_id: compared[case_id])
        return Twin(best, compared[best]) if compared[best] >= NEAR else None


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
