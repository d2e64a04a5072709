"""The figures of the rows behind one part of a table, and what each is the mean of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

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
from ...judge.summary import base_of
from ...records import UNSOLVABLE_TYPES
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...statistics.best import Contender
from ...statistics.estimates import Estimate

Values = tuple[Vector, Vector]
"""Rows, and the value of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Judgements of one tested model that one section of a row is about.

    Attributes:
        c: All judgements of the judge.
        rows: Indices of the rows.
        protocol: Their protocol.
        form: ``holistic`` or ``step-wise``; None for both together.
        rivals: Indices of the rows of all tested models under this protocol.
    """

    c: JudgementTable
    rows: Vector
    protocol: str
    form: str | None
    rivals: Vector


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
    """The figures that a part has, by key; those that it does not have are missing.

    Args:
        part: Rows, at least one.
        keys: Keys of ``kinds.FIGURES``.
    """
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
    if "TC" in keys or "ExtUse" in keys:
        return extraneous_figures(c, rows, base_of(c, rows))
    if "Grade_B" in keys:
        base = base_of(c, rows)
        return extraneous_figures(c, rows, base) | extraneous_grades(c, rows, base)
    return {}


def contender_of(part: Part, key: str) -> Contender:
    """What the figure of this key is the mean of, row by row; TC is that of using one at all.

    Args:
        part: Rows, with items told apart.
        key: Key of ``kinds.FIGURES`` that has a direction.
    """
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
