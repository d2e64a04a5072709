"""Consensus of several raters on an item: the adjudicator's label, or the majority of theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from .columns import BITS, Scores, Vector, no_scores
from .judgements import ErrorCode
from .keys import model_key, short_key
from .label_table import LabelTable, label_table
from .labels import HumanLabel

Key = tuple[str, str | None]
"""Item id and tested model; labels without a tested model are separate."""

Answers = tuple[Vector, Vector]
"""Sorted keys of items, and the number of tested models that answered each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """The consensus of the raters of one item.

    Attributes:
        item_id: The item.
        tested_model: The tested model of the response; None if the labels don't name it.
        is_correct: True if the prediction passes; None if no rater answered or the raters are
            split.
        grade: Median, 0 to 1; between two levels if the middle two of an even number differ.
        errors: The decided codes; None without any.
        category: 1 to 5; None as for ``is_correct``.
        raters: Raters with a label of the item, sorted, without the adjudicator.
        ties: Fields in which no value has more than half of the votes: ``is_correct``, ``E1`` …
            ``category``.
        adjudicated: True if the adjudicator decided any field.
    """

    item_id: str
    tested_model: str | None
    is_correct: bool | None
    grade: float | None
    errors: dict[ErrorCode, bool] | None
    category: int | None
    raters: tuple[str, ...]
    ties: tuple[str, ...]
    adjudicated: bool


@dataclass(frozen=True, kw_only=True)
class ConsensusTable(Scores):
    """Labels combined per item and tested model; one entry each, in order of first occurrence.

    Attributes:
        labels: The labels.
        first: Row of the first label of each entry.
        ties: uint32, bit i set where raters are split on ``fields[i]``; nothing is decided there.
        adjudicated: True if the adjudicator decided anything.
        by_rater: Rows of each rater's own labels, in the order of the entries; raters sorted,
            without the adjudicator.
        entry: Shape (labels,): entry of each label that counts, -1 for others.
        n_repeated: Labels that a later one of the same rater on the same item replaces.
        n_changed: Those of them that differ from the label that replaces them.
        n_silent: Labels that state nothing; they are left out everywhere.
        n_unsure: Labels that their raters are unsure of, whether they are counted or left out.
    """

    labels: LabelTable
    first: Vector
    ties: Vector
    adjudicated: Vector
    by_rater: dict[str, Vector] = field(repr=False)
    entry: Vector
    n_repeated: int
    n_changed: int
    n_silent: int
    n_unsure: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields on which raters may be split, in the order of the bits of ``ties``."""
        return ("is_correct", *self.error_codes, "category")

    def rater(self, name: str) -> Scores:
        """The scores of one rater for each entry."""
        rows, at = self.by_rater[name], np.full(len(self), -1)
        at[self.entry[rows]] = rows
        return self.labels.scores_at(at)

    def find(self, item: Vector, key: Vector, answers: Answers) -> Vector:
        """The entry for each of some judged rows; -1 if there is none.

        A label that names no tested model counts if only one tested model answered the item.

        Args:
            item: Shape (n,), keys of the items.
            key: Shape (n,), keys of items with tested models.
            answers: See ``answers_of``.
        """
        exact = self._at(key)
        place = np.minimum(np.searchsorted(answers[0], item), max(0, len(answers[0]) - 1))
        alone = (answers[0][place] == item) & (answers[1][place] == 1) if len(place) else exact > 0
        return np.where((exact < 0) & alone, self._at(item), exact)

    def entry_of(self, item_id: str, tested_model: str | None, answers: Answers) -> int:
        """Like ``find``, for one row."""
        item = np.array([short_key(item_id)], dtype=np.uint64)
        key = item ^ np.uint64(model_key(tested_model))
        return int(self.find(item, key, answers)[0])

    def has_bare(self, item: Vector) -> Vector:
        """True for items with a label that names no tested model."""
        return self._at(item) >= 0

    def _at(self, keys: Vector) -> Vector:
        known, order = self._sorted
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        if not len(known):
            return np.full(len(keys), -1)
        return np.where(known[place] == keys, order[place], -1)

    @cached_property
    def _sorted(self) -> tuple[Vector, Vector]:
        keys = self.labels.key[self.first]
        order = np.argsort(keys)
        return keys[order], order

    def key_at(self, at: int) -> Key:
        """Item and tested model of an entry."""
        row = int(self.first[at])
        return self.labels.item_id[row] or "", self.labels.models[int(self.labels.model[row])]

    def labels_at(self, at: int) -> list[HumanLabel]:
        """The raters' own labels of an entry, raters sorted."""
        rows = self._rows_at(at)
        return sorted(map(self.labels.label, rows), key=lambda label: label.rater)

    def _rows_at(self, at: int) -> list[int]:
        order, starts = self._by_entry
        return order[starts[at] : starts[at + 1]].tolist()

    @cached_property
    def _by_entry(self) -> tuple[Vector, Vector]:
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *self.by_rater.values()])
        entry = self.entry[rows]
        order = np.argsort(entry, kind="stable")
        return rows[order], np.searchsorted(entry[order], np.arange(len(self) + 1))

    def __getitem__(self, at: int) -> Consensus:
        item_id, tested_model = self.key_at(at)
        correct, grade, category = self.correct[at], float(self.grade[at]), int(self.category[at])
        raters = {self.labels.raters[int(self.labels.rater[row])] for row in self._rows_at(at)}
        return Consensus(
            item_id=item_id,
            tested_model=tested_model,
            is_correct=None if correct < 0 else bool(correct),
            grade=None if np.isnan(grade) else grade,
            errors=self.errors_at(at),
            category=category or None,
            raters=tuple(sorted(raters)),
            ties=tuple(name for i, name in enumerate(self.fields) if int(self.ties[at]) >> i & 1),
            adjudicated=bool(self.adjudicated[at]),
        )

    @property
    def first_faulty_steps(self) -> tuple[int, int]:
        """Counts of label pairs of an item that both mark a step, and that agree on the first."""
        firsts: dict[int, list[int]] = {}
        for rows in self.by_rater.values():
            for row in rows[self.labels.faulty_steps.ends[rows] >= 0].tolist():
                firsts.setdefault(int(self.entry[row]), []).append(self.labels.steps_at(row)[0])
        pairs = [pair for steps in firsts.values() for pair in combinations(steps, 2)]
        return len(pairs), sum(a == b for a, b in pairs)

    @property
    def items(self) -> dict[Key, Consensus]:
        """All entries by item and tested model; for a few thousand of them."""
        return {self.key_at(at): self[at] for at in range(len(self))}


def answers_of(item: Vector, key: Vector) -> Answers:
    """The number of tested models that answered each item.

    Args:
        item: Shape (n,), keys of the items of judged rows.
        key: Shape (n,), keys of items with tested models.
    """
    _, first = np.unique(key, return_index=True)
    return np.unique(item[first], return_counts=True)


def resolve(
    labels: LabelTable | Iterable[HumanLabel],
    *,
    adjudicator: str | None = None,
    include_unsure: bool = True,
) -> ConsensusTable:
    """Combines the labels of each item, field by field.

    The adjudicator's value counts if there is one. Otherwise is_correct, each flag and the category
    take the value that more than half of those who answered chose; without such a value nothing is
    decided and the field is named in ``ties``. The grade is the median.

    Not for measuring how well raters agree (use ``by_rater``), nor for raters who are known to
    differ in quality: all have the same weight.

    Args:
        labels: The labels in any order, except that the last of a rater's labels on one item
            counts. All lines that name no rater count as one rater's.
        adjudicator: Rater whose labels are final and have no vote among the others.
        include_unsure: True if labels that their raters are unsure of count like any other.
    """
    table = labels if isinstance(labels, LabelTable) else label_table(labels)
    stated = np.flatnonzero(~table.is_silent)
    order, same, is_last = _by_rater(table, stated)
    n_unsure = int(table.unsure[order[is_last]].sum())
    if n_unsure and not include_unsure:  # nor does the rater's earlier label count
        group = np.cumsum(is_last) - is_last
        stated = np.sort(order[~table.unsure[order[is_last]][group]])
        order, same, is_last = _by_rater(table, stated)
    rows = order[is_last]
    _, first, inverse = np.unique(table.key[stated], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    entry = np.full(len(table), -1)
    entry[stated] = rank[inverse.reshape(-1)]
    counted = np.full(len(table), -1)
    counted[rows] = entry[rows]
    final = table.raters.index(adjudicator) if adjudicator in table.raters else -1
    is_final = table.rater[rows] == final
    scores, ties = _decided(table.scores_at(rows), counted[rows], is_final, len(first))
    rows = rows[np.argsort(counted[rows], kind="stable")]
    of_rater = {
        name: rows[table.rater[rows] == code]
        for code, name in enumerate(table.raters)
        if code != final
    }
    earlier, later = (table.scores_at(of[same]) for of in (order[:-1], order[1:]))
    adjudicated = np.zeros(len(first), dtype=bool)
    adjudicated[counted[rows[table.rater[rows] == final]]] = True
    return ConsensusTable(
        **scores.__dict__,
        labels=table,
        first=stated[np.sort(first)],
        ties=ties,
        adjudicated=adjudicated,
        by_rater={name: of_rater[name] for name in sorted(of_rater) if len(of_rater[name])},
        entry=counted,
        n_repeated=int(same.sum()),
        n_changed=int(earlier.differs_from(later).sum()),
        n_silent=int(table.is_silent.sum()),
        n_unsure=n_unsure,
    )


def _by_rater(table: LabelTable, rows: Vector) -> tuple[Vector, Vector, Vector]:
    """Rows sorted by item and rater; true if the next has the same ones; true for their last."""
    order = rows[np.lexsort((rows, table.rater[rows], table.key[rows]))]
    same = (table.key[order][1:] == table.key[order][:-1]) & (
        table.rater[order][1:] == table.rater[order][:-1]
    )
    return order, same, np.append(~same, np.ones(min(1, len(order)), dtype=bool))


def majority(labels: Iterable[HumanLabel]) -> dict[Key, bool]:
    """``is_correct`` as ``resolve`` decides it; items without a decision are left out."""
    consensus = resolve(labels)
    decided: list[int] = np.flatnonzero(consensus.correct >= 0).tolist()
    return {consensus.key_at(at): bool(consensus.correct[at]) for at in decided}


def _decided(votes: Scores, entry: Vector, is_final: Vector, n: int) -> tuple[Scores, Vector]:
    """The scores of each entry, and the fields on which raters are split.

    Args:
        votes: Labels, one per rater and entry.
        entry: Shape (labels,): the entry of each.
        is_final: Shape (labels,): true for the adjudicator's.
        n: Number of entries.
    """

    def counted(has: Vector) -> Vector:
        """The labels that count for a field: the adjudicator's, else all."""
        by_final = np.zeros(n, dtype=bool)
        by_final[entry[has & is_final]] = True
        return has & (is_final | ~by_final[entry])

    def most(bit: int, has: Vector, values: Vector, n_values: int) -> Vector:
        """The value that more than half have; -1 for none, with the field's bit in ``ties``."""
        at = counted(has)
        times = np.bincount(entry[at] * n_values + values[at], minlength=n * n_values)
        times = times.reshape(n, n_values)
        best, all_of = times.argmax(axis=1), times.sum(axis=1)
        decided = 2 * times.max(axis=1, initial=0) > all_of
        ties[:] |= ((all_of > 0) & ~decided).astype(BITS) << BITS(bit)
        return np.where(decided, best, -1)

    ties = np.zeros(n, dtype=BITS)
    scores = replace(no_scores(n), error_codes=votes.error_codes)
    scores.correct[:] = most(0, votes.correct >= 0, votes.correct, 2)
    n_codes = len(votes.error_codes)
    for i in range(n_codes):
        value = most(i + 1, (votes.known >> i & 1) > 0, votes.flags >> i & 1, 2)
        scores.known[:] |= (value >= 0).astype(BITS) << BITS(i)
        scores.flags[:] |= (value == 1).astype(BITS) << BITS(i)
    n_categories = int(votes.category.max(initial=0)) + 1
    category = most(n_codes + 1, votes.category > 0, votes.category, n_categories)
    scores.category[:] = np.maximum(category, 0)
    graded = np.flatnonzero(counted(~np.isnan(votes.grade)))
    graded = graded[np.lexsort((votes.grade[graded], entry[graded]))]
    size = np.bincount(entry[graded], minlength=n)
    start = np.cumsum(size) - size
    has = np.flatnonzero(size)
    ordered = votes.grade[graded]
    low, high = (ordered[(start + (size - shift) // 2)[has]] for shift in (1, 0))
    scores.grade[has] = np.where(low == high, low, (low + high) / 2)
    return scores, ties
