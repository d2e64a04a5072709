"""Agreement between humans, and a test whether the judge may replace one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import sqrt
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from .agreement import Distance, coincidences, krippendorff_alpha
from .coded import CodedItems
from .differences import adjust
from .estimates import CONFIDENCE_LEVEL, Array, Estimate, Ids, nothing, t_cdf
from .kinds import (
    AC1,
    AGREEMENT,
    ALPHA,
    ERR_TYPE_ALL,
    F1,
    GRADE_ALPHA,
    GRADE_BIAS,
    GRADE_KAPPA,
    GRADE_MAE,
    KAPPA,
)
from .measures import calibrate
from .metric import Metric, Metrics, by_name
from .proportions import share, share_of
from .ratings import LEVELS, Ratings
from .sample import BY_FORMULA, IntervalSettings, Moments, Sample, ratio_moments

SHOWN = tuple(
    kind.name
    for kind in (AGREEMENT, F1, KAPPA, AC1, GRADE_MAE, GRADE_BIAS, GRADE_KAPPA, ERR_TYPE_ALL)
)
"""Symmetric measures of two raters; the others treat one rater as the truth."""
_ALONE = "no item that two raters rated"

Score = Literal["same", "distance"]
Test = Literal["none", "score", "cluster-score", "t", "cluster-t", "signed-rank"]
Choice = Literal["score", "t", "signed-rank"]
EPSILON = 0.2
FDR = 0.05
FEW_ITEMS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterPair:
    """Symmetric measures of two raters on the items that both rated, and the first rater's bias.

    Attributes:
        first: Index of one of them among the raters.
        second: Index of the other.
        n_items: Items that both rated.
        measures: Estimates by name.
        codes: Kappa on each error code that both stated.
    """

    first: int
    second: int
    n_items: int
    measures: Metrics
    codes: Metrics = field(default_factory=Metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenRaters:
    """Agreement between humans.

    Attributes:
        n_items: Items with two raters or more.
        together: Measures over all raters: share of pairs of raters who agree on ``is_correct``,
            mean distance of two raters' grades, nominal and ordinal alpha.
        pairs: All pairs of raters who share items.
    """

    n_items: int
    together: Metrics
    pairs: tuple[RaterPair, ...]


def between_raters(
    raters: Sequence[Ratings],
    sample: Sample | None = None,
    *,
    levels: tuple[float, ...] = LEVELS,
    settings: IntervalSettings = BY_FORMULA,
) -> BetweenRaters:
    """Measures between humans, as between judge and humans.

    Args:
        raters: At least one; each on the same n items, -1 for missing.
        sample: Sampling design of the items.
        levels: Grades behind the indices.
        settings: Settings of the intervals.

    When not to use it: as the best that a judge could reach where the labels are a majority of
    several raters: two raters differ more from each other than either from the majority.
    """
    sample = settings.of(sample)
    correct = np.stack([rater.correct for rater in raters], axis=1).astype(np.int64)
    grade = np.stack([rater.grade for rater in raters], axis=1).astype(np.int64)
    values = np.asarray(levels)
    answered = [(of.correct >= 0) | (of.grade >= 0) | (of.known > 0) for of in raters]
    pairs: list[RaterPair] = []
    for i, j in combinations(range(len(raters)), 2):
        rows = answered[i] & answered[j]
        if not rows.any():
            continue
        first, second = raters[i].take(rows), raters[j].take(rows)
        # an answer of a human without is_correct is not unscored: the rest of it counts
        both = (first.correct >= 0) & (second.correct >= 0)
        calibration = calibrate(
            replace(first, correct=np.where(both, first.correct, 0)),
            replace(second, correct=np.where(both, second.correct, -1)),
            sample.take(rows),
            levels=levels,
            settings=settings,
        )
        measures = {name: calibration.measures[name] for name in SHOWN}
        n_items = int(np.count_nonzero(rows))
        codes = {code: of["kappa"] for code, of in calibration.codes.items()}
        pairs.append(RaterPair(first=i, second=j, n_items=n_items, measures=measures, codes=codes))

    def mean_over_pairs(codes: Ids, of: Callable[[Ids, Ids], Ids]) -> Estimate:
        """Mean over all pairs of raters of an item; an item with more raters has more pairs."""
        above, below = np.zeros(len(codes)), np.zeros(len(codes))
        for a, b in combinations(codes.T, 2):
            both = (a >= 0) & (b >= 0)
            above += np.where(both, of(a, b), 0.0)
            below += both
        estimate = share(above, below, sample, level=settings.level)
        return estimate if estimate.value is not None else nothing(settings.level, note=_ALONE)

    several = ((correct >= 0).sum(axis=1) > 1) | ((grade >= 0).sum(axis=1) > 1)
    distance = mean_over_pairs(grade, lambda a, b: np.abs(values[a] - values[b]))
    together = (
        AGREEMENT.of(mean_over_pairs(correct, lambda a, b: a == b)),
        GRADE_MAE.of(distance),
        ALPHA.of(_alpha(correct, 2, "nominal", sample, settings)),
        GRADE_ALPHA.of(_alpha(grade, len(levels), "ordinal", sample, settings)),
    )
    n_items = int(np.count_nonzero(several))
    return BetweenRaters(n_items=n_items, together=by_name(together), pairs=tuple(pairs))


def _alpha(
    codes: Ids, k: int, metric: Distance, sample: Sample, settings: IntervalSettings
) -> Estimate:
    """Alpha by item; items with the same ratings, in any order of raters, are of one kind."""
    rated = np.count_nonzero(codes >= 0, axis=1) > 1
    if not rated.any():
        return nothing(settings.level, note=_ALONE)
    patterns, kind = np.unique(np.sort(codes[rated], axis=1), axis=0, return_inverse=True)
    adds = coincidences(patterns, k).reshape(len(patterns), k * k)

    def alpha(counts: Array) -> Array:
        together = (counts @ adds).reshape(*counts.shape[:-1], k, k)
        return krippendorff_alpha(together, metric=metric)

    items = CodedItems(kind.ravel(), len(patterns), sample.take(rated))
    return items.measure(alpha, settings)


def nominal_alpha(codes: Ids, k: int, sample: Sample, settings: IntervalSettings) -> Metric:
    """Krippendorff's alpha of several raters on classes without order.

    Args:
        codes: Shape (n, raters), 0 to ``k`` - 1, -1 for no answer.
        k: Number of classes.
        sample: Sampling design of the items.
        settings: Settings of the interval.
    """
    return ALPHA.of(_alpha(codes, k, "nominal", sample, settings))


def ratings_annotator_test(
    judge: Ratings,
    raters: Sequence[Ratings],
    sample: Sample | None = None,
    *,
    epsilon: float = EPSILON,
    level: float,
) -> AltTest:
    """``alternative_annotator_test`` on ``is_correct``, with the sample's clusters."""
    answers = [np.where(of.correct < 0, np.nan, of.correct * 1.0) for of in (judge, *raters)]
    return alternative_annotator_test(
        answers[0],
        np.stack(answers[1:], axis=1),
        score="same",
        epsilon=epsilon,
        clusters=None if sample is None else sample.clusters,
        level=level,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotator:
    """The judge against one human.

    Attributes:
        index: Column of the human.
        n_items: Items that this human, the judge and at least one other human answered.
        rho_judge: Share of them on which the judge is at least as close to the other humans.
        rho_human: Share on which this human is. Ties count for both.
        p_value: One-sided, uncorrected p-value of the hypothesis that the human leads by
            ``epsilon``; None without items.
        rejected: True if this is rejected after correction: the judge wins.
        test: Test that gave the p-value.
    """

    index: int
    n_items: int
    rho_judge: Estimate
    rho_human: Estimate
    p_value: float | None
    rejected: bool
    test: Test


@dataclass(frozen=True, slots=True, kw_only=True)
class AltTest:
    """Outcome of the alternative annotator test.

    Attributes:
        winning_rate: Share of the humans with items against whom the judge wins; None without.
        advantage_probability: Mean of ``rho_judge`` over these humans. The interval is for other
            items with the same humans.
        passes: True if the winning rate is at least one half; None if nothing could be tested.
        reason: Reason for a missing or weak result; empty otherwise.
        epsilon: Allowance used.
        q: Bound used on the false discovery rate.
        score: Measure of closeness.
        test: The tests used, joined by commas.
        n_annotators: Humans with items.
        n_items: Items that count: answered by the judge and by two or more humans.
        n_left_out: Other items.
        annotators: One entry per human, in the order of the columns, including those
            without items.
    """

    winning_rate: float | None
    advantage_probability: Estimate
    passes: bool | None
    reason: str
    epsilon: float
    q: float
    score: Score
    test: str
    n_annotators: int
    n_items: int
    n_left_out: int
    annotators: tuple[Annotator, ...]


def alternative_annotator_test(
    judge: Array,
    humans: Array,
    *,
    score: Score,
    epsilon: float = EPSILON,
    clusters: Ids | None = None,
    test: Choice = "score",
    q: float = FDR,
    level: float = CONFIDENCE_LEVEL,
) -> AltTest:
    """The alternative annotator test (Calderon, Reichart & Dror 2025, arXiv:2501.10970).

    For each human j and each item that j, the judge and others answered: W_judge is 1 where the
    judge's score against the others is at least that of j, W_human is 1 where the score of j is
    at least the judge's, so that both are 1 in a tie. H0: mean(W_human - W_judge) >= epsilon.
    P-values are corrected by the Benjamini-Yekutieli procedure (2001, doi:10.1214/aos/1013699998);
    the judge passes if it rejects for half of the humans.

    Args:
        judge: Shape (n,), grades or codes of categories; NaN for no answer.
        humans: Shape (n, r), one column per human; NaN for no answer.
        score: ``same``: share of the other humans who give the same answer, for categories.
            ``distance``: root mean squared difference from the others, for grades; less is better.
        epsilon: Allowance for the judge's lower cost, above -1 and below 1, as a share of items;
            choose it in advance. The authors recommend 0.2 for experts (the default), 0.15 for
            trained annotators, 0.1 for crowd workers.
        clusters: Shape (n,), items of one cluster (a case) are dependent: the variance is
            multiplied by that of cluster sums over that of items, if that is above 1, and compared
            with Student's t with clusters - 1 degrees of freedom. None: all independent.
        test: ``score``: the score test of a difference of paired shares (Tango 1998,
            doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B), which uses the
            variance at a lead of exactly ``epsilon`` and rejects in 3 to 6 % there.
            ``t``: the published Student's t, which rejects in up to 8 % (docs/coverage.md).
            ``signed-rank``: the same, but below 30 independent items the authors' Wilcoxon test
            (exact, with mid-ranks), which rejects in 8 to 44 %.
        q: Bound on the false discovery rate, between 0 and 1.
        level: Confidence level of the intervals.

    Returns:
        The outcome. Items without the judge or with fewer than two humans are left out and
        counted; humans without items count in no rate. With fewer than two humans or no items
        ``passes`` is None and ``reason`` says why.

    Raises:
        ValueError: If shapes do not fit, a value is infinite or an option is out of range.

    When not to use it: with hand-picked items; with humans who saw the judge's answers; to measure
    how good a judge is (a judge passes easily against humans who disagree); where one class is
    rare; to choose among many judges and report the p-values of the chosen one.
    """
    judge, humans = np.asarray(judge, dtype=float), np.asarray(humans, dtype=float)
    _check(judge, humans, clusters, score, test)
    if not -1 < epsilon < 1:
        raise ValueError(f"epsilon: expected a number above -1 and below 1, got {epsilon}")
    if not 0 < q < 1:
        raise ValueError(f"q: expected a number between 0 and 1, got {q}")
    shared = ~np.isnan(judge) & (np.count_nonzero(~np.isnan(humans), axis=1) >= 2)
    sample = Sample(clusters=clusters).take(shared)
    judge, humans = judge[shared], humans[shared]
    duels = [_duel(judge, humans, j, score) for j in range(humans.shape[1])]
    tested = [_p_value(duel, sample.take(duel.rows), epsilon, test) for duel in duels]
    rejected = [p is not None and p <= q for p in adjust([p for p, _ in tested], method="by")]
    annotators: list[Annotator] = []
    for j, (duel, (p_value, used)) in enumerate(zip(duels, tested, strict=True)):
        own = sample.take(duel.rows)
        annotators.append(
            Annotator(
                index=j,
                n_items=len(duel.rows),
                rho_judge=share_of(duel.judge, own, level=level),
                rho_human=share_of(duel.human, own, level=level),
                p_value=p_value,
                rejected=rejected[j],
                test=used,
            )
        )
    n_annotators = sum(of.n_items > 0 for of in annotators)
    winning_rate = sum(rejected) / n_annotators if n_annotators else None
    return AltTest(
        winning_rate=winning_rate,
        advantage_probability=_advantage(duels, sample, len(judge), level),
        passes=None if winning_rate is None else winning_rate >= 0.5,
        reason=_reason([of.n_items for of in annotators]),
        epsilon=epsilon,
        q=q,
        score=score,
        test=", ".join(sorted({used for _, used in tested if used != "none"})) or "none",
        n_annotators=n_annotators,
        n_items=len(judge),
        n_left_out=len(shared) - len(judge),
        annotators=tuple(annotators),
    )


def _check(judge: Array, humans: Array, clusters: Ids | None, score: str, test: str) -> None:
    if judge.ndim != 1 or humans.ndim != 2 or len(humans) != len(judge):
        got = f"{judge.shape} and {humans.shape}"
        raise ValueError(f"judge, humans: expected shapes (n,) and (n, r), got {got}")
    if clusters is not None and len(clusters) != len(judge):
        raise ValueError(f"clusters: expected {len(judge)} entries, got {len(clusters)}")
    if bool(np.isinf(judge).any() or np.isinf(humans).any()):
        raise ValueError("judge, humans: expected finite numbers, or NaN for missing")
    if score not in get_args(Score):
        raise ValueError(f"score: expected 'same' or 'distance', got {score!r}")
    if test not in get_args(Choice):
        raise ValueError(f"test: expected one of {', '.join(get_args(Choice))}, got {test!r}")


@dataclass(frozen=True, slots=True)
class _Duel:
    """The judge against one human on the items (``rows``) that this human answered.

    ``judge``, ``human``: shape (n,), True where it is at least as close to the others as its rival.
    """

    rows: Ids
    judge: Ids
    human: Ids


def _duel(judge: Array, humans: Array, left_out: int, score: Score) -> _Duel:
    rows = np.flatnonzero(~np.isnan(humans[:, left_out]))
    others = np.delete(humans[rows], left_out, axis=1)

    def closeness(own: Array) -> Array:
        """The score up to a common factor and a monotone transform."""
        if score == "same":
            return np.count_nonzero(others == own[:, None], axis=1).astype(float)
        return -np.nansum((others - own[:, None]) ** 2, axis=1)

    by_judge, by_human = closeness(judge[rows]), closeness(humans[rows, left_out])
    # differences of decimal grades carry rounding errors, which must not break a tie
    tie = np.abs(by_judge - by_human) <= 1e-9 * np.abs(by_judge + by_human)
    return _Duel(rows, (by_judge > by_human) | tie, (by_human > by_judge) | tie)


def _p_value(
    duel: _Duel, sample: Sample, epsilon: float, test: Choice
) -> tuple[float | None, Test]:
    differences, n = duel.human.astype(float) - duel.judge, len(duel.rows)
    moments = ratio_moments(differences, np.ones(n), sample)
    if moments is None:
        return None, "none"
    clustered = moments.n_clusters < n
    if test == "signed-rank" and n < FEW_ITEMS and not clustered:
        return _signed_rank(differences - epsilon), "signed-rank"
    if test == "score":
        return _score(differences, moments, epsilon), "cluster-score" if clustered else "score"
    return _student(moments, epsilon), "cluster-t" if clustered else "t"


def _score(differences: Array, moments: Moments, epsilon: float) -> float:
    """Tango's score test, from the numbers of items on which one of the two leads."""
    n = len(differences)
    human, judge = (int(np.count_nonzero(differences == sign)) for sign in (1, -1))
    b = -human - judge + (2 * n - human + judge) * epsilon
    c = -judge * epsilon * (1 - epsilon)
    # maximum-likelihood share of items on which the judge leads if the human leads by epsilon
    # overall
    share_judge = (sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = (2 * share_judge + epsilon * (1 - epsilon)) / n
    if not variance > 0:
        return 1.0 if moments.value >= epsilon else 0.0
    if moments.df == 0:
        return _student(moments, epsilon)
    if moments.n_clusters == n:
        return NormalDist().cdf((moments.value - epsilon) / sqrt(variance))
    alone = float(np.var(differences)) / max(1, n - 1)
    inflation = max(1.0, moments.variance / alone) if alone > 0 else n / moments.n_clusters
    return t_cdf((moments.value - epsilon) / sqrt(variance * inflation), moments.df)


def _student(moments: Moments, epsilon: float) -> float:
    """Student's t-test; if all differences are equal, the sign test."""
    if moments.variance == 0 or moments.df == 0:
        return 0.5**moments.n_clusters if moments.value < epsilon else 1.0
    return t_cdf((moments.value - epsilon) / moments.variance**0.5, moments.df)


def _signed_rank(differences: Array) -> float:
    """One-sided exact p-value for differences below 0 (Wilcoxon 1945, doi:10.2307/3001968).

    Zeros are left out. The distribution is that of all signs, given the ranks with their ties.
    """
    used = differences[differences != 0]
    if not len(used):
        return 1.0
    size, where = np.unique(np.abs(used), return_inverse=True)
    ties = np.bincount(where, minlength=len(size))
    doubled = (2 * np.cumsum(ties) - ties + 1)[where]  # twice the mid-rank: whole numbers
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] = ways[rank:] + ways[:-rank]
    return float(ways[: int(doubled[used > 0].sum()) + 1].sum() / ways.sum())


def _advantage(duels: list[_Duel], sample: Sample, n: int, level: float) -> Estimate:
    """Mean over humans, equally weighted, of the judge's rate; by item."""
    wins, items = np.zeros(n), np.zeros(n)
    for duel in duels:
        wins[duel.rows] += duel.judge / max(len(duel.rows), 1)
        items[duel.rows] += 1 / max(len(duel.rows), 1)
    if not n:
        return nothing(level, note="no shared items")
    return share(wins, items, sample, level=level)


def _reason(n_items: list[int]) -> str:
    if len(n_items) < 2:
        return f"{len(n_items)} rater(s): the test needs 2, the authors recommend 3 or more"
    tested = [n for n in n_items if n]
    if not tested:
        return "no item was answered by the judge and by two raters"
    reasons = ["2 raters: the authors recommend 3 or more"] if len(tested) == 2 else []
    if few := sum(n < FEW_ITEMS for n in tested):
        reasons.append(f"{few} rater(s) with fewer than {FEW_ITEMS} items: p-values are rough")
    return "; ".join(reasons)
