"""Rows of tables that are made of judgements alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...judge.summary import EXTRANEOUS, VALUE_ORDER, is_base
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ..results import JudgeResults
from .definitions import Definition, Section, Split
from .drafts import Draft
from .kinds import FIGURES
from .measuring import Part, contender_of, figures_of
from .table import Counts

_MOST_DIGITS = 18  # a longer value, from damaged data, stands as a text
_Key = tuple[int, int]
"""Codes of a tested model and of the value that its rows are told apart by."""


def judged_rows(definition: Definition, of: JudgeResults) -> list[Draft]:
    """One judge's rows, by tested model and, where the table tells them apart, by value.

    Args:
        definition: A table whose sections name protocols.
        of: The judge.
    """
    found: dict[tuple[str, ...], Draft] = {}
    for section in definition.sections:
        for heads, part in _parts(of.columns, section, definition.split):
            draft = found.get(heads) or Draft(judge=of.judge, heads=heads, counts={}, estimates={})
            found[heads] = _with(draft, section, part)
    return [found[heads] for heads in sorted(found, key=_order)]


def _order(heads: tuple[str, ...]) -> tuple[object, ...]:
    model, *rest = heads
    value = rest[0] if rest else ""
    place = VALUE_ORDER.index(value) if value in VALUE_ORDER else len(VALUE_ORDER)
    number = int(value) if value.isdecimal() and len(value) <= _MOST_DIGITS else 0
    return model.casefold(), model, place, number, value


def _with(draft: Draft, section: Section, part: Part) -> Draft:
    """The draft with one section more."""
    figures = figures_of(part, section.columns)
    counts = Counts(rows=len(part.rows), scored=int(part.c.scored[part.rows].sum()))
    contenders = {
        (section.title, key): contender_of(part, key) for key in figures if FIGURES[key].better
    }
    return replace(
        draft,
        counts={**draft.counts, section.title: counts},
        estimates={**draft.estimates, **{(section.title, k): e for k, e in figures.items()}},
        contenders={**draft.contenders, **contenders},
    )


def _parts(
    c: JudgementTable, section: Section, split: Split | None
) -> Iterator[tuple[tuple[str, ...], Part]]:
    """The section's rows by the heads that they have in the table."""
    profiles = _profiles(c, section, split)
    values, names = _values(c, split)
    models = c.codes["tested_model"]
    rivals = c.where(profiles)
    keys: set[_Key] = set(zip(models[profiles].tolist(), values[profiles].tolist(), strict=True))
    for model, value in sorted(keys):
        name = names[value]
        if name is None:
            continue
        rows = c.where(profiles & (models == model) & (values == value))
        heads = (c.labels["tested_model"][model] or "", *([name] if split else []))
        part = Part(c=c, rows=rows, protocol=section.protocol, form=_form(section), rivals=rivals)
        yield heads, part


def _form(section: Section) -> str | None:
    """Every protocol but tool-extraneous has one form; that of the others decides E2's name."""
    if section.form or section.protocol == EXTRANEOUS:
        return section.form
    return "step-wise" if section.protocol in {"step-wise", "tool-broken"} else "holistic"


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


def _is(c: JudgementTable, field: str, label: str) -> Vector:
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
