"""Humans among themselves: the ceiling that a judge can be expected to reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .agreement import Metric, coincidences, krippendorff_alpha
from .alternative_annotator import EPSILON, AltTest, alternative_annotator_test
from .coded import Coded, Settings
from .estimates import Array, Estimate, Ids, nothing
from .measures import calibrate
from .proportions import share
from .ratings import LEVELS, Ratings
from .sample import Sample

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
    sample, settings = sample or Sample(), settings or Settings()
    correct = np.stack([rater.correct for rater in raters], axis=1).astype(np.int64)
    grade = np.stack([rater.grade for rater in raters], axis=1).astype(np.int64)
    k, values = len(levels), np.asarray(levels)
    answered = [(of.correct >= 0) | (of.grade >= 0) | (of.known > 0) for of in raters]
    pairs: list[Pair] = []
    for i, j in combinations(range(len(raters)), 2):
        rows = answered[i] & answered[j]
        if not rows.any():
            continue
        first, second = raters[i].take(rows), raters[j].take(rows)
        # a human without is_correct left nothing unscored: the rest of the answer counts
        both = (first.correct >= 0) & (second.correct >= 0)
        calibration = calibrate(
            replace(first, correct=np.where(both, first.correct, 0)),
            replace(second, correct=np.where(both, second.correct, -1)),
            sample.take(rows),
            levels=levels,
            settings=settings,
        )
        pairs.append(
            Pair(
                first=i,
                second=j,
                n_items=int(np.count_nonzero(rows)),
                measures={name: calibration.measures[name] for name in SHOWN},
            )
        )
    several = ((correct >= 0).sum(axis=1) > 1) | ((grade >= 0).sum(axis=1) > 1)
    together = {
        "agreement": _mean_over_pairs(correct, lambda a, b: a == b, sample, settings),
        "grade MAE": _mean_over_pairs(
            grade, lambda a, b: np.abs(values[a] - values[b]), sample, settings
        ),
        "alpha": _alpha(correct, 2, "nominal", sample, settings),
        "grade alpha (ordinal)": _alpha(grade, k, "ordinal", sample, settings),
    }
    return BetweenRaters(
        n_items=int(np.count_nonzero(several)),
        together=together,
        pairs=tuple(pairs),
    )


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
    estimate = share(above, below, sample, level=settings.level)
    return estimate if estimate.value is not None else nothing(settings.level, note=_ALONE)


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


def ratings_annotator_test(
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

    def answers(of: Ratings) -> Array:
        return np.where(of.correct < 0, np.nan, of.correct.astype(float))

    return alternative_annotator_test(
        answers(judge),
        np.stack([answers(rater) for rater in raters], axis=1),
        score="same",
        epsilon=epsilon,
        clusters=None if sample is None else sample.clusters,
        level=level,
    )
