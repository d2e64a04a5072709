"""Rows of the refinement table: the same items before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...statistics.best import Contender
from ...statistics.differences import paired_test
from ...statistics.estimates import Array, Estimate, Ids, nothing
from ...statistics.proportions import bounded
from ...statistics.sample import Sample
from ..results import JudgeResults, RefinedResults, Results
from .definitions import Definition, Section
from .drafts import Draft
from .table import ColumnId, Counts


def refined_rows(definition: Definition, results: Results) -> list[Draft]:
    """Rows by judge, tested model and method; methods in the order given.

    Args:
        definition: The table.
        results: Refined runs without a base run of the same judge have no rows.
    """
    drafts: list[Draft] = []
    for base in results.judges:
        own = [run for run in results.refined if run.judge == base.judge]
        rows = [row for run in own for row in _of_run(definition, base, run)]
        drafts += sorted(rows, key=lambda row: (row.heads[0].casefold(), row.heads[0]))
    return drafts


def _of_run(definition: Definition, base: JudgeResults, run: RefinedResults) -> Iterator[Draft]:
    for model in run.columns.labels["tested_model"]:
        draft = Draft(judge=base.judge, heads=(model or "", run.method), counts={}, estimates={})
        for section in definition.sections:
            after = _rows(run.columns, section, model)
            if len(after):
                before = _rows(base.columns, section, model)
                draft = _with(draft, section, (base.columns, before), (run.columns, after))
        if draft.counts:
            yield draft


def _rows(c: JudgementTable, section: Section, model: str | None) -> Vector:
    kept = np.ones(len(c.levels), dtype=bool)
    for field, label in (("protocol", section.protocol), ("tested_model", model)):
        labels = c.labels[field]
        kept &= c.codes[field] == (labels.index(label) if label in labels else -1)
    return c.where(kept)


def _with(
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
    found = {(section.title, key): _estimate(key, of, sample) for key, of in pairs.items()}
    contenders: dict[ColumnId, Contender] = {
        (section.title, key): Contender(values=pairs[key], items=items, cases=cases)
        for key in ("Refined", "Δ")
    }
    c, rows = after
    counts = Counts(rows=len(rows), scored=int(c.scored[rows].sum()))
    return replace(
        draft,
        counts={**draft.counts, section.title: counts},
        estimates={**draft.estimates, **found},
        contenders={**draft.contenders, **contenders},
    )


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
