"""A plan of rows to label as text, with the precision that the labels will give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..document.model import Cell, Document, Notes, Number, Table, reasons
from ..document.numbers import DASH, count, percent
from .label_plan import strata_file
from .results import LabelPlan


def label_plan_document(plan: LabelPlan) -> Document:
    """The plan without its rows: rates in percentage points, grades from 0 to 1."""
    source = {
        "option": "as given",
        "labels": "from the labels, never 0",
        "default": "a guess; change it with --anticipated",
    }[plan.expected_from]
    head = (
        (
            f"judge {plan.judge} ({plan.source}): {plan.n_rows} rows, "
            f"{plan.n_unscored} unscored, {plan.n_labelled} labelled"
        ),
        (
            f"humans are expected to disagree with {percent(plan.disagreement)} of the verdicts "
            f"({source})"
        ),
    )
    heading = f"for ± {100 * plan.half_width:g}"
    legend = [
        (
            "±: half the width of a 95 % interval, rates in percentage points, grade MAE on the "
            f"scale of 0 to 1 (± {plan.half_width:g})"
        ),
        "detects: the smallest true difference between two such results found 8 times in 10",
        f"{heading}: labels in all, from a simple random sample of all rows",
        *reasons((_BASES[need.basis], need.measure, "") for need in plan.needs),
        *reasons((need.note, need.measure, "") for need in plan.needs if need.note),
    ]
    notes = (*_use(plan), *(f"note: {note}" for note in plan.notes))
    above, below = Notes(head), Notes(tuple(legend))
    return Document((above, _needs(plan, heading), below, _strata(plan), Notes(notes)))


_BASES = {
    "labels": "from the labels there are",
    "anticipated": "anticipated, as if rows of one case were unrelated",
}


def _needs(plan: LabelPlan, heading: str) -> Table:
    total = count(plan.n_labelled + plan.n_planned)
    heads = ("", "± now", "detects", f"± with {total}", "detects", heading)
    rows: list[list[Cell]] = []
    for need in plan.needs:
        halves = (
            need.half_width_now,
            need.detectable_now,
            need.half_width_then,
            need.detectable_then,
        )
        unit = "grade" if need.measure == "grade MAE" else "percent"
        cells = [Number(value, unit) for value in halves]
        rows.append([need.measure, *cells, count(need.n_needed)])
    return Table.of(heads, rows)


def _strata(plan: LabelPlan) -> Table:
    heads = ("stratum", "rows", "labelled", "planned", "expected to differ", "weight")
    rows = [
        [
            s.name,
            *map(count, (s.size, s.labelled, s.planned)),
            percent(s.uncertainty, 0),
            f"{s.weight:.2f}" if s.weight else DASH,
        ]
        for s in plan.strata
    ]
    return Table.of(heads, rows)


def _use(plan: LabelPlan) -> Iterator[str]:
    rows = "row" if plan.n_planned == 1 else "rows"
    if not plan.n_planned:
        yield "every row has a label: nothing is left to plan"
    elif plan.out is None:
        yield f"{plan.n_planned} {rows} to label; --out plan.jsonl writes them to a file"
    else:
        yield (
            f"{plan.out}: {plan.n_planned} {rows} to label, in this order; keep "
            f"{strata_file(Path(plan.out)).name} next to it"
        )
        yield f"then: apbjudge calibrate {plan.source} labels.jsonl --design {plan.out}"
