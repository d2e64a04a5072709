"""Counts of the cases that tested models were asked about, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ...document.model import Cell, Document, Notes, Table
from ...document.numbers import DASH, count
from ...document.text import WIDTH, render_text
from ...judge.summary_text import last_error
from ...runs.results import CallCounts, FailureCounts

if TYPE_CHECKING:
    from .session import PredictionCounts

C = TypeVar("C", bound=CallCounts)
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


def models_text(
    heads: str,
    counts: Mapping[str, C],
    cells: Callable[[C], Sequence[Cell | int]],
    notes: Iterable[str] = (),
    unknown: str = "(unreadable rows)",
) -> str:
    """The counts of a run, a line for each tested model, with failures and spending.

    Args:
        heads: Titles of the columns, besides the columns of every such table.
        counts: Counts by tested model.
        cells: The cells below these titles; whole numbers are written as counts.
        notes: Lines below the table, after those of failures.
        unknown: Name for rows without a tested model.
    """
    rows = [
        [
            name or unknown,
            *(count(cell) if isinstance(cell, int) else cell for cell in cells(each)),
            count(sum(each.failed.values())),
            *spent(each),
        ]
        for name, each in counts.items()
    ]
    titles = f"tested model,{heads},failed,{SPENT}"
    return counts_text(titles, rows, [*failed_lines(counts), *notes])


def prediction_text(counts: Mapping[str, PredictionCounts]) -> str:
    """The counts of a run of ``predict`` or ``refine``, a line for each tested model."""
    is_refined = any(each.unchanged for each in counts.values())

    def cells(each: PredictionCounts) -> list[Cell | int]:
        share = f" ({each.truncated / each.predicted:.1%})" if each.truncated else ""
        truncated = f"{count(each.truncated)}{share}"
        unchanged = [each.unchanged] if is_refined else []
        return [each.predicted, *unchanged, each.unreadable, truncated, each.refused, each.empty]

    notes: list[str] = []
    if thoughts := sum(each.only_thinking for each in counts.values()):
        notes.append(
            f"{thoughts} replies have only the model's thinking, which is in "
            "reasoning_content: apbjudge doctor --model says what helps"
        )
    if reused := sum(each.reused for each in counts.values()):
        notes.append(f"{reused} replies of earlier runs used again, at no cost")
    heads = "predicted,unchanged" if is_refined else "predicted"
    return models_text(f"{heads},unreadable,truncated,refused,empty", counts, cells, notes)


def failed_lines(counts: Mapping[str, FailureCounts], of: str = "failed, ") -> Iterator[str]:
    """A line for each reason of failures, with the cause of the last failure."""
    for name, each in counts.items():
        for reason, n in each.failed.items():
            cause = last_error(each.last_errors, reason)
            yield f"{of}{name or '(no tested model)'}: {reason} {n}{cause}"
