"""A judge's rates, corrected with human labels on some of the items.

A judge's rate is biased by its errors, and more judged items do not cure that. Which correction is
valid depends on how the labelled items were chosen, so the design is a required argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from ..errors import OptionError
from .estimates import CONFIDENCE_LEVEL, Array, Estimate, Ids, cluster_note, nothing
from .proportions import Bounds, bounded, flat_interval, score_interval, share_of
from .sample import Sample, effective_df, ratio_moments

Design = Literal["random", "stratified", "weighted", "other-population", "hand-picked"]
_METHODS = {"random": "ppi++", "stratified": "ppi-stratified", "weighted": "ppi-weighted"}
_CHANCE = NormalDist().inv_cdf(0.95) ** 2
"""Squared normal quantile, one-sided at 5 % because the weight of the judge's values is never
negative."""
_NEEDED = {"stratified": "strata", "weighted": "weights"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectified:
    """A mean by the judge, the corrected mean, and the mean of the labels alone.

    Attributes:
        raw: Mean of the judge's values, with the judge's errors in it.
        rectified: Estimated mean of human values over all judged rows.
        labelled_only: Mean of the human labels, without the judge.
        power: Weight of the judge's values, 0 to 1; PPI++'s lambda under ``random``. Near 0 the
            judge's values do not help. None if there was no weight to choose.
        worth: Number of labels, chosen by the same design, that would be as precise without a
            judge; None without an interval.
        added: Number of labels that the judge's values are worth: ``worth`` less ``n_labelled``, or
            0 if an uninformative judge gains as much in 5 % of samples. None as for ``worth``. If
            strata come from the judge's verdicts, the gain is already in the labels alone.
        design: Design by which the labelled rows were chosen.
        n_judged: Rows with a judge's value.
        n_labelled: Those of them that also have a label.
    """

    raw: Estimate
    rectified: Estimate
    labelled_only: Estimate
    power: float | None
    worth: float | None
    added: float | None
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

    The corrected mean is a weight times the mean of the judge's values, plus the mean over the
    labelled rows of the label less the weighted value: valid for any judge, and narrower for a
    better one. With ``random`` and the weight tuned it is PPI++ (Angelopoulos, Duchi & Zrnic 2023,
    arXiv 2311.01453; the rows without label are the large sample). The interval is Wilson's, for
    the number of labels that would be as precise without a judge, with Student's t for the labelled
    units; variances come from the influence function, summed by cluster (coverage:
    docs/coverage.md).

    Args:
        judged: Shape (n,), the judge's values within the bounds; none missing.
        labels: Shape (n,), human values within the bounds, NaN where there is none.
        design: Design by which the labelled rows were chosen from the judged ones.
            ``random``: with equal chances.
            ``stratified``: at random within each of ``sample.strata``, in any numbers; strata are
                weighted by size (compare Fisch et al. 2024, arXiv 2406.04291).
            ``weighted``: with unequal chances, the inverse of ``sample.weights`` (read on
            labelled rows only; Hajek's form of the difference estimator, Särndal, Swensson &
            Wretman 1992).
            ``other-population``: the labelled rows come from elsewhere; the corrected rate is for
                the rows without label (``rogan_gladen``). Values 0 and 1 only.
            ``hand-picked``: chosen by somebody. Rejected.
        sample: Clusters of all rows, and the strata or weights that the design needs.
        level: Confidence level.
        bounds: Least and greatest possible value.
        power_tuned: True to tune the weight; else it is 1, as in PPI without tuning.

    Returns:
        Raw, corrected and labels-only estimates. The corrected one has no value, and a note with
        the reason, if there are no labels or a stratum has none.

    Raises:
        OptionError: For hand-picked labels, and where the sample does not fit the design.
        ValueError: If values are missing, out of bounds or of unequal number.

    When not to use it: with fewer than about 20 labels, where the interval is no narrower than
    that of the labels alone; for labels that were chosen by the judge's or model's answers, unless
    by a stratified or weighted draw.
    """
    sample = sample or Sample()
    _check(judged, labels, design, sample, bounds)
    clusters = Sample(clusters=sample.clusters)
    n_labelled = int(np.count_nonzero(~np.isnan(labels)))
    result = Rectified(
        raw=_mean(judged, clusters, bounds, level),
        rectified=nothing(level, n_items=len(judged), note="no labels"),
        labelled_only=nothing(level, note="no labels"),
        power=None,
        worth=None,
        added=None,
        design=design,
        n_judged=len(judged),
        n_labelled=n_labelled,
    )
    if design == "other-population":
        target = np.isnan(labels)
        note = "the labels are of another population, whose rate is its own"
        return replace(
            result,
            raw=_mean(judged[target], clusters.take(target), (0.0, 1.0), level),
            rectified=_corrected_prevalence(judged, labels, clusters, level),
            labelled_only=nothing(level, n_items=n_labelled, note=note),
        )
    if n_labelled == 0:
        return result
    unequal, width = design == "weighted", bounds[1] - bounds[0]
    rows = rows_of(judged, labels, sample, unequal=unequal, width=width)
    return _with_labels(result, rows, clusters, bounds, None if power_tuned else 1.0)


def _check(judged: Array, labels: Array, design: Design, sample: Sample, bounds: Bounds) -> None:
    if design not in get_args(Design):
        raise OptionError(f"design: expected one of {', '.join(get_args(Design))}, got {design!r}")
    if design == "hand-picked":
        raise OptionError(
            "design: labels picked by hand say nothing about the items that were not picked, so no "
            "corrected rate and no interval follows from them; label a random draw instead"
        )
    needed = _NEEDED.get(design)
    if needed and getattr(sample, needed) is None:
        raise OptionError(f"design: {design} labels need the {needed} they were sampled with")
    if not needed and not (sample.strata is None and sample.weights is None):
        raise OptionError(f"design: {design} labels have neither strata nor weights")
    if len(judged) != len(labels):
        raise ValueError(f"labels: expected {len(judged)} entries, got {len(labels)}")
    for name, values in (("judged", judged), ("labels", labels[~np.isnan(labels)])):
        if not bool(np.all((values >= bounds[0]) & (values <= bounds[1]))):
            raise ValueError(f"{name}: expected numbers from {bounds[0]} to {bounds[1]}")


def _mean(values: Array, sample: Sample, bounds: Bounds, level: float) -> Estimate:
    if bounds == (0.0, 1.0) and bool(np.all((values == 0) | (values == 1))):
        return share_of(values == 1, sample, level=level)
    return bounded(values, sample, bounds=bounds, level=level)


def _with_labels(
    result: Rectified, rows: JudgedRows, clusters: Sample, bounds: Bounds, power: float | None
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
    own = corrected(rows, 0.0)
    alone, labels = _alone(rows, own, clusters, bounds, level), rows.labels[rows.labelled]
    result = replace(result, labelled_only=alone)
    unused = replace(result, rectified=alone, power=0.0, worth=float(result.n_labelled), added=0.0)
    if rows.labelled.all():
        return unused
    if labels.max() == labels.min():
        note = "all labels are the same: the judge's values can't add to them"
        return replace(unused, rectified=replace(alone, note=note))
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
        level=level,
        method=_METHODS[result.design],
        n_items=result.n_judged,
        n_clusters=int(rows.unit.max()) + 1,
        note=note,
    )
    if mean.df < 1:
        return replace(result, rectified=estimate, power=power)
    variance = _with_uncertainty(rows, mean.variance, alone=own.variance)
    # Wilson's interval around the value, with the number of labels that would be as precise alone
    p, q = ((at - bounds[0]) / rows.width for at in (value, own.value))
    as_there = variance * max(p * (1 - p), 1e-12) / (q * (1 - q))
    low, high = score_interval(value, as_there, mean.effective_df, level=level, bounds=bounds)
    worth = result.n_labelled * own.variance / variance
    # Precision is compared by variance, as around one value: a corrected rate nearer to one half
    # has a wider interval although it is more precise. The share of the variance that an
    # uninformative judge removes is at most chi-squared over the degrees of freedom.
    is_gain = (1 - variance / own.variance) * mean.df > _CHANCE
    return replace(
        result,
        rectified=replace(estimate, low=low, high=high),
        power=power,
        worth=worth,
        added=worth - result.n_labelled if is_gain else 0.0,
    )


def _alone(
    rows: JudgedRows, own: Corrected, clusters: Sample, bounds: Bounds, level: float
) -> Estimate:
    """The estimate from the labels without the judge."""
    labelled = rows.labelled
    labels = rows.labels[labelled]
    estimate = _mean(labels, clusters.take(labelled), bounds, level)
    if rows.is_alike or labelled.all() or estimate.low is None:
        return estimate
    if labels.max() == labels.min():
        # as if all labels had the greatest weight: a row of that weight may have another outcome
        weights = rows.weights[labelled]
        n = rows.n_units * float(weights.mean() / weights.max())
        low, high = flat_interval(estimate.value or 0.0, n, level=level, bounds=bounds)
        return replace(estimate, low=low, high=high, method="wilson-effective")
    estimate = replace(estimate, value=own.value, low=None, high=None, method="none")
    if own.df < 1:
        return replace(estimate, note="too few labels to show a spread")
    variance, df = own.variance, own.effective_df
    low, high = score_interval(own.value, variance, df, level=level, bounds=bounds)
    return replace(estimate, low=low, high=high, method="wilson-effective")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRows:
    """Judged rows with the design's information.

    Attributes:
        judged: Shape (n,).
        labels: Shape (n,), 0 where there is none.
        labelled: Shape (n,), bool.
        weights: Shape (n,): number of rows that a labelled row stands for, n in all; 0 for others.
        strata: Shape (n,), from 0 without gaps; each had a known number of labels sampled from it.
        unit: Shape (n,), from 0: the independent unit of each row.
        unequal: True if labels were sampled with unequal chances instead, with a single stratum.
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
        """True if all rows had the same chance of being labelled."""
        return not self.unequal and not self.strata.any()

    @property
    def n_units(self) -> int:
        """Independent units among the labelled rows."""
        return int(np.count_nonzero(np.bincount(self.unit[self.labelled])))

    @property
    def unlabelled_share(self) -> float:
        """Factor from a slope to PPI++'s lambda; 1 for designs to which PPI++ does not apply."""
        return 1 - float(np.mean(self.labelled)) if self.is_alike else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A corrected mean and its variance; ``df``: labelled units less strata."""

    value: float
    variance: float
    df: int
    effective_df: float


def rows_of(
    judged: Array, labels: Array, sample: Sample, *, unequal: bool, width: float
) -> JudgedRows:
    """The rows of a design; ``unequal``: by the weights of the sample instead of its strata."""
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
    return JudgedRows(
        judged=judged,
        labels=np.where(labelled, labels, 0.0),
        labelled=labelled,
        weights=weights,
        strata=strata,
        unit=np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1],
        unequal=unequal,
        width=width,
    )


def tuned(rows: JudgedRows) -> float:
    """The weight of the judge's values that minimises the variance of the corrected mean.

    The slope of labels on judged values within strata (for rows sampled alike: PPI++'s lambda,
    whose large sample is the rows without label), limited to 0 to 1.
    """
    n, labelled = len(rows.judged), rows.labelled
    sizes = np.bincount(rows.strata)
    means = np.bincount(rows.strata, weights=rows.judged) / sizes
    spread = float(((rows.judged - means[rows.strata]) ** 2).sum()) / max(1, n - len(sizes))
    if spread < 1e-12:
        return 0.0
    weights, strata = rows.weights[labelled], rows.strata[labelled]
    totals = np.maximum(np.bincount(strata, weights=weights), 1e-300)

    def from_mean(values: Array) -> Array:
        return values - (np.bincount(strata, weights=weights * values) / totals)[strata]

    judged, labels = from_mean(rows.judged[labelled]), from_mean(rows.labels[labelled])
    slope = float((weights * judged * labels).sum()) / n / spread
    return min(1.0, max(0.0, slope * rows.unlabelled_share))


def corrected(rows: JudgedRows, power: float) -> Corrected:
    """The corrected mean with the variance of its influence function, summed by unit.

    The rows are treated as a sample of all that might have been judged, as in PPI. For labels of
    unequal weights, the variance of one more label of the greatest weight, off by the whole range,
    is added: without it, intervals of 30 to 100 labels with weights of 1 to 3 covered 88 to 94 %.
    """
    n, slope = len(rows.judged), power / rows.unlabelled_share if power else 0.0
    lacking = rows.labels - slope * rows.judged
    parts = slope * rows.judged + rows.weights * lacking
    mean = float((rows.weights * lacking).sum()) / n
    if rows.unequal:
        judged = slope * (rows.judged - rows.judged.mean())
        influence = (judged + rows.weights * (lacking - mean)) / n
        weights = rows.weights[rows.labelled] / n * rows.width
        unseen = max(0.0, float(weights.max() ** 2 - weights.mean() ** 2))
    else:
        influence = _from_their_like(rows, parts, rows.weights * (lacking - mean)) / n
        unseen = _without_spread(rows, lacking)
    together: Array = np.bincount(rows.unit, weights=influence).astype(float)
    larger = max(together, influence, key=lambda sums: float(sums @ sums))
    variance = float(larger @ larger)
    df = rows.n_units - int(rows.strata.max()) - 1
    second, fourth = (float((larger**k).sum()) for k in (2, 4))
    return Corrected(
        value=float(parts.mean()),
        variance=unseen + variance * rows.n_units / max(1, df),
        df=df,
        effective_df=min(df, effective_df([len(larger)], [second], [fourth])),
    )


def _without_spread(rows: JudgedRows, lacking: Array) -> float:
    """Variance of half a label, off by the whole range, in strata whose labels show no spread.

    A judge that was right on each of the few labels of a stratum is not always right there. If all
    labels are in one stratum, ``_with_uncertainty`` handles this.
    """
    n_strata = int(rows.strata.max()) + 1
    if n_strata == 1:
        return 0.0
    strata, lacking = rows.strata[rows.labelled], lacking[rows.labelled]
    n_labelled = np.bincount(strata, minlength=n_strata)
    means = np.bincount(strata, lacking, n_strata) / np.maximum(n_labelled, 1)
    off = np.bincount(strata, np.abs(lacking - means[strata]), n_strata)
    sizes = np.bincount(rows.strata, minlength=n_strata)
    alike = (off < 1e-9) & (n_labelled < sizes) & (n_labelled > 0)
    if not alike.any():
        return 0.0
    share = float(sizes[alike].sum()) / len(rows.judged)
    return 0.5 * (share / float(n_labelled[alike].sum()) * rows.width) ** 2


def _from_their_like(rows: JudgedRows, parts: Array, from_all: Array) -> Array:
    """Each row's deviation from the mean of its kind, plus its stratum's from the whole.

    A label that is alone in its stratum is compared with all labels.
    """
    like = 2 * rows.strata + rows.labelled
    sizes = np.bincount(like)
    means = np.bincount(like, weights=parts) / np.maximum(sizes, 1)
    alone = rows.labelled & (sizes[like] == 1)
    own = np.where(alone, from_all, parts - means[like])
    of_strata = np.bincount(rows.strata, weights=parts) / np.bincount(rows.strata)
    return own + of_strata[rows.strata] - float(parts.mean())


def _with_uncertainty(rows: JudgedRows, variance: float, *, alone: float) -> float:
    """The variance, increased so that a judge that was always right still counts as fallible.

    As if one more label were off by the whole range in each direction, but at most the variance of
    the labels alone.
    """
    labelled = rows.labelled
    if not np.array_equal(rows.labels[labelled], rows.judged[labelled]):
        return variance
    sums = np.bincount(rows.unit[labelled], weights=rows.weights[labelled])
    share = float((sums**2).sum() / sums.sum() ** 2)
    return min(variance + 2 * (share * rows.width) ** 2, max(variance, alone))


def rogan_gladen(
    k: float,
    n: float,
    *,
    tp: float,
    n_pos: float,
    tn: float,
    n_neg: float,
    level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """The true rate behind a judge's rate, by a sensitivity and specificity measured elsewhere.

    Point estimate: Rogan & Gladen 1978 (doi:10.1093/oxfordjournals.aje.a112510), cut to [0, 1].
    Interval: Lang & Reiczigel 2014 (doi:10.1016/j.prevetmed.2013.09.015), which carries the
    uncertainty of all three rates.

    Assumes that the judge is as sensitive and as specific on the judged items as on the labelled
    ones and that all items are independent; for clusters give effective numbers (each count
    divided by its design effect).

    Args:
        k: Items judged positive, 0 to ``n``.
        n: Items judged, none of them labelled; above 0.
        tp: Items that humans and judge call positive, 0 to ``n_pos``.
        n_pos: Labelled items that humans call positive.
        tn: Items that humans and judge call negative, 0 to ``n_neg``.
        n_neg: Labelled items that humans call negative.
        level: Confidence level, between 0 and 1.

    Returns:
        The estimate; without a value, and with the reason, where no human positives or no human
        negatives are labelled, or where the sum of sensitivity and specificity does not exceed 1.

    Raises:
        ValueError: If a count is out of range.

    When not to use it: where the labels are a random part of the judged items (``rectify``), or
    where one population is harder for the judge than the other.
    """
    for part, whole in ((k, n), (tp, n_pos), (tn, n_neg)):
        if not 0 <= part <= whole:
            raise ValueError(f"rogan_gladen: expected 0 <= part <= whole, got {part} of {whole}")
    if not n > 0:
        return nothing(level, note="no judged rows besides the labelled ones")
    if not n_pos > 0 or not n_neg > 0:
        missing = "positive" if not n_pos > 0 else "negative"
        note = f"no label is {missing}: sensitivity or specificity is unknown"
        return nothing(level, n_items=round(n), note=note)
    youden = tp / n_pos + tn / n_neg - 1
    if youden <= 0:
        note = "by these labels the judge is no better than chance"
        return nothing(level, n_items=round(n), note=note)
    value = (k / n + tn / n_neg - 1) / youden
    # with Agresti and Coull's added counts
    z = NormalDist().inv_cdf(0.5 + level / 2)
    sensitivity, specificity = (tp + 1) / (n_pos + 2), (tn + 1) / (n_neg + 2)
    youden = sensitivity + specificity - 1
    if youden <= 0:
        note = "too few labels to tell the judge from chance"
        return nothing(level, n_items=round(n), note=note)
    apparent = (k + z * z / 2) / (n + z * z)
    p = (apparent + specificity - 1) / youden
    hits = sensitivity * (1 - sensitivity) / (n_pos + 2)
    passes = specificity * (1 - specificity) / (n_neg + 2)
    shift = 2 * z * z * (p * hits - (1 - p) * passes)
    of_rate = apparent * (1 - apparent) / (n + z * z)
    half = z * sqrt(of_rate + p * p * hits + (1 - p) ** 2 * passes) / youden
    ends = (value, p + shift - half, p + shift + half)
    value, low, high = (min(1.0, max(0.0, end)) for end in ends)
    return Estimate(
        value=value,
        low=min(value, low),
        high=max(value, high),
        level=level,
        method="lang-reiczigel",
        n_items=round(n),
        n_clusters=round(n),
    )


def _corrected_prevalence(judged: Array, labels: Array, clusters: Sample, level: float) -> Estimate:
    """``rogan_gladen`` of the rows without label; the labelled rows measure the judge.

    With clusters each count is divided by its design effect; clusters shared by sensitivity and
    specificity are not taken into account.
    """
    target = np.isnan(labels)
    if not set(np.unique(judged)) | set(np.unique(labels[~target])) <= {0.0, 1.0}:
        return nothing(level, note="labels of another population correct values of 0 and 1 only")
    k, n = _effective(judged, target, clusters)
    tp, n_pos = _effective(judged, labels == 1, clusters)
    fp, n_neg = _effective(judged, labels == 0, clusters)
    tn = max(0.0, n_neg - fp)
    estimate = rogan_gladen(k, n, tp=tp, n_pos=n_pos, tn=tn, n_neg=n_neg, level=level)
    n_items = int(np.count_nonzero(target))
    n_units = len(np.unique(clusters.take(target).units(n_items)[0]))
    note = estimate.note or cluster_note(n_items, n_units)
    return replace(estimate, n_items=n_items, n_clusters=n_units, note=note)


def _effective(values: Array, rows: Ids, clusters: Sample) -> tuple[float, float]:
    """Successes and rows, divided by the design effect of the clusters."""
    values = values[rows]
    n, k = len(values), float(values.sum())
    moments = ratio_moments(values, np.ones(n), clusters.take(rows))
    if moments is None or moments.n_clusters == n:
        return k, float(n)
    if moments.variance == 0:
        return k * moments.n_clusters / n, float(moments.n_clusters)
    worth = min(float(n), moments.value * (1 - moments.value) / moments.variance)
    return moments.value * worth, worth
