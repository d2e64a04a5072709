"""Builds the paper's tables from results: selects tables, makes rows, marks best sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...calibration.results import Reliability
from ...document.model import Counts
from ...errors import OptionError
from ...judge.metrics import (
    BEHAVIOURS,
    C_ALL,
    C_COM,
    C_PASS,
    CHEAPEST,
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
    broken_metrics,
    cases_all_right,
    code_of,
    common_metrics,
    efficiency_metrics,
    extraneous_grades,
    extraneous_metrics,
    is_own,
    pairs_with_base,
    reply_metrics,
    unsolvable_metrics,
    with_bounds,
)
from ...judge.summary import base_of
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...statistics.best import RowValues
from ...statistics.estimates import Estimate, nothing
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
from ...statistics.metric import MetricKind, Metrics, by_name
from .definitions import DEFINITIONS, E2_OF, HEADLINE, OF_REPLIES, SAMPLES, Definition
from .refining import refined_rows, refinement_notes
from .rows import (
    JudgeResults,
    SectionPart,
    TableSources,
    build,
    counts_of,
    has_label,
    judge_notes,
    parts_of,
    place_of,
    stage_notes,
)
from .samples import sample_notes, sample_rows
from .table import PaperTable, TableRow
from .trajectories import (
    TRAJECTORY_NEEDS,
    correlation_rows,
    trajectory_definitions,
    trajectory_headlines,
    trajectory_rows,
)


def paper_tables(results: TableSources, names: Sequence[str] = ()) -> tuple[PaperTable, ...]:
    """The tables for which results have data: the paper's in its order, samples, trajectories.

    Rows are grouped by judge and sorted by tested model; sections without data are left out. In
    columns with a direction, the best set is marked (``statistics.best``): all rows except those
    that another row is shown to be better than. Tested models compete with each other if all else
    is equal (judge, level, stage, …), and so do refinement methods. Metrics of judges against
    humans are not marked, see ``_label_rows``.

    Raises:
        OptionError: If there are no rows for a table in ``names``.
    """
    known = (*DEFINITIONS, SAMPLES, *trajectory_definitions(results))
    wanted = [definition for definition in known if not names or definition.key in names]
    tables = tuple(table for definition in wanted if (table := _table(definition, results)))
    built = {table.key for table in tables}
    for name in names:
        if name not in built:
            needs = next((of.needs for of in known if of.key == name), TRAJECTORY_NEEDS)
            raise OptionError(f"--table {name}: there is nothing for it; it needs {needs}")
    return tables


def headline_tables(results: TableSources) -> tuple[PaperTable, ...]:
    """The rate of correct plans by tested model and protocol, a table a judge; then trajectories.

    Static judges, whose rates are bounds, are last.
    """
    alone = (replace(results, judges=(judge,)) for judge in results.judges)
    tables = [table for own in alone if (table := _table(HEADLINE, own))]
    others = (_table(definition, results) for definition in trajectory_headlines(results))
    return (*sorted(tables, key=_is_bound), *filter(None, others))


def _is_bound(table: PaperTable) -> bool:
    return any(cell.estimate.bound for cell in table.metrics)


def _table(definition: Definition, results: TableSources) -> PaperTable | None:
    """The table; None if it would have no row or too few columns."""
    readers = {
        "judgements": judged_rows,
        "samples": sample_rows,
        "trajectories": trajectory_rows,
        "correlations": correlation_rows,
    }
    match definition.source:
        case "labels":
            judges = results.reliability.judges if results.reliability else ()
            rows = [row for judge in judges for row in _label_rows(definition, judge)]
            notes = _label_notes(definition, judges)
        case "refined":
            rows = refined_rows(definition, results)
            notes = [*judge_notes(results, rows), *refinement_notes(definition, results)]
        case source:
            rows = [row for judge in results.judges for row in readers[source](definition, judge)]
            notes = judge_notes(results, rows)
    if not rows:
        return None
    if definition.key == "stage":
        notes += stage_notes(results)
    if definition.source == "samples":
        notes += sample_notes(rows)
    table = build(definition, rows, notes)
    metrics = [column for column in table.columns if column.kind]
    return table if len(metrics) >= definition.least else None


def _label_notes(definition: Definition, judges: Sequence[Reliability]) -> list[str]:
    """Notes on each judge, and the tested model that is the judge itself."""
    notes = [f"{judge.judge}: {note}" for judge in judges for note in judge.notes]
    if definition.key == "self-evaluation":
        owns = {judge.judge: judge.self_evaluation for judge in judges}
        notes += [f"{own.own} is the judge {name}" for name, own in owns.items() if own and own.own]
    return notes


# Judgements alone --------------------------------------------------------------------------------


def judged_rows(definition: Definition, judge: JudgeResults) -> list[TableRow]:
    """Rows by tested model and, if the table splits them, by value."""
    rows_by_heads: dict[tuple[str, ...], TableRow] = {}
    for section in definition.sections:
        for heads, part in parts_of(judge.columns, section, definition.split):
            estimates = metrics_of(part, section.columns)
            row_values = {
                name: row_values_of(part, metric.kind)
                for name, metric in estimates.items()
                if metric.kind.better and not metric.bound and metric.kind not in _UNMARKED
            }
            row = rows_by_heads.setdefault(heads, TableRow(judge.judge, heads))
            row.add(section.title, counts_of(part.c, part.rows), estimates, row_values)
    return [rows_by_heads[heads] for heads in sorted(rows_by_heads, key=place_of)]


_UNMARKED = (WEIGHTED, TRUNCATED)
"""Metrics that are not means over the items of a row, or do not concern correctness."""


def metrics_of(part: SectionPart, kinds: Collection[MetricKind]) -> Metrics:
    """The metrics of these kinds that a part has; others are missing."""
    c, rows, names = part.c, part.rows, [kind.name for kind in kinds]
    metrics = _common_metrics(part) if CR in kinds else {}
    if part.protocol == "tool-broken":
        metrics |= broken_metrics(c, rows)
    elif part.protocol == "unsolvable":
        metrics |= unsolvable_metrics(c, rows)
    elif part.protocol == "efficiency":
        metrics |= efficiency_metrics(c, rows, part.rivals)
    elif {TC.name, GRADE_BASE.name} & {*names}:
        base = base_of(c, rows)
        metrics |= extraneous_metrics(c, rows, base)
        if GRADE_BASE in kinds:
            metrics |= extraneous_grades(c, rows, base)
    if {*OF_REPLIES} & {*kinds}:
        metrics |= reply_metrics(c, rows)
    metrics = with_bounds(c, rows, metrics)
    own = by_name(of for of in metrics.values() if ERRORS["E1"] in kinds and is_own(of.kind))
    return {name: metrics[name] for name in names if name in metrics} | own


def _common_metrics(part: SectionPart) -> Metrics:
    """Metrics over all rows; for both forms, E2 is two codes, each over the rows of its form."""
    if part.form is not None:
        return common_metrics(part.c, part.rows, part.form)
    metrics: Metrics = {}
    for form in E2_OF:
        metrics |= common_metrics(part.c, _rows_of_form(part.c, part.rows, form), form)
    together = common_metrics(part.c, part.rows, "holistic")
    return metrics | {key: estimate for key, estimate in together.items() if key != "E2-H"}


def _rows_of_form(c: JudgementTable, rows: Vector, form: str) -> Vector:
    return np.intersect1d(rows, c.where(has_label(c, "form", form)))


def row_values_of(part: SectionPart, kind: MetricKind) -> RowValues:
    """Values by row of a metric with a direction; for TC, of using any distractor."""
    c, rows = part.c, part.rows
    if kind in _PAIRED:  # with distractors, without, or the difference
        of = c.outcome if kind in (CR_BASE, CR_EXTRANEOUS, DELTA) else c.grade
        rows, before = pairs_with_base(c, of, rows, base_of(c, rows))
        values = before if kind in (CR_BASE, GRADE_BASE) else of[rows]
        values = values - before if kind in (DELTA, GRADE_DELTA) else values
    else:
        values, has = _values(part, kind)
        rows, values = rows[has], values[has]
    return RowValues(values=values.astype(float), items=c.item[rows], cases=c.case[rows])


_TYPES = {kind: name for name, kind in REFUSALS.items()}
_BEHAVIOURS = {kind: number for number, kind in BEHAVIOURS.items()}
_PAIRED = (CR_BASE, CR_EXTRANEOUS, DELTA, GRADE_BASE, GRADE_EXTRANEOUS, GRADE_DELTA)


def _values(part: SectionPart, kind: MetricKind) -> tuple[Vector, Vector]:
    """Values of a part, and the mask of those in the metric's mean; shape (n,) each."""
    c, rows = part.c, part.rows
    outcome, grade, cost, excess = (
        of[rows] for of in (c.outcome, c.grade, c.facts["plan_cost"], c.facts["excess_cost"])
    )
    is_counted, is_correct = ~np.isnan(outcome), c.correct[rows] == 1
    if kind in _TYPES:
        return outcome, is_counted & has_label(c, "unsolvable_type", _TYPES[kind])[c.profile[rows]]
    if kind in _BEHAVIOURS:
        return c.category[rows] == _BEHAVIOURS[kind], is_counted
    if kind is C_COM:
        is_common = np.isin(c.case[rows], cases_all_right(c, part.rivals))
        return cost, is_correct & ~np.isnan(cost) & is_common
    refusal = c.facts["over_refusal"][rows]
    known: dict[str, tuple[Vector, Vector]] = {
        CR.name: (outcome, is_counted),
        GRADE.name: (grade, (c.scored[rows] == 1) & ~np.isnan(grade)),
        OVER_REFUSAL.name: (refusal == 1, refusal >= 0),
        TC.name: (c.facts["uses_distractor"][rows] == 1, ~c.missing[rows]),
        C_ALL.name: (cost, ~np.isnan(cost)),
        C_PASS.name: (cost, is_correct & ~np.isnan(cost)),
        EXCESS.name: (excess, is_correct & ~np.isnan(excess)),
        CHEAPEST.name: (excess <= 0, is_correct & ~np.isnan(excess)),
    }
    if kind.name in known:
        return known[kind.name]
    at = c.error_codes.index(code_of(kind))
    is_known = (c.scored[rows] == 1) & (c.known[rows] >> at & 1 > 0)
    for form, code in E2_OF.items():
        if part.form is None and kind.name == code:
            is_known &= has_label(c, "form", form)[c.profile[rows]]
    return c.flags[rows] >> at & 1, is_known


# Judges against human labels ---------------------------------------------------------------------


def _label_rows(definition: Definition, judge: Reliability) -> Iterator[TableRow]:
    """Rows by judge or, for self-evaluation, by tested model. Nothing is marked as best.

    The judges share their labelled items, so their metrics are correlated, and a reliability report
    has only the metrics. The tables refer to ``apbjudge compare --labels``, which compares judges
    item by item.
    """
    overall, diversity, own = judge.whole, judge.diversity, judge.self_evaluation
    row = TableRow("", (judge.judge,))
    if definition.key == "judges":
        names = [kind.name for kind in definition.sections[0].columns]
        metrics = {name: overall.measures[name] for name in names if name in overall.measures}
        yield row.add("", Counts(rows=overall.n_items, scored=overall.n_scored), metrics)
    elif definition.key == "corrected":
        yield from _corrected_rows(judge)
    elif definition.key == "diversity" and diversity is not None:
        groups = (diversity.different, diversity.standard)
        for section, group in zip(definition.sections, groups, strict=True):
            metrics = {AGREEMENT.name: group.agreement, GRADE_MAE.name: group.error}
            row.add(section.title, _all(group.agreement), metrics)
        yield row
    elif definition.key == "self-evaluation" and own is not None:
        for m in sorted(own.models, key=lambda f: (f.tested_model.casefold(), f.tested_model)):
            rate, grade = m.rate.estimate, m.grade.estimate
            rates = {HUMAN_CR.name: m.human_rate, JUDGE_CR.name: m.judge_rate, CR_BIAS.name: rate}
            grades = {
                HUMAN_GRADE.name: m.human_grade,
                JUDGE_GRADE.name: m.judge_grade,
                GRADE_BIAS.name: grade,
            }
            row = TableRow(judge.judge, (m.tested_model,))
            yield row.add("CR", _all(rate), rates).add("Grade", _all(grade), grades)


def _corrected_rows(judge: Reliability) -> Iterator[TableRow]:
    """All tested models together, then each."""
    rows: dict[tuple[str, str | None], TableRow] = {}
    for part in judge.corrected:
        if part.figure in {"CR", "Grade"}:
            head = part.value or "not stated" if part.field else "all"
            row = rows.setdefault((part.field, part.value), TableRow(judge.judge, (head,)))
            r, kind = part.result, part.figure if part.figure == "CR" else "grade"
            estimates = {
                f"corrected {kind}": r.rectified,
                f"labels {kind}": r.labelled_only,
                f"added {kind}": replace(nothing(n_items=r.n_judged, note=""), value=r.added),
                f"judge {kind}": r.raw,
            }
            row.add(part.figure, Counts(rows=r.n_judged, scored=r.n_judged), estimates)
    yield from rows.values()


def _all(estimate: Estimate) -> Counts:
    """Counts of a metric that excludes unscored rows: all of its rows are scored."""
    return Counts(rows=estimate.n_items, scored=estimate.n_items)
