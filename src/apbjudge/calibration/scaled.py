"""Measures that fit the scale of another tool's judgements, and preferences between systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..errors import OptionError
from ..records.columns import Scores, Vector
from ..records.foreign import ForeignScale
from ..statistics.confusion import Confusion, nominal
from ..statistics.differences import PairedTest, paired_test
from ..statistics.estimates import Array, Estimate, transformed
from ..statistics.kinds import (
    AC1,
    AGREEMENT,
    F1,
    GRADE_AC2,
    GRADE_ALPHA,
    GRADE_BIAS,
    GRADE_KAPPA,
    GRADE_MAE,
    HUMAN_CR,
    HUMAN_GRADE,
    HUMAN_SCORE,
    JUDGE_CR,
    JUDGE_GRADE,
    JUDGE_SCORE,
    KAPPA,
    PRECISION,
    RECALL,
    SCORE_AGREEMENT,
    SCORE_BIAS,
    SCORE_MAE,
)
from ..statistics.measures import Calibration, Policy
from ..statistics.measures import calibrate as calibrate_ratings
from ..statistics.metric import Metric, Metrics, by_name
from ..statistics.proportions import bounded, share, share_of
from ..statistics.raters import (
    AltTest,
    BetweenRaters,
    RaterPair,
    alternative_annotator_test,
    between_raters,
    nominal_alpha,
)
from ..statistics.ratings import Ratings
from ..statistics.sample import IntervalSettings, Sample
from ..statistics.scores import mean_scores, score_coefficients, spearman
from .judged_run import Foreign, ratings

_OF_SCORE = {
    kind.name: kind.name.replace("grade", "score")
    for kind in (
        GRADE_MAE,
        GRADE_BIAS,
        JUDGE_GRADE,
        HUMAN_GRADE,
        GRADE_KAPPA,
        GRADE_AC2,
        GRADE_ALPHA,
    )
}
_OF_CLASS = {
    JUDGE_CR.name: "judge rate",
    HUMAN_CR.name: "human rate",
    **{kind.name: kind.name for kind in (PRECISION, RECALL, F1, KAPPA)},
}
_NOT_OF_VERDICT = ("grade", "Err-Type", "judge grade", "human grade")


def in_units(metric: Metric, scale: ForeignScale) -> Metric:
    """A measure of scores that are fractions of the range, in the scale's own units."""
    width = scale.high - scale.low
    if metric.kind in {JUDGE_SCORE, HUMAN_SCORE}:
        return transformed(metric, lambda value: scale.low + width * value)
    if metric.kind in {SCORE_MAE, SCORE_BIAS}:
        return transformed(metric, lambda value: width * value)
    return metric


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """A judge of another tool against labels of the same n items.

    Attributes:
        foreign: Columns and scale of the judgements.
        levels: Fractions of the range that count as levels.
        policy: Treatment of unscored items.
        settings: Settings of the intervals.
    """

    foreign: Foreign
    levels: tuple[float, ...]
    policy: Policy
    settings: IntervalSettings

    def __post_init__(self) -> None:
        scale = self.foreign.scale
        if self.policy == "bounds" and scale.kind in {"numeric", "classes"}:
            raise OptionError(
                "--unscored: expected exclude or wrong with classes and numeric scores, got bounds"
            )

    def calibration(self, judge: Scores, human: Scores, sample: Sample) -> Calibration:
        """The measures of verdicts, scores and classes, if there are any."""
        foreign, scale, settings = self.foreign, self.foreign.scale, self.settings
        of_judge, of_human = ratings(judge, self.levels), ratings(human, self.levels)
        result = calibrate_ratings(
            of_judge,
            of_human,
            sample,
            unscored=self.policy,
            levels=self.levels,
            settings=settings,
        )
        measures: dict[str, Estimate] = {}
        tables = dict[str, Confusion]()
        if foreign.has_verdict:
            measures |= {n: of for n, of in result.measures.items() if not _is_of_others(n)}
            if "is_correct" in result.tables:
                tables["verdict"] = result.tables["is_correct"]
        if scale.role == "score":
            measures |= self._scores(judge, human, sample, result)
            if scale.kind == "ordinal" and "grade" in result.tables:
                table, names = result.tables["grade"], tuple(map(self._level_name, self.levels))
                first = (*names, *table.first[len(names) :])
                tables["score"] = replace(table, first=first, second=names)
        if scale.role != "class":
            return replace(result, measures=measures, codes={}, tables=tables)
        result = replace(result, measures=measures, tables=tables)
        return self._with_classes(result, judge, human, sample)

    def _level_name(self, level: float) -> str:
        """The name of a level; a median of raters may be between two levels with names."""
        scale, at = self.foreign.scale, level * len(self.foreign.scale.levels[1:])
        low, high = (scale.level_names[int(end(at))] for end in (np.floor, np.ceil))
        if not scale.names:
            return f"{scale.low + level * (scale.high - scale.low):g}"
        return low if low == high else f"{low} to {high}"

    def _scores(self, judge: Scores, human: Scores, sample: Sample, result: Calibration) -> Metrics:
        scale, settings = self.foreign.scale, self.settings
        grades = judge.grade
        if self.policy == "wrong":  # as wrong as possible
            unscored = (judge.correct < 0) & ~np.isnan(human.grade)
            grades = np.where(unscored, (human.grade < 0.5).astype(float), grades)
        measures = mean_scores(grades, human.grade, sample, level=settings.level)
        if scale.kind == "numeric":
            measures |= score_coefficients(judge.grade, human.grade, sample, settings)
        else:
            measures |= {
                name: result.measures[of].renamed(name)
                for of, name in _OF_SCORE.items()
                if name not in measures or self.policy == "bounds"
            }
            both = np.flatnonzero(~(np.isnan(judge.grade) | np.isnan(human.grade)))
            if len(both):
                a, b = judge.grade[both], human.grade[both]
                measures |= by_name([spearman(a, b, sample.take(both), settings)])
            if self.policy != "exclude":
                del measures[SCORE_AGREEMENT.name]
        return {name: in_units(of, scale) for name, of in measures.items()}

    def _with_classes(
        self, result: Calibration, judge: Scores, human: Scores, sample: Sample
    ) -> Calibration:
        names = self.foreign.scale.level_names
        of_judge, of_human = (of.category.astype(int) - 1 for of in (judge, human))
        of = nominal(
            of_judge, of_human, names, sample, unscored=self.policy, settings=self.settings
        )
        codes: dict[str, Metrics] = {}
        for at, name in enumerate(names):
            if not np.any((of_judge == at) | (of_human == at)):
                continue
            single = calibrate_ratings(
                _yes_or_no(of_judge, at),
                _yes_or_no(of_human, at),
                sample,
                unscored=self.policy,
                settings=self.settings,
            )
            codes[name] = by_name(
                single.measures[old].renamed(new) for old, new in _OF_CLASS.items()
            )
        tables = {} if of.table is None else {"class": of.table}
        verdicts = result.measures
        classes = by_name(
            metric.renamed(f"class {name}") if name in verdicts else metric
            for name, metric in of.measures.items()
        )
        return replace(
            result,
            n_items=int(np.count_nonzero(of_human >= 0)),
            n_scored=int(np.count_nonzero((of_human >= 0) & (of_judge >= 0))),
            measures=verdicts | classes,
            codes=codes,
            tables=result.tables | tables,
        )

    def between(self, raters: Mapping[str, Scores], sample: Sample) -> BetweenRaters:
        """Agreement among raters on the same scale."""
        scale = self.foreign.scale
        if scale.role == "class":
            return self._between_classes(list(raters.values()), sample)
        result = between_raters(
            [ratings(of, self.levels) for of in raters.values()],
            sample,
            levels=self.levels,
            settings=self.settings,
        )
        return replace(
            result,
            together=self._named(result.together),
            pairs=tuple(
                replace(pair, measures=self._named(pair.measures)) for pair in result.pairs
            ),
        )

    def _named(self, measures: Metrics) -> Metrics:
        """The measures that fit the scale, under their names."""
        scale, named = self.foreign.scale, Metrics()
        for name, of in measures.items():
            if name in _OF_SCORE and scale.role == "score":
                named[_OF_SCORE[name]] = in_units(of.renamed(_OF_SCORE[name]), scale)
            elif self.foreign.has_verdict and not _is_of_others(name):
                named[name] = of
        return named

    def _between_classes(self, raters: list[Scores], sample: Sample) -> BetweenRaters:
        names = self.foreign.scale.level_names
        codes = np.stack([of.category.astype(np.int64) - 1 for of in raters], axis=1)
        pairs: list[RaterPair] = []
        for i, j in combinations(range(len(raters)), 2):
            rows = np.flatnonzero((codes[:, i] >= 0) & (codes[:, j] >= 0))
            if len(rows):
                of = nominal(
                    codes[rows, i],
                    codes[rows, j],
                    names,
                    sample.take(rows),
                    settings=self.settings,
                ).measures
                measures = {kind.name: of[kind.name] for kind in (AGREEMENT, KAPPA, AC1)}
                pairs.append(RaterPair(first=i, second=j, n_items=len(rows), measures=measures))
        return BetweenRaters(
            n_items=int(np.count_nonzero((codes >= 0).sum(axis=1) > 1)),
            together={"alpha": nominal_alpha(codes, len(names), sample, self.settings)},
            pairs=tuple(pairs),
        )

    def annotator_test(
        self, judge: Scores, raters: Mapping[str, Scores], sample: Sample, *, epsilon: float
    ) -> AltTest:
        """The alternative annotator test, by equal answers; for scores alone, by distance."""
        scale = self.foreign.scale
        role = "verdict" if self.foreign.has_verdict else scale.role

        def answers(of: Scores) -> Array:
            if role == "score":
                return of.grade
            codes = of.correct if role == "verdict" else of.category.astype(int) - 1
            return np.where(codes < 0, np.nan, codes.astype(float))

        return alternative_annotator_test(
            answers(judge),
            np.stack([answers(of) for of in raters.values()], axis=1),
            score="distance" if role == "score" else "same",
            epsilon=epsilon,
            clusters=sample.clusters,
            level=self.settings.level,
        )


def _is_of_others(name: str) -> bool:
    return name.startswith(_NOT_OF_VERDICT)


def _yes_or_no(codes: Vector, at: int) -> Ratings:
    """Ratings that are correct if the class is ``at``, and without answer if there is no class."""
    n = len(codes)
    return Ratings(
        correct=np.where(codes < 0, -1, codes == at).astype(np.int8),
        grade=np.full(n, -1, dtype=np.int16),
        flags=np.zeros(n, dtype=np.uint8),
        known=np.zeros(n, dtype=np.uint8),
    )


# Preferences --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemWins:
    """The share of comparisons that a system wins; a tie counts half.

    Attributes:
        system: The system.
        judge: Share by the judge, over the rows that the judge decided.
        human: Share by the humans, over the rows that they decided.
        difference: Judge less humans, over the rows that both decided.
    """

    system: str
    judge: Estimate
    human: Estimate
    difference: PairedTest


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """Position bias and win rates of a judge of pairs.

    Attributes:
        position: ``judge``, ``human``: share of their preferences, without ties, for the answer
            that was shown first; ``same in both orders``: share of the pairs, shown to the judge
            in both orders, for which it prefers the same answer. Empty if no order is known.
        wins: One entry per system; empty if rows name none.
    """

    position: dict[str, Estimate]
    wins: tuple[SystemWins, ...]


def preferences(
    judge: Vector,
    human: Vector,
    sample: Sample,
    *,
    items: Vector,
    swapped: Vector,
    systems: Vector,
    names: Sequence[str],
    level: float,
) -> Preferences:
    """Position bias and win rates.

    Args:
        judge: Shape (n,): 0 prefers the first, 1 the second, 2 is a tie, -1 no answer.
        human: Shape (n,), likewise.
        sample: Sampling design of the rows.
        items: Shape (n,), key of item and pair: rows with equal keys are one pair in two orders.
        swapped: Shape (n,): 1 if the second was shown first, 0 if not, -1 if unknown.
        systems: Shape (n, 2), indices of the first and the second system; -1 if not named.
        names: The systems.
        level: Confidence level.
    """
    position: dict[str, Estimate] = {}
    if np.any(swapped >= 0):
        for who, choices in (("judge", judge), ("human", human)):
            decided = (choices >= 0) & (choices < 2) & (swapped >= 0)
            position[who] = share(
                decided & ((choices == 1) == (swapped == 1)), decided, sample, level=level
            )
        _, of_item = np.unique(items, return_inverse=True)
        has_order = (judge >= 0) & (swapped >= 0)
        rows = [np.flatnonzero(has_order & (swapped == order)) for order in (0, 1)]
        _, at, on = np.intersect1d(of_item[rows[0]], of_item[rows[1]], return_indices=True)
        if len(at):
            first_rows, second_rows = rows[0][at], rows[1][on]
            position["same in both orders"] = share_of(
                judge[first_rows] == judge[second_rows], sample.take(first_rows), level=level
            )
    wins: list[SystemWins] = []
    for i, name in enumerate(names):
        is_first, is_second = (systems == i).T

        def points(choices: Vector, is_first: Vector = is_first) -> Array:
            won = (is_first & (choices == 0)) | (~is_first & (choices == 1))
            return np.where(choices == 2, 0.5, won)

        of_judge, of_human = points(judge), points(human)
        rows_of = {
            who: np.flatnonzero((is_first | is_second) & (choices >= 0))
            for who, choices in (("judge", judge), ("human", human))
        }
        both = np.intersect1d(rows_of["judge"], rows_of["human"])
        wins.append(
            SystemWins(
                system=name,
                judge=bounded(
                    of_judge[rows_of["judge"]], sample.take(rows_of["judge"]), level=level
                ),
                human=bounded(
                    of_human[rows_of["human"]], sample.take(rows_of["human"]), level=level
                ),
                difference=paired_test((of_judge - of_human)[both], sample.take(both), level=level),
            )
        )
    return Preferences(position=position, wins=tuple(wins))
