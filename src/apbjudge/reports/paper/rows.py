"""Rows of the paper's tables before the best are marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ...calibration.results import Reliability, ReliabilityReport
from ...judge.metrics import (
    CATEGORIES,
    Figures,
    broken_figures,
    cases_all_right,
    common_figures,
    efficiency_figures,
    extraneous_figures,
    extraneous_grades,
    pairs_with_base,
    unsolvable_figures,
)
from ...judge.summary import EXTRANEOUS, VALUE_ORDER, base_of, is_base
from ...records import UNSOLVABLE_TYPES
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...statistics.best import Contender
from ...statistics.differences import paired_test
from ...statistics.estimates import Array, Estimate, Ids, nothing
from ...statistics.proportions import bounded
from ...statistics.sample import Sample
from ..results import JudgeResults, RefinedResults, Results
from .definitions import FIGURES, Definition, Section, Split
from .table import ColumnId, Counts

Values = tuple[Vector, Vector]
"""Rows, and the value of each."""
_MOST_DIGITS = 18  # a longer value, from damaged data, stands as a text


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A row without marks; see ``table.TableRow``.

    Attributes:
        contenders: By column, what figures with a direction are the means of.
    """

    judge: str
    heads: tuple[str, ...]
    counts: Mapping[str, Counts] = field(default_factory=dict[str, Counts])
    estimates: Mapping[ColumnId, Estimate] = field(default_factory=dict[ColumnId, Estimate])
    contenders: Mapping[ColumnId, Contender] = field(default_factory=dict[ColumnId, Contender])

    def with_section(
        self,
        title: str,
        counts: Counts,
        estimates: Mapping[str, Estimate],
        contenders: Mapping[str, Contender],
    ) -> Draft:
        """The draft with one section more; its figures by key."""
        return replace(
            self,
            counts={**self.counts, title: counts},
            estimates={**self.estimates, **{(title, k): e for k, e in estimates.items()}},
            contenders={**self.contenders, **{(title, k): c for k, c in contenders.items()}},
        )


# Judgements alone --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Judgements of one tested model that one section of a row is about.

    Attributes:
        c: All judgements of the judge.
        rows: Their indices, at least one.
        form: ``holistic`` or ``step-wise``; None for both together.
        rivals: Indices of the rows of all tested models under this protocol.
    """

    c: JudgementTable
    rows: Vector
    protocol: str
    form: str | None
    rivals: Vector


def judged_rows(definition: Definition, of: JudgeResults) -> list[Draft]:
    """One judge's rows, by tested model and, where the table tells them apart, by value.

    Sections of the table must name protocols.
    """
    found: dict[tuple[str, ...], Draft] = {}
    for section in definition.sections:
        for heads, part in parts_of(of.columns, section, definition.split):
            draft = found.get(heads) or Draft(judge=of.judge, heads=heads)
            counts = Counts(rows=len(part.rows), scored=int(part.c.scored[part.rows].sum()))
            figures = figures_of(part, section.columns)
            contenders = {key: contender_of(part, key) for key in figures if FIGURES[key].better}
            found[heads] = draft.with_section(section.title, counts, figures, contenders)
    return [found[heads] for heads in sorted(found, key=_order)]


def _order(heads: tuple[str, ...]) -> tuple[object, ...]:
    model, *rest = heads
    value = rest[0] if rest else ""
    place = VALUE_ORDER.index(value) if value in VALUE_ORDER else len(VALUE_ORDER)
    number = int(value) if value.isdecimal() and len(value) <= _MOST_DIGITS else 0
    return model.casefold(), model, place, number, value


def parts_of(
    c: JudgementTable, section: Section, split: Split | None
) -> Iterator[tuple[tuple[str, ...], Part]]:
    """The section's rows by the heads that they have in the table."""
    form = section.form
    if not form and section.protocol != EXTRANEOUS:  # the others have one form, which names E2
        form = "step-wise" if section.protocol in {"step-wise", "tool-broken"} else "holistic"
    profiles = _profiles(c, section, split)
    values, names = _values(c, split)
    models = c.codes["tested_model"]
    rivals = c.where(profiles)
    pairs = zip(models[profiles].tolist(), values[profiles].tolist(), strict=True)
    keys: set[tuple[int, int]] = set(pairs)
    for model, value in sorted(keys):
        name = names[value]
        if name is None:
            continue
        rows = c.where(profiles & (models == model) & (values == value))
        heads = (c.labels["tested_model"][model] or "", *([name] if split else []))
        yield heads, Part(c=c, rows=rows, protocol=section.protocol, form=form, rivals=rivals)


def _profiles(c: JudgementTable, section: Section, split: Split | None) -> Vector:
    """Marks of the profiles that the section is about."""
    kept = _is(c, "protocol", section.protocol)
    if section.form:
        kept &= _is(c, "form", section.form)
    if section.protocol == EXTRANEOUS:
        kept &= c.levels > 0 if section.form else ~is_base(c)
    if split == "stage":
        kept &= _is(c, "horizon", "1")
    return kept


def _is(c: JudgementTable, field: str, label: str | None) -> Vector:
    labels = c.labels[field]
    code = labels.index(label) if label in labels else -1
    return c.codes[field] == code


def _values(c: JudgementTable, split: Split | None) -> tuple[Vector, dict[int, str | None]]:
    """By profile, the code of what rows are told apart by; and the text behind each code."""
    if split is None:
        return np.zeros(len(c.levels), dtype=np.int64), {0: ""}
    if split == "level":
        return c.levels, {int(level): str(level) for level in np.unique(c.levels)}
    return c.codes[split], dict(enumerate(c.labels[split]))


# Figures, and what each is the mean of -----------------------------------------------------------


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
    known = _common(part) if "CR" in keys else {}
    known |= _own(part, keys)
    found = {key: known.get(_NAMES.get(key, key)) for key in keys}
    return {key: estimate for key, estimate in found.items() if estimate is not None}


def _common(part: Part) -> Figures:
    """Over all rows; E2 of rows of both forms is two codes, each over the rows of its form."""
    if part.form is not None:
        return common_figures(part.c, part.rows, part.form)
    figures: Figures = {}
    for form in ("holistic", "step-wise"):
        figures |= common_figures(part.c, _of_form(part, form), form)
    together = common_figures(part.c, part.rows, "holistic")
    return figures | {key: found for key, found in together.items() if key != "E2-H"}


def _of_form(part: Part, form: str) -> Vector:
    labels = part.c.labels["form"]
    if form not in labels:
        return part.rows[:0]
    return part.rows[part.c.code("form", part.rows) == labels.index(form)]


def _own(part: Part, keys: tuple[str, ...]) -> Figures:
    """The figures that only this protocol has."""
    c, rows = part.c, part.rows
    if part.protocol == "tool-broken":
        return broken_figures(c, rows)
    if part.protocol == "unsolvable":
        return unsolvable_figures(c, rows)
    if part.protocol == "efficiency":
        return efficiency_figures(c, rows, part.rivals)
    figures: Figures = {}
    if {"TC", "ExtUse", "Grade_B"} & {*keys}:
        base = base_of(c, rows)
        figures = extraneous_figures(c, rows, base)
        if "Grade_B" in keys:
            figures |= extraneous_grades(c, rows, base)
    return figures


def contender_of(part: Part, key: str) -> Contender:
    """What a figure with a direction is the mean of, row by row; TC is that of using one at all."""
    rows, values = _VALUES[key](part, key)
    return Contender(values=values.astype(float), items=part.c.item[rows], cases=part.c.case[rows])


def _scored(part: Part) -> Vector:
    return part.rows[part.c.scored[part.rows] == 1]


def _correct(part: Part, _: str) -> Values:
    rows = _scored(part)
    return rows, part.c.correct[rows]


def _grade(part: Part, _: str) -> Values:
    rows = _scored(part)
    rows = rows[~np.isnan(part.c.grade[rows])]
    return rows, part.c.grade[rows]


def _flag(part: Part, key: str) -> Values:
    rows = _scored(part)
    if part.form is None and key.startswith("E2"):
        rows = np.intersect1d(rows, _of_form(part, "holistic" if key == "E2-H" else "step-wise"))
    rows = rows[part.c.known[rows] > 0]
    return rows, (part.c.flags[rows] >> (int(key[1]) - 1)) & 1


def _behaviour(part: Part, key: str) -> Values:
    rows = _scored(part)
    return rows, part.c.category[rows] == _BEHAVIOURS[key]


def _refusal(part: Part, key: str) -> Values:
    labels, rows = part.c.labels["unsolvable_type"], _scored(part)
    code = labels.index(_TYPES[key]) if _TYPES[key] in labels else -1
    rows = rows[part.c.code("unsolvable_type", rows) == code]
    return rows, part.c.correct[rows]


def _use(part: Part, _: str) -> Values:
    return part.rows, part.c.distractor[part.rows] == 1


def _against_base(part: Part, key: str) -> Values:
    of = part.c.correct if key.startswith("CR") else part.c.grade
    pairs, before = pairs_with_base(part.c, of, part.rows, base_of(part.c, part.rows))
    if key.endswith("_B"):
        return pairs, before
    return pairs, of[pairs] if key.endswith("_E") else of[pairs] - before


def _cost(part: Part, key: str) -> Values:
    c, rows = part.c, part.rows[~np.isnan(part.c.cost[part.rows])]
    if key != "C_all":
        rows = rows[c.correct[rows] == 1]
    if key == "C_com":
        rows = rows[np.isin(c.case[rows], cases_all_right(c, part.rivals))]
    return rows, c.cost[rows]


_VALUES: Mapping[str, Callable[[Part, str], Values]] = {
    "CR": _correct,
    "Grade": _grade,
    **dict.fromkeys(("E1", "E2-H", "E2-S", "E3", "E4", "E5", "E6"), _flag),
    **dict.fromkeys(_BEHAVIOURS, _behaviour),
    **dict.fromkeys(_TYPES, _refusal),
    **dict.fromkeys(("TC", "ExtUse"), _use),
    **dict.fromkeys(("CR_B", "CR_E", "CR Δ", "Grade_B", "Grade_E", "Grade Δ"), _against_base),
    **dict.fromkeys(("C_all", "C_pass", "C_com"), _cost),
}


# The same items before and after refinement ------------------------------------------------------


def refined_rows(definition: Definition, results: Results) -> list[Draft]:
    """Rows by judge, tested model and method; methods in the order given.

    Refined runs without a base run of the same judge have no rows.
    """
    drafts: list[Draft] = []
    for base in results.judges:
        own = [run for run in results.refined if run.judge == base.judge]
        rows = [row for run in own for row in _refined_by(definition, base, run)]
        drafts += sorted(rows, key=lambda row: (row.heads[0].casefold(), row.heads[0]))
    return drafts


def _refined_by(definition: Definition, base: JudgeResults, run: RefinedResults) -> Iterator[Draft]:
    for model in run.columns.labels["tested_model"]:
        draft = Draft(judge=base.judge, heads=(model or "", run.method))
        for section in definition.sections:
            after = _rows_of(run.columns, section, model)
            if len(after):
                before = _rows_of(base.columns, section, model)
                draft = _compared(draft, section, (base.columns, before), (run.columns, after))
        if draft.counts:
            yield draft


def _rows_of(c: JudgementTable, section: Section, model: str | None) -> Vector:
    return c.where(_is(c, "protocol", section.protocol) & _is(c, "tested_model", model))


def _compared(
    draft: Draft,
    section: Section,
    before: tuple[JudgementTable, Vector],
    after: tuple[JudgementTable, Vector],
) -> Draft:
    """The draft with one section more."""
    old, old_items, old_cases = _by_item(*before)
    new, new_items, _ = _by_item(*after)
    items, at, on = np.intersect1d(old_items, new_items, assume_unique=True, return_indices=True)
    pairs = {"Base": old[at], "Refined": new[on], "Δ": new[on] - old[at]}
    cases = old_cases[at]  # each run numbers its own; methods compete by those of the base run
    sample = Sample(clusters=cases)
    estimates = {key: _estimate(key, of, sample) for key, of in pairs.items()}
    contenders = {
        key: Contender(values=pairs[key], items=items, cases=cases) for key in ("Refined", "Δ")
    }
    c, rows = after
    counts = Counts(rows=len(rows), scored=int(c.scored[rows].sum()))
    return draft.with_section(section.title, counts, estimates, contenders)


def _estimate(key: str, values: Array, sample: Sample) -> Estimate:
    if not len(values):
        return nothing(note="no item with a verdict before and after")
    return paired_test(values, sample).estimate if key == "Δ" else bounded(values, sample)


def _by_item(c: JudgementTable, rows: Vector) -> tuple[Array, Ids, Ids]:
    """By item with a verdict: the mean of its verdicts, its key, and its case."""
    scored = rows[c.scored[rows] == 1]
    items, first, index = np.unique(c.item[scored], return_index=True, return_inverse=True)
    means = np.bincount(index, weights=c.correct[scored], minlength=len(items))
    return means / np.bincount(index, minlength=len(items)), items, c.case[scored][first]


# Judges against human labels ---------------------------------------------------------------------


def label_rows(definition: Definition, report: ReliabilityReport) -> list[Draft]:
    """Rows of judges against human labels by judge or, for self-evaluation, also by tested model.

    Nothing is marked as best in them. The judges share their labelled items, so that their figures
    are correlated, and a reliability report holds the figures alone: a test on unrelated samples
    would be wrong, and one by whether intervals overlap needs them at a wider level than they
    have. The tables name ``apbjudge compare --labels``, which compares judges item by item.
    """
    return [
        row for judge in report.judges for row in _LABEL_ROWS[definition.key](definition, judge)
    ]


def _agreement(definition: Definition, judge: Reliability) -> Iterator[Draft]:
    whole = judge.whole
    scored = round((whole.scored.value or 0.0) * whole.scored.n_items)
    counts = Counts(rows=whole.n_items, scored=scored)
    keys = definition.sections[0].columns
    figures = {key: whole.measures[key] for key in keys if key in whole.measures}
    yield Draft(judge="", heads=(judge.judge,)).with_section("", counts, figures, {})


def _diversity(definition: Definition, judge: Reliability) -> Iterator[Draft]:
    if (found := judge.diversity) is None:
        return
    draft = Draft(judge="", heads=(judge.judge,))
    for section, of in zip(definition.sections, (found.different, found.standard), strict=True):
        figures = {"agreement": of.agreement, "grade MAE": of.error}
        draft = draft.with_section(section.title, _all(of.agreement), figures, {})
    yield draft


def _self_evaluation(_: Definition, judge: Reliability) -> Iterator[Draft]:
    found = judge.self_evaluation.models if judge.self_evaluation else ()
    for of in sorted(found, key=lambda f: (f.tested_model.casefold(), f.tested_model)):
        rate, grade = of.rate.estimate, of.grade.estimate
        rates = {"human CR": of.human_rate, "judge CR": of.judge_rate, "CR bias": rate}
        grades = {"human grade": of.human_grade, "judge grade": of.judge_grade, "grade bias": grade}
        draft = Draft(judge=judge.judge, heads=(of.tested_model,))
        draft = draft.with_section("CR", _all(rate), rates, {})
        yield draft.with_section("Grade", _all(grade), grades, {})


def _all(estimate: Estimate) -> Counts:
    """Unscored rows are none of the rows that such a figure is about."""
    return Counts(rows=estimate.n_items, scored=estimate.n_items)


_LABEL_ROWS: Mapping[str, Callable[[Definition, Reliability], Iterator[Draft]]] = {
    "judges": _agreement,
    "diversity": _diversity,
    "self-evaluation": _self_evaluation,
}
LABEL_TABLES = frozenset(_LABEL_ROWS)
"""Keys of the tables that set judges against human labels."""
