"""Rows of tables: judgements, their parts, and the marks of best sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...calibration.results import ReliabilityReport
from ...document.model import Cell, Column, Counts, MetricCell, Number, reasons
from ...judge.metrics import ERRORS, is_own
from ...judge.summary import EXTRANEOUS, VALUE_ORDER, is_base
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...records.refinements import Refinements
from ...statistics.best import best_set
from ...statistics.estimates import CONFIDENCE_LEVEL
from ...statistics.metric import RATE, Metric, MetricKind
from .definitions import OPTIONAL, Definition, Rivals, Section, Split
from .table import PaperTable, TableRow

_MOST_DIGITS = 18  # a longer value, from damaged data, is a text like any other


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResults:
    """All judgements of items by one judge, of one or several runs.

    Attributes:
        note: Notes that apply to every metric.
        method: Method by which tested models refined their responses, such as ``Self_R+``; empty if
            they did not.
        models: The judging models, as the run names them.
        origin: Origin of each row's response; None if unknown.
    """

    judge: str
    columns: JudgementTable
    note: str | None = None
    method: str = ""
    models: frozenset[str] = frozenset()
    origin: Refinements | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSources:
    """Input of tables; ``refined`` runs are compared with the run of the same judge."""

    judges: tuple[JudgeResults, ...]
    refined: tuple[JudgeResults, ...] = ()
    reliability: ReliabilityReport | None = None


# Tables ------------------------------------------------------------------------------------------


def build(
    definition: Definition, rows: Sequence[TableRow], notes: Iterable[str] = ()
) -> PaperTable:
    """The table of some rows, with the best sets marked and the reasons why metrics are missing.

    Optional columns, heads and sections without any value are left out.
    """
    sections = dict(_sections(definition, rows))
    for section, kinds in sections.items():
        for kind in kinds:
            _mark_best(rows, section, kind, definition.rivals)
    heads = [i for i in range(len(definition.heads)) if i == 0 or any(row.heads[i] for row in rows)]
    for row in rows:
        row.heads = tuple(row.heads[i] for i in heads)
    columns = [Column(definition.heads[i]) for i in heads]
    for section, kinds in sections.items():
        columns.append(Column(definition.counted, "right", section))
        columns += (Column(kind.heading, "value", section, kind=kind) for kind in kinds)
    return PaperTable(
        key=definition.key,
        number=definition.number,
        title=definition.title,
        columns=tuple(columns),
        rows=tuple((*row.heads, *_cells(row, sections)) for row in rows),
        leads=len(heads),
        groups=tuple(row.judge for row in rows),
        notes=tuple(dict.fromkeys((*definition.notes, *notes, *_missing(sections, rows)))),
        counted=definition.counted,
        paper=definition.paper,
    )


def _sections(
    definition: Definition, rows: Sequence[TableRow]
) -> Iterator[tuple[str, list[MetricKind]]]:
    """The metrics of each section, with codes of users' rubrics in place of E1 to E6."""
    stated = {column: estimate for row in rows for column, estimate in row.estimates.items()}
    metrics = [(of.kind, at[0]) for at, of in stated.items() if isinstance(of, Metric)]
    for section in definition.sections:
        title, listed = section.title, section.columns
        if not any(title in row.counts for row in rows):
            continue
        own = [kind for kind, at in metrics if at == title and (is_own(kind) or not listed)]
        optional = {*(of.name for of in OPTIONAL), *(ERRORS if own else ())}
        shown = (of for of in listed if (title, of.name) in stated or of.name not in optional)
        yield title, [*shown, *own]


def _cells(row: TableRow, sections: Mapping[str, Sequence[MetricKind]]) -> Iterator[Cell]:
    """A row's counts and metrics; ``/n`` is shown if the denominator is not the scored rows."""
    for section, kinds in sections.items():
        counts = row.counts.get(section)
        if counts is None:
            yield from [""] * (1 + len(kinds))
            continue
        yield counts
        for kind in kinds:
            at = section, kind.name
            if (of := row.estimates.get(at)) is None:
                yield Number(None, kind.unit)
            else:
                differs = of.value is not None and counts.scored != of.n_items
                best = row.best.get(at)
                yield MetricCell(estimate=of, unit=kind.unit, best=best, denominator=differs)


def _mark_best(rows: Sequence[TableRow], section: str, kind: MetricKind, rivals: Rivals) -> None:
    """Marks the rows in and outside the best set of a column; marks none if all are in it.

    Rows without values do not take part. ``rivals`` share all other heads.
    """
    at = section, kind.name
    groups: dict[tuple[str, ...], list[TableRow]] = {}
    for row in rows if rivals and kind.better else ():
        shared = row.heads[1:] if rivals == "tested models" else (row.heads[0], *row.heads[2:])
        if at in row.values and len(row.values[at].values):
            groups.setdefault((row.judge, *shared), []).append(row)
    for candidates in groups.values():
        marks = best_set(  # counts are 0 or 1 for each item
            [row.values[at] for row in candidates],
            better=kind.better or "higher",
            bounds=RATE if kind.unit == "count" else kind.bounds,
            level=CONFIDENCE_LEVEL,
        )
        if any(marks) and not all(marks):
            for row, is_best in zip(candidates, marks, strict=True):
                row.best[at] = is_best


def _missing(sections: Mapping[str, Sequence[MetricKind]], rows: Sequence[TableRow]) -> list[str]:
    """Reasons why metrics have no value."""
    titles = {(at, kind.name): kind.heading for at, kinds in sections.items() for kind in kinds}
    several = len({row.judge for row in rows}) > 1
    return reasons(
        (
            estimate.note,
            " ".join(filter(None, (at[0], titles.get(at, at[1])))),
            ", ".join(filter(None, (row.judge if several else "", *row.heads))),
        )
        for row in rows
        for at, estimate in row.estimates.items()
        if estimate.value is None and estimate.low is None and estimate.note
    )


def judge_notes(results: TableSources, rows: Sequence[TableRow]) -> list[str]:
    """Notes on each judge that has a row."""
    shown = {row.judge for row in rows}
    return [f"{j.judge}: {j.note}" for j in results.judges if j.note and j.judge in shown]


def stage_notes(results: TableSources) -> list[str]:
    """Notes on stages that rows don't state; the published rows of one step are all ``middle``.

    The paper's rates for one step and for the middle stage are equal (arXiv:2606.04874, Tables 14
    and 15).
    """
    notes: list[str] = []
    for judge in results.judges:
        c = judge.columns
        steps = has_label(c, "protocol", "step-wise") & has_label(c, "horizon", "1")
        derived = steps & has_label(c, "stage_from", "prefix")
        n, n_all = len(c.where(derived)), len(c.where(steps))
        n_other = n - len(c.where(derived & has_label(c, "stage", "middle")))
        doubt = f", {n_other} of them not middle, which is doubtful of the published rows"
        if n:
            notes.append(
                f"{judge.judge}: {n} of {n_all} rows state no stage: it follows from the calls "
                f"made and left (stage_from: prefix){doubt if n_other else ''}"
            )
    return notes


# Rows of judgements ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPart:
    """The judgements of one tested model in a section, by index among the judge's judgements.

    ``form`` is ``holistic`` or ``step-wise``, None for both; ``rivals`` are the rows of all tested
    models under this protocol.
    """

    c: JudgementTable
    rows: Vector
    protocol: str
    form: str | None
    rivals: Vector


def place_of(heads: tuple[str, ...]) -> tuple[object, ...]:
    """Sort key of rows: by tested model, then in the natural order of values."""
    model, *between = heads
    value = between.pop() if between else ""
    rank = VALUE_ORDER.index(value) if value in VALUE_ORDER else len(VALUE_ORDER)
    digits = value.removesuffix("+")  # "8+" is a group of steps
    number = int(digits) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else 0
    return model.casefold(), model, *between, rank, number, value


def counts_of(c: JudgementTable, rows: Vector) -> Counts:
    """Number of rows, and number of those with a verdict."""
    return Counts(rows=len(rows), scored=int(c.scored[rows].sum()))


def has_label(c: JudgementTable, field: str, label: str | None) -> Vector:
    """Mask of the profiles with this label."""
    labels = c.labels[field]
    return c.codes[field] == (labels.index(label) if label in labels else -1)


def groups(
    c: JudgementTable, profiles: Vector, fields: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], Vector]]:
    """Rows of the marked profiles, grouped by their values in some fields.

    The first field is the tested model. Rows without a value of the last field are left out.
    """
    codes = np.stack([c.levels if f == "level" else c.codes[f] for f in fields], axis=1)
    for key in np.unique(codes[profiles], axis=0):
        values: list[str | None] = [
            str(code) if field == "level" else c.labels[field][code]
            for field, code in zip(fields, key.tolist(), strict=True)
        ]
        if values[-1] is not None or len(values) == 1:
            rows = c.where(profiles & (codes == key).all(axis=1))
            yield tuple(value or "" for value in values), rows


def parts_of(
    c: JudgementTable, section: Section, split: Split | None
) -> Iterator[tuple[tuple[str, ...], SectionPart]]:
    """The section's rows, by their heads in the table."""
    form = section.form
    if not form and section.protocol != EXTRANEOUS:  # others have one form, which names E2
        form = "step-wise" if section.protocol in {"step-wise", "tool-broken"} else "holistic"
    profiles = has_label(c, "protocol", section.protocol)
    if section.form:
        profiles &= has_label(c, "form", section.form)
    if section.protocol == EXTRANEOUS:
        profiles &= c.levels > 0 if section.form else ~is_base(c)
    if split == "stage":
        profiles &= has_label(c, "horizon", "1")
    rivals = c.where(profiles)
    for heads, rows in groups(c, profiles, ("tested_model", *filter(None, [split]))):
        part = SectionPart(c=c, rows=rows, protocol=section.protocol, form=form, rivals=rivals)
        yield heads, part
