"""Runs of words that texts share, and cases that are equal, or nearly so, under other names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from ..errors import shorten
from ..records import Item, Step
from ..records.keys import KeySet, short_key

NEAR = 0.8
"""Least Jaccard similarity of the runs of words in the queries of near-duplicate cases."""
RUN = 5
_MOST_COMPARED = 100
_LEAST_WORDS = 8
_BLOCK = 1024
"""Number of cases, or pairs of them, that are compared at a time."""
Place = TypeVar("Place")
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words of a text, without letter case, spaces and punctuation."""
    return _WORD.findall(text.casefold())


def strings(value: object) -> Iterator[str]:
    """Every string within a JSON value, without names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in cast("Mapping[object, object]", value).values():
            yield from strings(part)
    elif isinstance(value, Sequence):
        for part in cast("Sequence[object]", value):
            yield from strings(part)


def prose_of_prediction(item: Item) -> list[str]:
    """The prose of a reply; all of the reply if no plan can be read in it."""
    prediction = item.prediction
    if prediction.kind == "text":
        return [item.response]
    return _prose(item, prediction.plan, prediction.steps)


def prose_of_reference(item: Item, *, arguments: bool = True) -> list[str]:
    """The prose of the expert's solution; nothing without one.

    Args:
        item: The item.
        arguments: True if descriptions of parameters count, which may be in the query's words.
    """
    reference = item.reference
    if reference is None:
        return []
    return _prose(item, reference.plan, reference.steps, arguments=arguments)


def _prose(item: Item, plan: str, steps: Iterable[Step], *, arguments: bool = True) -> list[str]:
    """Text for people to read: plan, thoughts, reasons, a whole plan's arguments."""
    texts = [plan]
    for step in steps:
        texts.append(step.thought)
        for call in step.calls:
            texts.append(call.reason)
            texts += strings(call.arguments) if arguments and item.form == "plan" else ()
    return [text for text in texts if text]


def runs(text: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Every run of n words, in order."""
    return zip(*(text[i:] for i in range(n)), strict=False)


@lru_cache(maxsize=256)  # rows of a case share their reference
def run_hashes(texts: tuple[str, ...], n: int) -> frozenset[int]:
    """The runs of n words within each of some texts, as hashes that are valid in this process."""
    return frozenset(hash(run) for text in texts for run in runs(words(text), n))


def shared_runs(texts: Iterable[str], n: int, hashes: frozenset[int]) -> Iterator[tuple[str, ...]]:
    """The runs of n words within some texts that also occur among others, by their hashes."""
    for text in texts:
        yield from (run for run in runs(words(text), n) if hash(run) in hashes)


class Twin(NamedTuple):
    """The earlier case that a case repeats, and the similarity of their queries, NEAR to 1."""

    case_id: str
    similarity: float
    is_equal: bool

    def __str__(self) -> str:
        alike = "word for word" if self.is_equal else f"{100 * self.similarity:.0f} % alike"
        return f"repeats case {shorten(self.case_id)}, {alike}"


class _Case(NamedTuple):
    kind: int
    query: str
    case_id: str
    place: Any


class Duplicates(Generic[Place]):
    """Finds cases that repeat an earlier one, once all of them are added.

    Only cases with the same tools by name, files, earlier messages, number of steps and condition
    are compared, by the words of their queries: another truncation of one run, or another
    robustness condition of one task, is another case. Queries of fewer than eight words have to be
    equal. Memory holds the queries and about 400 bytes per case, and in the end 80 bytes per word.
    """

    def __init__(self) -> None:
        self._ids = KeySet()
        self._cases: list[_Case] = []

    def __len__(self) -> int:
        """Number of cases with a query."""
        return len(self._cases)

    def add(self, item: Item, place: Place) -> None:
        """Adds a case, unless it has no query, or one with its ``case_id`` was added.

        Args:
            item: The case.
            place: The value to return with the case if it repeats another one.
        """
        if _WORD.search(item.query) and self._ids.add(short_key(item.case_id)):
            kind = short_key(repr(_kind(item)))
            self._cases.append(_Case(kind, item.query, item.case_id, place))

    def twins(self) -> Iterator[tuple[Place, Twin]]:
        """Yields each case that repeats earlier ones, with the most similar of these."""
        n_of_kind = Counter(case.kind for case in self._cases)
        cases = [case for case in self._cases if n_of_kind[case.kind] > 1]
        for at, first, similarity in (
            _near_pairs(_features(c.query, c.kind) for c in cases) if cases else ()
        ):
            is_equal = words(cases[at].query) == words(cases[first].query)
            yield cases[at].place, Twin(cases[first].case_id, similarity, is_equal)


def near_duplicates(texts: Iterable[str], others: Iterable[str]) -> Iterator[int]:
    """Yields the positions of texts that nearly repeat one of some others (NEAR, as for cases)."""
    sets = [frozenset(_features(text)) for text in others]
    having: defaultdict[str, list[int]] = defaultdict(list)
    for at, features in enumerate(sets):
        for feature in features:
            having[feature].append(at)
    for position, text in enumerate(texts):
        features = frozenset(_features(text))
        shared = Counter(at for feature in features for at in having.get(feature, ()))
        if any(n / (len(features) + len(sets[at]) - n) >= NEAR for at, n in shared.items()):
            yield position


def _features(query: str, kind: int = 0) -> Iterator[str]:
    """The runs of a query, each with the case's kind, so that different kinds share none."""
    listed = words(query)
    n = RUN if len(listed) >= _LEAST_WORDS else len(listed)
    return (f"{kind} {n} {' '.join(run)}" for run in runs(listed, n))


def _near_pairs(features: Iterable[Iterator[str]]) -> Iterator[tuple[int, int, float]]:
    """Yields each set of features near earlier ones, the most similar one, and their similarity.

    Sets that share NEAR of their features, rarest first, have one of the first 1 - NEAR in common:
    only sets with such a feature are compared, each feature with the first 100 sets that have it
    (prefix filter of Chaudhuri et al., 2006).
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction import FeatureHasher

    # two of a million pairs of sets of 60 features share a hash by chance
    hasher: Any = FeatureHasher(2**31 - 1, input_type="string")
    hashed: Any = hasher.transform(features)
    _, column, counts = np.unique(hashed.indices, return_inverse=True, return_counts=True)
    rank = np.argsort(np.argsort(counts, kind="stable"))[column]
    sets: Any = csr_array((np.ones(len(rank), np.float32), rank, hashed.indptr))
    sets.sort_indices()
    sizes = np.diff(sets.indptr)
    prefixes = _first_of_rows(sets, sizes - np.ceil(NEAR * sizes).astype(int) + 1)
    earliest = _first_of_rows(prefixes.T.tocsr(), np.full(len(counts), _MOST_COMPARED))
    for start in range(0, len(sizes), _BLOCK):
        compared = (prefixes[start : start + _BLOCK] @ earliest).tocoo()
        pairs = np.stack([compared.row + start, compared.col])
        later, earlier = pairs[:, pairs[0] > pairs[1]]
        shared = np.empty(len(later))
        for part in range(0, len(later), _BLOCK):
            at = slice(part, part + _BLOCK)
            shared[at] = sets[later[at]].multiply(sets[earlier[at]]).sum(axis=1)
        similarity = shared / (sizes[later] + sizes[earlier] - shared)
        order = np.lexsort((earlier, -similarity, later))
        best = order[np.unique(later[order], return_index=True)[1]]
        best = best[similarity[best] >= NEAR]
        yield from zip(later[best], earlier[best], similarity[best].tolist(), strict=True)


def _first_of_rows(matrix: Any, n: Any) -> Any:
    """A sparse matrix with only the first entries of each row; n is their number by row."""
    sizes = np.diff(matrix.indptr)
    first = matrix.copy()
    end = np.repeat(matrix.indptr[:-1] + n, sizes)
    first.data[np.arange(matrix.nnz) >= end] = 0
    first.eliminate_zeros()
    return first


def _kind(item: Item) -> Hashable:
    """Values that two cases must have in common to be compared."""
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
