"""Two runs item by item: what changed from the first to the second, worst first."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..records import ERROR_CODES
from ..records.tables import text_cell
from .document import Document, Heading, Notes, Table
from .markdown import render_markdown
from .text import render_text

ChangeKind = Literal["lost", "won", "no verdict any more", "a verdict now", "grade", "diagnosis"]
KINDS: Mapping[ChangeKind, str] = {
    "lost": "correct before, incorrect now",
    "won": "incorrect before, correct now",
    "no verdict any more": "scored before, unscored now",
    "a verdict now": "unscored before, scored now",
    "grade": "same verdict, another grade",
    "diagnosis": "same verdict and grade, other error codes or another category",
}
"""How an item can change, and what that means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one of the two runs said of an item.

    Attributes:
        tested_model: Whose response it was about; None where the row names none.
        is_correct: The verdict; None without.
        grade: 0 to 1; None where there is none.
        errors: The codes that are set, sorted; None where the verdict has none.
        category: 1 to 5 after a broken tool, else None.
        reason: Why there is no verdict; empty with one.
    """

    tested_model: str | None
    is_correct: bool | None
    grade: float | None
    errors: tuple[str, ...] | None
    category: int | None
    reason: str

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Told:
        """From a row of ``judgements.jsonl``."""
        if row["kind"] != "verdict":
            return cls(
                tested_model=row["tested_model"],
                is_correct=None,
                grade=None,
                errors=None,
                category=None,
                reason=str(row.get("reason") or "not stated"),
            )
        errors: Mapping[str, bool] | None = row["errors"]
        is_set = None if errors is None else tuple(c for c in ERROR_CODES if errors.get(c))
        return cls(
            tested_model=row["tested_model"],
            is_correct=row["is_correct"],
            grade=row["grade"],
            errors=is_set,
            category=row["category"],
            reason="",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One item that the two runs judge differently.

    Attributes:
        item_id: The item.
        protocol: Its protocol.
        before: What the first run said.
        after: What the second said.
        human: Whether humans found it correct; None without label.
        kind: What changed most, one of ``KINDS``.
    """

    item_id: str
    protocol: str
    before: Told
    after: Told
    human: bool | None
    kind: ChangeKind

    @property
    def is_now_wrong(self) -> bool | None:
        """Whether the second run left the humans' verdict; None without label or change of it."""
        pair = (self.before.is_correct, self.after.is_correct)
        if self.human is None or None in pair or pair[0] == pair[1]:
            return None
        return self.after.is_correct != self.human

    @property
    def moved(self) -> float:
        """By how much the grade moved; 0 where one of them is missing."""
        a, b = self.before.grade, self.after.grade
        return 0.0 if a is None or b is None else abs(a - b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All items that differ, worst first.

    Attributes:
        before: Name of the first run.
        after: Name of the second.
        n_pairs: Items that both have.
        n_compared: Those with a verdict by both.
        n_only: Items that only the first has, and that only the second has.
        items: The changes. First those that humans say are wrong now and were right, then
            verdicts lost, won, scores gone and come, then grades, the farthest first.
        note: How items were paired, where that is not by item and tested model.
    """

    before: str
    after: str
    n_pairs: int
    n_compared: int
    n_only: tuple[int, int]
    items: tuple[Change, ...]
    note: str = ""

    @property
    def counts(self) -> Mapping[ChangeKind, int]:
        """Items by kind of change, every kind listed."""
        found = Counter(change.kind for change in self.items)
        return {kind: found[kind] for kind in KINDS}

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values; missing is None."""
        items = [asdict(change) | {"is_now_wrong": change.is_now_wrong} for change in self.items]
        return asdict(self) | {"counts": dict(self.counts), "items": items}


def change_of(
    item_id: str, protocol: str, before: Told, after: Told, *, human: bool | None
) -> Change | None:
    """What changed on an item; None for nothing.

    Args:
        item_id: The item.
        protocol: Its protocol.
        before: What the first run said.
        after: What the second said.
        human: Whether humans found it correct.
    """
    kind = _kind(before, after)
    if kind is None:
        return None
    return Change(
        item_id=item_id, protocol=protocol, before=before, after=after, human=human, kind=kind
    )


def _kind(a: Told, b: Told) -> ChangeKind | None:
    if a.is_correct is None or b.is_correct is None:
        if a.is_correct is b.is_correct:
            return None
        return "a verdict now" if a.is_correct is None else "no verdict any more"
    if a.is_correct != b.is_correct:
        return "lost" if a.is_correct else "won"
    if a.grade != b.grade:
        return "grade"
    return "diagnosis" if (a.errors, a.category) != (b.errors, b.category) else None


def worst_first(changes: Iterable[Change]) -> tuple[Change, ...]:
    """In the order of ``Changes.items``; ties by item and tested model."""
    order = list(KINDS)

    def rank(change: Change) -> tuple[Any, ...]:
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


# Text --------------------------------------------------------------------------------------------

_HEADS = ("change", "item", "tested model", "before", "now", "humans")


def changes_text(changes: Changes) -> str:
    """The changes for a terminal."""
    return render_text(changes_document(changes))


def changes_markdown(changes: Changes) -> str:
    """The changes as Markdown."""
    return render_markdown(Document((Heading("Changes"), *changes_document(changes).parts)))


def changes_document(changes: Changes) -> Document:
    """What was compared, how many items changed how, and every change."""
    table = [Table.of(_HEADS, map(_cells, changes.items))] if changes.items else []
    return Document((Notes(tuple(changes_summary(changes))), *table))


def changes_csv(changes: Changes) -> str:
    """One line a change."""
    out = io.StringIO()
    sides = ("tested_model", "is_correct", "grade", "errors", "category", "reason")
    heads = [f"{side}_{name}" for side in ("before", "after") for name in sides]
    writer = csv.writer(out)
    writer.writerow(["kind", "item_id", "protocol", *heads, "human_correct", "is_now_wrong"])
    for one in changes.items:
        told = [_flat(getattr(side, name)) for side in (one.before, one.after) for name in sides]
        ends = [_flat(one.human), _flat(one.is_now_wrong)]
        cells = [one.kind, one.item_id, one.protocol, *told, *ends]
        writer.writerow(map(text_cell, cells))
    return out.getvalue()


def _flat(value: object) -> object:
    if isinstance(value, tuple):
        return " ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return "" if value is None else value


def changes_summary(changes: Changes) -> list[str]:
    """What was compared, and how many items changed how; a line each."""
    pairs = f"{changes.n_pairs} items in both, {changes.n_compared} with a verdict by both"
    only = f"{changes.n_only[0]} only in the first, {changes.n_only[1]} only in the second"
    kinds = ", ".join(f"{n} {kind}" for kind, n in changes.counts.items() if n)
    lines = [f"from {changes.before} to {changes.after}", f"{pairs}; {only}"]
    lines.append(f"{len(changes.items)} changed: {kinds}" if kinds else "nothing changed")
    wrong = [change.is_now_wrong for change in changes.items]
    if any(mark is not None for mark in wrong):
        lines.append(
            f"by the humans' verdicts {wrong.count(True)} of the changed verdicts became wrong, "
            f"{wrong.count(False)} became right"
        )
    return [*lines, *([changes.note] if changes.note else [])]


def _cells(change: Change) -> tuple[str, ...]:
    models = dict.fromkeys(side.tested_model for side in (change.before, change.after))
    human = {None: "", True: "correct", False: "incorrect"}[change.human]
    wrong = {None: "", True: ": wrong now", False: ": right now"}[change.is_now_wrong]
    return (
        change.kind,
        change.item_id,
        " / ".join("not stated" if name is None else name for name in models),
        told_text(change.before),
        told_text(change.after),
        f"{human}{wrong}",
    )


def told_text(told: Told) -> str:
    """A verdict in a few words, such as ``incorrect 0.4 E2 E5``."""
    if told.is_correct is None:
        return f"unscored ({told.reason})"
    parts = ["correct" if told.is_correct else "incorrect"]
    parts += [] if told.grade is None else [f"{told.grade:g}"]
    parts += [] if told.category is None else [f"category {told.category}"]
    return " ".join([*parts, *(told.errors or ())])
