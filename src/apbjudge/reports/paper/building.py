"""The paper's tables from results: which there are, their rows, and the best sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from ...calibration.results import Reliability
from ...document.model import reasons
from ...errors import OptionError
from ...judge.metrics import (
    BEHAVIOURS,
    C_ALL,
    C_COM,
    CR_BASE,
    CR_EXTRANEOUS,
    DELTA,
    ERRORS,
    EXCESS,
    GRADE_BASE,
    GRADE_DELTA,
    GRADE_EXTRANEOUS,
    OVER_REFUSAL,
    REFUSALS,
    TC,
    TRUNCATED,
    WEIGHTED,
    broken_figures,
    cases_all_right,
    code_of,
    common_figures,
    efficiency_figures,
    extraneous_figures,
    extraneous_grades,
    is_own,
    pairs_with_base,
    reply_figures,
    unsolvable_figures,
    with_bounds,
)
from ...judge.summary import base_of
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...statistics.best import Contender
from ...statistics.estimates import Array, Estimate, nothing
from ...statistics.kinds import (
    AGREEMENT,
    CR,
    CR_BIAS,
    GRADE,
    GRADE_BIAS,
    GRADE_MAE,
    HUMAN_CR,
    HUMAN_GRADE,
    JUDGE_CR,
    JUDGE_GRADE,
)
from ...statistics.metric import Metric, MetricKind, Metrics, by_name
from .refining import refined_rows, refinement_notes
from .rows import (
    JudgeResults,
    SectionPart,
    TableSources,
    UnmarkedRow,
    best_sets,
    counts_of,
    has_label,
    parts_of,
    place_of,
)
from .table import (
    CRITIC,
    DEFINITIONS,
    HEADLINE,
    OF_BANKS,
    OF_COSTS,
    OF_REPLIES,
    Counts,
    Definition,
    PaperCell,
    PaperColumn,
    PaperTable,
    TableRow,
)


def paper_tables(results: TableSources, names: Sequence[str] = ()) -> tuple[PaperTable, ...]:
    """The tables of the paper that results have something for, in its order.

    Rows of one judge are together, sorted by tested model; sections that no row has anything for
    are left out. In columns with a direction the best set is marked (``statistics.best``): all rows
    but those that another one is shown to be better than. Tested models compete with each other
    where all else is the same (judge, level, stage, …), and likewise refinement methods.
    Figures of judges against humans are not marked, see ``_label_rows``.

    Raises:
        OptionError: If there is nothing for a table that is among ``names``.
    """
    tables: list[PaperTable] = []
    for definition in DEFINITIONS:
        if names and definition.key not in names:
            continue
        if rows := _rows(definition, results):
            tables.append(_table(definition, rows, results))
        elif names:
            raise OptionError(
                f"--table {definition.key}: there is nothing for it; it needs {definition.needs}"
            )
    return tuple(tables)


def headline_tables(results: TableSources) -> tuple[PaperTable, ...]:
    """The rate of correct plans by tested model and protocol, a table a judge.

    Judges whose rates are bounds, because code alone judged, are last.
    """
    tables: list[PaperTable] = []
    for judge in results.judges:
        own = replace(results, judges=(judge,))
        if rows := _rows(HEADLINE, own):
            tables.append(_table(HEADLINE, rows, own))
    return tuple(sorted(tables, key=_is_bound))


def _is_bound(table: PaperTable) -> bool:
    return any(cell.estimate.bound for row in table.rows for cell in row.cells.values())


def _rows(definition: Definition, results: TableSources) -> list[UnmarkedRow]:
    if definition.key in _OF_LABELS:
        judges = results.reliability.judges if results.reliability else ()
        return [row for judge in judges for row in _label_rows(definition, judge)]
    if definition.rivals == "methods":
        return refined_rows(definition, results)
    return [row for judge in results.judges for row in _judged_rows(definition, judge)]


def _table(definition: Definition, rows: list[UnmarkedRow], results: TableSources) -> PaperTable:
    sections = {section for row in rows for section in row.counts}
    columns = tuple(_columns(definition, rows, sections))
    notes = (
        *definition.notes,
        *_judge_notes(definition, rows, results),
        *(refinement_notes(definition, results) if definition.rivals == "methods" else ()),
        *_missing(definition, rows),
    )
    best = best_sets(rows, columns, definition.rivals)
    return PaperTable(
        key=definition.key,
        number=definition.number,
        title=definition.title,
        heads=definition.heads,
        columns=columns,
        rows=tuple(
            TableRow(
                judge=row.judge,
                heads=row.heads,
                counts=row.counts,
                cells={
                    column: PaperCell(estimate=estimate, best=best.get((i, column)))
                    for column, estimate in row.estimates.items()
                },
            )
            for i, row in enumerate(rows)
        ),
        notes=tuple(dict.fromkeys(notes)),
        counted=definition.counted,
    )


def _columns(
    definition: Definition, rows: list[UnmarkedRow], sections: Collection[str]
) -> Iterator[PaperColumn]:
    """The columns of the definition, with codes of own rubrics in the place of E1 to E6."""
    stated = {column: of for row in rows for column, of in row.estimates.items()}
    own: dict[str, list[MetricKind]] = {section: [] for section in sections}
    for (section, _), metric in stated.items():
        if isinstance(metric, Metric) and is_own(metric.kind):
            own[section].append(metric.kind)
    for section, columns in groupby(definition.columns, key=lambda column: column.section):
        if section not in sections:
            continue
        for column in columns:
            is_optional = column.key in _OPTIONAL or (own[section] and column.key in ERRORS)
            if column.id in stated or not is_optional:
                yield column
        yield from (PaperColumn.of(kind, section) for kind in own[section])


def _judge_notes(
    definition: Definition, rows: list[UnmarkedRow], results: TableSources
) -> list[str]:
    """What must be said of each judge, and which tested model is the judge itself."""
    if definition.key not in _OF_LABELS or not results.reliability:
        shown = {row.judge for row in rows}
        return [f"{j.judge}: {j.note}" for j in results.judges if j.note and j.judge in shown]
    judges = results.reliability.judges
    notes = [f"{judge.judge}: {note}" for judge in judges for note in judge.notes]
    if definition.key == "self-evaluation":
        owns = {judge.judge: judge.self_evaluation for judge in judges}
        notes += [f"{own.own} is the judge {name}" for name, own in owns.items() if own and own.own]
    return notes


def _missing(definition: Definition, rows: list[UnmarkedRow]) -> list[str]:
    """Why figures have no value."""
    titles = {column.id: column.title for column in definition.columns}
    several = len({row.judge for row in rows}) > 1
    return reasons(
        (
            estimate.note,
            " ".join(filter(None, (key[0], titles.get(key, key[1])))),
            ", ".join(filter(None, (row.judge if several else "", *row.heads))),
        )
        for row in rows
        for key, estimate in row.estimates.items()
        if estimate.value is None and estimate.low is None and estimate.note
    )


# Judgements alone --------------------------------------------------------------------------------


def _judged_rows(definition: Definition, judge: JudgeResults) -> list[UnmarkedRow]:
    """By tested model and, where the table tells them apart, by value."""
    rows_by_heads: dict[tuple[str, ...], UnmarkedRow] = {}
    for section in definition.sections:
        for heads, part in parts_of(judge.columns, section, definition.split):
            estimates = figures_of(part, section.columns)
            contenders = {
                name: contender_of(part, metric.kind)
                for name, metric in estimates.items()
                if metric.kind.better and not metric.bound and metric.kind not in _UNMARKED
            }
            row = rows_by_heads.setdefault(heads, UnmarkedRow(judge.judge, heads))
            row.add(section.title, counts_of(part.c, part.rows), estimates, contenders)
    return [rows_by_heads[heads] for heads in sorted(rows_by_heads, key=place_of)]


_OPTIONAL = frozenset(kind.name for kind in (*OF_BANKS, *OF_REPLIES, CRITIC))
_UNMARKED = (WEIGHTED, TRUNCATED)
"""What is no mean over the items of a row, or says nothing of right and wrong."""


def figures_of(part: SectionPart, kinds: Collection[MetricKind]) -> Metrics:
    """The metrics of these kinds that a part has; those it does not have are missing."""
    c, rows, names = part.c, part.rows, [kind.name for kind in kinds]
    metrics = _common_figures(part) if CR in kinds else {}
    if part.protocol == "tool-broken":
        metrics |= broken_figures(c, rows)
    elif part.protocol == "unsolvable":
        metrics |= unsolvable_figures(c, rows)
    elif part.protocol == "efficiency":
        metrics |= efficiency_figures(c, rows, part.rivals)
    elif {TC.name, GRADE_BASE.name} & {*names}:
        base = base_of(c, rows)
        metrics |= extraneous_figures(c, rows, base)
        if GRADE_BASE in kinds:
            metrics |= extraneous_grades(c, rows, base)
    if {*OF_REPLIES} & {*kinds}:
        metrics |= reply_figures(c, rows)
    metrics = with_bounds(c, rows, metrics)
    own = by_name(of for of in metrics.values() if ERRORS["E1"] in kinds and is_own(of.kind))
    return {name: metrics[name] for name in names if name in metrics} | own


def _common_figures(part: SectionPart) -> Metrics:
    """Over all rows; E2 of rows of both forms is two codes, each over the rows of its form."""
    if part.form is not None:
        return common_figures(part.c, part.rows, part.form)
    figures: Metrics = {}
    for form in ("holistic", "step-wise"):
        figures |= common_figures(part.c, _of_form(part.c, part.rows, form), form)
    together = common_figures(part.c, part.rows, "holistic")
    return figures | {key: estimate for key, estimate in together.items() if key != "E2-H"}


def _of_form(c: JudgementTable, rows: Vector, form: str) -> Vector:
    return np.intersect1d(rows, c.where(has_label(c, "form", form)))


def contender_of(part: SectionPart, kind: MetricKind) -> Contender:
    """What a metric with a direction is the mean of, row by row; TC is that of using one at all."""
    c, rows = part.c, part.rows
    scored, counted = rows[c.scored[rows] == 1], rows[~np.isnan(c.outcome[rows])]
    if kind is CR:
        rows, values = counted, c.outcome[counted]
    elif kind is GRADE:
        rows = scored[~np.isnan(c.grade[scored])]
        values = c.grade[rows]
    elif kind is OVER_REFUSAL:
        rows = rows[c.facts["over_refusal"][rows] >= 0]
        values = c.facts["over_refusal"][rows] == 1
    elif kind.name == TC.name:
        rows = rows[~c.missing[rows]]
        values = c.facts["uses_distractor"][rows] == 1
    elif kind in _TYPES:
        of_type = has_label(c, "unsolvable_type", _TYPES[kind])
        rows = np.intersect1d(counted, c.where(of_type))
        values = c.outcome[rows]
    elif kind in _BEHAVIOURS:
        rows, values = counted, c.category[counted] == _BEHAVIOURS[kind]
    elif kind in _OF_COST:
        rows, values = _cost_values(part, kind)
    elif kind in _PAIRED:
        rows, values = _pair_values(part, kind)
    else:  # an error code
        forms = {"E2-H": "holistic", "E2-S": "step-wise"} if part.form is None else {}
        rows = _of_form(c, scored, forms[kind.name]) if kind.name in forms else scored
        at = c.error_codes.index(code_of(kind))
        rows = rows[(c.known[rows] >> at & 1) > 0]
        values = c.flags[rows] >> at & 1
    return Contender(values=values.astype(float), items=c.item[rows], cases=c.case[rows])


_TYPES = {kind: name for name, kind in REFUSALS.items()}
_BEHAVIOURS = {kind: number for number, kind in BEHAVIOURS.items()}
_OF_COST = (*OF_COSTS, *OF_BANKS)
_PAIRED = (CR_BASE, CR_EXTRANEOUS, DELTA, GRADE_BASE, GRADE_EXTRANEOUS, GRADE_DELTA)


def _pair_values(part: SectionPart, kind: MetricKind) -> tuple[Vector, Array]:
    """With distractors, without, or the difference, of the pairs that the metric is over."""
    c, rows = part.c, part.rows
    of = c.outcome if kind in (CR_BASE, CR_EXTRANEOUS, DELTA) else c.grade
    rows, before = pairs_with_base(c, of, rows, base_of(c, rows))
    if kind in (CR_BASE, GRADE_BASE):
        return rows, before
    return rows, of[rows] - (before if kind in (DELTA, GRADE_DELTA) else 0)


def _cost_values(part: SectionPart, kind: MetricKind) -> tuple[Vector, Array]:
    """The rows that a metric of costs is over, and what it is the mean of."""
    c, rows = part.c, part.rows[~np.isnan(part.c.facts["plan_cost"][part.rows])]
    if kind is not C_ALL:
        rows = rows[c.correct[rows] == 1]
    if kind is C_COM:
        rows = rows[np.isin(c.case[rows], cases_all_right(c, part.rivals))]
    if kind in OF_COSTS:
        return rows, c.facts["plan_cost"][rows]
    rows = part.rows[(c.correct[part.rows] == 1) & ~np.isnan(c.facts["excess_cost"][part.rows])]
    excess = c.facts["excess_cost"][rows]
    return rows, excess if kind is EXCESS else (excess <= 0).astype(float)


# Judges against human labels ---------------------------------------------------------------------


_OF_LABELS = frozenset({"corrected", "judges", "diversity", "self-evaluation"})


def _label_rows(definition: Definition, judge: Reliability) -> Iterator[UnmarkedRow]:
    """By judge or, for self-evaluation, tested model. Nothing is marked as best in these tables.

    The judges share their labelled items, so that their figures are correlated, and a reliability
    report holds the figures alone. The tables name ``apbjudge compare --labels``, which compares
    judges item by item.
    """
    whole, diversity, own = judge.whole, judge.diversity, judge.self_evaluation
    row = UnmarkedRow("", (judge.judge,))
    if definition.key == "judges":
        names = [kind.name for kind in definition.sections[0].columns]
        figures = {name: whole.measures[name] for name in names if name in whole.measures}
        yield row.add("", Counts(rows=whole.n_items, scored=whole.n_scored), figures)
    elif definition.key == "corrected":
        yield from _corrected_rows(judge)
    elif definition.key == "diversity" and diversity is not None:
        groups = (diversity.different, diversity.standard)
        for section, group in zip(definition.sections, groups, strict=True):
            figures = {AGREEMENT.name: group.agreement, GRADE_MAE.name: group.error}
            row.add(section.title, _all(group.agreement), figures)
        yield row
    elif definition.key == "self-evaluation" and own is not None:
        for of in sorted(own.models, key=lambda f: (f.tested_model.casefold(), f.tested_model)):
            rate, grade = of.rate.estimate, of.grade.estimate
            rates = {HUMAN_CR.name: of.human_rate, JUDGE_CR.name: of.judge_rate, CR_BIAS.name: rate}
            grades = {
                HUMAN_GRADE.name: of.human_grade,
                JUDGE_GRADE.name: of.judge_grade,
                GRADE_BIAS.name: grade,
            }
            row = UnmarkedRow(judge.judge, (of.tested_model,))
            yield row.add("CR", _all(rate), rates).add("Grade", _all(grade), grades)


def _corrected_rows(judge: Reliability) -> Iterator[UnmarkedRow]:
    """All tested models together, then each."""
    rows: dict[tuple[str, str | None], UnmarkedRow] = {}
    for part in judge.corrected:
        if part.figure in {"CR", "Grade"}:
            head = part.value or "not stated" if part.field else "all"
            row = rows.setdefault((part.field, part.value), UnmarkedRow(judge.judge, (head,)))
            of, kind = part.result, part.figure if part.figure == "CR" else "grade"
            figures = {
                f"corrected {kind}": of.rectified,
                f"labels {kind}": of.labelled_only,
                f"added {kind}": replace(nothing(n_items=of.n_judged, note=""), value=of.added),
                f"judge {kind}": of.raw,
            }
            row.add(part.figure, Counts(rows=of.n_judged, scored=of.n_judged), figures)
    yield from rows.values()


def _all(estimate: Estimate) -> Counts:
    """Unscored rows are none of the rows that such a figure is about."""
    return Counts(rows=estimate.n_items, scored=estimate.n_items)
