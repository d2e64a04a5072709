"""What became of the cases that tested models were asked about, and of their episodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..document.model import Cell, Document, Notes, Table
from ..document.numbers import DASH, count
from ..document.text import WIDTH, render_text
from ..judge.summary_text import last_error
from ..prediction.session import PredictionCounts
from ..runs.results import CallCounts, FailureCounts
from .branching.run import BranchCounts
from .execution.execute import ExecutionRun
from .execution.step_states import STEP_RESULTS, StepRun
from .simulate import EpisodeCounts

_SPENT = "tokens in,out,USD"


def _spent(each: CallCounts) -> list[str]:
    """The cells of ``_SPENT``."""
    cost = DASH if each.cost_usd is None else f"{each.cost_usd:.4f}"
    return [count(each.prompt_tokens), count(each.completion_tokens), cost]


def _text(heads: str, rows: Iterable[Sequence[Cell]], notes: Iterable[str], leads: int = 1) -> str:
    """Counts by tested model, whose first columns stand before each block of the others."""
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
        rows.append([name or "(unreadable rows)", *cells, *map(count, numbers), *_spent(each)])
    heads = f"tested model,predicted,unreadable,truncated,refused,empty,failed,{_SPENT}"
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
    return _text(heads, rows, notes)


def failed_lines(counts: Mapping[str, FailureCounts], of: str = "failed, ") -> Iterator[str]:
    """A line for each reason why something failed, with the cause of the last failure."""
    for name, each in counts.items():
        for reason, n in each.failed.items():
            cause = last_error(each.last_errors, reason)
            yield f"{of}{name or '(no tested model)'}: {reason} {n}{cause}"


def simulation_text(counts: Mapping[str, EpisodeCounts]) -> str:
    """The counts of a run of ``simulate``, a line for each tested model."""
    rows: list[list[Cell]] = []
    for name, each in counts.items():
        successes = DASH if each.successes is None else f"{each.successes}/{each.played}"
        numbers = (each.turns, sum(each.failed.values()))
        cells = [count(each.played), successes, *map(count, numbers), *_spent(each)]
        rows.append([name or "(unknown tasks)", *cells])
    notes = [
        f"ended, {name or '(unknown tasks)'}: {word} {n}"
        for name, each in counts.items()
        for word, n in each.endings.items()
    ]
    notes += failed_lines(counts)
    return _text(f"tested model,episodes,success,turns,failed,{_SPENT}", rows, notes)


def steps_text(run: ExecutionRun, steps: StepRun) -> str:
    """What came of step-wise predictions, by tested model and by what their reference does."""
    rows: list[list[Cell]] = []
    notes = [f"{run.suite[0]}: {run.suite[1]}"]
    for name, each in steps.counts.items():
        groups = (
            ("changes the state", each.changing),
            ("only reads", each.reading),
            ("not known", each.unknown),
        )
        for reference, of in groups:
            if of:
                numbers = (of.get(result, 0) for result in STEP_RESULTS)
                rows.append([name, reference, count(sum(of.values())), *map(count, numbers)])
    notes += failed_lines(steps.counts)
    heads = ["tested model", "reference", "predictions", *STEP_RESULTS]
    return _text(",".join(heads).replace("_", " "), rows, notes, leads=2)


def execution_text(run: ExecutionRun) -> str:
    """What became of the tasks, a line for each mode and tested model."""
    if run.steps is not None:
        return steps_text(run, run.steps)
    rows: list[list[Cell]] = []
    notes: list[str] = [f"{run.suite[0]}: {run.suite[1]}"]
    ended: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in run.executed:
        ended.setdefault((row["mode"], row["tested_model"]), []).append(row)
    for name, drafts in run.drafts.items():
        for model, plans in drafts.counts.items():
            unread = f", {count(plans.unreadable)} unreadable" if plans.unreadable else ""
            notes.append(
                f"{name}, {model or '(unreadable rows)'}: {count(plans.predicted)} plans{unread}"
            )
        notes += failed_lines(drafts.counts, f"{name}, ")
    for mode, simulation in run.modes.items():
        for name, each in simulation.counts.items():
            of_both = ended.get((mode, name), [])
            idle = [row["null_reward"] == 1 for row in of_both if row["null_reward"] is not None]
            right = sum(row["is_correct"] for row in of_both)
            numbers = (each.turns, sum(each.failed.values()))
            rows.append(
                [
                    mode,
                    name or "(unknown tasks)",
                    count(each.played),
                    f"{right}/{len(of_both)}" if of_both else DASH,
                    f"{sum(idle)}/{len(idle)}" if idle else DASH,
                    *map(count, numbers),
                    *_spent(each),
                ]
            )
            notes += (
                f"ended, {mode}, {name or '(unknown tasks)'}: {word or '(unsaid)'} {n}"
                for word, n in each.endings.items()
            )
        notes += failed_lines(simulation.counts, f"failed, {mode}, ")
    heads = f"mode,tested model,episodes,success,by doing nothing,turns,failed,{_SPENT}"
    return _text(heads, rows, notes, leads=2)


def branching_text(counts: Mapping[str, BranchCounts]) -> str:
    """The counts of a run of ``branch``, a line for each tested model."""
    rows: list[list[Cell]] = []
    for name, each in counts.items():
        right = (f"{n}/{each.cases}" for n in (each.first_successes, each.successes))
        numbers = (each.branches, each.accepted_wrong, sum(each.failed.values()), each.calls)
        rows.append([name or "(unknown cases)", *right, *map(count, numbers), *_spent(each)])
    heads = f"first pass right,result right,branches,wrong accepted,failed,calls,{_SPENT}"
    return _text(f"tested model,{heads}", rows, failed_lines(counts))
