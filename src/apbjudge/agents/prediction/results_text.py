"""The cases that tested models were asked about, counted, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...document.model import Cell, Document, Notes, Table
from ...document.numbers import DASH, count
from ...document.text import WIDTH, render_text
from ...judge.summary_text import last_error
from ...runs.results import CallCounts, FailureCounts

if TYPE_CHECKING:
    from .session import PredictionCounts

SPENT = "tokens in,out,USD"


def spent(each: CallCounts) -> list[str]:
    """The cells of ``SPENT``."""
    cost = DASH if each.cost_usd is None else f"{each.cost_usd:.4f}"
    return [count(each.prompt_tokens), count(each.completion_tokens), cost]


def counts_text(
    heads: str, rows: Iterable[Sequence[Cell]], notes: Iterable[str], leads: int = 1
) -> str:
    """A table of counts by tested model; each block of columns repeats the first ``leads`` ones."""
    titles = heads.split(",")
    table = Table.of(titles, rows, align=("l" * leads).ljust(len(titles), "r"))
    parts = replace(table, leads=leads), Notes(tuple(notes))
    return render_text(Document(parts), width=WIDTH)


def prediction_text(counts: Mapping[str, PredictionCounts]) -> str:
    """The counts of a run of ``predict``, a line for each tested model."""
    rows: list[list[Cell]] = []
    for name, each in counts.items():
        share = f" ({each.truncated / each.predicted:.1%})" if each.truncated else ""
        numbers = (each.refused, each.empty, sum(each.failed.values()))
        cells = [count(each.predicted), count(each.unreadable), f"{count(each.truncated)}{share}"]
        rows.append([name or "(unreadable rows)", *cells, *map(count, numbers), *spent(each)])
    heads = f"tested model,predicted,unreadable,truncated,refused,empty,failed,{SPENT}"
    notes = [*failed_lines(counts)]
    if thoughts := sum(each.only_thinking for each in counts.values()):
        notes.append(
            f"{thoughts} replies are empty but for the model's thinking, which is kept in "
            "reasoning_content: apbjudge doctor --model says what helps"
        )
    if reused := sum(each.reused for each in counts.values()):
        notes.append(f"{reused} replies of earlier runs used again, at no cost")
    if any(each.unchanged for each in counts.values()):
        heads = f"{heads},unchanged"
        for row, each in zip(rows, counts.values(), strict=True):
            row.append(count(each.unchanged))
    return counts_text(heads, rows, notes)


def failed_lines(counts: Mapping[str, FailureCounts], of: str = "failed, ") -> Iterator[str]:
    """A line for each reason why something failed, with the cause of the last failure."""
    for name, each in counts.items():
        for reason, n in each.failed.items():
            cause = last_error(each.last_errors, reason)
            yield f"{of}{name or '(no tested model)'}: {reason} {n}{cause}"
