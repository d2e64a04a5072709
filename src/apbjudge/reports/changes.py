"""Changes from one run to another, as text, Markdown and CSV."""

from __future__ import annotations

import csv
import io

from ..calibration.changes import Changes, ItemScore, VerdictChange
from ..document.markdown import render_markdown
from ..document.model import Document, Heading, Notes, Table
from ..document.text import render_text
from ..records.tables import text_cell

_HEADS = ("change", "item", "tested model", "before", "now", "humans")


def changes_text(changes: Changes) -> str:
    """The changes for a terminal."""
    return render_text(changes_document(changes))


def changes_markdown(changes: Changes) -> str:
    """The changes as Markdown."""
    return render_markdown(Document((Heading("Changes"), *changes_document(changes).parts)))


def changes_document(changes: Changes) -> Document:
    """Both runs, the number of items by change, and every change."""
    table = [Table.of(_HEADS, map(_cells, changes.items))] if changes.items else []
    return Document((Notes(tuple(changes_summary(changes))), *table))


def changes_csv(changes: Changes) -> str:
    """The changes as CSV, one line a change."""
    out = io.StringIO()
    keys = ("tested_model", "is_correct", "grade", "errors", "category", "reason")
    heads = [f"{side}_{name}" for side in ("before", "after") for name in keys]
    writer = csv.writer(out)
    writer.writerow(["kind", "item_id", "protocol", *heads, "human_correct", "is_now_wrong"])
    for item in changes.items:
        scores = [_flat(getattr(side, name)) for side in (item.before, item.after) for name in keys]
        ends = [_flat(item.human), _flat(item.is_now_wrong)]
        cells = [item.kind, item.item_id, item.protocol, *scores, *ends]
        writer.writerow(map(text_cell, cells))
    return out.getvalue()


def _flat(value: object) -> object:
    if isinstance(value, tuple):
        return " ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return "" if value is None else value


def changes_summary(changes: Changes) -> list[str]:
    """Both runs, and the number of items by change; a line each."""
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


def _cells(change: VerdictChange) -> tuple[str, ...]:
    models = dict.fromkeys(side.tested_model for side in (change.before, change.after))
    human = {None: "", True: "correct", False: "incorrect"}[change.human]
    wrong = {None: "", True: ": wrong now", False: ": right now"}[change.is_now_wrong]
    return (
        change.kind,
        change.item_id,
        " / ".join("not stated" if name is None else name for name in models),
        score_text(change.before),
        score_text(change.after),
        f"{human}{wrong}",
    )


def score_text(score: ItemScore) -> str:
    """A verdict in a few words, such as ``incorrect 0.4 E2 E5``."""
    if score.is_correct is None:
        return f"unscored ({score.reason})"
    parts = ["correct" if score.is_correct else "incorrect"]
    parts += [] if score.grade is None else [f"{score.grade:g}"]
    parts += [] if score.category is None else [f"category {score.category}"]
    return " ".join([*parts, *(score.errors or ())])
