"""The overview in words: cells of tables, facts about judges, where to look, what changed."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...calibration.changes import KINDS, Changes, ItemScore
from ..changes import changes_summary, score_text
from ..numbers import level_text
from ..paper.formatting import best_note
from ..paper.table import FIGURES, Table, TableRow
from .entries import JudgeFacts
from .index import Share, Tally

if TYPE_CHECKING:
    from ..plots import Figure

MOST_CHANGES = 200

# Tables ------------------------------------------------------------------------------------------


def by_judge(table: Table) -> dict[str, list[TableRow]]:
    """Rows by judge, in the order of the table."""
    return {judge: [r for r in table.rows if r.judge == judge] for judge in table.judges}


def table_notes(table: Table) -> list[str]:
    """The notes below a table, its legend first."""
    meanings: dict[str, dict[str, None]] = {}
    for column in table.columns:
        meanings.setdefault(column.title, {})[FIGURES[column.key].meaning] = None
    legend = "; ".join(f"{title}: {' / '.join(own)}" for title, own in meanings.items())
    how = f"Below a figure: its {level_text(table.level)} interval."
    of = "After a stroke: the rows that it is over, where these are not all scored rows."
    best = filter(None, [best_note(table, "★")])
    return [f"{legend}. Rates are in percent.", how, of, *best, *table.notes]


def minus(text: str) -> str:
    """Numbers with the true minus sign, as wide as the plus; a dash stays."""
    return text.replace("-", "−")


def judge_facts(judge: JudgeFacts) -> Iterator[tuple[str, str]]:
    """Facts about a judge: pairs of a name and a text."""
    yield "Scored", f"{judge.scored:,} of {judge.rows:,}"
    if judge.unscored:
        reasons = sorted(judge.unscored.items(), key=lambda pair: (-pair[1], pair[0]))
        yield "Unscored", ", ".join(f"{count:,} {reason}" for reason, count in reasons)
    if judge.rubrics:
        yield "Rubrics", ", ".join(judge.rubrics)
    if judge.calls:
        cost = "price not known" if judge.cost_usd is None else f"{judge.cost_usd:,.2f} US dollars"
        yield "Took", f"{judge.calls:,} calls, {cost}"
    yield from judge.settings
    if judge.source:
        yield "From", judge.source


# Where to look -----------------------------------------------------------------------------------

_BY_JUDGE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "human": ("The judge's verdict is not the humans'", {"human": "differs", "sort": "human"}),
    "unscored": ("Without a verdict", {"verdict": "unscored"}),
    "overridden": ("Verdict changed by a rule", {"overridden": "yes"}),
    "inconsistent": ("The judge contradicted itself", {"inconsistent": "yes"}),
}


def leads(names: Sequence[str], tally: Tally) -> list[dict[str, Any]]:
    """Lists of items that deserve a look; those without an item are left out.

    Args:
        names: The judges' names.
        tally: Number of entries by reason.

    Returns:
        ``text`` (what the items are), ``count``, ``of`` (how many there could be) and
        ``fragment`` (the part of the page's address behind ``#`` that lists them) of each.
    """
    shares: list[tuple[str, Share, Mapping[str, str]]] = []
    state = {"change": "verdict", "sort": "change"}
    shares.append(("Judges with different verdicts", tally.differ, state))
    for key, (text, state) in _BY_JUDGE.items():
        for number, (name, counts) in enumerate(zip(names, tally.by_judge, strict=True)):
            whose = f": {name}" if len(names) > 1 else ""
            judge = {"judge": name} if number else {}
            shares.append((f"{text}{whose}", counts[key], {**judge, **state}))
    shares.append(("Labelled by humans", tally.labelled, {"human": "labelled"}))
    return [
        {
            "text": text,
            "count": count,
            "of": of,
            "fragment": urlencode({"view": "items", **state}),
        }
        for text, (count, of), state in shares
        if count
    ]


# Figures -----------------------------------------------------------------------------------------


def figure_facts(figure: Figure) -> dict[str, str]:
    """Key, title and text alternative; ``picture`` and ``data`` (CSV) as ``data:`` URLs."""
    return {
        "key": figure.key,
        "title": figure.title,
        "alt": figure.alt,
        "picture": _url("image/svg+xml", figure.svg()),
        "data": _url("text/csv;charset=utf-8", figure.csv()),
    }


def _url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


# Changes -----------------------------------------------------------------------------------------


def changed_list(changes: Changes) -> dict[str, Any]:
    """The worst changes from one run to another, with links to their items.

    Args:
        changes: Worst first.

    Returns:
        ``summary`` (what was compared, and how many changed how, a sentence each), ``rows`` and
        ``more`` (how many are left out). A row has kind, item_id, tested_model (empty where the
        two sides are of two tested models, which they name), before, after (each with its verdict
        as text and the page's address of the item as fragment) and human (empty without label).
    """
    by_model = bool(changes.note)  # then both sides are items of their own
    human = {None: "", True: "correct", False: "incorrect"}
    rows = [
        {
            "kind": KINDS[change.kind],
            "item_id": change.item_id,
            "tested_model": "" if by_model else change.before.tested_model or "",
            "before": _verdict(change.item_id, change.before, named=by_model),
            "after": _verdict(change.item_id, change.after, named=by_model),
            "human": human[change.human],
        }
        for change in changes.items[:MOST_CHANGES]
    ]
    more = max(0, len(changes.items) - MOST_CHANGES)
    return {"summary": changes_summary(changes), "rows": rows, "more": more}


def _verdict(item_id: str, side: ItemScore, *, named: bool) -> dict[str, str]:
    model = side.tested_model or "not stated"
    name = f"{model}: " if named else ""
    address = {"view": "items", "item": item_id, "model": model}
    return {"text": f"{name}{score_text(side)}", "fragment": urlencode(address)}
