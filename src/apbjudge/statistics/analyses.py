"""The benchmark's own analyses of a judge: plans unlike the reference, and favoured models.

Tables 8 and 9 of the Agent Planning Benchmark (arXiv:2606.04874, appendices D.2 and D.3), with
intervals, which the paper does not give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .differences import Contrast, PairedTest, paired_test, part_difference
from .estimates import Array, Estimate, Ids
from .proportions import bounded, share_of
from .ratings import LEVELS, Ratings
from .sample import BY_FORMULA, IntervalSettings, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGroup:
    """The judge on some plans that humans consider correct.

    Attributes:
        agreement: Share that the judge too considers correct.
        error: Mean absolute error of its grade, 0 to 1.
    """

    agreement: Estimate
    error: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """Bias of a judge against correct plans that differ from the reference (Table 8).

    Attributes:
        different: Plans whose tool chain is not the reference's.
        standard: Plans with the reference's tool chain.
        agreement: Agreement on the different ones less that on the standard ones.
        error: The same difference, of the MAE.
        n_unknown: Human-correct plans whose tool chain could not be compared.
    """

    different: PlanGroup
    standard: PlanGroup
    agreement: Contrast
    error: Contrast
    n_unknown: int


def diversity(
    judge: Ratings,
    human: Ratings,
    matches: Ids,
    sample: Sample | None = None,
    *,
    levels: tuple[float, ...] = LEVELS,
    settings: IntervalSettings = BY_FORMULA,
) -> Diversity:
    """Agreement on correct plans, separately for those that differ from the reference.

    Args:
        judge: The judge; unscored items do not count.
        human: The humans on the same n items.
        matches: Shape (n,): 1 where the prediction calls the reference's tools in its order, 0
            where it does not, -1 where this is unknown.
        sample: Sampling design of the items.
        levels: Grades behind the indices.
        settings: Settings of the intervals.

    When not to use it: to learn how the judge treats wrong plans. A judge that accepts everything
    agrees on both groups.
    """
    sample, level = settings.of(sample), settings.level
    right = (human.correct == 1) & (judge.correct >= 0)
    graded = right & (judge.grade >= 0) & (human.grade >= 0)
    values = np.asarray(levels)
    errors = np.abs(values[judge.grade] - values[human.grade])
    agrees = judge.correct == 1
    different, standard = right & (matches == 0), right & (matches == 1)

    def group(part: Ids) -> PlanGroup:
        rows = part & graded
        return PlanGroup(
            agreement=share_of(agrees[part], sample.take(part), level=level),
            error=bounded(errors[rows], sample.take(rows), level=level),
        )

    def contrast(of: Array, rows: Ids) -> Contrast:
        return part_difference(of, rows & different, rows & standard, sample, level=level)

    return Diversity(
        different=group(different),
        standard=group(standard),
        agreement=contrast(agrees.astype(float), right),
        error=contrast(errors, graded),
        n_unknown=int(np.count_nonzero(right & (matches < 0))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Favour:
    """A tested model's CR and grade by the judge and by the humans.

    Attributes:
        tested_model: The tested model.
        judge_rate: CR by the judge, 0 to 1.
        human_rate: CR by the humans.
        rate: Judge less humans, over the rows that both decided.
        judge_grade: Mean grade by the judge, 0 to 1.
        human_grade: Mean grade by the humans.
        grade: Judge less humans, over the rows that both graded.
    """

    tested_model: str
    judge_rate: Estimate
    human_rate: Estimate
    rate: PairedTest
    judge_grade: Estimate
    human_grade: Estimate
    grade: PairedTest


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfEvaluation:
    """Bias of a judge for some tested models, in particular for itself (Table 9).

    Attributes:
        models: One entry per tested model.
        own: The tested model that is the judge itself; None where there is none.
        rate: The judge's bias of the CR on its own plans less that on all others.
        grade: The same for the grade.
    """

    models: tuple[Favour, ...]
    own: str | None
    rate: Contrast | None
    grade: Contrast | None


def self_evaluation(
    judge: Ratings,
    human: Ratings,
    tested: Ids,
    names: Sequence[str],
    sample: Sample | None = None,
    *,
    own: str | None = None,
    levels: tuple[float, ...] = LEVELS,
    settings: IntervalSettings = BY_FORMULA,
) -> SelfEvaluation:
    """CR and grade by the judge less those by humans, per tested model and own against others.

    A bias on its own plans is no self-preference if the judge is equally lenient with all models:
    the evidence is the difference from the other models, with its interval.

    Args:
        judge: The judge; unscored items do not count.
        human: The humans on the same n items.
        tested: Shape (n,): index of each item's tested model.
        names: The tested models.
        sample: Sampling design of the items; tested models that answer the same cases share
            clusters.
        own: Name of the tested model that is the judge itself, if it is among them.
        levels: Grades behind the indices.
        settings: Settings of the intervals.

    When not to use it: to explain a bias. Own plans may be easier or harder to judge than those
    of others.
    """
    sample, level = settings.of(sample), settings.level
    both = (judge.correct >= 0) & (human.correct >= 0)
    graded = (judge.grade >= 0) & (human.grade >= 0) & (judge.correct >= 0)
    values = np.asarray(levels)
    rate: Array = judge.correct.astype(float) - human.correct
    grade = values[judge.grade] - values[human.grade]

    def favour(i: int) -> Favour:
        rated, with_grade = both & (tested == i), graded & (tested == i)
        here, there = sample.take(rated), sample.take(with_grade)
        return Favour(
            tested_model=names[i],
            judge_rate=share_of(judge.correct[rated] == 1, here, level=level),
            human_rate=share_of(human.correct[rated] == 1, here, level=level),
            rate=paired_test(rate[rated], here, level=level),
            judge_grade=bounded(values[judge.grade[with_grade]], there, level=level),
            human_grade=bounded(values[human.grade[with_grade]], there, level=level),
            grade=paired_test(grade[with_grade], there, level=level),
        )

    def against_others(differences: Array, rows: Ids) -> Contrast | None:
        if own is None or own not in names:
            return None
        mine = tested == list(names).index(own)
        parts = rows & mine, rows & ~mine
        return part_difference(differences, *parts, sample, bounds=(-1.0, 1.0), level=level)

    favours = [favour(i) for i in range(len(names))]
    return SelfEvaluation(
        models=tuple(row for row in favours if row.rate.estimate.n_items),
        own=own if own in names else None,
        rate=against_others(rate, both),
        grade=against_others(grade, graded),
    )
