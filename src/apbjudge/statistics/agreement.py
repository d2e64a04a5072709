"""Agreement of two raters beyond chance, as functions of count tables.

A table has the shape (..., K, K), K at least 2: rows are the first rater (the judge), columns the
second (the human), cells are counts or sums of weights. Each function returns one value per table,
shape (...), and NaN for a table without counts. Only the proportions of a table matter.

No coefficient suits all data: observed agreement ignores chance; kappa, phi and alpha fall where
one category is rare, S and AC1 don't. Report observed agreement with each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from .estimates import Array, Ids

Distance = Literal["nominal", "ordinal", "interval"]


def quadratic_weights(values: Array) -> Array:
    """As ``linear_weights``, with the squared distance: 1 - (a - b)^2 / range^2.

    Source: Fleiss & Cohen 1973 (doi:10.1177/001316447303300309).
    """
    return 1 - _distances(values) ** 2


def _distances(values: Array) -> Array:
    numbers = np.asarray(values, dtype=float)
    width = float(np.ptp(numbers)) if numbers.size else 0.0
    if numbers.ndim != 1 or not 0 < width < np.inf:
        raise ValueError(f"values: expected a row of finite numbers that differ, got {values!r}")
    return (numbers[:, None] - numbers) / width


def cohen_kappa(tables: Array, weights: Array | None = None) -> Array:
    """Cohen's kappa: (Po - Pe) / (1 - Pe) with Pe from the product of the raters' margins.

    Source: Cohen 1960 (doi:10.1177/001316446002000104); weighted: 1968 (doi:10.1037/h0026256).

    Args:
        tables: Shape (..., K, K).
        weights: Shape (K, K), agreement weights, 1 on the diagonal; None for identity.

    Returns:
        Shape (...), at most 1; NaN where both raters use the same single category.

    When not to use it: where a category is rare (the same share of agreement then gives a kappa
    near 0: Feinstein & Cicchetti 1990, doi:10.1016/0895-4356(90)90158-L), or across data of
    different prevalence. Quadratic weights make it grow with the number of categories.
    """

    def expected(rows: Array, columns: Array, penalty: Array) -> Array:
        return np.einsum("...i,ij,...j->...", rows, penalty, columns)

    return _chance_corrected(tables, weights, expected)


def phi(tables: Array) -> Array:
    """Correlation of two yes-or-no ratings (phi, Matthews correlation coefficient).

    Source: Yule 1912 (doi:10.2307/2340126); Matthews 1975 (doi:10.1016/0005-2795(75)90109-9).

    Args:
        tables: Shape (..., 2, 2).

    Returns:
        Shape (...), from -1 to 1; NaN where a rater uses one category only.

    Raises:
        ValueError: If there are not two categories.

    When not to use it: to compare data of different prevalence; it is lower where a class is rare.
    """
    counts, totals = _counts_and_totals(tables)
    if counts.shape[-1] != 2:
        raise ValueError(f"phi: expected tables of (..., 2, 2), got {np.shape(tables)}")
    rows, columns = _margins(counts, totals)
    a, b, c, d = (counts[..., i, j] / totals for i in (0, 1) for j in (0, 1))
    margins = rows[..., 0] * rows[..., 1] * columns[..., 0] * columns[..., 1]
    return np.clip(_ratio(a * d - b * c, np.sqrt(margins)), -1.0, 1.0)


def gwet_ac(tables: Array, weights: Array | None = None) -> Array:
    """Gwet's AC1 (identity weights) or AC2 (any other weights).

    Chance agreement is T / (K (K - 1)) times the sum of p (1 - p) over the categories, p the mean
    of both margins and T the sum of all weights (Gwet 2008, doi:10.1348/000711006X126600; AC2:
    Gwet 2014, Handbook of Inter-Rater Reliability, 4th ed., chapter 5).

    Args:
        tables: Shape (..., K, K); categories that nobody used count in K.
        weights: Shape (K, K), agreement weights, 1 on the diagonal; None for identity (AC1).

    Returns:
        Shape (...), at most 1; NaN for an empty table (or weights that are 1 throughout).

    When not to use it: alone. Its model of chance is disputed: rubber-stamping the common
    category scores high (Vach & Gerke 2023, doi:10.1016/j.mex.2023.102212).
    """

    def expected(rows: Array, columns: Array, penalty: Array) -> Array:
        means, k = (rows + columns) / 2, len(penalty)
        scale = float((1 - penalty).sum()) / (k * (k - 1))
        return 1 - scale * np.einsum("...i,...i->...", means, 1 - means)

    return _chance_corrected(tables, weights, expected)


def _counts_and_totals(tables: Array) -> tuple[Array, Array]:
    """Checked tables and their sums, shape (...), NaN for an empty table.

    Counts are summed before any division, so that sums of whole counts are exact. The sums use
    einsum: in such narrow matrix products BLAS threads wait for each other, and numpy's sums over
    short axes are slow.
    """
    counts = np.asarray(tables, dtype=float)
    k = counts.shape[-1] if counts.ndim else 0
    if counts.ndim < 2 or counts.shape[-2] != k or k < 2:
        expected = "(..., K, K) with K of 2 or more"
        raise ValueError(f"tables: expected {expected}, got {counts.shape}")
    totals = np.einsum("...ij->...", counts)
    return counts, np.where(totals > 0, totals, np.nan)


def _checked(weights: Array | None, k: int) -> Array:
    agreement = np.eye(k) if weights is None else np.asarray(weights, dtype=float)
    if agreement.shape != (k, k):
        raise ValueError(f"weights: expected {(k, k)}, got {agreement.shape}")
    return agreement


def _margins(counts: Array, totals: Array) -> tuple[Array, Array]:
    """Each rater's shares of the categories, two arrays of shape (..., K)."""
    rows, columns = np.einsum("...ij->...i", counts), np.einsum("...ij->...j", counts)
    return rows / totals[..., None], columns / totals[..., None]


def _chance_corrected(
    tables: Array, weights: Array | None, expected: Callable[[Array, Array, Array], Array]
) -> Array:
    """1 - observed over expected disagreement: exactly 1 where the raters agree throughout.

    ``expected`` maps the margins and the disagreement weights to the disagreement by chance.
    """
    counts, totals = _counts_and_totals(tables)
    penalty = 1 - _checked(weights, counts.shape[-1])
    rows, columns = _margins(counts, totals)
    observed = np.einsum("...ij,ij->...", counts, penalty) / totals
    return 1 - _ratio(observed, expected(rows, columns, penalty))


def _ratio(above: Array, below: Array) -> Array:
    return above / np.where(below > 0, below, np.nan)


def coincidences(codes: Ids, k: int) -> Array:
    """Contribution of each item to the coincidence matrix.

    An item with m >= 2 ratings adds each ordered pair of them with the weight 1 / (m - 1)
    (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, section C).

    Args:
        codes: Shape (n, r), whole numbers from 0 to ``k`` - 1; -1 for a missing rating.
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
        extremes = f"{numbers.min()} to {numbers.max()}"
        raise ValueError(f"codes: expected -1 to {k - 1}, got {extremes}")
    row, _ = rated = np.nonzero(numbers >= 0)
    counts = np.bincount(row * k + numbers[rated], minlength=len(numbers) * k).reshape(-1, k)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(k)
    return pairs / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]


def coincidences_of_table(tables: Array) -> Array:
    """The coincidence matrix of two raters who both rated every item, shape (..., K, K)."""
    return tables + np.swapaxes(tables, -1, -2)


def krippendorff_alpha(
    coincidences: Array, *, metric: Distance = "nominal", values: Array | None = None
) -> Array:
    """Krippendorff's alpha: 1 - observed over expected disagreement, for many raters, with gaps.

    Source: Krippendorff 2011; Hayes & Krippendorff 2007 (doi:10.1080/19312450709336664).

    Args:
        coincidences: Shape (..., K, K), symmetric: sums of ``coincidences`` over items; with
            weights of mean 1, since the correction for few ratings uses the total.
        metric: ``nominal``: all differences are equal. ``ordinal``: squared number of ratings
            between the two values, including half of those at each. ``interval``: squared
            difference of ``values``.
        values: Shape (K,), for ``interval`` only; None for 0, 1, ..., K - 1.

    Returns:
        Shape (...), at most 1; NaN where all ratings are the same and where no item has two.

    Raises:
        ValueError: If shapes do not fit or the metric is not one of the three.

    When not to use it: where a category is rare, for the same reason as kappa; to compare a judge
    with humans whose errors differ in kind, since it treats raters as exchangeable.
    """
    pairs = np.asarray(coincidences, dtype=float)
    if pairs.ndim < 2 or pairs.shape[-1] != pairs.shape[-2]:
        raise ValueError(f"coincidences: expected (..., K, K), got {pairs.shape}")
    margins = np.einsum("...ij->...i", pairs)
    total = np.einsum("...i->...", margins)
    distances = _disagreements(margins, metric, values)
    observed = np.einsum("...ij,...ij->...", pairs, distances)
    expected = np.einsum("...i,...ij,...j->...", margins, distances, margins)
    defined = (expected > 0) & (total > 1)
    return 1 - (total - 1) * observed / np.where(defined, expected, np.nan)


def _disagreements(margins: Array, metric: Distance, values: Array | None) -> Array:
    """Squared distances of values, shape (K, K), or (..., K, K) if they depend on the margins."""
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
