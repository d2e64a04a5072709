"""Items by what the judge answered against what the humans answered: cells, matrices, classes.

The functions of cells give one code per item; the code after the last cell marks an item that is
not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .agreement import cohen_kappa, coincidences_of_table, gwet_ac, krippendorff_alpha
from .coded import Coded, Settings
from .estimates import Array, Estimate, Ids
from .ratings import Ratings
from .sample import Sample

U0, U1, TN, FN, FP, TP = range(6)
"""Cells of a yes or no: unscored while the humans say no or yes, then the 2x2 table."""
N_CELLS = 6
N_FLAGS = 6
N_COMPARED = (N_FLAGS + 1) ** 2


def correct_cells(judge: Ratings, human: Ratings) -> Ids:
    """Cell of ``is_correct``; 6 where the humans said nothing."""
    cells = (judge.correct + 1) * 2 + human.correct
    return np.where(human.correct >= 0, cells, np.int8(N_CELLS))


def code_cells(judge: Ratings, human: Ratings, i: int) -> Ids:
    """Cell of error code E(i+1), as for ``is_correct``; 6 where one of them said nothing."""
    unscored = judge.correct < 0
    ours = np.where(unscored, np.uint8(0), ((judge.flags >> i) & 1) + 1)
    compared = (human.known >> i) & (unscored | (judge.known >> i)) & 1
    return np.where(compared == 1, ours * 2 + ((human.flags >> i) & 1), np.uint8(N_CELLS))


def grade_cells(judge: Ratings, human: Ratings, k: int) -> Ids:
    """Cell (judge's grade, humans' grade); the judge's row is ``k`` where an item is unscored.

    Returns:
        Shape (n,), below k * (k + 1), and that where one of them gave no grade.
    """
    unscored = judge.correct < 0
    row = np.where(unscored, k, judge.grade).astype(np.int16)
    compared = (human.grade >= 0) & (row >= 0)
    return np.where(compared, row * k + human.grade, k * (k + 1))


def error_cells(judge: Ratings, human: Ratings, *, count_unscored: bool) -> Ids:
    """Cell (whether the humans found the item incorrect, flags compared, flags that agree).

    Returns:
        Shape (n,), below 2 * 49, and that where no flag is compared.
    """
    unscored = judge.correct < 0
    shared = human.known & np.where(unscored, np.uint8(255 * count_unscored), judge.known)
    same = np.where(unscored, np.uint8(0), _bits(shared & ~(judge.flags ^ human.flags)))
    n = _bits(shared)
    incorrect = (human.correct == 0).astype(np.uint8)
    cells = incorrect * np.uint8(N_COMPARED) + n * np.uint8(N_FLAGS + 1) + same
    return np.where(n > 0, cells, np.uint8(2 * N_COMPARED))


def _bits(masks: Ids) -> Ids:
    """How many bits are set, for a million bytes in a fraction of what a table takes."""
    pairs = masks - ((masks >> 1) & 0x55)
    fours = (pairs & 0x33) + ((pairs >> 2) & 0x33)
    return (fours + (fours >> 4)) & 0x0F


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Counts of what one rater said against what another said.

    Attributes:
        first: Labels of the rows, the judge's answers; ``unscored`` may be among them.
        second: Labels of the columns, the humans' answers.
        counts: Shape (len(first), len(second)): items, or sums of their weights of mean 1.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]


def confusions(
    correct: Coded, grades: Coded, codes: Mapping[str, Coded], levels: tuple[float, ...]
) -> dict[str, Confusion]:
    """The matrices of ``is_correct``, the grade and each error code, where there is anything."""
    names = tuple(f"{level:g}" for level in levels)
    k = len(levels)
    tables = {
        "is_correct": confusion(_unscored_last(correct), ("no", "yes")),
        "grade": confusion(grades.counts.reshape(k + 1, k), names),
        **{code: confusion(_unscored_last(cells), ("no", "yes")) for code, cells in codes.items()},
    }
    return {name: table for name, table in tables.items() if table is not None}


def _unscored_last(cells: Coded) -> Array:
    return np.roll(cells.counts.reshape(3, 2), -1, axis=0)


def confusion(table: Array, names: tuple[str, ...]) -> Confusion | None:
    """A matrix whose last row holds the unscored items, which is left out when there are none.

    Args:
        table: Shape (k + 1, k).
        names: The k answers.

    Returns:
        The matrix, or None when nothing is in it.
    """
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
    """How far a judge names the classes that humans name.

    Attributes:
        scored: Share of the labelled items for which the judge named a class.
        measures: agreement, macro precision, macro recall, macro F1, kappa, AC1 and alpha.
        table: The confusion matrix, unusable replies last where there are any.
    """

    scored: Estimate
    measures: dict[str, Estimate]
    table: Confusion | None


def nominal(
    judge: Ids,
    human: Ids,
    names: tuple[str, ...],
    sample: Sample | None = None,
    *,
    unscored: str = "exclude",
    settings: Settings | None = None,
) -> Nominal:
    """Agreement on classes, with unusable replies counted in one of three ways.

    Macro averages are means over the classes that occur, each counting alike however rare it is;
    a class that the judge never names has precision 0.

    Args:
        judge: Shape (n,), whole numbers: index of the class, -1 where there is no usable reply.
        human: Shape (n,), the same; -1 where humans named none: such items don't count.
        names: The classes.
        sample: How the items were drawn; None: each by itself.
        unscored: ``exclude``: items without usable reply do not count; ``wrong``: such a reply is
            an answer of its own, which agrees with nobody; or a class of ``names`` that they are
            taken for, as some published figures do.
        settings: How intervals are made.

    Raises:
        ValueError: If ``unscored`` is none of these, or an answer is no index of a class.

    When not to use it: for grades, whose order it ignores.
    """
    if unscored not in {"exclude", "wrong", *names}:
        expected = ", ".join(("exclude", "wrong", *names))
        raise ValueError(f"unscored: expected one of {expected}, got {unscored!r}")
    k, settings = len(names), settings or Settings()
    for name, answers in (("judge", judge), ("human", human)):
        if np.any(answers >= k):
            raise ValueError(f"{name}: expected -1 to {k - 1}, got {answers.max()}")
    row = np.where(judge < 0, k, judge).astype(np.int64)
    items = Coded(
        np.where(human >= 0, row * k + human, k * (k + 1)), k * (k + 1), sample or Sample()
    )
    usable = np.repeat([1.0, 0.0], [k * k, k])
    counted = items
    if unscored == "exclude":
        counted = items.only(usable)
    elif unscored in names:
        taken = np.where(judge < 0, names.index(unscored), judge)
        counted = Coded(
            np.where(human >= 0, taken * k + human, k * (k + 1)), k * (k + 1), items.sample
        )
    diagonal = np.append(np.eye(k).ravel(), np.zeros(k))
    below = usable if unscored == "exclude" else np.ones(k * (k + 1))
    # Jeffreys' two items, spread evenly; none of a class that never occurs, which no macro
    # average counts
    third = unscored == "wrong" and bool((items.counts * (1 - usable)).any())
    cells = np.ones(k * (k + 1)) if third else usable
    prior = 2 * cells / cells.sum()
    measures = {"agreement": counted.ratio(diagonal, below, settings)}
    for name, (measure, bounds) in _MEASURES.items():
        measures[name] = counted.measure(
            _of_answers(measure, k),
            settings,
            bounds=bounds,
            prior=None if "macro" in name else prior,
        )
    return Nominal(
        scored=items.ratio(usable, np.ones(k * (k + 1)), settings),
        measures=measures,
        table=confusion(items.counts.reshape(k + 1, k), names),
    )


def _of_answers(measure: Callable[[Array], Array], k: int) -> Callable[[Array], Array]:
    """A measure of square tables, as a function of k rows of answers and one of unusable ones."""

    def of(cells: Array) -> Array:
        table = np.zeros((*cells.shape[:-1], k + 1, k + 1))
        table[..., :-1] = cells.reshape(*cells.shape[:-1], k + 1, k)
        return measure(table)

    return of


def _per_class(tables: Array) -> tuple[Array, Array, Array]:
    """Hits, answers and labels of each class; the last row, which is no class, is left out."""
    hits = np.diagonal(tables, axis1=-2, axis2=-1)[..., :-1]
    return hits, tables.sum(axis=-1)[..., :-1], tables.sum(axis=-2)[..., :-1]


def _over(above: Array, below: Array, occurs: Array) -> Array:
    """Mean of ratios over the classes that occur; 0 where a ratio has nothing below."""
    n = occurs.sum(axis=-1)
    ratios = above / np.where(below > 0, below, 1.0)
    return (ratios * occurs).sum(axis=-1) / np.where(n > 0, n, np.nan)


def _macro_precision(tables: Array) -> Array:
    hits, answers, labels = _per_class(tables)
    return _over(hits, answers, (answers + labels > 0).astype(float))


def _macro_recall(tables: Array) -> Array:
    hits, answers, labels = _per_class(tables)
    return _over(hits, labels, (answers + labels > 0).astype(float))


def _macro_f1(tables: Array) -> Array:
    hits, answers, labels = _per_class(tables)
    return _over(2 * hits, answers + labels, (answers + labels > 0).astype(float))


def _alpha(tables: Array) -> Array:
    """Alpha over the items that both named a class for: unusable replies are missing to it."""
    return krippendorff_alpha(coincidences_of_table(tables[..., :-1, :-1]), metric="nominal")


def _trimmed(measure: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Without the extra class where nothing is in it: AC1 counts classes."""

    def of(tables: Array) -> Array:
        return measure(tables if tables[..., -1, :].any() else tables[..., :-1, :-1])

    return of


_MEASURES: dict[str, tuple[Callable[[Array], Array], tuple[float, float]]] = {
    "macro precision": (_macro_precision, (0.0, 1.0)),
    "macro recall": (_macro_recall, (0.0, 1.0)),
    "macro F1": (_macro_f1, (0.0, 1.0)),
    "kappa": (_trimmed(cohen_kappa), (-1.0, 1.0)),
    "AC1": (_trimmed(gwet_ac), (-1.0, 1.0)),
    "alpha": (_alpha, (-1.0, 1.0)),
}
