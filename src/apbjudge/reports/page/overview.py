"""The figures of the overview in words: cells of tables, what a judge took, where to look."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from ..paper.formatting import MISSING, Shown, best_note, percent, shown
from ..paper.kinds import MEANINGS
from ..paper.table import Column, Table, TableRow
from ..plots.seam import csv_bytes
from .entries import Drawn, JudgeFacts
from .index import Share, Tally


def by_judge(table: Table) -> dict[str, list[TableRow]]:
    """Rows by judge, in the order of the table."""
    return {judge: [r for r in table.rows if r.judge == judge] for judge in table.judges}


def shown_cell(row: TableRow, column: Column) -> Shown:
    """The cell of a row in a column."""
    return shown(row.cells.get(column.id), column, row.counts.get(column.section))


def table_notes(table: Table) -> list[str]:
    """What must be said below a table."""
    how = f"Below a figure: its {percent(table.level)} interval."
    of = "After a stroke: the rows that it is over, where these are not all scored rows."
    return [_legend(table), how, of, *filter(None, [best_note(table, "★")]), *table.notes]


def _legend(table: Table) -> str:
    told: dict[str, list[str]] = {}
    for column in table.columns:
        meanings = told.setdefault(column.title, [])
        if (meaning := MEANINGS[column.key]) not in meanings:
            meanings.append(meaning)
    each = "; ".join(f"{title}: {' / '.join(meanings)}" for title, meanings in told.items())
    return f"{each}. Rates are in percent."


def minus(text: str) -> str:
    """Numbers with the true minus sign, as wide as the plus; a lone hyphen is a dash."""
    return "–" if text == MISSING else text.replace("-", "−")


def judge_facts(judge: JudgeFacts) -> Iterator[tuple[str, str]]:
    """What the overview lists of a judge: pairs of a name and a text."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """A list of items that deserve a look.

    Attributes:
        text: What they are.
        count: How many there are.
        of: How many there could be.
        fragment: Where the page lists them: the part of its address behind ``#``.
    """

    text: str
    count: int
    of: int
    fragment: str


_BY_JUDGE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "human": ("The judge's verdict is not the humans'", {"human": "differs", "sort": "human"}),
    "unscored": ("Without a verdict", {"verdict": "unscored"}),
    "overridden": ("Verdict changed by a rule", {"overridden": "yes"}),
    "inconsistent": ("The judge contradicted itself", {"inconsistent": "yes"}),
}


def leads(names: Sequence[str], tally: Tally) -> list[Lead]:
    """What there is to look at; lists without an item are left out.

    Args:
        names: The judges' names.
        tally: Number of entries by what for.
    """
    found: list[Lead] = []
    if tally.differ[0]:
        state = {"change": "verdict", "sort": "change"}
        found.append(_lead("Judges with different verdicts", tally.differ, state))
    for key, (text, state) in _BY_JUDGE.items():
        for number, (name, counts) in enumerate(zip(names, tally.by_judge, strict=True)):
            if counts[key][0]:
                whose = f": {name}" if len(names) > 1 else ""
                judge = {"judge": name} if number else {}
                found.append(_lead(f"{text}{whose}", counts[key], {**judge, **state}))
    if tally.labelled[0]:
        found.append(_lead("Labelled by humans", tally.labelled, {"human": "labelled"}))
    return found


def _lead(text: str, share: Share, state: Mapping[str, str]) -> Lead:
    count, of = share
    fragment = urlencode({"view": "items", **state})
    return Lead(text=text, count=count, of=of, fragment=fragment)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFigure:
    """A figure as the page needs it.

    Attributes:
        key: Name of its data file, without ending.
        title: What it shows.
        alt: Its text alternative.
        picture: The drawing as a ``data:`` URL.
        data: What is drawn, as CSV in a ``data:`` URL.
    """

    key: str
    title: str
    alt: str
    picture: str
    data: str


def shown_figure(figure: Drawn) -> ShownFigure:
    """A figure with its drawing and its data."""
    return ShownFigure(
        key=figure.key,
        title=figure.title,
        alt=figure.alt,
        picture=_url("image/svg+xml", figure.svg()),
        data=_url("text/csv;charset=utf-8", csv_bytes(figure.data)),
    )


def _url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
