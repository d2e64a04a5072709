"""Items by the judge's answer against the humans' answer: cells, matrices, classes.

The functions of cells give one code per item; the code after the last cell marks an item that is
not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from .agreement import cohen_kappa, coincidences_of_table, gwet_ac, krippendorff_alpha
from .bootstrap import Measure
from .coded import CodedItems
from .estimates import Array, Estimate, Ids
from .kinds import AC1, AGREEMENT, ALPHA, KAPPA, MACRO
from .metric import MetricKind, Metrics, by_name
from .ratings import Ratings
from .sample import BY_FORMULA, IntervalSettings, Sample

U0, U1, TN, FN, FP, TP = range(6)
"""Cells of a yes or no: unscored where the humans say no or yes, then the 2x2 table."""
N_CELLS = 6


def correct_cells(judge: Ratings, human: Ratings) -> Ids:
    """Cell of ``is_correct``; 6 where there is no label."""
    cells = (judge.correct + 1) * 2 + human.correct
    return np.where(human.correct >= 0, cells, np.int8(N_CELLS))


def code_cells(judge: Ratings, human: Ratings, i: int) -> Ids:
    """Cell of the error code ``codes[i]``, as for ``is_correct``; 6 where either is missing."""
    unscored = judge.correct < 0
    ours = np.where(unscored, np.uint8(0), ((judge.flags >> i) & 1) + 1)
    compared = (human.known >> i) & (unscored | (judge.known >> i)) & 1
    return np.where(compared == 1, ours * 2 + ((human.flags >> i) & 1), np.uint8(N_CELLS))


def grade_cells(judge: Ratings, human: Ratings, k: int) -> Ids:
    """Cell (judge's grade, humans' grade); the judge's row is ``k`` where an item is unscored.

    Less than k * (k + 1), or exactly this where either grade is missing.
    """
    unscored = judge.correct < 0
    row = np.where(unscored, k, judge.grade).astype(np.int16)
    compared = (human.grade >= 0) & (row >= 0)
    return np.where(compared, row * k + human.grade, k * (k + 1))


def error_cells(judge: Ratings, human: Ratings, *, count_unscored: bool) -> Ids:
    """Cell (1 if the humans call the item incorrect, flags compared, flags that agree).

    Less than 2 * (k + 1) ** 2 for k codes, or exactly this where no flag is compared.
    """
    k = len(human.codes) + 1
    unscored = judge.correct < 0
    asked = human.known if count_unscored else np.zeros_like(human.known)
    shared = human.known & np.where(unscored, asked, judge.known)
    same = np.where(unscored, 0, np.bitwise_count(shared & ~(judge.flags ^ human.flags)))
    n = np.bitwise_count(shared).astype(np.int16)
    cells = (human.correct == 0) * k**2 + n * k + same
    return np.where(n > 0, cells, 2 * k**2).astype(np.int16)


def square(measure: Callable[[Array], Array], k: int, *, unscored: bool | None = None) -> Measure:
    """A measure of square tables, as a function of the cells of tables with k + 1 rows.

    The last row, unscored items, is left out unless ``unscored``: then it counts as an answer of
    its own; if None, only where it is not empty.
    """

    def of(cells: Array) -> Array:
        shape, last = cells.shape[:-1], cells[..., k * k :]
        if not (last.any() if unscored is None else unscored):
            return measure(cells[..., : k * k].reshape(*shape, k, k))  # a copy, which is faster
        table = np.zeros((*shape, k + 1, k + 1))
        table[..., :k] = cells.reshape(*shape, k + 1, k)
        return measure(table)

    return of


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Counts of one rater's answers against another's.

    Attributes:
        first: Labels of the rows, the judge's answers, ``unscored`` perhaps last.
        second: Labels of the columns.
        counts: Items by row and column, or sums of their weights of mean 1.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]


def confusions(
    correct: CodedItems,
    grades: CodedItems,
    codes: Mapping[str, CodedItems],
    levels: tuple[float, ...],
) -> dict[str, Confusion]:
    """The matrices of ``is_correct``, the grade and each error code, without empty ones."""
    rated = {"is_correct": correct, "grade": grades, **codes}
    tables = {
        name: confusion(cells.counts, tuple(f"{level:g}" for level in levels))
        if name == "grade"
        else confusion(np.roll(cells.counts, -2), ("no", "yes"))
        for name, cells in rated.items()
    }
    return {name: table for name, table in tables.items() if table is not None}


def confusion(counts: Array, names: tuple[str, ...]) -> Confusion | None:
    """A matrix of k answers and a last row of unscored items, left out when there are none.

    Returns:
        The matrix, or None if it is empty.
    """
    table = counts.reshape(len(names) + 1, len(names))
    if not table.any():
        return None
    n_rows = len(names) + int(table[-1].any())
    return Confusion(
        first=(*names, "unscored")[:n_rows],
        second=names,
        counts=tuple(tuple(float(cell) for cell in row) for row in table[:n_rows]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nominal:
    """Agreement of a judge with humans on classes.

    Attributes:
        scored: Share of the labelled items for which the judge named a class.
        measures: agreement, macro precision, macro recall, macro F1, kappa, AC1 and alpha.
        table: The confusion matrix, unusable replies last where there are any.
    """

    scored: Estimate
    measures: Metrics
    table: Confusion | None


def nominal(
    judge: Ids,
    human: Ids,
    names: tuple[str, ...],
    sample: Sample | None = None,
    *,
    unscored: str = "exclude",
    settings: IntervalSettings = BY_FORMULA,
) -> Nominal:
    """Agreement on classes, with unusable replies counted in one of three ways.

    Macro averages are means over the classes that occur, with equal weights however rare a class
    is; a class that the judge never names has precision 0.

    Args:
        judge: Shape (n,), whole numbers: index of the class, -1 where no reply is usable.
        human: Shape (n,), the same; -1 where humans chose no class: such items don't count.
        names: The classes.
        sample: Sampling design of the items; None: each by itself.
        unscored: ``exclude``: items without usable reply do not count; ``wrong``: such a reply is
            an answer of its own, which agrees with nobody; or a class of ``names`` that such
            replies count as, as in some published figures.
        settings: Settings of the intervals.

    Raises:
        ValueError: If ``unscored`` is none of these, or an answer is no index of a class.

    When not to use it: for grades, whose order it ignores.
    """
    if unscored not in {"exclude", "wrong", *names}:
        expected = ", ".join(("exclude", "wrong", *names))
        raise ValueError(f"unscored: expected one of {expected}, got {unscored!r}")
    k, sample = len(names), sample or Sample()
    for name, answers in (("judge", judge), ("human", human)):
        if np.any(answers >= k):
            raise ValueError(f"{name}: expected -1 to {k - 1}, got {answers.max()}")

    def items_with(row_of_unusable: int) -> CodedItems:
        row = np.where(judge < 0, row_of_unusable, judge).astype(np.int64)
        n_cells = k * (k + 1)
        return CodedItems(np.where(human >= 0, row * k + human, n_cells), n_cells, sample)

    items, usable = items_with(k), np.repeat([1.0, 0.0], [k * k, k])
    ones, below = np.ones(k * (k + 1)), np.ones(k * (k + 1))
    counted = items
    if unscored == "exclude":
        counted, below = items.only(usable), usable
    elif unscored in names:
        counted = items_with(names.index(unscored))
    # Jeffreys' two items, spread evenly over the classes that occur: macro averages count no others
    third = unscored == "wrong" and bool((items.counts * (1 - usable)).any())
    prior = 2 * ones / ones.sum() if third else 2 * usable / usable.sum()
    diagonal = np.append(np.eye(k).ravel(), np.zeros(k))
    metrics = [AGREEMENT.of(counted.ratio(diagonal, below, settings))]
    for kind in MACRO:
        macro = square(partial(_macro, k=k, name=kind.name), k)
        metrics.append(kind.of(counted.measure(macro, settings, bounds=kind.bounds)))

    def alpha(tables: Array) -> Array:
        """Over the items for which both chose a class: unusable replies count as missing."""
        return krippendorff_alpha(coincidences_of_table(tables[..., :k, :k]))

    coefficients: Mapping[MetricKind, Callable[[Array], Array]] = {
        KAPPA: cohen_kappa,
        AC1: gwet_ac,
        ALPHA: alpha,
    }
    for kind, coefficient in coefficients.items():
        measure = square(coefficient, k, unscored=third)
        metrics.append(kind.of(counted.measure(measure, settings, prior=prior)))
    return Nominal(
        scored=items.ratio(usable, ones, settings),
        measures=by_name(metrics),
        table=confusion(items.counts, names),
    )


def _macro(tables: Array, k: int, name: str) -> Array:
    """Mean over the k classes that occur; 0 for one that is only answered or only labelled."""
    hits = np.diagonal(tables, axis1=-2, axis2=-1)[..., :k]
    answers, labels = tables.sum(axis=-1)[..., :k], tables.sum(axis=-2)[..., :k]
    below = {
        "macro precision": answers,
        "macro recall": labels,
        "macro F1": (answers + labels) / 2,
    }[name]
    occurs = answers + labels > 0
    n = occurs.sum(axis=-1)
    ratios = hits / np.where(below > 0, below, 1.0)
    return (ratios * occurs).sum(axis=-1) / np.where(n > 0, n, np.nan)
