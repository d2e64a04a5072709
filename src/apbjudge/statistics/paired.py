"""Comparison of two judges, models or rubrics on the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .bootstrap import Measure, difference_of_ratios, ratio_measure, resampled
from .coded import CodedItems
from .confusion import FN, FP, TP, correct_cells
from .differences import Correction, McNemar, adjust, detectable_difference, mcnemar, paired_test
from .estimates import (
    CONFIDENCE_LEVEL,
    Array,
    Estimate,
    Ids,
    cluster_note,
    nothing,
    t_quantile,
    two_sided,
)
from .jackknife import jackknife_variance
from .kinds import AGREEMENT, CR, ERR_TYPE, F1, GRADE, GRADE_MAE, PRECISION, RECALL
from .metric import MetricKind, bad
from .proportions import Bounds, bounded, ratio_of_sums, share_of
from .ratings import LEVELS, Ratings
from .sample import BY_FORMULA, IntervalSettings, Sample, spread

Family = Literal["primary", "exploratory"]
_FAMILIES: tuple[tuple[Family, Correction], ...] = (("primary", "holm"), ("exploratory", "bh"))
_N_JOINT = 18
_RATIOS: Mapping[MetricKind, tuple[tuple[int, ...], tuple[int, ...]]] = {
    PRECISION: ((TP,), (FP, TP)),
    RECALL: ((TP,), (FN, TP)),
    F1: ((TP, TP), (FP, FN, TP, TP)),
}
"""Numerator and denominator in cells; a cell named twice counts twice."""
_DIFFERING = (1 * 6 + 2 * 2, 1 * 6 + 2 * 2 + 1, 2 * 6 + 1 * 2, 2 * 6 + 1 * 2 + 1)
"""Joint cells in which one judge says no and the other yes, with the humans at no or yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Comparison of one figure of two runs on the same items.

    Attributes:
        kind: Kind of the metric.
        first: Value of the first run, on the items for which both have one.
        second: Value of the second run.
        difference: First less second.
        p_value: Two-sided p-value of no difference; None without a test.
        adjusted: P-value adjusted for several tests: by Holm in the primary family, by Benjamini
            and Hochberg in the exploratory one.
        family: ``primary`` if the figure was chosen in advance, else ``exploratory``.
        detectable: Smallest true difference that these items detect with a power of 0.8.
    """

    kind: MetricKind
    first: Estimate
    second: Estimate
    difference: Estimate
    p_value: float | None
    adjusted: float | None = None
    family: Family = "exploratory"
    detectable: float | None

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.kind.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Numbers of items that both runs, only one, or neither call correct.

    Attributes:
        both: Items that both call correct.
        first_only: Items that only the first run calls correct.
        second_only: Items that only the second run calls correct.
        neither: Items that neither calls correct.
        test: McNemar's test; None if items share clusters or have weights, which it ignores.
    """

    both: int
    first_only: int
    second_only: int
    neither: int
    test: McNemar | None


def flips(first: Ratings, second: Ratings, sample: Sample) -> Flips:
    """Counts of agreement and disagreement of two runs on n items."""
    scored = (first.correct >= 0) & (second.correct >= 0)
    cells = first.correct[scored] * 2 + second.correct[scored]
    neither, second_only, first_only, both = np.bincount(cells, minlength=4).tolist()
    return Flips(
        both=both,
        first_only=first_only,
        second_only=second_only,
        neither=neither,
        test=mcnemar(first_only, second_only) if sample.is_plain else None,
    )


def compare_verdicts(
    first: Ratings,
    second: Ratings,
    sample: Sample | None = None,
    *,
    levels: tuple[float, ...] = LEVELS,
    settings: IntervalSettings = BY_FORMULA,
) -> list[Difference]:
    """Differences of CR, Grade and the error rates; no human label is needed.

    Args:
        first: One run on n items.
        second: The other run on the same items. In each figure only the items count for which both
            runs have a value.
        sample: Sampling design of the items.
        levels: Grades behind the indices.
        settings: Settings of the intervals.
    """
    sample, level = settings.of(sample), settings.level
    values = np.asarray(levels)
    scored = (first.correct >= 0) & (second.correct >= 0)
    graded = scored & (first.grade >= 0) & (second.grade >= 0)
    grades = values[first.grade], values[second.grade]
    differences = [
        _rate_difference(CR, (first.correct, second.correct), scored, sample, level),
        _mean_difference(GRADE, grades, graded, sample, level),
    ]
    for i, code in enumerate(first.codes):
        known = scored & (((first.known & second.known) >> i) & 1 == 1)
        flags = (first.flags >> i) & 1, (second.flags >> i) & 1
        differences.append(_rate_difference(bad(code), flags, known, sample, level))
    return [difference for difference in differences if difference.difference.n_items]


def compare_means(
    kind: MetricKind, first: Array, second: Array, sample: Sample, *, level: float
) -> Difference:
    """The difference of two means of values from 0 to 1 over the same units."""
    rows = np.ones(len(first), dtype=bool)
    return _mean_difference(kind, (first, second), rows, sample, level)


def _rate_difference(
    kind: MetricKind, pair: Sequence[Ids], rows: Ids, sample: Sample, level: float
) -> Difference:
    """The difference of two columns of 0 and 1."""
    mean = _mean_difference(kind, pair, rows, sample, level)
    first, second = (share_of(of[rows] == 1, sample.take(rows), level=level) for of in pair)
    return replace(mean, first=first, second=second)


def _mean_difference(
    kind: MetricKind, pair: Sequence[Ids], rows: Ids, sample: Sample, level: float
) -> Difference:
    sample = sample.take(rows)
    a, b = (of[rows].astype(float) for of in pair)
    test = paired_test(a - b, sample, level=level)
    return Difference(
        kind=kind,
        first=bounded(a, sample, level=level),
        second=bounded(b, sample, level=level),
        difference=test.estimate,
        p_value=test.p_value,
        detectable=test.detectable,
    )


def compare_ratios(
    kind: MetricKind,
    first: tuple[Array, Array],
    second: tuple[Array, Array],
    sample: Sample | None = None,
    *,
    bounds: Bounds | None = None,
    level: float = CONFIDENCE_LEVEL,
) -> Difference:
    """The difference of two ratios of totals on the same items, such as searches per call.

    Linearised: a unit's contribution to the difference is its contribution to one ratio less that
    to the other, so that units that are hard for both cancel (Cochran 1977, section 6.3).

    Args:
        kind: Kind of the metric.
        first: Numerators and denominators of one run, shape (n,) each; NaN where an item has no
            value in one of the runs; it then does not count.
        second: Those of the other run on the same items.
        sample: Sampling design of the items.
        bounds: Least and greatest possible ratio of an item; None if it has no upper limit. The
            interval of the difference stays within the differences of two such ratios.
        level: Confidence level.
    """
    columns = np.stack([*first, *second]).astype(float)
    rows: Ids = ~np.isnan(columns.sum(axis=0))
    above, below, other_above, other_below = columns[:, rows]
    sample = (sample or Sample()).take(rows)
    left = ratio_of_sums(above, below, sample, bounds=bounds, level=level)
    right = ratio_of_sums(other_above, other_below, sample, bounds=bounds, level=level)
    n_items, p_value, detectable = int(rows.sum()), None, None
    estimate = nothing(level, n_items=n_items)
    if left.value is not None and right.value is not None:
        value = left.value - right.value
        parts = (above - left.value * below) / below.sum()
        parts -= (other_above - right.value * other_below) / other_below.sum()
        result = spread(parts, sample)
        estimate = replace(
            estimate,
            value=value,
            n_clusters=result.n_clusters,
            note=cluster_note(n_items, result.n_clusters),
        )
        if result.variance > 0 and result.df > 0:
            error = result.variance**0.5
            half = t_quantile(0.5 + level / 2, result.effective_df) * error
            widest = np.inf if bounds is None else bounds[1] - bounds[0]
            low = min(value, max(-widest, value - half))
            high = max(value, min(widest, value + half))
            estimate = replace(estimate, low=low, high=high, method="t-ratio")
            p_value = two_sided(value / error, result.effective_df)
            detectable = detectable_difference(error, level=level)
        else:
            estimate = replace(estimate, note="the items show no spread")
        estimate = resampled(estimate, columns[:, rows].T, sample, difference_of_ratios)
    return Difference(
        kind=kind,
        first=left,
        second=right,
        difference=estimate,
        p_value=p_value,
        detectable=detectable,
    )


def compare_reliability(
    first: Ratings,
    second: Ratings,
    human: Ratings,
    sample: Sample | None = None,
    *,
    levels: tuple[float, ...] = LEVELS,
    settings: IntervalSettings = BY_FORMULA,
) -> list[Difference]:
    """Differences of agreement, precision, recall, F1, MAE and Err-Type against one set of labels.

    Means are compared item by item; precision, recall and F1, which are no means, by the jackknife,
    after adding half an item to each of the four cells in which the judges differ. Err-Type is the
    mean over items of the share of flags that agree, where ``calibrate`` has the share of all
    flags: the two differ if some flags are unknown.

    Args:
        first: One judge on n items.
        second: Another on the same items.
        human: The humans on the same items.
        sample: Sampling design of the items.
        levels: Grades behind the indices.
        settings: Settings of the intervals.
    """
    sample = settings.of(sample)
    level, values = settings.level, np.asarray(levels)
    scored = (first.correct >= 0) & (second.correct >= 0)
    compared = scored & (human.correct >= 0)
    graded = scored & (human.grade >= 0) & (first.grade >= 0) & (second.grade >= 0)
    agree = [of.correct == human.correct for of in (first, second)]
    errors = [np.abs(values[of.grade] - values[human.grade]) for of in (first, second)]
    known = human.known & first.known & second.known
    flagged = compared & (human.correct == 0) & (known > 0)
    same = [
        np.bitwise_count(known & ~(of.flags ^ human.flags))
        / np.maximum(np.bitwise_count(known), 1.0)
        for of in (first, second)
    ]
    ratings = [of.take(compared) for of in (first, second, human)]
    differences = [
        _rate_difference(AGREEMENT, agree, compared, sample, level),
        *ratio_differences(ratings, sample.take(compared), settings),
        _mean_difference(GRADE_MAE, errors, graded, sample, level),
        _mean_difference(ERR_TYPE, same, flagged, sample, level),
    ]
    return [difference for difference in differences if difference.difference.n_items]


def ratio_differences(
    ratings: Sequence[Ratings], sample: Sample, settings: IntervalSettings
) -> list[Difference]:
    """Differences of precision, recall and F1 alone; see ``compare_reliability``.

    The interval and the test use the cells with half an item added, around the observed difference.
    """
    cells = [correct_cells(judge, ratings[2]) for judge in ratings[:2]]
    joint = CodedItems(cells[0] // 2 * 6 + cells[1], _N_JOINT, sample)
    with_halves, adjusting = _with_halves_more(joint), replace(settings, method="jackknife")
    settings = settings if settings.is_bootstrap else adjusting
    differences: list[Difference] = []
    for kind, (above, below) in _RATIOS.items():
        left, right = _joint_ratio(above, below, 0), _joint_ratio(above, below, 1)

        def less(tables: Array, left: Measure = left, right: Measure = right) -> Array:
            return left(tables) - right(tables)

        estimate = joint.measure(less, settings, bounds=None)
        adjusted = with_halves.measure(less, adjusting, bounds=None)
        p_value = detectable = None
        if adjusted.low is not None and estimate.value is not None and estimate.n_clusters > 1:
            variance, df = jackknife_variance(with_halves.strata, less)
            if not settings.is_bootstrap:
                estimate = replace(
                    estimate,
                    low=min(estimate.value, max(-1.0, adjusted.low)),
                    high=max(estimate.value, min(1.0, adjusted.high or 0.0)),
                    method=adjusted.method,
                    note=cluster_note(estimate.n_items, estimate.n_clusters),
                )
            p_value = two_sided((adjusted.value or 0.0) / variance**0.5, df)
            detectable = detectable_difference(variance**0.5, level=estimate.level)
        differences.append(
            Difference(
                kind=kind,
                first=joint.measure(left, settings, bounds=(0.0, 1.0)),
                second=joint.measure(right, settings, bounds=(0.0, 1.0)),
                difference=estimate,
                p_value=p_value,
                detectable=detectable,
            )
        )
    return differences


def _with_halves_more(joint: CodedItems) -> CodedItems:
    """Adds half an item, as a separate unit, to each cell in which the judges differ.

    As in Bonett and Price 2012 for rates: without them, intervals of a difference of precision
    covered it in 59 of 100 samples (docs/coverage.md).
    """
    sample, n = joint.sample, len(joint.codes)
    clusters = np.arange(n) if sample.clusters is None else sample.clusters
    further = clusters.max(initial=-1) + 1 + np.arange(4)
    weights = np.ones(n) if sample.weights is None else sample.weights
    extended = Sample(
        clusters=np.append(clusters, further),
        weights=np.append(weights, np.full(4, 0.5)),
        strata=None if sample.strata is None else np.append(sample.strata, np.zeros(4, int)),
    )
    return CodedItems(np.append(joint.codes, _DIFFERING), _N_JOINT, extended)


def _joint_ratio(above: tuple[int, ...], below: tuple[int, ...], judge: Literal[0, 1]) -> Measure:
    """The ratio of one of the two judges, by the joint cells (first, second, human)."""
    joint = np.arange(_N_JOINT)
    cell = (joint // 6 if judge == 0 else joint % 6 // 2) * 2 + joint % 2
    up, down = (np.bincount(cells, minlength=6).astype(float)[cell] for cells in (above, below))
    return ratio_measure(up, down)


def with_families(
    differences: Sequence[Difference], primary: Sequence[str] = ()
) -> list[Difference]:
    """Adjusts p-values: Holm over the figures chosen in advance, Benjamini-Hochberg over the rest.

    Args:
        differences: All tested differences.
        primary: Names of the figures that were chosen before the data were seen.

    Raises:
        ValueError: If no difference has such a name.
    """
    names = [difference.name for difference in differences]
    if unknown := [name for name in primary if name not in names]:
        raise ValueError(f"primary: expected some of {', '.join(names)}, got {unknown[0]!r}")
    adjusted: dict[str, Difference] = {}
    for family, method in _FAMILIES:
        members = [d for d in differences if (d.name in primary) == (family == "primary")]
        p_values = adjust([d.p_value for d in members], method=method)
        for member, p in zip(members, p_values, strict=True):
            adjusted[member.name] = replace(member, adjusted=p, family=family)
    return [adjusted[name] for name in names]
