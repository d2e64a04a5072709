"""Krippendorff's alpha for any number of raters, from coincidence matrices.

A coincidence matrix has the shape (..., K, K): how often two raters of one item gave the values c
and k, each item counting as often as it has ratings. Items add up, so that alpha of a resample is
alpha of a (weighted) sum of what the items contribute.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from .intervals import Array, Ids

Metric = Literal["nominal", "ordinal", "interval"]


def coincidences(codes: Ids, k: int) -> Array:
    """What each item adds to the coincidence matrix.

    An item with m >= 2 ratings adds each ordered pair of them with the weight 1 / (m - 1), hence
    m in all (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, section C).

    Args:
        codes: Shape (n, r), whole numbers from 0 to ``k`` - 1; -1 where a rater said nothing.
        k: Number of categories.

    Returns:
        Shape (n, k, k), each symmetric; zeros for items with fewer than two ratings.

    Raises:
        ValueError: If the shape or a code is out of range.
    """
    numbers = np.asarray(codes)
    if numbers.ndim != 2 or not np.issubdtype(numbers.dtype, np.integer):
        got = f"{numbers.dtype} of shape {numbers.shape}"
        raise ValueError(f"codes: expected whole numbers of shape (n, r), got {got}")
    if numbers.size and not -1 <= int(numbers.min()) <= int(numbers.max()) < k:
        found = f"{numbers.min()} to {numbers.max()}"
        raise ValueError(f"codes: expected -1 to {k - 1}, got {found}")
    counts = _counts(numbers, k)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(k)
    return pairs / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]


def _counts(codes: Ids, k: int) -> Array:
    """How many raters of each item gave each value, shape (n, k)."""
    row, _ = said = np.nonzero(codes >= 0)
    cells = row * k + codes[said]
    return np.bincount(cells, minlength=len(codes) * k).reshape(len(codes), k).astype(float)


def coincidences_of_table(tables: Array) -> Array:
    """The coincidence matrix of two raters who both rated every item: the table both ways round.

    Args:
        tables: Shape (..., K, K), counts.

    Returns:
        Shape (..., K, K), its total twice the number of items.
    """
    return tables + np.swapaxes(tables, -1, -2)


def krippendorff_alpha(
    coincidences: Array, *, metric: Metric = "nominal", values: Array | None = None
) -> Array:
    """Krippendorff's alpha: 1 - observed over expected disagreement, for many raters, with gaps.

    Chance pairs any two of the ratings, whoever gave them (Krippendorff 2011; Hayes &
    Krippendorff 2007, doi:10.1080/19312450709336664). With two raters and no gaps nominal alpha
    is Scott's pi with a correction for few ratings.

    Args:
        coincidences: Shape (..., K, K), symmetric: sums of what ``coincidences`` gives.
        metric: ``nominal``: any two values differ alike. ``ordinal``: squared number of ratings
            between them, half of their own included; from the very matrix, so each resample has
            its own. ``interval``: squared difference of ``values``.
        values: Shape (K,), what the categories stand for; for ``interval`` only. None for
            0, 1, ..., K - 1.

    Returns:
        Shape (...), at most 1; NaN where all ratings are the same (nothing to tell apart) and
        where there is no item with two ratings.

    Assumptions: raters may be exchanged for one another, gaps are by chance, items are
    independent. A sum with weights has to keep the scale of counts (mean weight 1): the
    correction for few ratings uses its total.

    Raises:
        ValueError: If shapes do not fit or the metric is not one of the three.

    When not to use it: where a category is rare, for the same reason as kappa; to compare a judge
    with humans whose errors differ in kind, since who said what is lost; ordinal alpha where the
    steps are known to be equal (then ``interval``).
    """
    pairs = np.asarray(coincidences, dtype=float)
    if pairs.ndim < 2 or pairs.shape[-1] != pairs.shape[-2]:
        raise ValueError(f"coincidences: expected (..., K, K), got {pairs.shape}")
    margins = np.einsum("...ij->...i", pairs)
    total = np.einsum("...i->...", margins)
    distances = _distances(margins, metric, values)
    observed = np.einsum("...ij,...ij->...", pairs, distances)
    expected = np.einsum("...i,...ij,...j->...", margins, distances, margins)
    defined = (expected > 0) & (total > 1)
    return 1 - (total - 1) * observed / np.where(defined, expected, np.nan)


def _distances(margins: Array, metric: Metric, values: Array | None) -> Array:
    """Squared distances of values, shape (K, K), or (..., K, K) where margins decide."""
    k = margins.shape[-1]
    if values is not None and (metric != "interval" or np.shape(values) != (k,)):
        raise ValueError(f"values: expected {k} numbers, for the metric 'interval' only")
    match metric:
        case "nominal":
            return 1 - np.eye(k)
        case "ordinal":
            points = np.cumsum(margins, axis=-1) - margins / 2
        case "interval":
            points = np.arange(k, dtype=float) if values is None else np.asarray(values, float)
        case _:
            raise ValueError(f"metric: expected nominal, ordinal or interval, got {metric!r}")
    return (points[..., :, None] - points[..., None, :]) ** 2
