"""Rates by a judge, corrected with human labels on some of the items.

A judge's rate is off by its errors, and no number of judged items cures that. Labels on some of
the items show how far off it is. How the labelled items were chosen decides which correction
holds, so the design is a required argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from ..errors import OptionError
from .estimates import CONFIDENCE_LEVEL, Array, Estimate, Ids, cluster_note, nothing
from .moments import effective_df
from .prevalence import corrected_prevalence
from .proportions import bounded, score_interval, share, wilson
from .sample import Sample

Design = Literal["random", "stratified", "weighted", "other-population", "hand-picked"]
Bounds = tuple[float, float]
_METHODS = {"random": "ppi++", "stratified": "ppi-stratified", "weighted": "ppi-weighted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectified:
    """A mean by the judge, the same corrected, and what the labels alone say.

    Attributes:
        raw: Mean of the judge's values: what the judge says, with the judge's errors in it.
        rectified: The mean that humans would have given all judged rows.
        labelled_only: Mean of the human labels without any use of the judge.
        power: Weight that the judge's values got, 0 to 1; PPI++'s lambda under ``random``. Near 0
            the judge's values do not help. None where there was no weight to choose.
        worth: How many labels without a judge would be as precise; None without an interval.
        design: How the labelled rows were chosen.
        n_judged: Rows with a judge's value.
        n_labelled: Rows with a label too.
    """

    raw: Estimate
    rectified: Estimate
    labelled_only: Estimate
    power: float | None
    worth: float | None
    design: Design
    n_judged: int
    n_labelled: int


def rectify(
    judged: Array,
    labels: Array,
    *,
    design: Design,
    sample: Sample | None = None,
    level: float = CONFIDENCE_LEVEL,
    bounds: Bounds = (0.0, 1.0),
    power_tuned: bool = True,
) -> Rectified:
    """Mean of a judge's values over all rows, corrected with the labels of some.

    The corrected mean is the mean of the judge's values, times a weight, plus the labelled rows'
    mean of what the weighted values lack: right for any judge, and the better the judge, the
    narrower. With ``random`` and the weight tuned it is PPI++ (Angelopoulos, Duchi & Zrnic 2023,
    arXiv 2311.01453; the rows without label are the large sample). The weight is kept within 0
    and 1.

    Designs, i.e. how the labelled rows were chosen from the judged ones:

    * ``random``: all had the same chance.
    * ``stratified``: at random within each of ``sample.strata``, with any numbers; strata are
      weighted by their size among the judged rows (compare Fisch et al. 2024, arXiv 2406.04291).
    * ``weighted``: with unequal chances, whose inverse is ``sample.weights`` (read on labelled
      rows only; Hajek's form of the difference estimator, Särndal, Swensson & Wretman 1992).
    * ``other-population``: they were not; the labelled rows come from elsewhere, the corrected
      rate is that of the rows without label (``prevalence.rogan_gladen``). Values 0 and 1 only.
    * ``hand-picked``: somebody chose them. Refused.

    The interval is Wilson's with as many labels as would be as precise without a judge, and
    Student's t for the labelled units; variances by influence function, summed by cluster. Where
    the judge agrees with every label, the rectifier shows no spread though the judge may err:
    the variance is taken as if one label more had been off by the whole range in each direction,
    but not above that of the labels alone.

    How often intervals held in simulations is in docs/coverage.md: 93 % or more with random labels
    of independent rows; less (88 to 92 %) with 120 labels or fewer drawn by verdict where one
    verdict is seldom wrong; more than 97 % where 5 labels or fewer are expected to differ from the
    judge or to be of the rarer kind, and with 30 weighted labels.

    Args:
        judged: Shape (n,), the judge's values within the bounds; none missing.
        labels: Shape (n,), human values within the bounds, NaN where there is none.
        design: How the labelled rows were chosen.
        sample: Clusters of all rows, strata or weights as the design needs them.
        level: Confidence level.
        bounds: Least and greatest possible value.
        power_tuned: Whether the weight is tuned; else it is 1, as in PPI without tuning.

    Returns:
        Raw, corrected and labels-only side by side. The corrected estimate has no value, and a
        note why, without labels or with a stratum that has none.

    Raises:
        OptionError: For hand-picked labels, and where the sample does not fit the design.
        ValueError: If values are missing, out of bounds or of unequal number.

    When not to use it: with fewer than about 20 labels the interval is no narrower than that of
    the labels alone; and never for labels that were chosen for what judge or model answered,
    unless by a stratified or weighted draw.
    """
    sample = sample or Sample()
    _check_design(design, sample)
    _check_values(judged, labels, bounds)
    clusters = Sample(clusters=sample.clusters)
    result = Rectified(
        raw=_mean(judged, clusters, bounds, level),
        rectified=nothing(level, n_items=len(judged), note="no labels"),
        labelled_only=nothing(level, note="no labels"),
        power=None,
        worth=None,
        design=design,
        n_judged=len(judged),
        n_labelled=int(np.count_nonzero(~np.isnan(labels))),
    )
    if design == "other-population":
        target = np.isnan(labels)
        note = "the labels are of another population, whose rate is its own"
        return replace(
            result,
            raw=_mean(judged[target], clusters.take(target), (0.0, 1.0), level),
            rectified=corrected_prevalence(judged, labels, clusters, level=level),
            labelled_only=nothing(level, n_items=result.n_labelled, note=note),
        )
    if result.n_labelled == 0:
        return result
    unequal, width = design == "weighted", bounds[1] - bounds[0]
    rows = rows_of(judged, labels, sample, unequal=unequal, width=width)
    return _with_labels(result, rows, sample.clusters, bounds, None if power_tuned else 1.0)


def _check_design(design: Design, sample: Sample) -> None:
    if design not in get_args(Design):
        raise OptionError(f"design: expected one of {', '.join(get_args(Design))}, got {design!r}")
    if design == "hand-picked":
        raise OptionError(
            "design: labels picked by hand say nothing of the items that were not picked, so no "
            "corrected rate and no interval can be had from them; label a random draw instead"
        )
    needed = {"stratified": "strata", "weighted": "weights"}.get(design)
    if needed and getattr(sample, needed) is None:
        raise OptionError(f"design: {design} labels need the {needed} they were drawn with")
    drawn_alike = sample.strata is None and sample.weights is None
    if not needed and not drawn_alike:
        raise OptionError(f"design: {design} labels have neither strata nor weights")


def _check_values(judged: Array, labels: Array, bounds: Bounds) -> None:
    if len(judged) != len(labels):
        raise ValueError(f"labels: expected {len(judged)} entries, got {len(labels)}")
    known = labels[~np.isnan(labels)]
    for name, values in (("judged", judged), ("labels", known)):
        if not bool(np.all((values >= bounds[0]) & (values <= bounds[1]))):
            raise ValueError(f"{name}: expected numbers from {bounds[0]} to {bounds[1]}")


def _mean(values: Array, sample: Sample, bounds: Bounds, level: float) -> Estimate:
    if bounds == (0.0, 1.0) and bool(np.all((values == 0) | (values == 1))):
        return share(values == 1, np.ones(len(values), dtype=bool), sample, level=level)
    return bounded(values, sample, bounds=bounds, level=level)


def _with_labels(
    result: Rectified, rows: Rows, clusters: Ids | None, bounds: Bounds, power: float | None
) -> Rectified:
    level, sizes = result.raw.level, np.bincount(rows.strata)
    empty = np.bincount(rows.strata[rows.labelled], minlength=len(sizes)) == 0
    if empty.any():
        note = (
            f"no label in {np.count_nonzero(empty)} of {len(sizes)} strata, "
            f"which hold {sizes[empty].sum()} of {sizes.sum()} rows"
        )
        missing = nothing(level, n_items=result.n_judged, note=note)
        return replace(result, rectified=missing, labelled_only=missing)
    alone, labels = _alone(rows, clusters, bounds, level), rows.labels[rows.labelled]
    result = replace(result, labelled_only=alone)
    if rows.labelled.all():
        return replace(result, rectified=alone, power=0.0)
    if labels.max() == labels.min():
        note = "all labels are the same: the judge's values can't add to them"
        return replace(result, rectified=replace(alone, note=note), power=0.0)
    power = tuned(rows) if power is None else power
    mean = corrected(rows, power)
    value = min(bounds[1], max(bounds[0], mean.value))
    note = cluster_note(result.n_labelled, rows.n_units)
    if abs(value - mean.value) > 1e-12:
        note = "the correction leads beyond the possible values: cut off"
    if mean.df < 1:
        note = "too few labels to show a spread"
    estimate = Estimate(
        value=value,
        low=None,
        high=None,
        level=level,
        method=_METHODS[result.design],
        n_items=result.n_judged,
        n_clusters=int(rows.unit.max()) + 1,
        note=note,
    )
    if mean.df < 1:
        return replace(result, rectified=estimate, power=power)
    own = corrected(rows, 0.0)
    variance = with_doubt(rows, mean.variance, alone=own.variance)
    # Wilson's interval around the value, with the labels that would be as precise alone
    p, q = ((at - bounds[0]) / rows.width for at in (value, own.value))
    as_there = variance * max(p * (1 - p), 1e-12) / (q * (1 - q))
    low, high = score_interval(value, as_there, mean.effective_df, level=level, bounds=bounds)
    return replace(
        result,
        rectified=replace(estimate, low=low, high=high),
        power=power,
        worth=result.n_labelled * own.variance / variance,
    )


def _alone(rows: Rows, clusters: Ids | None, bounds: Bounds, level: float) -> Estimate:
    """What the labels say without the judge."""
    on = rows.labelled
    labels = rows.labels[on]
    labelled_sample = Sample(clusters=None if clusters is None else clusters[on])
    estimate = _mean(labels, labelled_sample, bounds, level)
    if rows.is_alike or on.all() or estimate.low is None:
        return estimate
    if labels.max() == labels.min():
        return _all_the_same(estimate, rows, bounds)
    own = corrected(rows, 0.0)
    estimate = replace(estimate, value=own.value, low=None, high=None, method="none")
    if own.df < 1:
        return replace(estimate, note="too few labels to show a spread")
    low, high = score_interval(
        own.value, own.variance, own.effective_df, level=level, bounds=bounds
    )
    return replace(estimate, low=low, high=high, method="wilson-effective")


def _all_the_same(estimate: Estimate, rows: Rows, bounds: Bounds) -> Estimate:
    """Wilson's interval as if each label had the weight of the heaviest, where another may hide."""
    weights = rows.weights[rows.labelled]
    n = rows.n_units * float(weights.mean() / weights.max())
    p = ((estimate.value or 0.0) - bounds[0]) / rows.width
    low, high = wilson(p * n, n, level=estimate.level)
    return replace(
        estimate,
        low=bounds[0] + rows.width * low,
        high=bounds[0] + rows.width * high,
        method="wilson-effective",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Judged rows, with what the design says of them.

    Attributes:
        judged: Shape (n,).
        labels: Shape (n,), 0 where there is none.
        labelled: Shape (n,), bool.
        weights: Shape (n,): how many rows a labelled one stands for, n in all; 0 elsewhere.
        strata: Shape (n,), from 0 without gaps; labels were drawn with known numbers in each.
        unit: Shape (n,), from 0: what is independent.
        unequal: Whether labels were drawn with unequal chances instead, and ``strata`` is one.
        width: Distance of the greatest possible value from the least.
    """

    judged: Array
    labels: Array
    labelled: Ids
    weights: Array
    strata: Ids
    unit: Ids
    unequal: bool
    width: float

    @property
    def is_alike(self) -> bool:
        """Whether all rows had the same chance of a label."""
        return not self.unequal and not self.strata.any()

    @property
    def n_units(self) -> int:
        """Independent units among the labelled rows."""
        return int(np.count_nonzero(np.bincount(self.unit[self.labelled])))

    @property
    def unlabelled_share(self) -> float:
        """What turns a slope into PPI++'s lambda; 1 for the designs that it was not made for."""
        return 1 - float(np.mean(self.labelled)) if self.is_alike else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A corrected mean and how far it may be off.

    Attributes:
        value: The mean.
        variance: Its variance.
        df: Labelled units less strata.
        effective_df: Degrees of freedom of the variance as it turned out, at most ``df``: few
            where a few labels make up most of it.
    """

    value: float
    variance: float
    df: int
    effective_df: float


def rows_of(judged: Array, labels: Array, sample: Sample, *, unequal: bool, width: float) -> Rows:
    """The rows of a design.

    Args:
        judged: Shape (n,).
        labels: Shape (n,), NaN where there is none.
        sample: Clusters; strata, or the weights of an unequal draw.
        unequal: Whether the weights are to be used, instead of strata.
        width: Distance of the greatest possible value from the least.
    """
    n, labelled = len(judged), ~np.isnan(labels)
    strata = np.zeros(n, dtype=np.int64)
    if sample.strata is not None and not unequal:
        strata = np.unique(sample.strata, return_inverse=True)[1]
    weights = np.zeros(n)
    if unequal and sample.weights is not None:
        label_weights = sample.weights[labelled]
        weights[labelled] = label_weights * (n / label_weights.sum())
    else:
        sizes = np.bincount(strata)
        n_labelled = np.bincount(strata[labelled], minlength=len(sizes))
        weights[labelled] = (sizes / np.maximum(n_labelled, 1))[strata[labelled]]
    clusters = sample.clusters
    return Rows(
        judged=judged,
        labels=np.where(labelled, labels, 0.0),
        labelled=labelled,
        weights=weights,
        strata=strata,
        unit=np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1],
        unequal=unequal,
        width=width,
    )


def tuned(rows: Rows) -> float:
    """The weight of the judge's values that makes the corrected mean least variable.

    The slope of labels on judged values within strata (for rows drawn alike: PPI++'s lambda,
    whose large sample are the rows without label), kept within 0 and 1.
    """
    n, on = len(rows.judged), rows.labelled
    sizes = np.bincount(rows.strata)
    means = np.bincount(rows.strata, weights=rows.judged) / sizes
    spread = float(((rows.judged - means[rows.strata]) ** 2).sum()) / max(1, n - len(sizes))
    if spread < 1e-12:
        return 0.0
    weights, strata = rows.weights[on], rows.strata[on]
    labels = _from_mean(rows.labels[on], weights, strata)
    judged = _from_mean(rows.judged[on], weights, strata)
    slope = float((weights * judged * labels).sum()) / n / spread
    return min(1.0, max(0.0, slope * rows.unlabelled_share))


def _from_mean(values: Array, weights: Array, strata: Ids) -> Array:
    """Values from their stratum's weighted mean."""
    total = np.bincount(strata, weights=weights)
    return (
        values - (np.bincount(strata, weights=weights * values) / np.maximum(total, 1e-300))[strata]
    )


def corrected(rows: Rows, power: float) -> Corrected:
    """The corrected mean with the variance of its influence function, summed by unit.

    The rows are taken for a sample of all that might have been judged, as PPI does; the sizes of
    strata vary with them. Labels of unequal weights get a variance for the heaviest that was not
    drawn: without it, intervals of 30 to 100 labels with weights of 1 to 3 covered 88 to 94 %.
    """
    n, slope = len(rows.judged), power / rows.unlabelled_share if power else 0.0
    lacking = rows.labels - slope * rows.judged
    parts = slope * rows.judged + rows.weights * lacking
    mean = float((rows.weights * lacking).sum()) / n
    if rows.unequal:
        judged = slope * (rows.judged - rows.judged.mean())
        influence = (judged + rows.weights * (lacking - mean)) / n
        unseen = _heaviest(rows)
    else:
        influence = _from_their_like(rows, parts, rows.weights * (lacking - mean)) / n
        unseen = _without_spread(rows, lacking)
    together: Array = np.bincount(rows.unit, weights=influence).astype(float)
    larger = max(together, influence, key=lambda sums: float(sums @ sums))
    variance = float(larger @ larger)
    df = rows.n_units - int(rows.strata.max()) - 1
    powers = (np.array([float((larger**k).sum())]) for k in (2, 4))
    return Corrected(
        value=float(parts.mean()),
        variance=unseen + variance * rows.n_units / max(1, df),
        df=df,
        effective_df=min(df, effective_df(np.array([len(larger)]), *powers)),
    )


def _heaviest(rows: Rows) -> float:
    """One label more of the greatest weight, off by the whole range; 0 if all weigh the same."""
    weights = rows.weights[rows.labelled] / len(rows.judged) * rows.width
    return max(0.0, float(weights.max() ** 2 - weights.mean() ** 2))


def _without_spread(rows: Rows, lacking: Array) -> float:
    """Half a label more, off by the whole range, in the strata whose labels show no spread.

    A judge that was right on each of the few labels of a stratum is not always right there. Where
    all labels are in one stratum, ``with_doubt`` sees to it; a stratum that is labelled in full
    hides nothing.
    """
    n_strata = int(rows.strata.max()) + 1
    if n_strata == 1:
        return 0.0
    on = rows.labelled
    n_labelled = np.bincount(rows.strata[on], minlength=n_strata)
    means = np.bincount(rows.strata[on], lacking[on], n_strata) / np.maximum(n_labelled, 1)
    off = np.bincount(rows.strata[on], np.abs(lacking[on] - means[rows.strata[on]]), n_strata)
    sizes = np.bincount(rows.strata, minlength=n_strata)
    alike = (off < 1e-9) & (n_labelled < sizes) & (n_labelled > 0)
    if not alike.any():
        return 0.0
    share = float(sizes[alike].sum()) / len(rows.judged)
    return 0.5 * (share / float(n_labelled[alike].sum()) * rows.width) ** 2


def _from_their_like(rows: Rows, parts: Array, from_all: Array) -> Array:
    """Each row's part from the mean of its like, plus its stratum's mean from the whole.

    A label that is alone in its stratum is compared with all labels instead.
    """
    like = 2 * rows.strata + rows.labelled
    sizes = np.bincount(like)
    means = np.bincount(like, weights=parts) / np.maximum(sizes, 1)
    alone = rows.labelled & (sizes[like] == 1)
    own = np.where(alone, from_all, parts - means[like])
    of_strata = np.bincount(rows.strata, weights=parts) / np.bincount(rows.strata)
    return own + of_strata[rows.strata] - float(parts.mean())


def with_doubt(rows: Rows, variance: float, *, alone: float) -> float:
    """The variance, with a judge that was right every time not taken for one that can't err."""
    on = rows.labelled
    if not np.array_equal(rows.labels[on], rows.judged[on]):
        return variance
    sums = np.bincount(rows.unit[on], weights=rows.weights[on])
    share = float((sums**2).sum() / sums.sum() ** 2)
    return min(variance + 2 * (share * rows.width) ** 2, max(variance, alone))
