"""Two judges, models or rubrics on the same items: what differs, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .cells import FN, FP, TP, correct_cells
from .coded import Coded, Settings
from .comparison import McNemar, PairedTest, adjust, detectable_difference, mcnemar, paired_test
from .intervals import Array, Estimate, Ids
from .ratings import CODES, LEVELS, Ratings
from .resampling import jackknife_variance
from .sample import Sample
from .shares import bounded, cluster_note, share
from .student import two_sided

Family = Literal["primary", "exploratory"]

_BITS: Array = np.array([float(i.bit_count()) for i in range(256)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure of two runs on the same items.

    Attributes:
        name: The figure.
        first: Of the first run, on the items that both have a value for.
        second: Of the second run.
        difference: First less second.
        p_value: Two-sided, of no difference; None where there is no test.
        adjusted: The same with regard to there being several: by Holm in the primary family, by
            Benjamini and Hochberg in the exploratory one.
        family: Whether the figure was named beforehand.
        detectable: Smallest true difference that these items find with a power of 0.8.
    """

    name: str
    first: Estimate
    second: Estimate
    difference: Estimate
    p_value: float | None
    adjusted: float | None = None
    family: Family = "exploratory"
    detectable: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """How two runs differ in ``is_correct``.

    Attributes:
        both: Items that both found correct.
        first_only: Correct by the first alone.
        second_only: Correct by the second alone.
        neither: Incorrect by both.
        test: McNemar's test of the two in the middle; None where items share clusters or have
            weights, which it knows nothing of.
    """

    both: int
    first_only: int
    second_only: int
    neither: int
    test: McNemar | None


def flips(first: Ratings, second: Ratings, sample: Sample) -> Flips:
    """Counts on which items two runs differ.

    Args:
        first: n items.
        second: The same items.
        sample: How the items were drawn.
    """
    told = (first.correct >= 0) & (second.correct >= 0)
    counts = np.bincount(first.correct[told] * 2 + second.correct[told], minlength=4).tolist()
    test = mcnemar(counts[2], counts[1]) if sample.is_plain else None
    return Flips(
        both=counts[3], first_only=counts[2], second_only=counts[1], neither=counts[0], test=test
    )


def compare_verdicts(
    first: Ratings,
    second: Ratings,
    sample: Sample | None = None,
    *,
    levels: tuple[float, ...] = LEVELS,
    settings: Settings | None = None,
) -> list[Difference]:
    """Differences of CR, Grade and the error rates; no human label is needed.

    Args:
        first: One run on n items.
        second: The other on the same items. Of each figure only the items count on which both
            runs have a value.
        sample: How the items were drawn.
        levels: Grades behind the indices.
        settings: How intervals are made.
    """
    drawn, made = sample or Sample(), settings or Settings()
    values = np.asarray(levels)
    told = (first.correct >= 0) & (second.correct >= 0)
    graded = told & (first.grade >= 0) & (second.grade >= 0)
    found = [
        _means("CR", (first.correct, second.correct), told, drawn, made),
        _means("Grade", (values[first.grade], values[second.grade]), graded, drawn, made),
    ]
    for i, code in enumerate(CODES):
        known = told & (((first.known & second.known) >> i) & 1 == 1)
        flags = (first.flags >> i) & 1, (second.flags >> i) & 1
        found.append(_means(code, flags, known, drawn, made))
    return [difference for difference in found if difference.difference.n_items]


def _means(
    name: str, pair: tuple[Ids, Ids], rows: Ids, sample: Sample, made: Settings
) -> Difference:
    here = sample.take(rows)
    a, b = (values[rows].astype(float) for values in pair)
    is_rate = name != "Grade" and not name.endswith("MAE")

    def figure(values: Array) -> Estimate:
        if is_rate:
            return share(values == 1, np.ones(len(values), dtype=bool), here, level=made.level)
        return bounded(values, here, level=made.level)

    return _tested(name, figure(a), figure(b), paired_test(a - b, here, level=made.level))


def _tested(name: str, first: Estimate, second: Estimate, test: PairedTest) -> Difference:
    return Difference(
        name=name,
        first=first,
        second=second,
        difference=test.estimate,
        p_value=test.p_value,
        detectable=test.detectable,
    )


_N_JOINT = 18
_RATIOS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "precision": ((TP,), (FP, TP)),
    "recall": ((TP,), (FN, TP)),
    "F1": ((TP, TP), (FP, FN, TP, TP)),
}
"""Numerator and denominator in cells; a cell named twice counts twice."""


def compare_reliability(
    first: Ratings,
    second: Ratings,
    human: Ratings,
    sample: Sample | None = None,
    *,
    levels: tuple[float, ...] = LEVELS,
    settings: Settings | None = None,
) -> list[Difference]:
    """Differences of agreement, precision, recall, F1, MAE and Err-Type against one set of labels.

    Means are compared item by item; precision, recall and F1, which are no means, by leaving out
    one unit at a time, after half an item more has been counted in each of the four cells in
    which the judges differ. Err-Type is the mean over items of the share of flags that agree, where
    ``calibrate`` has the share of all flags: they differ where some flags are unknown.

    Args:
        first: One judge on n items.
        second: Another on the same items.
        human: The humans on the same items.
        sample: How the items were drawn.
        levels: Grades behind the indices.
        settings: How intervals are made.
    """
    drawn, made = sample or Sample(), settings or Settings()
    told = (first.correct >= 0) & (second.correct >= 0)
    said = told & (human.correct >= 0)
    graded = told & (human.grade >= 0) & (first.grade >= 0) & (second.grade >= 0)
    values = np.asarray(levels)
    agree = first.correct == human.correct, second.correct == human.correct
    truth = values[human.grade]
    errors = np.abs(values[first.grade] - truth), np.abs(values[second.grade] - truth)
    known = human.known & first.known & second.known
    flagged = said & (human.correct == 0) & (known > 0)
    same = [_share_of_flags(r.flags, human.flags, known) for r in (first, second)]
    found = [
        _means("agreement", agree, said, drawn, made),
        *ratio_differences(
            [ratings.take(said) for ratings in (first, second, human)], drawn.take(said), made
        ),
        _means("grade MAE", errors, graded, drawn, made),
        _bounded_means("Err-Type (human-incorrect)", same, flagged, drawn, made),
    ]
    return [difference for difference in found if difference.difference.n_items]


def _share_of_flags(ours: Ids, theirs: Ids, known: Ids) -> Array:
    same = known & ~(ours ^ theirs)
    return _BITS[same] / np.maximum(_BITS[known], 1.0)


def _bounded_means(
    name: str, values: Sequence[Array], rows: Ids, sample: Sample, made: Settings
) -> Difference:
    here = sample.take(rows)
    a, b = (part[rows] for part in values)
    first, second = (bounded(part, here, level=made.level) for part in (a, b))
    return _tested(name, first, second, paired_test(a - b, here, level=made.level))


def ratio_differences(
    ratings: Sequence[Ratings], sample: Sample, made: Settings
) -> list[Difference]:
    """Differences of precision, recall and F1 alone; see ``compare_reliability``.

    Args:
        ratings: Two judges and the humans on n items, for all of which each said something of
            ``is_correct``.
        sample: How the items were drawn.
        made: How intervals are made.
    """
    cells = [correct_cells(judge, ratings[2]) for judge in ratings[:2]]
    joint = Coded(cells[0] // 2 * 6 + cells[1], _N_JOINT, sample)
    more = _with_halves_more(joint)
    plain = replace(made, method="jackknife")
    found: list[Difference] = []
    for name, (above, below) in _RATIOS.items():
        parts = [_ratio(above, below, of) for of in (0, 1)]
        estimates = [joint.measure(part, plain, bounds=(0.0, 1.0)) for part in parts]
        difference = _less(parts[0], parts[1])
        seen = joint.measure(difference, plain, bounds=None)
        around = more.measure(difference, plain, bounds=None)
        found.append(
            _without_test(name, estimates, seen)
            if around.low is None or seen.value is None or seen.n_clusters < 2
            else _by_student(
                name, estimates, (seen, around), jackknife_variance(more.strata, difference)
            )
        )
    return found


_DIFFERING = (1 * 6 + 2 * 2, 1 * 6 + 2 * 2 + 1, 2 * 6 + 1 * 2, 2 * 6 + 1 * 2 + 1)
"""Joint cells in which one judge says no and the other yes, while the humans say no or yes."""


def _with_halves_more(joint: Coded) -> Coded:
    """Half an item more in each cell in which the judges differ, each a unit of its own.

    One item in each direction, as Bonett and Price 2012 add for rates. Where few items decide a
    difference, the variance seen is that of chance: without them, a difference of precision was
    held in 59 of 100 samples (docs/coverage.md).
    """
    sample, n = joint.sample, len(joint.codes)
    clusters = np.arange(n) if sample.clusters is None else sample.clusters
    further = clusters.max(initial=-1) + 1 + np.arange(4)
    weights = np.ones(n) if sample.weights is None else sample.weights
    return Coded(
        np.append(joint.codes, _DIFFERING),
        _N_JOINT,
        Sample(
            clusters=np.append(clusters, further),
            weights=np.append(weights, np.full(4, 0.5)),
            strata=None if sample.strata is None else np.append(sample.strata, np.zeros(4, int)),
        ),
    )


def _without_test(name: str, sides: Sequence[Estimate], difference: Estimate) -> Difference:
    return Difference(
        name=name,
        first=sides[0],
        second=sides[1],
        difference=difference,
        p_value=None,
        detectable=None,
    )


def _by_student(
    name: str,
    sides: Sequence[Estimate],
    difference: tuple[Estimate, Estimate],
    moments: tuple[float, float],
) -> Difference:
    """The difference as seen, with the interval and the test of that with the halves."""
    seen, around = difference
    error, df = moments[0] ** 0.5, moments[1]
    value, level = seen.value or 0.0, seen.level
    estimate = replace(
        seen,
        low=min(value, max(-1.0, around.low or 0.0)),
        high=max(value, min(1.0, around.high or 0.0)),
        method=around.method,
        note=cluster_note(seen.n_items, seen.n_clusters),
    )
    return replace(
        _without_test(name, sides, estimate),
        p_value=two_sided((around.value or 0.0) / error, df),
        detectable=detectable_difference(error, level=level),
    )


def _ratio(
    above: tuple[int, ...], below: tuple[int, ...], of: Literal[0, 1]
) -> Callable[[Array], Array]:
    """Of one of the two judges, as a function of the joint cells (first, second, human)."""
    judged, human = np.divmod(np.arange(_N_JOINT), 6)[0], np.arange(_N_JOINT) % 2
    if of == 1:
        judged = np.arange(_N_JOINT) % 6 // 2
    cell = judged * 2 + human
    up, down = (np.bincount(cells, minlength=6).astype(float)[cell] for cells in (above, below))

    def ratio(tables: Array) -> Array:
        total = tables @ down
        return tables @ up / np.where(total > 0, total, np.nan)

    return ratio


def _less(
    first: Callable[[Array], Array], second: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    return lambda tables: first(tables) - second(tables)


def with_families(
    differences: Sequence[Difference], primary: Sequence[str] = ()
) -> list[Difference]:
    """Adjusts p-values: Holm over what was named beforehand, Benjamini-Hochberg over the rest.

    Args:
        differences: All that were tested.
        primary: Names of the figures that were to be compared before anyone saw them.

    Raises:
        ValueError: If a name is none of theirs.
    """
    names = [difference.name for difference in differences]
    if unknown := [name for name in primary if name not in names]:
        raise ValueError(f"primary: expected some of {', '.join(names)}, got {unknown[0]!r}")
    families: tuple[tuple[Family, Literal["holm", "bh"]], ...] = (
        ("primary", "holm"),
        ("exploratory", "bh"),
    )
    adjusted: dict[str, Difference] = {}
    for family, method in families:
        members = [d for d in differences if (d.name in primary) == (family == "primary")]
        p_values = adjust([d.p_value for d in members], method=method)
        for member, p in zip(members, p_values, strict=True):
            adjusted[member.name] = replace(member, adjusted=p, family=family)
    return [adjusted[name] for name in names]
