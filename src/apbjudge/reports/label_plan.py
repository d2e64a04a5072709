"""Which rows to label next, and how precise the labels will make the figures."""

from __future__ import annotations

from collections.abc import Iterator

from ..calibration.results import LabelPlan
from .document import Cell, Document, Notes, Number, Table
from .numbers import DASH, count, percent
from .text import render_text


def label_plan_text(found: LabelPlan) -> str:
    """The plan as text."""
    return render_text(label_plan_document(found))


def label_plan_document(found: LabelPlan) -> Document:
    """The whole plan but its rows: rates in percentage points, grades on their scale of 0 to 1."""
    source = {
        "option": "as given",
        "labels": "from the labels, never 0",
        "default": "a guess; change it with --anticipated",
    }[found.expected_from]
    head = (
        (
            f"judge {found.judge} ({found.source}): {found.n_rows} rows, "
            f"{found.n_unscored} unscored, {found.n_labelled} labelled"
        ),
        (
            f"humans are expected to disagree with {percent(found.disagreement)} of the verdicts "
            f"({source})"
        ),
    )
    wanted = f"labels for ± {100 * found.half_width:g}"
    legend = [
        (
            "±: half the width of a 95 % interval, rates in percentage points, grade MAE on the "
            f"scale of 0 to 1 (± {found.half_width:g})"
        ),
        "detects: the smallest true difference between two such results found 8 times in 10",
        f"{wanted}: in all, from a simple random sample of all rows",
    ]
    if any(need.basis == "anticipated" for need in found.needs):
        legend.append("anticipated: assumes that rows of one case are unrelated")
    notes = (*_use(found), *(f"note: {note}" for note in found.notes))
    parts = (Notes(head), _needs(found, wanted), Notes(tuple(legend)), _strata(found), Notes(notes))
    return Document(parts)


def _needs(found: LabelPlan, wanted: str) -> Table:
    total = count(found.n_labelled + found.n_planned)
    heads = ("", "± now", "detects now", f"± with {total}", "detects then", wanted, "from", "")
    rows: list[list[Cell]] = []
    for need in found.needs:
        halves = (
            need.half_width_now,
            need.detectable_now,
            need.half_width_then,
            need.detectable_then,
        )
        unit = "grade" if need.measure == "grade MAE" else "percent"
        cells = [Number(value, unit) for value in halves]
        rows.append([need.measure, *cells, count(need.n_needed), need.basis, need.note])
    return Table.of(heads, rows)


def _strata(found: LabelPlan) -> Table:
    heads = ("stratum", "rows", "labelled", "planned", "expected to differ", "weight")
    rows = [
        [
            s.name,
            *map(count, (s.size, s.labelled, s.planned)),
            percent(s.doubt, 0),
            f"{s.weight:.2f}" if s.weight else DASH,
        ]
        for s in found.strata
    ]
    return Table.of(heads, rows)


def _use(found: LabelPlan) -> Iterator[str]:
    rows = "row" if found.n_planned == 1 else "rows"
    if not found.n_planned:
        yield "every row has a label: nothing is left to plan"
    elif found.out is None:
        yield f"{found.n_planned} {rows} to label; --out plan.jsonl writes them to a file"
    else:
        yield f"{found.out}: {found.n_planned} {rows} to label; label them first, in this order"
        yield f"then: apbjudge calibrate {found.source} labels.jsonl --design {found.out}"
