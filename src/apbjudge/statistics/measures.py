"""A judge against humans: the paper's measures, agreement beyond chance, and intervals.

Definitions: Agent Planning Benchmark, arXiv:2606.04874, appendix D. *Positive* means that a plan
is correct. Rates and their increasing functions have Wilson's interval over their denominator;
means of grades have the same with an effective number of rows; coefficients have Jeffreys'
interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from .agreement import (
    cohen_kappa,
    coincidences_of_table,
    gwet_ac,
    krippendorff_alpha,
    phi,
    quadratic_weights,
)
from .bootstrap import Measure
from .coded import Change, CodedItems
from .confusion import (
    FN,
    FP,
    N_CELLS,
    TN,
    TP,
    U0,
    U1,
    Confusion,
    code_cells,
    confusions,
    correct_cells,
    error_cells,
    grade_cells,
    square,
)
from .estimates import Array, Estimate, nothing
from .kinds import (
    AC1,
    AGREEMENT,
    ERR_TYPE,
    ERR_TYPE_ALL,
    F1,
    GRADE_AC2,
    GRADE_ALPHA,
    GRADE_BIAS,
    GRADE_KAPPA,
    GRADE_MAE,
    HUMAN_CR,
    HUMAN_GRADE,
    JUDGE_CR,
    JUDGE_GRADE,
    KAPPA,
    PABAK,
    PHI,
    PRECISION,
    RECALL,
    SPECIFICITY,
)
from .metric import Metric, MetricKind, Metrics, by_name
from .ratings import LEVELS, Filling, Ratings, filled
from .sample import BY_FORMULA, IntervalSettings, Sample

E = TypeVar("E", bound=Estimate)
Policy = Literal["exclude", "wrong", "bounds"]
"""Treatment of unscored items; see ``calibrate``."""
PAPER = (AGREEMENT, PRECISION, RECALL, F1, GRADE_MAE, ERR_TYPE)
"""The measures of APB Table 7, in its order."""
_NONE_COMPARED = "no item with a verdict and a human label"
_NONE_GRADED = "no item that both graded"
_BEFOREHAND = 2.0
"""Prior items of coefficients: Jeffreys' half an item in each cell of a 2x2 table."""
_MOST_LEVELS_WITH_PRIOR = 25
"""With more levels, as with grades from a slider, most of the k by k cells are empty and thousands
of such tables take minutes and gigabytes; the jackknife is used instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Agreement of a judge with humans on the same items.

    Attributes:
        n_items: Items with a human label of any kind.
        policy: Treatment of unscored items.
        n_scored: Those of them that have a verdict.
        level: Confidence level of the intervals.
        measures: Estimates by name.
        codes: Estimates per error code, for codes that both rated.
        tables: Confusion matrices: ``is_correct``, ``grade`` and each error code.
    """

    n_items: int
    policy: Policy
    n_scored: int
    level: float
    measures: Metrics = field(default_factory=Metrics)
    codes: dict[str, Metrics] = field(default_factory=dict[str, Metrics])
    tables: dict[str, Confusion] = field(default_factory=dict[str, Confusion])


@dataclass(frozen=True, slots=True)
class _Rate:
    """A rate over cells, or an increasing function of one.

    Attributes:
        kind: Kind of the metric.
        above: Cells of the numerator.
        below: Cells of the denominator.
        missed: Unscored cells that join the denominator when they count as wrong.
        empty: Reason for a missing value if the denominator is empty.
        change: Increasing function that turns the rate into the measure.
        hit: Unscored cells that join the numerator too, for rates of the humans alone.
    """

    kind: MetricKind
    above: tuple[int, ...]
    below: tuple[int, ...]
    missed: tuple[int, ...] = ()
    empty: str = _NONE_COMPARED
    change: Change | None = None
    hit: tuple[int, ...] = ()


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


def _pabak(agreement: float) -> float:
    return 2 * agreement - 1


_SCORED = (TN, FN, FP, TP)
_AGREEMENT = _Rate(AGREEMENT, (TN, TP), _SCORED, (U0, U1))
_OF_PAPER = (
    _AGREEMENT,
    _Rate(PRECISION, (TP,), (FP, TP), empty="the judge said yes to no item"),
    _Rate(RECALL, (TP,), (FN, TP), (U1,), "the humans said yes to no item"),
    _Rate(F1, (TP,), (FP, FN, TP), (U1,), "neither said yes to any item", _f1),
)
_JUDGE = _Rate(JUDGE_CR, (FP, TP), _SCORED)
_HUMAN = _Rate(HUMAN_CR, (FN, TP), _SCORED, (U0, U1), hit=(U1,))
_PABAK = replace(_AGREEMENT, kind=PABAK, change=_pabak)
_SPECIFICITY = _Rate(SPECIFICITY, (TN,), (TN, FP), (U0,), "the humans said no to no item")
_OF_CORRECT = (_SPECIFICITY, _JUDGE, _HUMAN)
_CODE_RATE = replace(_JUDGE, kind=JUDGE_CR.renamed("judge rate"))
_OF_CODE = (
    _CODE_RATE,
    replace(_HUMAN, kind=HUMAN_CR.renamed("human rate")),
    *_OF_PAPER,
    _PABAK,
)
_COEFFICIENTS: Mapping[MetricKind, Callable[[Array], Array]] = {
    KAPPA: cohen_kappa,
    PHI: phi,
    AC1: gwet_ac,
}


def calibrate(
    judge: Ratings,
    human: Ratings,
    sample: Sample | None = None,
    *,
    unscored: Policy = "exclude",
    levels: tuple[float, ...] = LEVELS,
    settings: IntervalSettings = BY_FORMULA,
) -> Calibration:
    """All measures of one judge against human labels of the same n items.

    The measures: agreement, precision, recall, F1, specificity, CR of judge and humans, PABAK,
    kappa, phi and AC1 of ``is_correct``; MAE, signed bias, quadratic kappa, AC2 and ordinal alpha
    of the grade; Err-Type (share of the flags that agree) over the items that humans call incorrect
    and over all, since the paper does not say which of the two it used.

    Args:
        judge: The judge on n items; ``correct`` -1 is unscored.
        human: The humans; items without any label do not count.
        sample: Sampling design of the items; None: each by itself.
        unscored: Treatment of items without verdict. ``exclude``: not counted. ``wrong``: an answer
            that agrees with nobody: agreement falls, a correct plan counts as missed, precision is
            unchanged, the grade is off by as much as possible, no flag agrees. ``bounds``:
            intervals reach from the case that the judge is wrong on all of them to the case that it
            is right on all (after Manski 1989).
        levels: Grades behind the indices in ``grade``.
        settings: Settings of the intervals.

    Returns:
        The calibration. A measure without value has the reason in its ``note``.

    When not to use it: for hand-picked items. Intervals describe the population from which the
    labelled items were sampled.
    """
    if unscored == "bounds":
        comparison = _Comparison(judge, human, sample or Sample(), "exclude", levels, settings)
        return _within_bounds(comparison)
    return _Comparison(judge, human, sample or Sample(), unscored, levels, settings).calibration()


def paper_measures(
    judge: Ratings,
    human: Ratings,
    sample: Sample | None = None,
    *,
    unscored: Literal["exclude", "wrong"] = "exclude",
    levels: tuple[float, ...] = LEVELS,
    settings: IntervalSettings = BY_FORMULA,
) -> Metrics:
    """The six measures of APB Table 7 alone; arguments and values are those of ``calibrate``."""
    return _Comparison(judge, human, sample or Sample(), unscored, levels, settings).paper()


def grade_prior(levels: Sequence[float]) -> Array:
    """Jeffreys' two items over the cells of two raters' grades, shape (k * k,).

    The first item is spread as if each rater gave the best grade, that of correct plans, half the
    time, so that the 2x2 table of correctness has its part of Jeffreys' prior. The second is spread
    over pairs of close grades, its density falling by a factor of e per fifth of the range: if it
    were even, intervals of a rater who is never off by more than a step would include errors of the
    whole range (docs/coverage.md).
    """
    values, k = np.asarray(levels), len(levels)
    grade = np.append(np.full(k - 1, 0.5 / (k - 1)), 0.5)
    near = np.exp(-5 * np.abs(values[:, None] - values) / (values[-1] - values[0]))
    return _BEFOREHAND / 2 * (np.outer(grade, grade) + near / near.sum()).ravel()


def _marks(cells: Iterable[int]) -> Array:
    marks = np.zeros(N_CELLS)
    marks[list(cells)] = 1
    return marks


def _explained(estimate: Estimate, note: str) -> Estimate:
    return estimate if estimate.value is not None else replace(estimate, note=note)


@dataclass(frozen=True)
class _Comparison:
    """A judge against labels of the same items, and its measures."""

    judge: Ratings
    human: Ratings
    sample: Sample
    unscored: Literal["exclude", "wrong"]
    levels: tuple[float, ...]
    settings: IntervalSettings

    @cached_property
    def correct(self) -> CodedItems:
        return CodedItems(correct_cells(self.judge, self.human), N_CELLS, self.sample)

    @cached_property
    def grades(self) -> CodedItems:
        k = len(self.levels)
        return CodedItems(grade_cells(self.judge, self.human, k), k * (k + 1), self.sample)

    @cached_property
    def errors(self) -> CodedItems:
        cells = error_cells(self.judge, self.human, count_unscored=self.unscored == "wrong")
        return CodedItems(cells, 2 * (len(self.human.codes) + 1) ** 2, self.sample)

    @cached_property
    def codes(self) -> dict[str, CodedItems]:
        return {
            code: CodedItems(code_cells(self.judge, self.human, i), N_CELLS, self.sample)
            for i, code in enumerate(self.human.codes)
        }

    def paper(self) -> Metrics:
        grade_error, error_type = self._grade_error(), self._error_type(ERR_TYPE)
        return self.rates(self.correct, _OF_PAPER) | by_name([grade_error, error_type])

    def calibration(self) -> Calibration:
        measures = {
            **self.paper(),
            **self.rates(self.correct, _OF_CORRECT),
            **self.mean_grades(),
            **by_name([self._error_type(ERR_TYPE_ALL)]),
            **self._coefficients(self.correct),
            **self.rates(self.correct, [_PABAK]),
            **self._grade_coefficients(),
        }
        of_codes = {
            code: self.rates(cells, _OF_CODE) | self._coefficients(cells)
            for code, cells in self.codes.items()
            if cells.counts.any()
        }
        return replace(self.bare(), policy=self.unscored, measures=measures, codes=of_codes)

    def bare(self) -> Calibration:
        """Numbers of items and tables alone."""
        human = self.human
        items = (human.correct >= 0) | (human.grade >= 0) | (human.known > 0)
        return Calibration(
            n_items=int(np.count_nonzero(items)),
            policy="exclude",
            n_scored=int(np.count_nonzero(items & (self.judge.correct >= 0))),
            level=self.settings.level,
            tables=confusions(self.correct, self.grades, self.codes, self.levels),
        )

    def rates(self, cells: CodedItems, rates: Iterable[_Rate]) -> Metrics:
        metrics: list[Metric] = []
        for rate in rates:
            missed, hit = (rate.missed, rate.hit) if self.unscored == "wrong" else ((), ())
            above, below = _marks((*rate.above, *hit)), _marks((*rate.below, *missed))
            estimate = cells.ratio(above, below, self.settings, change=rate.change)
            metrics.append(rate.kind.of(_explained(estimate, rate.empty)))
        return by_name(metrics)

    def _grade_error(self) -> Metric:
        """MAE of the grade; an unscored item that counts is off by as much as possible."""
        values, k = np.asarray(self.levels), len(self.levels)
        distances = np.abs(values[:, None] - values[None, :]).ravel()
        farthest = np.maximum(values - values[0], values[-1] - values)
        counted = np.repeat([1.0, float(self.unscored == "wrong")], [k * k, k])
        above, bounds = np.concatenate([distances, farthest]) * counted, (0.0, self._width)
        estimate = self.grades.ratio(above, counted, self.settings, bounds=bounds)
        return GRADE_MAE.of(_explained(estimate, _NONE_GRADED))

    @property
    def _width(self) -> float:
        return float(self.levels[-1] - self.levels[0])

    def mean_grades(self) -> Metrics:
        """Signed bias and both mean grades, over the items that both graded."""
        values, k = np.asarray(self.levels), len(self.levels)
        scored, ends = np.repeat([1.0, 0.0], [k * k, k]), (float(values[0]), float(values[-1]))
        judged = np.repeat(np.append(values, 0.0), k)
        labelled = np.tile(values, k + 1) * scored
        metrics: list[Metric] = []
        for kind, above, bounds in (
            (JUDGE_GRADE, judged, ends),
            (HUMAN_GRADE, labelled, ends),
            (GRADE_BIAS, judged - labelled, (-self._width, self._width)),
        ):
            estimate = self.grades.ratio(above, scored, self.settings, bounds=bounds)
            metrics.append(kind.of(_explained(estimate, _NONE_GRADED)))
        return by_name(metrics)

    def _error_type(self, kind: MetricKind) -> Metric:
        """Share of flags that agree, with the flags of an item as one unit."""
        n_codes = len(self.human.codes)
        incorrect, n, same = (
            part.ravel().astype(float) for part in np.indices((2, n_codes + 1, n_codes + 1))
        )
        counted = incorrect if kind is ERR_TYPE else np.ones(len(n))
        estimate = self.errors.ratio(same * counted, n * counted, self.settings)
        return kind.of(_explained(estimate, "no flag that both rated"))

    def _coefficients(self, cells: CodedItems) -> Metrics:
        """Agreement beyond chance; an unscored item is a third answer if it counts as wrong."""
        settings = self.settings
        third = self.unscored == "wrong" and bool(cells.counts[[U0, U1]].any())
        cells = cells if third else cells.only(_marks(_SCORED))
        if not cells.counts.any():
            none = nothing(settings.level, note=_NONE_COMPARED)
            return by_name(kind.of(none) for kind in _COEFFICIENTS)
        prior = np.ones(N_CELLS) if third else _marks(_SCORED)
        prior = prior * _BEFOREHAND / prior.sum()
        metrics: Metrics = {}
        for kind, coefficient in _COEFFICIENTS.items():
            measure = square(coefficient, 2, unscored=third)

            def unscored_last(counts: Array, measure: Measure = measure) -> Array:
                return measure(np.roll(counts, -2, axis=-1) if third else counts[..., TN:])

            if third and kind is PHI:
                estimate = nothing(settings.level, note="not defined for three answers")
            else:
                estimate = cells.measure(unscored_last, settings, prior=prior)
            metrics[kind.name] = kind.of(estimate)
        kappa, of_phi = metrics[KAPPA.name], metrics[PHI.name]
        if third or settings.method == "jeffreys" or of_phi.low is not None or kappa.low is None:
            return metrics
        # If a class has a single item, kappa without that item is 0 and phi is undefined; an
        # interval from such a change covers the true value in about 3 of 4 cases.
        kappa = replace(
            kappa, low=None, high=None, method="none", n_resamples=0, seed=None, note=of_phi.note
        )
        return {**metrics, KAPPA.name: kappa}

    def _grade_coefficients(self) -> Metrics:
        k, settings = len(self.levels), self.settings
        weights = quadratic_weights(np.asarray(self.levels))
        measures: Mapping[MetricKind, Callable[[Array], Array]] = {
            GRADE_KAPPA: lambda tables: cohen_kappa(tables, weights),
            GRADE_AC2: lambda tables: gwet_ac(tables, weights),
            GRADE_ALPHA: lambda tables: krippendorff_alpha(
                coincidences_of_table(tables), metric="ordinal"
            ),
        }
        if self.unscored == "wrong" and bool(self.grades.counts[k * k :].any()):
            note = "an unscored item has no grade: see MAE, or leave unscored items out"
            return by_name(kind.of(nothing(settings.level, note=note)) for kind in measures)
        scored = self.grades.only(np.repeat([1.0, 0.0], [k * k, k]))
        if not scored.counts.any():
            none = nothing(settings.level, note=_NONE_GRADED)
            return by_name(kind.of(none) for kind in measures)
        prior = None
        if k <= _MOST_LEVELS_WITH_PRIOR:
            prior = np.append(grade_prior(self.levels), np.zeros(k))
        return by_name(
            kind.of(scored.measure(square(measure, k, unscored=False), settings, prior=prior))
            for kind, measure in measures.items()
        )


_EXTREMES: Mapping[str, tuple[Filling, Filling]] = {
    "judge CR": ("lowest", "highest"),
    "judge grade": ("lowest", "highest"),
    "grade bias": ("lowest", "highest"),
    "grade MAE": ("best", "worst"),
    "judge rate": ("highest", "lowest"),
}
"""Fillings of unscored items for the least and the greatest value; by default worst and best."""


def _within_bounds(comparison: _Comparison) -> Calibration:
    """Calibrates with unscored items filled in the worst and in the best way.

    After Manski 1989 (doi:10.2307/145818): nothing is assumed about missing verdicts.
    Chance-corrected coefficients use the same two fillings, which are their extremes if the judge
    is better than chance.

    Returns:
        The calibration whose intervals reach from the low end of the least value to the high end
        of the greatest; without unscored items, the plain one.
    """
    bare = comparison.bare()
    if bare.n_scored == bare.n_items:
        return replace(replace(comparison, unscored="wrong").calibration(), policy="bounds")

    def with_filling(how: Filling) -> _Comparison:
        judge = filled(comparison.judge, comparison.human, comparison.levels, how)
        return replace(comparison, judge=judge)

    ends = {how: with_filling(how).calibration() for how in ("worst", "best")}
    for how in ("lowest", "highest"):
        end = with_filling(how)
        ends[how] = replace(
            bare,
            measures={**end.rates(end.correct, [_JUDGE]), **end.mean_grades()},
            codes={code: end.rates(of, [_CODE_RATE]) for code, of in end.codes.items()},
        )

    def between(name: str, of: Callable[[Calibration], Metrics]) -> Metric:
        low, high = _EXTREMES.get(name, ("worst", "best"))
        return joined_bounds(of(ends[low])[name], of(ends[high])[name])

    worst = ends["worst"]
    return replace(
        bare,
        policy="bounds",
        measures={name: between(name, lambda c: c.measures) for name in worst.measures},
        codes={
            code: {name: between(name, lambda c, code=code: c.codes[code]) for name in of}
            for code, of in worst.codes.items()
        },
    )


def joined_bounds(low: E, high: E) -> E:
    """Joins two estimates: the interval goes from the low end of one to the high end of the other.

    Args:
        low: The figure if all unscored items were wrong.
        high: The figure if all unscored items were right.
    """
    if low.value is None or high.value is None:
        without = low if low.value is None else high
        return replace(without, value=None, low=None, high=None, method="none")
    if low.value > high.value:
        low, high = high, low
    ends = (round(end.value or 0.0, 4) + 0.0 for end in (low, high))
    note = f"{' to '.join(f'{end:.4f}' for end in ends)}, as unscored items would have come out"
    without = [end for end in (low, high) if end.low is None]
    return replace(
        low,
        value=None,
        low=None if without else low.low,
        high=None if without else high.high,
        method="bounds",
        note=f"{note}; no interval: {without[0].note}" if without else note,
    )
