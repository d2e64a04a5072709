"""Humans among themselves: the ceiling that a judge can be expected to reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .annotators import EPSILON, AltTest, alternative_annotator_test
from .coded import Coded, Settings
from .intervals import Array, Estimate, Ids, nothing
from .krippendorff import Metric, coincidences, krippendorff_alpha
from .measures import calibrate
from .ratings import LEVELS, Ratings
from .sample import Sample
from .shares import share

SHOWN = (
    "agreement",
    "F1",
    "kappa",
    "AC1",
    "grade MAE",
    "grade bias",
    "grade kappa (quadratic)",
    "Err-Type (all)",
)
"""Measures of two raters; the rest takes one of them for the truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two raters on the items that both rated.

    Attributes:
        first: Index of the one, who stands where the judge stands elsewhere.
        second: Index of the other.
        n_items: Items that both said anything of.
        measures: The symmetric measures, and the bias of the first against the second.
    """

    first: int
    second: int
    n_items: int
    measures: dict[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenRaters:
    """How far humans agree.

    Attributes:
        n_items: Items with two raters or more.
        together: Over all raters: share of pairs of raters who agree on ``is_correct``, mean
            distance of two raters' grades, nominal and ordinal alpha.
        pairs: Each two raters who share items.
    """

    n_items: int
    together: dict[str, Estimate]
    pairs: tuple[Pair, ...]


def between_raters(
    raters: Sequence[Ratings],
    sample: Sample | None = None,
    *,
    levels: tuple[float, ...] = LEVELS,
    settings: Settings | None = None,
) -> BetweenRaters:
    """The same measures between humans as between judge and humans.

    Args:
        raters: At least one; each on the same n items, -1 where one said nothing.
        sample: How the items were drawn.
        levels: Grades behind the indices.
        settings: How intervals are made.

    When not to use it: as the best that a judge could reach where the labels are a majority of
    several raters. Two single raters differ more than one of them from the majority.
    """
    drawn, made = sample or Sample(), settings or Settings()
    correct = np.stack([rater.correct for rater in raters], axis=1).astype(np.int64)
    grade = np.stack([rater.grade for rater in raters], axis=1).astype(np.int64)
    k = len(levels)
    pairs = (
        _pair(raters, (i, j), drawn, levels=levels, settings=made)
        for i, j in combinations(range(len(raters)), 2)
    )
    several = ((correct >= 0).sum(axis=1) > 1) | ((grade >= 0).sum(axis=1) > 1)
    together = {
        "agreement": _mean_over_pairs(correct, lambda a, b: a == b, drawn, made),
        "grade MAE": _mean_over_pairs(grade, _distance(levels), drawn, made),
        "alpha": _alpha(correct, 2, "nominal", drawn, made),
        "grade alpha (ordinal)": _alpha(grade, k, "ordinal", drawn, made),
    }
    return BetweenRaters(
        n_items=int(np.count_nonzero(several)),
        together=together,
        pairs=tuple(pair for pair in pairs if pair.n_items),
    )


def _pair(
    raters: Sequence[Ratings],
    of: tuple[int, int],
    sample: Sample,
    *,
    levels: tuple[float, ...],
    settings: Settings,
) -> Pair:
    first, second = raters[of[0]], raters[of[1]]
    said = [(r.correct >= 0) | (r.grade >= 0) | (r.known > 0) for r in (first, second)]
    rows = said[0] & said[1]
    found = calibrate(
        *_as_scored(first.take(rows), second.take(rows)),
        sample.take(rows),
        levels=levels,
        settings=settings,
    )
    return Pair(
        first=of[0],
        second=of[1],
        n_items=int(np.count_nonzero(rows)),
        measures={name: found.measures[name] for name in SHOWN},
    )


def _as_scored(first: Ratings, second: Ratings) -> tuple[Ratings, Ratings]:
    """A human without ``is_correct`` left nothing unscored: the rest of what they said counts."""
    told = (first.correct >= 0) & (second.correct >= 0)
    return (
        replace(first, correct=np.where(told, first.correct, 0)),
        replace(second, correct=np.where(told, second.correct, -1)),
    )


def _distance(levels: tuple[float, ...]) -> Callable[[Ids, Ids], Array]:
    values = np.asarray(levels)
    return lambda a, b: np.abs(values[a] - values[b])


def _mean_over_pairs(
    codes: Ids, of: Callable[[Ids, Ids], Ids], sample: Sample, settings: Settings
) -> Estimate:
    """Mean over all pairs of raters of one item, items with many raters having many pairs."""
    n, r = codes.shape
    above, below = np.zeros(n), np.zeros(n)
    for i, j in combinations(range(r), 2):
        both = (codes[:, i] >= 0) & (codes[:, j] >= 0)
        above += np.where(both, of(codes[:, i], codes[:, j]), 0.0)
        below += both
    found = share(above, below, sample, level=settings.level)
    return found if found.value is not None else nothing(settings.level, note=_ALONE)


_ALONE = "no item that two raters said this of"


def _alpha(codes: Ids, k: int, metric: Metric, sample: Sample, settings: Settings) -> Estimate:
    """Alpha with items as units: items with the same ratings, by whomever, are of one kind."""
    rated = np.count_nonzero(codes >= 0, axis=1) > 1
    if not rated.any():
        return nothing(settings.level, note=_ALONE)
    patterns, kind = np.unique(np.sort(codes[rated], axis=1), axis=0, return_inverse=True)
    adds = coincidences(patterns, k).reshape(len(patterns), k * k)

    def alpha(counts: Array) -> Array:
        together = (counts @ adds).reshape(*counts.shape[:-1], k, k)
        return krippendorff_alpha(together, metric=metric)

    items = Coded(kind.ravel(), len(patterns), sample.take(rated))
    return items.measure(alpha, settings)


def stand_in(
    judge: Ratings,
    raters: Sequence[Ratings],
    sample: Sample | None = None,
    *,
    epsilon: float = EPSILON,
    level: float,
) -> AltTest:
    """The alternative annotator test on ``is_correct``; see ``alternative_annotator_test``.

    Args:
        judge: The judge.
        raters: The humans on the same items.
        sample: How the items were drawn; only its clusters have a say.
        epsilon: Allowance for the judge.
        level: Confidence level of the shares.
    """

    def said(of: Ratings) -> Array:
        return np.where(of.correct < 0, np.nan, of.correct.astype(float))

    return alternative_annotator_test(
        said(judge),
        np.stack([said(rater) for rater in raters], axis=1),
        score="same",
        epsilon=epsilon,
        clusters=None if sample is None else sample.clusters,
        level=level,
    )
