"""What several raters say of an item together: an adjudicator's word, or most of theirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .judgements import ERROR_CODES, ErrorCode
from .labels import HumanLabel

Key = tuple[str, str | None]
"""Item id and tested model; labels without a tested model are separate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """What the raters of one item say together.

    Attributes:
        item_id: The item.
        tested_model: Whose response it was; None where the labels don't say.
        is_correct: Whether the prediction passes; None where nobody answered or they are split.
        grade: Median, 0 to 1; between two levels where the middle two of an even number differ.
        errors: The codes that were decided; None where none was.
        category: 1 to 5; None where nobody answered or they are split.
        raters: Those with a label of the item, sorted, without the adjudicator.
        ties: Fields on which no value has more than half: ``is_correct``, ``E1`` … ``category``.
        adjudicated: Whether the adjudicator decided any field.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Labels, put together per item and sorted by rater.

    Attributes:
        items: The consensus on each item, in the order in which items first appear.
        by_rater: Each rater's own labels, raters sorted, the adjudicator not among them.
        n_repeated: Labels that a later one of the same rater on the same item replaces.
        n_changed: Those of them that differ from the label that replaces them.
        n_silent: Labels that say nothing; they are left out everywhere.
    """

    items: dict[Key, Consensus]
    by_rater: dict[str, dict[Key, HumanLabel]]
    n_repeated: int
    n_changed: int
    n_silent: int


def resolve(labels: Iterable[HumanLabel], *, adjudicator: str | None = None) -> Resolved:
    """Puts the labels of each item together, field by field.

    The adjudicator's word stands where there is one. Otherwise is_correct, each flag and the
    category are what more than half of those say who answered; where no value has so
    many, nothing is decided and the field is named in ``ties``. The grade is the median.

    Not for measuring how well raters agree (``by_rater`` is), nor where some raters are known to
    be better than others: every one has the same say.

    Args:
        labels: In any order, but of a rater's labels on one item the last one counts. Lines that
            name no rater are all by one and the same.
        adjudicator: Rater whose word is final, and who has no vote among the others.
    """
    labels_of: dict[Key, dict[str, HumanLabel]] = defaultdict(dict)
    n_repeated = n_changed = n_silent = 0
    for label in labels:
        if not any(value is not None for value in _answers(label)):
            n_silent += 1
            continue
        by_rater = labels_of[label.item_id, label.tested_model]
        if (earlier := by_rater.get(label.rater)) is not None:
            n_repeated += 1
            n_changed += _answers(earlier) != _answers(label)
        by_rater[label.rater] = label
    return Resolved(
        items={key: _consensus(key, by_rater, adjudicator) for key, by_rater in labels_of.items()},
        by_rater=_by_rater(labels_of, adjudicator),
        n_repeated=n_repeated,
        n_changed=n_changed,
        n_silent=n_silent,
    )


def majority(labels: Iterable[HumanLabel]) -> dict[Key, bool]:
    """What ``resolve`` says of ``is_correct``; items on which nothing is decided are left out."""
    items = resolve(labels).items
    return {key: item.is_correct for key, item in items.items() if item.is_correct is not None}


def _answers(label: HumanLabel) -> tuple[object, ...]:
    return label.is_correct, label.grade, label.errors or None, label.category


def _by_rater(
    labels_of: dict[Key, dict[str, HumanLabel]], adjudicator: str | None
) -> dict[str, dict[Key, HumanLabel]]:
    raters = sorted(
        {rater for by_rater in labels_of.values() for rater in by_rater} - {adjudicator}
    )
    own: dict[str, dict[Key, HumanLabel]] = {rater: {} for rater in raters}
    for key, by_rater in labels_of.items():
        for rater, label in by_rater.items():
            if rater != adjudicator:
                own[rater][key] = label
    return own


_FIELDS = ("is_correct", *ERROR_CODES, "category")


def _consensus(key: Key, by_rater: dict[str, HumanLabel], adjudicator: str | None) -> Consensus:
    final = [label for rater, label in by_rater.items() if rater == adjudicator]
    others = [label for rater, label in by_rater.items() if rater != adjudicator]
    votes = {**_votes(others), **_votes(final)}
    grades = votes.pop("grade", [])
    agreed = {field: _most(votes[field]) for field in _FIELDS if field in votes}
    return Consensus(
        item_id=key[0],
        tested_model=key[1],
        is_correct=agreed.get("is_correct"),
        grade=_median(grades) if grades else None,
        errors={code: agreed[code] for code in ERROR_CODES if agreed.get(code) is not None} or None,
        category=agreed.get("category"),
        raters=tuple(sorted(label.rater for label in others)),
        ties=tuple(field for field, value in agreed.items() if value is None),
        adjudicated=bool(final),
    )


def _votes(labels: Iterable[HumanLabel]) -> dict[str, list[Any]]:
    """By field, what those say who say anything of it."""
    votes: dict[str, list[Any]] = defaultdict(list)
    for label in labels:
        plain = {"is_correct": label.is_correct, "grade": label.grade, "category": label.category}
        for field, value in {**plain, **(label.errors or {})}.items():
            if value is not None:
                votes[field].append(value)
    return votes


def _most(values: Sequence[Any]) -> Any:
    """The value that more than half have, or None."""
    value = max(set(values), key=values.count)
    return value if 2 * values.count(value) > len(values) else None


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
