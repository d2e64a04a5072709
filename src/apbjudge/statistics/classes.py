"""A judge against humans where the answer is one of several classes without order.

Such as the five behaviours after a broken tool, or which of two answers is better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .agreement import cohen_kappa, gwet_ac
from .coded import Coded, Settings
from .confusion import Confusion, confusion
from .intervals import Array, Estimate, Ids
from .krippendorff import coincidences_of_table, krippendorff_alpha
from .sample import Sample


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
    k, made = len(names), settings or Settings()
    for name, answers in (("judge", judge), ("human", human)):
        if np.any(answers >= k):
            raise ValueError(f"{name}: expected -1 to {k - 1}, got {answers.max()}")
    row = np.where(judge < 0, k, judge).astype(np.int64)
    told = Coded(
        np.where(human >= 0, row * k + human, k * (k + 1)), k * (k + 1), sample or Sample()
    )
    usable = np.repeat([1.0, 0.0], [k * k, k])
    counted = told
    if unscored == "exclude":
        counted = told.only(usable)
    elif unscored in names:
        taken = np.where(judge < 0, names.index(unscored), judge)
        counted = Coded(
            np.where(human >= 0, taken * k + human, k * (k + 1)), k * (k + 1), told.sample
        )
    diagonal = np.append(np.eye(k).ravel(), np.zeros(k))
    below = usable if unscored == "exclude" else np.ones(k * (k + 1))
    # Jeffreys' two items, spread evenly; none of a class that never occurs, which no macro
    # average counts
    third = unscored == "wrong" and bool((told.counts * (1 - usable)).any())
    cells = np.ones(k * (k + 1)) if third else usable
    prior = 2 * cells / cells.sum()
    measures = {"agreement": counted.ratio(diagonal, below, made)}
    for name, (measure, bounds) in _MEASURES.items():
        measures[name] = counted.measure(
            _Table(measure, k), made, bounds=bounds, prior=None if "macro" in name else prior
        )
    return Nominal(
        scored=told.ratio(usable, np.ones(k * (k + 1)), made),
        measures=measures,
        table=confusion(told.counts.reshape(k + 1, k), names),
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """A measure of square tables, as a function of k rows of answers and one of unusable ones."""

    measure: Callable[[Array], Array]
    k: int

    def __call__(self, cells: Array) -> Array:
        table = np.zeros((*cells.shape[:-1], self.k + 1, self.k + 1))
        table[..., :-1] = cells.reshape(*cells.shape[:-1], self.k + 1, self.k)
        return self.measure(table)


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
