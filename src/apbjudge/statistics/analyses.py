"""The benchmark's own analyses of a judge: other ways to be right, and favourites.

Tables 8 and 9 of the Agent Planning Benchmark (arXiv:2606.04874, appendices D.2 and D.3), with the
intervals that they lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .coded import Settings
from .differences import Contrast, PairedTest, paired_test, part_difference
from .estimates import Array, Estimate, Ids
from .proportions import bounded, share
from .ratings import LEVELS, Ratings
from .sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The judge on plans that humans found correct.

    Attributes:
        agreement: Share of them that the judge found correct too.
        error: MAE of the grade.
    """

    agreement: Estimate
    error: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """Whether a judge accepts correct plans that differ from the reference (Table 8).

    Attributes:
        different: Plans whose tool chain is not the reference's.
        standard: Plans with the reference's tool chain.
        agreement: Agreement on the different ones less that on the standard ones.
        error: The same difference of the MAE.
        n_unknown: Plans that humans found correct for which nobody knows.
    """

    different: Group
    standard: Group
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
    settings: Settings | None = None,
) -> Diversity:
    """Agreement on correct plans, those that differ from the reference apart from the others.

    Args:
        judge: The judge; unscored items do not count.
        human: The humans on the same n items.
        matches: Shape (n,): 1 where the prediction calls the reference's tools in its order, 0
            where it does not, -1 where that is not known.
        sample: How the items were drawn.
        levels: Grades behind the indices.
        settings: How intervals are made.

    When not to use it: for what the judge does with wrong plans, of which it says nothing. A
    judge that accepts everything agrees on both.
    """
    sample, settings = sample or Sample(), settings or Settings()
    right = (human.correct == 1) & (judge.correct >= 0)
    graded = right & (judge.grade >= 0) & (human.grade >= 0)
    values = np.asarray(levels)
    errors = np.abs(values[judge.grade] - values[human.grade])
    agrees: Array = (judge.correct == 1).astype(float)
    parts = [right & (matches == 0), right & (matches == 1)]

    def group(part: Ids) -> Group:
        rows = part & graded
        return Group(
            agreement=share(
                agrees[part] == 1,
                np.ones(part.sum(), bool),
                sample.take(part),
                level=settings.level,
            ),
            error=bounded(errors[rows], sample.take(rows), level=settings.level),
        )

    return Diversity(
        different=group(parts[0]),
        standard=group(parts[1]),
        agreement=part_difference(agrees, parts[0], parts[1], sample, level=settings.level),
        error=part_difference(
            errors, parts[0] & graded, parts[1] & graded, sample, level=settings.level
        ),
        n_unknown=int(np.count_nonzero(right & (matches < 0))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Favour:
    """The judge against humans on one tested model's plans.

    Attributes:
        tested_model: Whose plans.
        judge_rate: CR by the judge.
        human_rate: CR by the humans, on the same items.
        rate: Judge less human.
        judge_grade: Mean grade by the judge.
        human_grade: By the humans.
        grade: Judge less human.
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
    """Whether a judge favours some tested models, itself first of all (Table 9).

    Attributes:
        models: One entry per tested model.
        own: The tested model that is the judge itself; None where there is none.
        rate: The judge's bias of the CR on its own plans less that on all others.
        grade: The same of the grade.
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
    settings: Settings | None = None,
) -> SelfEvaluation:
    """The judge's CR and grade less the humans', per tested model and own against others.

    A bias on its own plans is no self-preference where the judge is as lenient with everybody:
    what tells is the difference from the others, and its interval.

    Args:
        judge: The judge; unscored items do not count.
        human: The humans on the same n items.
        tested: Shape (n,): index of each item's tested model.
        names: The tested models.
        sample: How the items were drawn. Tested models usually answer the same cases, which then
            are its clusters.
        own: Name of the tested model that is the judge itself, if it is among them.
        levels: Grades behind the indices.
        settings: How intervals are made.

    When not to use it: to explain a bias. Own plans may be easier or harder to judge than those
    of others.
    """
    sample, settings = sample or Sample(), settings or Settings()
    both = (judge.correct >= 0) & (human.correct >= 0)
    graded = (judge.grade >= 0) & (human.grade >= 0) & (judge.correct >= 0)
    values = np.asarray(levels)
    rate: Array = judge.correct.astype(float) - human.correct
    grade = values[judge.grade] - values[human.grade]

    def favour(i: int) -> Favour:
        at, on = both & (tested == i), graded & (tested == i)
        here, there = sample.take(at), sample.take(on)
        every = np.ones(int(at.sum()), dtype=bool)
        return Favour(
            tested_model=names[i],
            judge_rate=share(judge.correct[at] == 1, every, here, level=settings.level),
            human_rate=share(human.correct[at] == 1, every, here, level=settings.level),
            rate=paired_test(rate[at], here, level=settings.level),
            judge_grade=bounded(values[judge.grade[on]], there, level=settings.level),
            human_grade=bounded(values[human.grade[on]], there, level=settings.level),
            grade=paired_test(grade[on], there, level=settings.level),
        )

    def against_others(differences: Array, rows: Ids) -> Contrast | None:
        if own is None or own not in names:
            return None
        mine = tested == list(names).index(own)
        return part_difference(
            differences, rows & mine, rows & ~mine, sample, bounds=(-1.0, 1.0), level=settings.level
        )

    favours = [favour(i) for i in range(len(names))]
    return SelfEvaluation(
        models=tuple(row for row in favours if row.rate.estimate.n_items),
        own=own if own in names else None,
        rate=against_others(rate, both),
        grade=against_others(grade, graded),
    )
