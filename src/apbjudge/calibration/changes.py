"""Changes of single items from one run to another, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from ..records.columns import all_codes
from ..records.consensus import Answers
from ..records.judgement_table import JudgementTable
from .matching import Labels, are_of_two_models, pair_rows

ChangeKind = Literal["lost", "won", "no verdict any more", "a verdict now", "grade", "diagnosis"]
KINDS: Mapping[ChangeKind, str] = {
    "lost": "correct before, incorrect now",
    "won": "incorrect before, correct now",
    "no verdict any more": "scored before, unscored now",
    "a verdict now": "unscored before, scored now",
    "grade": "same verdict, another grade",
    "diagnosis": "same verdict and grade, other error codes or another category",
}
"""The ways in which an item can change, with their meaning."""

_BY_ITEM = "each run has one tested model, and they differ: items are paired by id alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScore:
    """One run's judgement of an item.

    Attributes:
        tested_model: Tested model of the response; None if the row names none.
        is_correct: The verdict; None if unscored.
        grade: 0 to 1; None if there is none.
        errors: The codes that are set, sorted; None if the verdict has no codes.
        category: 1 to 5 after a broken tool, else None.
        reason: Reason why there is no verdict; empty with one.
    """

    tested_model: str | None
    is_correct: bool | None
    grade: float | None
    errors: tuple[str, ...] | None
    category: int | None
    reason: str

    @classmethod
    def of(cls, table: JudgementTable, at: int) -> ItemScore:
        """Reads the judgement in a row of a table."""
        is_scored, errors = bool(table.scored[at]), table.errors_at(at)
        is_set = None if errors is None else tuple(code for code in errors if errors[code])
        grade = float(table.grade[at])
        return cls(
            tested_model=table.tested_model(at),
            is_correct=bool(table.correct[at]) if is_scored else None,
            grade=None if np.isnan(grade) else grade,
            errors=is_set,
            category=int(table.category[at]) or None,
            reason="" if is_scored else table.reasons[int(table.reason[at])],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictChange:
    """One item that the two runs judge differently.

    Attributes:
        item_id: The item.
        protocol: Its protocol.
        before: The first run's judgement.
        after: The second run's judgement.
        human: True if humans consider it correct; None without label.
        kind: Main kind of change, one of ``KINDS``.
    """

    item_id: str
    protocol: str
    before: ItemScore
    after: ItemScore
    human: bool | None
    kind: ChangeKind

    @property
    def is_now_wrong(self) -> bool | None:
        """True if the verdict changed away from the label's; None without label or change."""
        pair = (self.before.is_correct, self.after.is_correct)
        if self.human is None or None in pair or pair[0] == pair[1]:
            return None
        return self.after.is_correct != self.human

    @property
    def moved(self) -> float:
        """The distance between the grades; 0 if one of them is missing."""
        a, b = self.before.grade, self.after.grade
        return 0.0 if a is None or b is None else abs(a - b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All items that differ, worst first.

    Attributes:
        before: Name of the first run.
        after: Name of the second run.
        n_pairs: Number of items that both have.
        n_compared: Number of these with a verdict by both.
        n_only: Numbers of items that only the first has, and that only the second has.
        items: The changes. First those that are wrong now and were right by the labels, then
            verdicts lost and won, scores lost and gained, then grades, the largest change first.
        note: Method of pairing, if it is not by item and tested model.
    """

    before: str
    after: str
    n_pairs: int
    n_compared: int
    n_only: tuple[int, int]
    items: tuple[VerdictChange, ...]
    note: str = ""

    @property
    def is_of_two_models(self) -> bool:
        """True if the runs are on two tested models' responses, paired by item alone."""
        return bool(self.note)

    @property
    def counts(self) -> Mapping[ChangeKind, int]:
        """Items by kind of change, every kind listed."""
        times = Counter(change.kind for change in self.items)
        return {kind: times[kind] for kind in KINDS}

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values; missing is None."""
        items = [asdict(change) | {"is_now_wrong": change.is_now_wrong} for change in self.items]
        return asdict(self) | {"counts": dict(self.counts), "items": items}


def find_changes(
    names: Sequence[str],
    tables: tuple[JudgementTable, JudgementTable],
    labels: Labels | None,
    answers: Answers | None,
) -> Changes:
    """Compares two runs item by item.

    Args:
        names: Display names of the runs.
        tables: Their judgements; rows that never became items are ignored.
        labels: Human labels; None without. Ignored for two tested models, whose responses differ.
        answers: See ``records.consensus.answers_of``; None without labels.
    """
    before, after = (table.items() for table in tables)
    rows = (np.arange(len(before)), np.arange(len(after)))
    by_item = are_of_two_models((before, after), rows)
    at, on = pair_rows((before, after), rows, by_model=not by_item, by_protocol=True)
    codes = all_codes((before, after))
    a, b = (of.scores_at(rows).with_codes(codes) for of, rows in ((before, at), (after, on)))
    human = np.full(len(at), -1)
    if labels is not None and answers is not None and not by_item:
        entry = labels.consensus.find(before.item[at], before.key[at], answers)
        human = labels.consensus.scores_at(entry).correct
    protocols = before.labels["protocol"]
    changes = (
        change_of(
            before.item_id[at[i]] or "",
            protocols[before.code("protocol", at[i])] or "",
            ItemScore.of(before, at[i]),
            ItemScore.of(after, on[i]),
            human=None if human[i] < 0 else bool(human[i]),
        )
        for i in np.flatnonzero(a.differs_from(b)).tolist()
    )
    return Changes(
        before=names[0],
        after=names[1],
        n_pairs=len(at),
        n_compared=int(np.count_nonzero(before.scored[at] & after.scored[on])),
        n_only=(len(before) - len(at), len(after) - len(at)),
        items=worst_first(change for change in changes if change is not None),
        note=_BY_ITEM if by_item else "",
    )


def change_of(
    item_id: str, protocol: str, before: ItemScore, after: ItemScore, *, human: bool | None
) -> VerdictChange | None:
    """The change of an item; None for no change.

    Args:
        item_id: The item.
        protocol: Its protocol.
        before: The first run's judgement.
        after: The second run's judgement.
        human: True if humans consider it correct; None without label.
    """
    kind = _kind(before, after)
    if kind is None:
        return None
    return VerdictChange(
        item_id=item_id, protocol=protocol, before=before, after=after, human=human, kind=kind
    )


def _kind(a: ItemScore, b: ItemScore) -> ChangeKind | None:
    if a.is_correct is None or b.is_correct is None:
        if a.is_correct is b.is_correct:
            return None
        return "a verdict now" if a.is_correct is None else "no verdict any more"
    if a.is_correct != b.is_correct:
        return "lost" if a.is_correct else "won"
    if a.grade != b.grade:
        return "grade"
    return "diagnosis" if (a.errors, a.category) != (b.errors, b.category) else None


def worst_first(changes: Iterable[VerdictChange]) -> tuple[VerdictChange, ...]:
    """Sorts changes in the order of ``Changes.items``; ties by item and tested model."""
    order = list(KINDS)

    def rank(change: VerdictChange) -> tuple[Any, ...]:
        blame = {True: 0, None: 1, False: 2}[change.is_now_wrong]
        is_flip = change.kind in {"lost", "won"}
        return (
            not is_flip,
            blame if is_flip else 0,
            order.index(change.kind),
            -change.moved,
            change.item_id,
            change.before.tested_model or "",
        )

    return tuple(sorted(changes, key=rank))
