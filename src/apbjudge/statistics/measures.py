"""A judge against humans: the paper's measures, what chance would give, and intervals.

Definitions: Agent Planning Benchmark, arXiv:2606.04874, appendix D. *Positive* means that a plan
is correct. Rates and their increasing functions have Wilson's interval over their denominator,
means of grades the same with an effective number of rows, coefficients Jeffreys' interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from .agreement import (
    cohen_kappa,
    coincidences_of_table,
    gwet_ac,
    krippendorff_alpha,
    phi,
    quadratic_weights,
)
from .coded import Change, Coded, Settings
from .confusion import (
    FN,
    FP,
    N_CELLS,
    N_COMPARED,
    N_FLAGS,
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
)
from .estimates import Array, Estimate, nothing
from .ratings import CODES, LEVELS, Filling, Ratings, filled
from .sample import Sample

Policy = Literal["exclude", "wrong", "bounds"]
POLICIES: tuple[Policy, ...] = ("exclude", "wrong", "bounds")
"""What unscored items count as; see ``measures.calibrate``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far a judge agrees with humans on the same items.

    Attributes:
        n_items: Items with a human label of any kind.
        policy: How unscored items were counted.
        scored: Share of these items that have a verdict.
        measures: Estimates by name.
        codes: The same per error code, for codes on which both said something.
        tables: Confusion matrices: ``is_correct``, ``grade`` and each error code.
    """

    n_items: int
    policy: Policy
    scored: Estimate
    measures: dict[str, Estimate] = field(default_factory=dict[str, Estimate])
    codes: dict[str, dict[str, Estimate]] = field(default_factory=dict[str, dict[str, Estimate]])
    tables: dict[str, Confusion] = field(default_factory=dict[str, Confusion])


@dataclass(frozen=True, slots=True)
class _Rate:
    """A rate over cells.

    Attributes:
        above: Cells of the numerator.
        below: Cells of the denominator.
        missed: Unscored cells that join the denominator when they count as wrong.
        change: Increasing function that makes the measure of the rate.
        hit: Unscored cells that join the numerator too: what is said of humans alone.
    """

    above: tuple[int, ...]
    below: tuple[int, ...]
    missed: tuple[int, ...] = ()
    change: Change | None = None
    hit: tuple[int, ...] = ()


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


def _pabak(agreement: float) -> float:
    return 2 * agreement - 1


_SCORED = (TN, FN, FP, TP)
_RATES: Mapping[str, _Rate] = {
    "agreement": _Rate((TN, TP), _SCORED, (U0, U1)),
    "precision": _Rate((TP,), (FP, TP)),
    "recall": _Rate((TP,), (FN, TP), (U1,)),
    "F1": _Rate((TP,), (FP, FN, TP), (U1,), _f1),
    "specificity": _Rate((TN,), (TN, FP), (U0,)),
    "judge CR": _Rate((FP, TP), _SCORED),
    "human CR": _Rate((FN, TP), _SCORED, (U0, U1), hit=(U1,)),
    "PABAK": _Rate((TN, TP), _SCORED, (U0, U1), _pabak),
}
_OF_PAPER = ("agreement", "precision", "recall", "F1")
_OF_CORRECT = ("specificity", "judge CR", "human CR", "PABAK")
_OF_CODE = ("judge CR", "human CR", "agreement", "precision", "recall", "F1", "PABAK")
_NAME_OF_CODE = {"judge CR": "judge rate", "human CR": "human rate"}
_COEFFICIENTS: Mapping[str, Callable[[Array], Array]] = {
    "kappa": cohen_kappa,
    "phi": phi,
    "AC1": gwet_ac,
}
PAPER = ("agreement", "precision", "recall", "F1", "grade MAE", "Err-Type (human-incorrect)")
"""The measures of APB Table 7, in its order."""


def calibrate(
    judge: Ratings,
    human: Ratings,
    sample: Sample | None = None,
    *,
    unscored: Policy = "exclude",
    levels: tuple[float, ...] = LEVELS,
    settings: Settings | None = None,
) -> Calibration:
    """Everything that is said of one judge against human labels of the same n items.

    The measures: agreement, precision, recall, F1, specificity, CR of judge and humans, PABAK,
    kappa, phi and AC1 of ``is_correct``; MAE, signed bias, quadratic kappa, AC2 and ordinal alpha
    of the grade; Err-Type (share of the flags that agree) over the items that humans found
    incorrect and over all, since the paper does not say which of the two it took.

    Args:
        judge: The judge on n items; ``correct`` -1 is unscored.
        human: The humans; items on which they said nothing do not count.
        sample: How the items were drawn; None: each by itself.
        unscored: What an item without verdict counts as. ``exclude``: not at all. ``wrong``: an
            answer that agrees with nobody: agreement falls, a correct plan counts as missed,
            precision stays as it is, the grade is off by as much as it can be, no flag agrees.
            ``bounds``: intervals reach from the case that the judge would have been wrong on all
            of them to the case that it would have been right on all (after Manski 1989).
        levels: Grades behind the indices in ``grade``.
        settings: How intervals are made.

    Returns:
        The calibration. A measure without value says why in its ``note``.

    When not to use it: the intervals speak of the population that the labelled items were drawn
    from. Hand-picked items were drawn from none.
    """
    against = _Against(human, sample or Sample(), levels, settings or Settings())
    if unscored == "bounds":
        return _within_bounds(judge, against)
    return against.whole(judge, unscored)


@dataclass(frozen=True, slots=True)
class _Against:
    """Calibrates judges against the same labels."""

    human: Ratings
    sample: Sample
    levels: tuple[float, ...]
    settings: Settings

    def whole(self, judge: Ratings, unscored: Literal["exclude", "wrong"]) -> Calibration:
        cells, codes, settings = self._cells(judge, unscored), self._codes(judge), self.settings
        measures = {
            **cells.paper(settings),
            **_rates(cells.correct, _OF_CORRECT, unscored, settings),
            **_grade_means(cells, settings),
            "Err-Type (all)": cells.error_type(settings, incorrect_only=False),
            **_coefficients(cells.correct, unscored, settings),
            **_grade_coefficients(cells, settings),
        }
        of_codes = {
            code: _of_code(of, unscored, settings) for code, of in codes.items() if of.counts.any()
        }
        return replace(
            self._counted(judge, cells, codes), policy=unscored, measures=measures, codes=of_codes
        )

    def bare(self, judge: Ratings) -> Calibration:
        return self._counted(judge, self._cells(judge, "exclude"), self._codes(judge))

    def alone(self, judge: Ratings) -> Calibration:
        cells, codes, settings = self._cells(judge, "exclude"), self._codes(judge), self.settings
        rates = {code: _rate(of, "judge CR", "exclude", settings) for code, of in codes.items()}
        return replace(
            self._counted(judge, cells, codes),
            measures={
                "judge CR": _rate(cells.correct, "judge CR", "exclude", settings),
                **_grade_means(cells, settings),
            },
            codes={code: {"judge rate": rate} for code, rate in rates.items()},
        )

    def _cells(self, judge: Ratings, unscored: Policy) -> _Cells:
        return _Cells.of(judge, self.human, self.sample, unscored, self.levels)

    def _codes(self, judge: Ratings) -> dict[str, Coded]:
        of_codes = (code_cells(judge, self.human, i) for i in range(len(CODES)))
        return {
            c: Coded(cells, N_CELLS, self.sample) for c, cells in zip(CODES, of_codes, strict=True)
        }

    def _counted(self, judge: Ratings, cells: _Cells, codes: Mapping[str, Coded]) -> Calibration:
        human = self.human
        items = (human.correct >= 0) | (human.grade >= 0) | (human.known > 0)
        scored = Coded(np.where(items, judge.correct >= 0, 2), 2, self.sample)
        return Calibration(
            n_items=int(np.count_nonzero(items)),
            policy="exclude",
            scored=scored.ratio(np.array([0.0, 1.0]), np.ones(2), self.settings),
            tables=confusions(cells.correct, cells.grade, codes, self.levels),
        )


def paper_measures(
    judge: Ratings,
    human: Ratings,
    sample: Sample | None = None,
    *,
    unscored: Literal["exclude", "wrong"] = "exclude",
    levels: tuple[float, ...] = LEVELS,
    settings: Settings | None = None,
) -> dict[str, Estimate]:
    """The six measures of APB Table 7 alone; arguments and values are those of ``calibrate``."""
    cells = _Cells.of(judge, human, sample or Sample(), unscored, levels)
    return cells.paper(settings or Settings())


@dataclass(frozen=True, slots=True)
class _Cells:
    """The items in the cells of each confusion matrix."""

    correct: Coded
    grade: Coded
    errors: Coded
    levels: tuple[float, ...]
    unscored: Policy

    @classmethod
    def of(
        cls,
        judge: Ratings,
        human: Ratings,
        sample: Sample,
        unscored: Policy,
        levels: tuple[float, ...],
    ) -> _Cells:
        k, wrong = len(levels), unscored == "wrong"
        errors = error_cells(judge, human, count_unscored=wrong)
        return cls(
            Coded(correct_cells(judge, human), N_CELLS, sample),
            Coded(grade_cells(judge, human, k), k * (k + 1), sample),
            Coded(errors, 2 * N_COMPARED, sample),
            levels,
            unscored,
        )

    def paper(self, settings: Settings) -> dict[str, Estimate]:
        return {
            **_rates(self.correct, _OF_PAPER, self.unscored, settings),
            "grade MAE": self.error(settings),
            "Err-Type (human-incorrect)": self.error_type(settings, incorrect_only=True),
        }

    def error(self, settings: Settings) -> Estimate:
        """MAE of the grade; an unscored item that counts is off by as much as it can be."""
        values, k = np.asarray(self.levels), len(self.levels)
        ends = values[0], values[-1]
        distances = np.abs(values[:, None] - values[None, :]).ravel()
        farthest = np.maximum(values - ends[0], ends[1] - values)
        counted = np.repeat([1.0, float(self.unscored == "wrong")], [k * k, k])
        above = np.concatenate([distances, farthest]) * counted
        width = float(ends[1] - ends[0])
        estimate = self.grade.ratio(above, counted, settings, bounds=(0.0, width))
        return _explained(estimate, _NONE_GRADED)

    def error_type(self, settings: Settings, *, incorrect_only: bool) -> Estimate:
        """Share of flags that agree, an item's flags taken together."""
        incorrect, n, same = (
            part.ravel().astype(float) for part in np.indices((2, N_FLAGS + 1, N_FLAGS + 1))
        )
        counted = incorrect if incorrect_only else np.ones(len(n))
        estimate = self.errors.ratio(same * counted, n * counted, settings)
        return _explained(estimate, "no flag that both said something of")


def _of_code(cells: Coded, unscored: Policy, settings: Settings) -> dict[str, Estimate]:
    estimates = {
        **_rates(cells, _OF_CODE, unscored, settings),
        **_coefficients(cells, unscored, settings),
    }
    return {_NAME_OF_CODE.get(name, name): estimate for name, estimate in estimates.items()}


def _rates(
    cells: Coded, names: tuple[str, ...], unscored: Policy, settings: Settings
) -> dict[str, Estimate]:
    return {name: _rate(cells, name, unscored, settings) for name in names}


def _rate(cells: Coded, name: str, unscored: Policy, settings: Settings) -> Estimate:
    rate = _RATES[name]
    missed, hit = (rate.missed, rate.hit) if unscored == "wrong" else ((), ())
    above, below = _marks((*rate.above, *hit)), _marks((*rate.below, *missed))
    estimate = cells.ratio(above, below, settings, change=rate.change)
    return _explained(estimate, _EMPTY[name])


@lru_cache
def _marks(cells: tuple[int, ...]) -> Array:
    marks = np.zeros(N_CELLS)
    marks[list(cells)] = 1
    marks.flags.writeable = False
    return marks


_BEFOREHAND = 2.0
"""Items that coefficients count beforehand: Jeffreys' half an item in each cell of a 2x2 table."""


def grade_prior(levels: Sequence[float]) -> Array:
    """Jeffreys' two items over the cells of two raters' grades, shape (k * k,).

    One as if each rater gave the best grade, that of correct plans, half the time, so that the 2x2
    table of correct and not has its part of Jeffreys' prior. The other on grades that are close,
    falling by e for a fifth of the range: with it spread evenly, a rater who is never off by more
    than a step would have intervals that reach for errors by the whole range (docs/coverage.md).

    Args:
        levels: Shape (k,), in order.
    """
    values, k = np.asarray(levels), len(levels)
    grade = np.append(np.full(k - 1, 0.5 / (k - 1)), 0.5)
    near = np.exp(-5 * np.abs(values[:, None] - values) / (values[-1] - values[0]))
    return _BEFOREHAND / 2 * (np.outer(grade, grade) + near / near.sum()).ravel()


_NONE_COMPARED = "no item with a verdict and a human label"
_NONE_GRADED = "no item that both graded"
_EMPTY = {
    "agreement": _NONE_COMPARED,
    "PABAK": _NONE_COMPARED,
    "judge CR": _NONE_COMPARED,
    "human CR": _NONE_COMPARED,
    "precision": "the judge said yes to no item",
    "recall": "the humans said yes to no item",
    "F1": "neither said yes to any item",
    "specificity": "the humans said no to no item",
}


def _coefficients(cells: Coded, unscored: Policy, settings: Settings) -> dict[str, Estimate]:
    """Agreement beyond chance; an unscored item is a third answer where it counts as wrong."""
    third = unscored == "wrong" and bool(cells.counts[[U0, U1]].any())
    cells = cells if third else cells.only(_marks(_SCORED))
    if not cells.counts.any():
        return {name: nothing(settings.level, note=_NONE_COMPARED) for name in _COEFFICIENTS}
    prior = np.ones(N_CELLS) if third else _marks(_SCORED)
    prior = prior * _BEFOREHAND / prior.sum()
    estimates: dict[str, Estimate] = {}
    for name, measure in _COEFFICIENTS.items():
        if third and name == "phi":
            estimates[name] = nothing(settings.level, note="not defined for three answers")
        else:
            estimates[name] = cells.measure(_of_cells(measure, third=third), settings, prior=prior)
    kappa, bare = estimates["kappa"], estimates["phi"]
    if third or settings.method == "jeffreys" or bare.low is not None or kappa.low is None:
        return estimates
    # Where one item is all there is of a class, kappa without it is 0 where phi is undefined; an
    # interval from such a change holds the true value in about 3 of 4 cases.
    kappa = replace(kappa, low=None, high=None, method="none", n_resamples=0, seed=None)
    return {**estimates, "kappa": replace(kappa, note=bare.note)}


def _of_cells(measure: Callable[[Array], Array], *, third: bool) -> Callable[[Array], Array]:
    """A coefficient of square tables, as a function of the six cells."""

    def coefficient(cells: Array) -> Array:
        square = cells[..., [TN, FN, FP, TP]].reshape(*cells.shape[:-1], 2, 2)
        if not third:
            return measure(square)
        table = np.zeros((*cells.shape[:-1], 3, 3))
        table[..., :2, :2] = square
        table[..., 2, :2] = cells[..., [U0, U1]]
        return measure(table)

    return coefficient


def _explained(estimate: Estimate, note: str) -> Estimate:
    return estimate if estimate.value is not None else replace(estimate, note=note)


def _grade_means(cells: _Cells, settings: Settings) -> dict[str, Estimate]:
    """Signed bias and both mean grades, over what both graded."""
    values, k = np.asarray(cells.levels), len(cells.levels)
    ends = float(values[0]), float(values[-1])
    scored, nothing_there = np.repeat([1.0, 0.0], [k * k, k]), np.zeros(k)
    signed = np.concatenate([(values[:, None] - values[None, :]).ravel(), nothing_there])
    judged = np.concatenate([np.repeat(values, k), nothing_there])
    labelled = np.concatenate([np.tile(values, k), nothing_there])
    width = ends[1] - ends[0]
    estimates = {
        "grade bias": cells.grade.ratio(signed, scored, settings, bounds=(-width, width)),
        "judge grade": cells.grade.ratio(judged, scored, settings, bounds=ends),
        "human grade": cells.grade.ratio(labelled, scored, settings, bounds=ends),
    }
    return {name: _explained(estimate, _NONE_GRADED) for name, estimate in estimates.items()}


_MOST_LEVELS_WITH_PRIOR = 25
"""Beyond, as with grades of a slider, most of the k by k cells are empty and thousands of tables
of them take minutes and gigabytes; the jackknife stands in."""


def _grade_coefficients(cells: _Cells, settings: Settings) -> dict[str, Estimate]:
    weights = quadratic_weights(np.asarray(cells.levels))
    k = len(cells.levels)

    def square(counts: Array) -> Array:
        return counts[..., : k * k].reshape(*counts.shape[:-1], k, k)

    measures: Mapping[str, Callable[[Array], Array]] = {
        "grade kappa (quadratic)": lambda t: cohen_kappa(square(t), weights),
        "grade AC2 (quadratic)": lambda t: gwet_ac(square(t), weights),
        "grade alpha (ordinal)": lambda t: krippendorff_alpha(
            coincidences_of_table(square(t)), metric="ordinal"
        ),
    }
    if cells.unscored == "wrong" and bool(cells.grade.counts[k * k :].any()):
        note = "an unscored item has no grade: see MAE, or leave unscored items out"
        return {name: nothing(settings.level, note=note) for name in measures}

    scored = cells.grade.only(np.repeat([1.0, 0.0], [k * k, k]))
    if not scored.counts.any():
        return {name: nothing(settings.level, note=_NONE_GRADED) for name in measures}
    few_levels = k <= _MOST_LEVELS_WITH_PRIOR
    prior = np.append(grade_prior(cells.levels), np.zeros(k)) if few_levels else None
    return {
        name: scored.measure(measure, settings, prior=prior) for name, measure in measures.items()
    }


_EXTREMES: Mapping[str, tuple[Filling, Filling]] = {
    "judge CR": ("lowest", "highest"),
    "judge grade": ("lowest", "highest"),
    "grade bias": ("lowest", "highest"),
    "grade MAE": ("best", "worst"),
    "judge rate": ("highest", "lowest"),
}
"""How unscored items are filled for the least and the greatest value; else worst and best."""


def _within_bounds(judge: Ratings, against: _Against) -> Calibration:
    """Calibrates with unscored items filled in the worst and in the best way.

    After Manski 1989 (doi:10.2307/145818): nothing is assumed of what is missing. Coefficients
    beyond chance are taken at the same two fillings, which are their extremes wherever a judge is
    better than chance.

    Returns:
        The calibration whose intervals reach from the low end of the least value to the high end
        of the greatest; without unscored items, the plain one.
    """
    human, levels, bare = against.human, against.levels, against.bare(judge)
    if bare.scored.value in {None, 1.0}:
        return replace(against.whole(judge, "wrong"), policy="bounds")
    ends = {
        "worst": against.whole(filled(judge, human, levels, "worst"), "exclude"),
        "best": against.whole(filled(judge, human, levels, "best"), "exclude"),
        "lowest": against.alone(filled(judge, human, levels, "lowest")),
        "highest": against.alone(filled(judge, human, levels, "highest")),
    }
    worst = ends["worst"]

    def between(name: str, of: Callable[[Calibration], Mapping[str, Estimate]]) -> Estimate:
        low, high = _EXTREMES.get(name, ("worst", "best"))
        return _union(of(ends[low])[name], of(ends[high])[name])

    return replace(
        bare,
        policy="bounds",
        measures={name: between(name, lambda c: c.measures) for name in worst.measures},
        codes={
            code: {name: between(name, lambda c, code=code: c.codes[code]) for name in of}
            for code, of in worst.codes.items()
        },
    )


def _union(low: Estimate, high: Estimate) -> Estimate:
    """From the low end of the one to the high end of the other."""
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
