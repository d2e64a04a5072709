"""What became of the cases that tested models were asked about, and of their episodes."""

from __future__ import annotations

from collections.abc import Mapping

from ..environments.branching.run import BranchCounts
from ..environments.simulate import EpisodeCounts
from ..prediction.session import PredictionCounts
from .document import Cell, Document, Notes, Table
from .numbers import DASH, count
from .text import render_text


def prediction_text(counts: Mapping[str, PredictionCounts]) -> str:
    """The counts of a run of ``predict``, a line for each tested model."""
    rows: list[list[Cell]] = []
    for name, each in counts.items():
        share = f" ({each.truncated / each.predicted:.1%})" if each.truncated else ""
        cost = DASH if each.cost_usd is None else f"{each.cost_usd:.4f}"
        numbers = (each.refused, each.empty, sum(each.failed.values()))
        tokens = (each.prompt_tokens, each.completion_tokens)
        cells = [count(each.predicted), f"{count(each.truncated)}{share}", *map(count, numbers)]
        rows.append([name or "(unreadable rows)", *cells, *map(count, tokens), cost])
    heads = "tested model,predicted,truncated,refused,empty,failed,tokens sent,received,USD"
    notes = [
        f"failed, {name or '(unreadable rows)'}: {reason} {n}"
        for name, each in counts.items()
        for reason, n in each.failed.items()
    ]
    if reused := sum(each.reused for each in counts.values()):
        notes.append(f"{reused} replies of earlier runs used again, at no cost")
    if any(each.unchanged for each in counts.values()):
        heads = f"{heads},unchanged"
        for row, each in zip(rows, counts.values(), strict=True):
            row.append(count(each.unchanged))
    table = Table.of(heads.split(","), rows, align="lrrrrrrrrr")
    return render_text(Document((table, Notes(tuple(notes)))))


def simulation_text(counts: Mapping[str, EpisodeCounts]) -> str:
    """The counts of a run of ``simulate``, a line for each tested model."""
    rows: list[list[Cell]] = []
    for name, each in counts.items():
        successes = DASH if each.successes is None else f"{each.successes}/{each.played}"
        numbers = (each.turns, sum(each.failed.values()))
        tokens = (each.prompt_tokens, each.completion_tokens)
        cost = DASH if each.cost_usd is None else f"{each.cost_usd:.4f}"
        cells = [count(each.played), successes, *map(count, (*numbers, *tokens)), cost]
        rows.append([name or "(unknown tasks)", *cells])
    heads = "tested model,episodes,success,turns,failed,tokens sent,received,USD"
    notes = [
        f"{what}, {name or '(unknown tasks)'}: {word} {n}"
        for name, each in counts.items()
        for what, of in (("ended", each.endings), ("failed", each.failed))
        for word, n in of.items()
    ]
    table = Table.of(heads.split(","), rows, align="lrrrrrrr")
    return render_text(Document((table, Notes(tuple(notes)))))


def branching_text(counts: Mapping[str, BranchCounts]) -> str:
    """The counts of a run of ``branch``, a line for each tested model."""
    rows: list[list[Cell]] = []
    for name, each in counts.items():
        right = (f"{n}/{each.cases}" for n in (each.first_successes, each.successes))
        numbers = (each.branches, each.accepted_wrong, sum(each.failed.values()), each.calls)
        cost = DASH if each.cost_usd is None else f"{each.cost_usd:.4f}"
        tokens = (each.prompt_tokens, each.completion_tokens)
        rows.append([name or "(unknown cases)", *right, *map(count, (*numbers, *tokens)), cost])
    heads = (
        "tested model,first pass right,result right,branches,wrong accepted,failed,calls,"
        "tokens sent,received,USD"
    )
    reasons = [
        f"failed, {name or '(unknown cases)'}: {reason} {n}"
        for name, each in counts.items()
        for reason, n in each.failed.items()
    ]
    table = Table.of(heads.split(","), rows, align="lrrrrrrrrr")
    return render_text(Document((table, Notes(tuple(reasons)))))
