"""The paper's tables from results: which there are, their rows, and the best sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from ...calibration.results import Reliability
from ...document.model import reasons
from ...errors import OptionError
from ...judge.metric_columns import Column, code_of, is_code, is_own, own_column
from ...judge.metrics import (
    CATEGORIES,
    WEIGHTED,
    Figures,
    broken_figures,
    cases_all_right,
    common_figures,
    efficiency_figures,
    extraneous_figures,
    extraneous_grades,
    pairs_with_base,
    reply_figures,
    unsolvable_figures,
    with_bounds,
)
from ...judge.summary import base_of
from ...records import UNSOLVABLE_TYPES
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...statistics.best import Contender
from ...statistics.estimates import Estimate, nothing
from .refining import refined_rows, refinement_notes
from .rows import (
    JudgeResults,
    Part,
    Results,
    UnmarkedRow,
    best_sets,
    counts_of,
    has_label,
    parts_of,
    place_of,
)
from .table import (
    DEFINITIONS,
    HEADLINE,
    OF_BANKS,
    OF_REPLIES,
    Cell,
    Counts,
    Definition,
    Table,
    TableRow,
)


def paper_tables(results: Results, names: Sequence[str] = ()) -> tuple[Table, ...]:
    """The tables of the paper that results have something for, in its order.

    Rows of one judge are together, sorted by tested model; sections that no row has anything for
    are left out. In columns with a direction the best set is marked (``statistics.best``): all rows
    but those that another one is shown to be better than. Tested models compete with each other
    where all else is the same (judge, level, stage, …), and likewise refinement methods.
    Figures of judges against humans are not marked, see ``_label_rows``.

    Raises:
        OptionError: If there is nothing for a table that is among ``names``.
    """
    tables: list[Table] = []
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


def headline_tables(results: Results) -> tuple[Table, ...]:
    """The rate of correct plans by tested model and protocol, a table a judge.

    Judges whose rates are bounds, because code alone judged, are last.
    """
    tables: list[Table] = []
    for judge in results.judges:
        own = replace(results, judges=(judge,))
        if rows := _rows(HEADLINE, own):
            tables.append(_table(HEADLINE, rows, own))
    return tuple(sorted(tables, key=_is_bound))


def _is_bound(table: Table) -> bool:
    return any(cell.estimate.bound for row in table.rows for cell in row.cells.values())


def _rows(definition: Definition, results: Results) -> list[UnmarkedRow]:
    if definition.key in _OF_LABELS:
        judges = results.reliability.judges if results.reliability else ()
        return [row for judge in judges for row in _label_rows(definition, judge)]
    if definition.rivals == "methods":
        return refined_rows(definition, results)
    return [row for judge in results.judges for row in _judged_rows(definition, judge)]


def _table(definition: Definition, rows: list[UnmarkedRow], results: Results) -> Table:
    sections = {section for row in rows for section in row.counts}
    columns = tuple(_columns(definition, rows, sections))
    notes = (
        *definition.notes,
        *_judge_notes(definition, rows, results),
        *(refinement_notes(definition, results) if definition.rivals == "methods" else ()),
        *_missing(definition, rows),
    )
    best = best_sets(rows, columns, definition.rivals)
    return Table(
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
                    column: Cell(estimate=estimate, best=best.get((i, column)))
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
) -> Iterator[Column]:
    """The columns of the definition, with codes of own rubrics in the place of E1 to E6."""
    stated = dict.fromkeys(column for row in rows for column in row.estimates)
    own = {
        section: [key for of, key in stated if of == section and is_own(key)]
        for section in sections
    }
    for section, columns in groupby(definition.columns, key=lambda column: column.section):
        if section not in sections:
            continue
        for column in columns:
            is_optional = column.key in (*OF_BANKS, *OF_REPLIES, "Critic") or (
                own[section] and is_code(column.key)
            )
            if column.id in stated or not is_optional:
                yield column
        yield from (own_column(key, section) for key in own[section])


def _judge_notes(definition: Definition, rows: list[UnmarkedRow], results: Results) -> list[str]:
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
                key: contender_of(part, key)
                for key, estimate in estimates.items()
                if key != WEIGHTED and own_column(key).better and not estimate.bound
            }
            row = rows_by_heads.setdefault(heads, UnmarkedRow(judge.judge, heads))
            row.add(section.title, counts_of(part.c, part.rows), estimates, contenders)
    return [rows_by_heads[heads] for heads in sorted(rows_by_heads, key=place_of)]


_TYPES: Mapping[str, str] = dict(
    zip(("Conf", "Info", "Tool", "Vis"), UNSOLVABLE_TYPES, strict=True)
)
_BEHAVIOURS: Mapping[str, int] = dict(zip(("Rp", "Al", "Rt", "Rf", "Ot"), CATEGORIES, strict=True))
_NAMES: Mapping[str, str] = {
    **{key: f"refusal {name}" for key, name in _TYPES.items()},
    **{key: f"{number} {CATEGORIES[number]}" for key, number in _BEHAVIOURS.items()},
    "ExtUse": "TC",
    "CR Δ": "delta",
    "Grade Δ": "Grade delta",
}
"""Names of the figures where a table has other keys for them."""


def figures_of(part: Part, keys: tuple[str, ...]) -> dict[str, Estimate]:
    """The figures that a part has, by key of ``FIGURES``; those it does not have are missing."""
    c, rows = part.c, part.rows
    figures = _common_figures(part) if "CR" in keys else {}
    if part.protocol == "tool-broken":
        figures |= broken_figures(c, rows)
    elif part.protocol == "unsolvable":
        figures |= unsolvable_figures(c, rows)
    elif part.protocol == "efficiency":
        figures |= efficiency_figures(c, rows, part.rivals)
    elif {"TC", "ExtUse", "Grade_B"} & {*keys}:
        base = base_of(c, rows)
        figures |= extraneous_figures(c, rows, base)
        if "Grade_B" in keys:
            figures |= extraneous_grades(c, rows, base)
    if {*OF_REPLIES} & {*keys}:
        figures |= reply_figures(c, rows)
    names = {key: _NAMES.get(key, key) for key in keys}
    figures = with_bounds(c, rows, figures)
    own = {name: of for name, of in figures.items() if "E1" in keys and is_own(name)}
    return {key: figures[name] for key, name in names.items() if name in figures} | own


def _common_figures(part: Part) -> Figures:
    """Over all rows; E2 of rows of both forms is two codes, each over the rows of its form."""
    if part.form is not None:
        return common_figures(part.c, part.rows, part.form)
    figures: Figures = {}
    for form in ("holistic", "step-wise"):
        figures |= common_figures(part.c, _of_form(part.c, part.rows, form), form)
    together = common_figures(part.c, part.rows, "holistic")
    return figures | {key: estimate for key, estimate in together.items() if key != "E2-H"}


def _of_form(c: JudgementTable, rows: Vector, form: str) -> Vector:
    return np.intersect1d(rows, c.where(has_label(c, "form", form)))


def contender_of(part: Part, key: str) -> Contender:
    """What a figure with a direction is the mean of, row by row; TC is that of using one at all."""
    c, rows = part.c, part.rows
    scored, counted = rows[c.scored[rows] == 1], rows[~np.isnan(c.outcome[rows])]
    match key:
        case "CR":
            rows, values = counted, c.outcome[counted]
        case "Grade":
            rows = scored[~np.isnan(c.grade[scored])]
            values = c.grade[rows]
        case "over-refusal":
            rows = rows[c.over_refusal[rows] >= 0]
            values = c.over_refusal[rows] == 1
        case "TC" | "ExtUse":
            rows = rows[~c.missing[rows]]
            values = c.distractor[rows] == 1
        case "Conf" | "Info" | "Tool" | "Vis":
            rows = np.intersect1d(counted, c.where(has_label(c, "unsolvable_type", _TYPES[key])))
            values = c.outcome[rows]
        case "Rp" | "Rt" | "Rf" | "Ot":
            rows, values = counted, c.category[counted] == _BEHAVIOURS[key]
        case "C_all" | "C_pass" | "C_com":
            rows = _priced(part, key)
            values = c.cost[rows]
        case "C_excess" | "cheapest":
            rows = rows[(c.correct[rows] == 1) & ~np.isnan(c.excess[rows])]
            values = c.excess[rows] if key == "C_excess" else c.excess[rows] <= 0
        case "CR_B" | "CR_E" | "CR Δ" | "Grade_B" | "Grade_E" | "Grade Δ":
            of = c.outcome if key.startswith("CR") else c.grade
            rows, before = pairs_with_base(c, of, rows, base_of(c, rows))
            values = {"B": before, "E": of[rows], "Δ": of[rows] - before}[key[-1]]
        case _:  # an error code
            forms = {"E2-H": "holistic", "E2-S": "step-wise"} if part.form is None else {}
            rows = _of_form(c, scored, forms[key]) if key in forms else scored
            at = c.error_codes.index(code_of(key))
            rows = rows[(c.known[rows] >> at & 1) > 0]
            values = c.flags[rows] >> at & 1
    return Contender(values=values.astype(float), items=c.item[rows], cases=c.case[rows])


def _priced(part: Part, key: str) -> Vector:
    """The rows that a mean cost is over."""
    c, rows = part.c, part.rows[~np.isnan(part.c.cost[part.rows])]
    if key != "C_all":
        rows = rows[c.correct[rows] == 1]
    if key == "C_com":
        rows = rows[np.isin(c.case[rows], cases_all_right(c, part.rivals))]
    return rows


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
        keys = definition.sections[0].columns
        figures = {key: whole.measures[key] for key in keys if key in whole.measures}
        yield row.add("", Counts(rows=whole.n_items, scored=whole.n_scored), figures)
    elif definition.key == "corrected":
        yield from _corrected_rows(judge)
    elif definition.key == "diversity" and diversity is not None:
        groups = (diversity.different, diversity.standard)
        for section, group in zip(definition.sections, groups, strict=True):
            figures = {"agreement": group.agreement, "grade MAE": group.error}
            row.add(section.title, _all(group.agreement), figures)
        yield row
    elif definition.key == "self-evaluation" and own is not None:
        for of in sorted(own.models, key=lambda f: (f.tested_model.casefold(), f.tested_model)):
            rate, grade = of.rate.estimate, of.grade.estimate
            rates = {"human CR": of.human_rate, "judge CR": of.judge_rate, "CR bias": rate}
            grades = {
                "human grade": of.human_grade,
                "judge grade": of.judge_grade,
                "grade bias": grade,
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
