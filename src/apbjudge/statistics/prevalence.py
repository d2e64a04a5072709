"""A rate corrected with a sensitivity and specificity that were measured elsewhere."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from .estimates import CONFIDENCE_LEVEL, Array, Estimate, Ids, cluster_note, nothing
from .moments import ratio_moments
from .sample import Sample


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
    """The rate behind a judge's rate, from the judge's sensitivity and specificity.

    Point estimate: Rogan & Gladen 1978 (doi:10.1093/oxfordjournals.aje.a112510), cut to [0, 1].
    Interval: Lang & Reiczigel 2014 (doi:10.1016/j.prevetmed.2013.09.015), which adds to the
    counts as Agresti and Coull do and carries the uncertainty of all three rates.

    Assumes that the judge is as sensitive and as specific on the judged items as on the labelled
    ones, although their prevalence may differ, and that all items are independent; for clusters
    give the counts in effective numbers (each divided by its design effect).

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
        negatives are labelled, or where sensitivity and specificity do not exceed 1 together.

    Raises:
        ValueError: If a count is out of range.

    When not to use it: where the labels are a random part of the judged items (``rectify`` with
    design ``random`` needs no such assumption and is narrower), or where the judge finds the one
    population harder than the other.
    """
    for part, whole in ((k, n), (tp, n_pos), (tn, n_neg)):
        if not 0 <= part <= whole:
            raise ValueError(f"rogan_gladen: expected 0 <= part <= whole, got {part} of {whole}")
    reason = _reason(n, tp=tp, n_pos=n_pos, tn=tn, n_neg=n_neg)
    if reason:
        return nothing(level, n_items=round(n), note=reason)
    apparent, sensitivity, specificity = k / n, tp / n_pos, tn / n_neg
    value = (apparent + specificity - 1) / (sensitivity + specificity - 1)
    value = min(1.0, max(0.0, value))
    low, high = _lang_reiczigel(k, n, tp=tp, n_pos=n_pos, tn=tn, n_neg=n_neg, level=level)
    return Estimate(
        value=value,
        low=min(value, low),
        high=max(value, high),
        level=level,
        method="lang-reiczigel",
        n_items=round(n),
        n_clusters=round(n),
    )


def _reason(n: float, *, tp: float, n_pos: float, tn: float, n_neg: float) -> str:
    if not n > 0:
        return "no judged rows beside the labelled ones"
    if not n_pos > 0 or not n_neg > 0:
        missing = "positive" if not n_pos > 0 else "negative"
        return f"no label is {missing}: sensitivity or specificity can't be told"
    if tp / n_pos + tn / n_neg <= 1:
        return "by these labels the judge is no better than chance"
    if (tp + 1) / (n_pos + 2) + (tn + 1) / (n_neg + 2) <= 1:
        return "too few labels to tell the judge from chance"
    return ""


def _lang_reiczigel(
    k: float, n: float, *, tp: float, n_pos: float, tn: float, n_neg: float, level: float
) -> tuple[float, float]:
    z = NormalDist().inv_cdf(0.5 + level / 2)
    apparent = (k + z * z / 2) / (n + z * z)
    sensitivity, specificity = (tp + 1) / (n_pos + 2), (tn + 1) / (n_neg + 2)
    youden = sensitivity + specificity - 1
    p = (apparent + specificity - 1) / youden
    hits = sensitivity * (1 - sensitivity) / (n_pos + 2)
    passes = specificity * (1 - specificity) / (n_neg + 2)
    shift = 2 * z * z * (p * hits - (1 - p) * passes)
    of_rate = apparent * (1 - apparent) / (n + z * z)
    half = z * sqrt(of_rate + p * p * hits + (1 - p) ** 2 * passes) / youden
    return min(1.0, max(0.0, p + shift - half)), min(1.0, max(0.0, p + shift + half))


def corrected_prevalence(
    judged: Array, labels: Array, clusters: Sample, *, level: float = CONFIDENCE_LEVEL
) -> Estimate:
    """``rogan_gladen`` of the rows without label, with what the labelled rows say of the judge.

    Args:
        judged: Shape (n,), 0 or 1.
        labels: Shape (n,), 0 or 1, NaN where there is none.
        clusters: The clusters of the rows. With them each count is divided by its design effect;
            that sensitivity and specificity may share clusters is not taken into account.
        level: Confidence level.

    Returns:
        The estimate; without a value where judged values or labels are others than 0 and 1.
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
