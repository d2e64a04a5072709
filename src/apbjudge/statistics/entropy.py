"""Entropy of choices, and measures of how well it separates wrong choices from right ones.

A score ranks wrong choices above right ones or does not; nothing here assumes that it is an
entropy. Choices within a plan are dependent, so plans are the clusters of every interval.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import fsum, log, log2, sqrt
from typing import Any, Literal, get_args

import numpy as np

from .estimates import (
    CONFIDENCE_LEVEL,
    Array,
    Estimate,
    Ids,
    cluster_note,
    nothing,
    t_quantile,
)
from .proportions import ratio_of_sums, score_interval, share_of, widest_interval
from .sample import Sample, effective_df

_UNSEEN = 0.25
"""Clusters added to a kind of choice without spread; see ``auroc``."""
Unit = Literal["nats", "bits"]
"""Unit of an entropy: natural logarithms, or those to base 2."""
UNITS: tuple[Unit, ...] = get_args(Unit)


def shannon_entropy(shares: Iterable[float], *, unit: Unit = "nats") -> float:
    """Shannon's entropy of shares that sum to 1; a share of 0 adds nothing.

    From few samples it is too low on average; see ``miller_madow``.

    Args:
        shares: Not negative, in any order.
        unit: Unit of the result.

    Returns:
        From 0 to the logarithm of the number of shares above 0.
    """
    logarithm = log if unit == "nats" else log2
    some = sorted(share for share in shares if share > 0)
    value = 0.0 - fsum(share * logarithm(share) for share in some)
    return min(max(value, 0.0), logarithm(len(some))) if some else 0.0


def miller_madow(counts: Iterable[int], *, unit: Unit = "nats") -> float:
    """Entropy from counts, with the first-order correction of its bias (Miller 1955).

    (K - 1) / 2n nats are added for K values seen in n samples. It corrects part of the bias: values
    that no sample shows do not count in K.

    Args:
        counts: Number of times that each value was drawn.
        unit: Unit of the result.

    Returns:
        The entropy, which may exceed the logarithm of K; 0 without samples.
    """
    seen = [count for count in counts if count > 0]
    if not seen:
        return 0.0
    n = sum(seen)
    correction = (len(seen) - 1) / (2 * n)
    correction /= 1 if unit == "nats" else log(2)
    return shannon_entropy((count / n for count in seen), unit=unit) + correction


def auroc(
    scores: Array,
    wrong: Ids,
    *,
    clusters: Ids | None = None,
    level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """The chance that a wrong choice has a higher score than a right one; ties count half.

    The interval is that of a rate with the variance of DeLong et al. 1988 (doi:10.2307/2531595),
    with contributions summed by cluster (Obuchowski 1997, doi:10.2307/2533958). If all choices of
    one kind contribute the same, a quarter of a cluster is added to them whose contribution differs
    as much as the scores allow; if only one cluster has a kind, or neither kind has a spread, the
    interval is that of a rate over the clusters of the rarer kind.

    Args:
        scores: Shape (n,).
        wrong: Shape (n,), True where the choice is wrong.
        clusters: Shape (n,), any ids: choices sampled together, such as those of a plan; None for
            none.
        level: Confidence level.

    Returns:
        The estimate, method ``delong``; without value unless there are choices of both kinds.
    """
    is_wrong = np.asarray(wrong, dtype=bool)
    above, below = np.asarray(scores, float)[is_wrong], np.asarray(scores, float)[~is_wrong]
    if not (len(above) and len(below)):
        return nothing(level, n_items=len(is_wrong), note="needs wrong choices and right ones")
    index: Ids = np.arange(len(is_wrong))
    if clusters is not None:
        index = np.unique(clusters, return_inverse=True)[1]
    n = int(index.max()) + 1
    value, *placements = _placements(above, below)
    estimate = Estimate(
        value=value,
        level=level,
        n_items=len(is_wrong),
        n_clusters=n,
        note=cluster_note(len(is_wrong), n),
    )
    if n == 1:
        return replace(estimate, note="one cluster shows no spread")
    changes, unseen = np.zeros(n), 0.0
    sizes: list[int] = []
    squares: list[float] = []
    fourths: list[float] = []
    values = np.unique(np.concatenate([above, below]))
    for rows, of, others in zip((is_wrong, ~is_wrong), placements, (below, above), strict=True):
        size = len(np.unique(index[rows]))
        factor = sqrt(size / max(size - 1, 1))
        own = np.bincount(index[rows], weights=(of - value) / len(of), minlength=n) * factor
        changes += own
        square, fourth = float((own**2).sum()), float((own**4).sum())
        if square < 1e-24:
            reach = float(np.ptp(_shares_below(values, others))) / size * factor
            square, fourth = _UNSEEN * reach**2, (_UNSEEN * reach**2) ** 2
            unseen += square
        sizes.append(size)
        squares.append(square)
        fourths.append(fourth)
    second = float((changes**2).sum())
    if second < 1e-24 or min(sizes) == 1:
        low, high = widest_interval(value, min(sizes), level=level, bounds=(0.0, 1.0))
        return replace(estimate, low=low, high=high, method="wilson-clusters")
    df = min(
        effective_df([n], [second], [float((changes**4).sum())]),
        effective_df(sizes, squares, fourths),
    )
    low, high = score_interval(value, second + unseen, df, level=level)
    return replace(estimate, low=low, high=high, method="delong")


def _placements(above: Array, below: Array) -> tuple[float, Array, Array]:
    """The area, and each value's share of the other kind that it is ranked correctly against."""
    of_wrong = _shares_below(above, below)
    return float(of_wrong.mean()), of_wrong, 1 - _shares_below(below, above)


def _shares_below(values: Array, others: Array) -> Array:
    """For each value, the share of the others that are below it; ties count half."""
    others = np.sort(others)
    lower: Ids = np.searchsorted(others, values, side="left")
    not_higher: Ids = np.searchsorted(others, values, side="right")
    return (lower + not_higher) / 2 / len(others)


def auroc_within(
    scores: Array, wrong: Ids, clusters: Ids, *, level: float = CONFIDENCE_LEVEL
) -> Estimate:
    """The chance that, of a wrong and a right choice of one plan, the wrong one scores higher.

    Hard plans have high scores and many wrong choices; only pairs within a plan are free of this
    effect. Plans count by their pairs.

    Args:
        scores: Shape (n,).
        wrong: Shape (n,), True where the choice is wrong.
        clusters: Shape (n,), plan of each choice.
        level: Confidence level.

    Returns:
        The estimate, whose rows are the plans with choices of both kinds; without value if there
        are none.
    """
    values, wrong = np.asarray(scores, float), np.asarray(wrong, dtype=bool)
    concordant: list[float] = []
    pairs: list[float] = []
    for rows in _groups(clusters):
        above, below = values[rows][wrong[rows]], values[rows][~wrong[rows]]
        if len(above) and len(below):
            pairs.append(len(above) * len(below))
            concordant.append(pairs[-1] * _placements(above, below)[0])
    if not pairs:
        return nothing(level, note="no plan has both wrong choices and right ones")
    bounds = (0.0, 1.0)
    return ratio_of_sums(
        np.array(concordant), np.array(pairs), Sample(), bounds=bounds, level=level
    )


def slope_within(
    scores: Array,
    wrong: Ids,
    clusters: Ids,
    *,
    positions: Array | None = None,
    level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """Rise of the rate of wrong choices with the score, between choices of one plan.

    A linear probability model with an effect of each plan; its variance is robust to any dependence
    within plans (Liang & Zeger 1986, doi:10.1093/biomet/73.1.13), its t has the effective degrees
    of freedom of the plans.

    Args:
        scores: Shape (n,).
        wrong: Shape (n,), True where the choice is wrong.
        clusters: Shape (n,), plan of each choice.
        positions: Shape (n,), position of the choice in the plan, whose linear effect is removed;
            None to keep it. Late choices are often both uncertain and wrong.
        level: Confidence level.

    Returns:
        The rise for one unit of the score, method ``t-clusters``; without value if scores do not
        differ within plans, or differ only linearly with position.
    """
    columns = [scores] if positions is None else [scores, positions]
    x = np.stack([np.asarray(column, float) for column in columns], axis=1)
    y = np.asarray(wrong, float)
    groups = list(_groups(clusters))
    for rows in groups:
        x[rows] -= x[rows].mean(axis=0)
        y[rows] -= y[rows].mean()
    if not len(y) or np.linalg.matrix_rank(x, tol=1e-9) < x.shape[1]:
        return nothing(level, n_items=len(y), note="scores do not differ enough within plans")
    bread = np.linalg.inv(x.T @ x)
    slopes = bread @ (x.T @ y)
    rest = y - x @ slopes
    changes = np.array([(bread @ (x[rows].T @ rest[rows]))[0] for rows in groups])
    n = len(changes)
    second, fourth = float((changes**2).sum()), float((changes**4).sum())
    estimate = Estimate(
        value=float(slopes[0]),
        level=level,
        n_items=len(y),
        n_clusters=n,
        note=cluster_note(len(y), n),
    )
    if n == 1 or second < 1e-24:
        return replace(estimate, note="plans show no spread")
    df = effective_df([n], [second], [fourth])
    half = t_quantile(0.5 + level / 2, df) * sqrt(second * n / (n - 1))
    low, high = float(slopes[0]) - half, float(slopes[0]) + half
    return replace(estimate, low=low, high=high, method="t-clusters")


def _groups(clusters: Ids) -> list[Ids]:
    """The rows of each cluster."""
    index = np.unique(clusters, return_inverse=True)[1]
    order = np.argsort(index, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(index[order])) + 1) if len(order) else []


# Bins ---------------------------------------------------------------------------------------------

Binning = Literal["width", "quantiles"]


@dataclass(frozen=True, slots=True)
class Bin:
    """Choices with a score of at least ``low`` and below ``high``; the last bin includes ``high``.

    Attributes:
        low: Least score.
        high: Upper end of the scores.
        n: Choices.
        errors: Wrong ones.
        rate: Share of wrong ones.
    """

    low: float
    high: float
    n: int
    errors: int
    rate: Estimate


def binned(
    scores: Array,
    wrong: Ids,
    *,
    bins: int = 5,
    binning: Binning = "width",
    clusters: Ids | None = None,
    level: float = CONFIDENCE_LEVEL,
) -> tuple[Bin, ...]:
    """The rate of wrong choices by score.

    Args:
        scores: Shape (n,), not negative.
        wrong: Shape (n,), True where the choice is wrong.
        bins: Number of bins; fewer if quantiles coincide.
        binning: ``width``: equally wide from 0 to the highest score; ``quantiles``: about equally
            many choices in each.
        clusters: Shape (n,), plan of each choice; None if no two choices share one.
        level: Confidence level.
    """
    values, is_wrong = np.asarray(scores, float), np.asarray(wrong, dtype=bool)
    if not len(values):
        return ()
    if binning == "width":
        edges = np.linspace(0.0, float(values.max()), bins + 1)
    else:
        edges = np.quantile(values, np.linspace(0.0, 1.0, bins + 1))
    edges = np.unique(edges)
    if len(edges) == 1:
        edges = np.repeat(edges, 2)
    of = np.searchsorted(edges[1:-1], values, side="right")
    result: list[Bin] = []
    for i, (low, high) in enumerate(pairwise(edges.tolist())):
        rows = of == i
        sample = Sample(clusters=None if clusters is None else clusters[rows])
        some = is_wrong[rows]
        rate = share_of(some, sample, level=level)
        result.append(Bin(low, high, len(some), int(some.sum()), rate))
    return tuple(result)


# Position of the first wrong choice ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FirstWrong:
    """Position at which a search reaches the first wrong choice of a plan, from 1.

    Attributes:
        by_score: Mean over plans in the order of falling scores; ties have their mean place.
        by_position: Mean in the order of the plan.
        at_random: Expectation in a random order: exactly (L + 1) / 2 for a plan of L choices.
        saved: ``at_random`` less ``by_score``, plan by plan.
    """

    by_score: Estimate
    by_position: Estimate
    at_random: Estimate
    saved: Estimate


def first_wrong(
    scores: Array,
    wrong: Ids,
    plans: Ids,
    positions: Array,
    *,
    clusters: Ids | None = None,
    level: float = CONFIDENCE_LEVEL,
) -> FirstWrong:
    """Position of the first wrong choice of a plan in a search by score.

    Args:
        scores: Shape (n,).
        wrong: Shape (n,), True where the choice is wrong.
        plans: Shape (n,), plan of each choice.
        positions: Shape (n,), position of the choice in the plan, distinct within a plan.
        clusters: Shape (n,), group that the plan was sampled in, such as a case that was run
            several times; the same for all choices of a plan. None if plans are independent.
        level: Confidence level.

    Returns:
        Means over the plans that have a wrong choice.
    """
    values, wrong = np.asarray(scores, float), np.asarray(wrong, dtype=bool)
    by_plan: list[tuple[float, float, float]] = []
    of: list[Any] = []
    for rows in _groups(plans):
        if not wrong[rows].any():
            continue
        own, place = values[rows], positions[rows]
        first = np.where(wrong[rows], place, np.inf).argmin()
        earlier = float((own > own[first]).sum())
        ties = float((own == own[first]).sum())
        position = float((place < place[first]).sum()) + 1
        by_plan.append((earlier + (ties + 1) / 2, position, (len(rows) + 1) / 2))
        of.append(None if clusters is None else clusters[rows[0]])
    sample = Sample(clusters=None if clusters is None else np.array(of))
    columns = np.array(by_plan).reshape(-1, 3)

    def mean(ranks: Array) -> Estimate:
        if not len(ranks):
            return nothing(level, note="no plan has a wrong choice")
        return ratio_of_sums(ranks, np.ones(len(ranks)), sample, level=level)

    score, position, random = columns.T
    return FirstWrong(mean(score), mean(position), mean(random), mean(random - score))
