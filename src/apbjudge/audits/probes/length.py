"""Length: does a plan pass because it is long, or fail for it?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from itertools import chain
from math import log2
from typing import Any

import numpy as np

from ...statistics.estimates import Array, Estimate, Ids, t_quantile
from ...statistics.sample import Sample
from ..outcomes import ProbeTable
from ..responses import Response, sample_of
from .base import AuditProbe
from .measures import (
    Value,
    by_truth,
    changes,
    count_text,
    describe,
    error,
    flipped,
    grouped,
    kind,
    kind_figures,
    mean_text,
    turned,
    value_of,
)

PADDED = 0.10
"""Idle words may change one verdict in ten; a tested model must not gain from longer replies."""
PER_DOUBLING = 0.05
"""Replies of tested models often differ fourfold in length: that may change ten points at most."""
FEWEST = 10
"""Smallest number of cases: with fewer, a standard error by case says little."""
LEAST_SPREAD = 1.0
"""Smallest range of lengths, in doublings: with less, a slope per doubling extrapolates."""
METHOD = "ols-clustered"


class Length(AuditProbe):
    """Compares changes by padding, and the judge's error by length, with the limits.

    Variants with the role ``padded`` are compared with their parents, predictions with the
    truth about them.
    """

    name = "length"
    title = "Length"
    question = "Does a plan pass because it is long, or fail for it?"
    roles = ("padded",)
    nothing = "no plan was padded, and too few labelled predictions differ in length"

    @cached_property
    def regression(self) -> Value | None:
        """The judge's error on length."""
        return regression(self.audit.labelled)

    def values(self) -> Iterable[Value | None]:
        """Changes by padding, for correct and for faulty plans, and the error by length."""
        yield from changes("padded, {}", by_truth(self.pairs), "within", PADDED)
        yield self.regression
        yield from kind_figures(self.pairs)

    def used(self) -> Iterable[Response]:
        """The variants, their parents and labelled predictions."""
        return chain(self.asked, (parent for _, parent in self.pairs), self.audit.labelled)

    def tables(self) -> Iterable[ProbeTable]:
        """Effects of each kind of padding on correct and on faulty plans."""
        rows = [
            (
                padding,
                name,
                count_text(chosen),
                f"{np.mean([_length(child) / _length(parent) for child, parent in chosen]):.1f}",
                mean_text(map(turned, chosen), "points"),
            )
            for padding, of in grouped(self.pairs, kind).items()
            for name, chosen in by_truth(of).items()
        ]
        if rows:
            yield ProbeTable(
                title="Padded plans, by kind of padding",
                columns=("made longer", "plans", "n", "times as long", "change of passing"),
                rows=tuple(rows),
            )

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Verdicts that padding changed."""
        return ((r, describe(r, parent, "before")) for r, parent in filter(flipped, self.pairs))

    def notes(self) -> Iterable[str]:
        """An explanation of the regression, or the reason why there is none."""
        if self.regression:
            yield (
                "error per doubling of length: verdict minus truth (-1 to 1), among predictions of "
                "the same truth; longer plans may be harder to judge for other reasons"
            )
        else:
            yield (
                f"no regression on length: it needs labelled predictions of {FEWEST} cases or "
                "more, of which one is at least twice as long as another of the same truth"
            )
        yield from super().notes()


def regression(labelled: Sequence[Response]) -> Value | None:
    """Regression of the judge's error (verdict less truth) on length, at equal truth.

    None if there are too few cases, or lengths hardly differ among plans of the same truth.
    """
    x = np.array([log2(_length(r)) for r in labelled])
    truths = np.array([float(bool(r.variant.truth.is_correct)) for r in labelled])
    spread = [float(np.ptp(x[truths == value])) for value in np.unique(truths)]
    cases = {r.variant.case_id for r in labelled}
    if len(cases) < FEWEST or max(spread, default=0.0) < LEAST_SPREAD:
        return None
    errors, sample = np.array([float(error(r)) for r in labelled]), sample_of(labelled)
    take = partial(slope, errors, x, truths, sample)
    return value_of("error per doubling of length", take, "within", PER_DOUBLING, unit="points")


def _length(response: Response) -> int:
    return max(1, len(str(response.variant.row.get("model_response", ""))))


def slope(errors: Array, x: Array, truths: Array, sample: Sample, level: float) -> Estimate:
    """Slope of the judge's error on x at equal truth: least squares, errors by cluster.

    The interval uses the cluster-robust variance of statsmodels with its correction for few
    clusters, and Student's t with one degree of freedom less than there are clusters. For the
    interval, one mistake is added on either side, one standard deviation from the mean of x (half
    of it in correct and half in faulty plans, if there are both), each in its own cluster. They
    hardly change the slope, but give a judge without observed mistakes an interval of some width.
    The slope is limited to the range of errors, -1 to 1.

    Args:
        errors: Shape (n,): verdict less truth, -1 to 1.
        x: Shape (n,): with some spread among rows of the same truth.
        truths: Shape (n,): 1.0 if the plan is correct, else 0.0.
        sample: Sampling design of the rows.
        level: Confidence level.
    """
    is_of = np.array([truths == value for value in (0.0, 1.0)], dtype=float)
    within = x - (is_of.T @ (is_of @ x / np.maximum(is_of.sum(axis=1), 1.0)))
    value = max(-1.0, min(1.0, float(within @ errors / (within @ within))))
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
