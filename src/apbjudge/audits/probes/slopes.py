"""The judge's error on something that was not planted but came with the plans."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...statistics.estimates import Array, Estimate, Ids, t_quantile
from ...statistics.sample import Sample

METHOD = "ols-clustered"


def slope(errors: Array, x: Array, truths: Array, sample: Sample, *, level: float) -> Estimate:
    """Slope of the judge's error on x at equal truth: least squares, errors by cluster.

    The interval has the cluster-robust variance of statsmodels with its correction for few
    clusters, and Student's t with one degree of freedom less than there are clusters. It is taken
    after one mistake more has been counted on either side, one standard deviation from the mean
    of x (half of it in correct and half in faulty plans, where there are both), each a cluster of
    its own. They leave the slope about what it is, and keep a judge without mistakes from being
    taken for one that can make none.

    Args:
        errors: Shape (n,): verdict less truth, -1 to 1.
        x: Shape (n,): with some spread among rows of the same truth.
        truths: Shape (n,): 1.0 where the plan is correct, else 0.0.
        sample: How the rows were drawn.
        level: Confidence level.
    """
    means = np.array([truths == value for value in (0.0, 1.0)], dtype=float)
    within = x - (means.T @ (means @ x / np.maximum(means.sum(axis=1), 1.0)))
    value = float(within @ errors / (within @ within))
    units, _ = sample.units(len(x))
    low, high = _interval(errors, within, truths, units, level)
    return Estimate(
        value=value,
        low=max(-1.0, min(value, low)),
        high=min(1.0, max(value, high)),
        level=level,
        method=METHOD,
        n_items=len(x),
        n_clusters=int(units.max()) + 1,
    )


def _interval(
    errors: Array, within: Array, truths: Array, units: Ids, level: float
) -> tuple[float, float]:
    from statsmodels.regression.linear_model import WLS

    kinds = np.unique(truths)
    more = np.tile([1.0, -1.0], len(kinds)) * float(np.sqrt(np.mean(within**2)))
    of = np.repeat(kinds, 2)
    levels = np.append(truths, of)
    columns = [np.append(within, more), *((levels == kind).astype(float) for kind in kinds)]
    weights = np.append(np.ones(len(errors)), np.full(len(of), 1 / len(kinds)))
    model: Any = WLS(
        np.append(errors, np.where(of > 0, -1.0, 1.0)),
        np.stack(columns, axis=1),
        weights=weights,  # pyright: ignore[reportArgumentType]
    )
    groups = np.append(units, units.max() + 1 + np.arange(len(of)))
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    centre, error = float(fitted.params[0]), float(fitted.bse[0])
    half = t_quantile(0.5 + level / 2, int(units.max())) * error
    return centre - half, centre + half
