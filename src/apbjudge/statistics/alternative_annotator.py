"""May the judge stand in for a human? The alternative annotator test.

Each human is left out in turn, and the judge and the one left out are both scored against the
humans that remain. The judge wins against that human where it is at least as close to the others,
less an allowance for being cheaper, in more items than chance explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from .estimates import CONFIDENCE_LEVEL, Array, Estimate, Ids, nothing, t_cdf
from .moments import Moments, ratio_moments
from .multiplicity import adjust
from .proportions import share
from .sample import Sample

Score = Literal["same", "distance"]
Test = Literal["none", "score", "cluster-score", "t", "cluster-t", "signed-rank"]
Choice = Literal["score", "t", "signed-rank"]
EPSILON = 0.2
FDR = 0.05
FEW_ITEMS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotator:
    """The judge against one human.

    Attributes:
        index: Column of the human.
        n_items: Items that this human, the judge and at least one other human answered.
        rho_judge: Share of them where the judge is as close to the other humans as this one, or
            closer. Ties count for both.
        rho_human: Share where this human is as close to the others as the judge, or closer.
        p_value: Of the hypothesis that the human is ahead by ``epsilon`` or more; None without
            items. One-sided, before the correction for several humans.
        rejected: Whether it is rejected after the correction: the judge wins.
        test: How the p-value was computed: ``score``, ``t``, each with ``cluster-`` before it
            where items share clusters, ``signed-rank``, or ``none``.
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
        advantage_probability: Mean of ``rho_judge`` over these humans: how often the judge is no
            worse than a human drawn at random. The interval is about other items for the same
            humans, not about other humans.
        passes: Whether the winning rate reaches one half. False says that it is not shown that
            the judge may stand in, not that it may not. None when nothing could be tested.
        reason: Why there is no answer, or what weakens it; empty otherwise.
        epsilon: Allowance that was used.
        q: Bound on the false discovery rate that was used.
        score: How closeness was measured.
        test: The tests that were used, joined by commas.
        n_annotators: Humans with items.
        n_items: Items that count: answered by the judge and by two or more humans.
        n_left_out: The others.
        annotators: One entry a human, in the order of the columns, those without items included.
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
    P-values pass the Benjamini-Yekutieli procedure (2001, doi:10.1214/aos/1013699998), which
    holds for any dependence between humans; the judge passes if it rejects for half of them.

    The p-values: the score test of a difference of paired shares (Tango 1998,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B), which takes the
    variance where the human is ahead by just ``epsilon``. The published test is Student's t with
    the variance that was seen, an option here: at that boundary, with the judge never ahead, it
    rejects at 5 % in 8 % of samples of 100 items, since few items on which the human is ahead
    look like a small variance too; the score test in 3 to 6 % (docs/coverage.md).

    Both take items to be independent. Where they share clusters, the variance is multiplied by
    that of cluster sums over that of items, if that is above 1, and compared with Student's t with
    clusters - 1 degrees of freedom.

    Below 30 items the authors advise Wilcoxon's signed-rank test (their program leaves such
    humans out). That is another option and not the default: it asks for the median of symmetric
    differences, and W_human - W_judge is -1, 0 or 1. Simulated with a human ahead by just epsilon
    = 0.2 and 10 to 29 items, it rejects at 5 % in 8 to 44 % of samples.

    Args:
        judge: Shape (n,), grades or codes of categories; NaN where the judge said nothing.
        humans: Shape (n, r), one column a human; NaN where one said nothing.
        score: ``same``: share of the other humans who say the same, for categories. ``distance``:
            the root mean squared difference from the others, less being better, for grades.
        epsilon: Allowance for the judge's being cheaper, above -1 and below 1, in units of the
            share of items. The authors recommend 0.2 for experts (the default), 0.15 for trained
            annotators, 0.1 for crowd workers, and less where humans agree poorly. Fix it
            beforehand.
        clusters: Shape (n,), items of one cluster (a case) hang together; None when each is
            independent of the others.
        test: ``score``; ``t``, as published; or ``signed-rank``: the same, but below 30
            independent items the authors' signed-rank test (exact, with mid-ranks).
        q: Bound on the false discovery rate, between 0 and 1.
        level: Confidence level of the intervals.

    Returns:
        The outcome. Items without the judge or with fewer than two humans are left out and
        counted; humans without items count in no rate. With fewer than two humans or no items
        ``passes`` is None and ``reason`` says why.

    Raises:
        ValueError: If shapes do not fit, a value is infinite or an option is out of range.

    When not to use it: with hand-picked items; with humans who saw the judge's answers; to say
    how good a judge is (a judge passes easily against humans who disagree: report their agreement
    beside it); where one class is rare (agreeing on the common class wins); to choose among many
    judges and report the p-values of the chosen one.
    """
    judge, humans = np.asarray(judge, dtype=float), np.asarray(humans, dtype=float)
    _check(judge, humans, clusters)
    _check_options(score, test, epsilon=epsilon, q=q)
    shared = ~np.isnan(judge) & (np.count_nonzero(~np.isnan(humans), axis=1) >= 2)
    sample = Sample(clusters=clusters).take(shared)
    judge, humans = judge[shared], humans[shared]
    duels = [_Duel.of(judge, humans, j, score) for j in range(humans.shape[1])]
    tested = [_p_value(duel, sample.take(duel.rows), epsilon, test) for duel in duels]
    rejected = [p is not None and p <= q for p in adjust([p for p, _ in tested], method="by")]
    annotators: list[Annotator] = []
    for j, (duel, (p_value, used)) in enumerate(zip(duels, tested, strict=True)):
        own, every = sample.take(duel.rows), np.ones(duel.n, dtype=bool)
        annotators.append(
            Annotator(
                index=j,
                n_items=duel.n,
                rho_judge=share(duel.judge, every, own, level=level),
                rho_human=share(duel.human, every, own, level=level),
                p_value=p_value,
                rejected=rejected[j],
                test=used,
            )
        )
    n_annotators = sum(duel.n > 0 for duel in duels)
    winning_rate = sum(rejected) / n_annotators if n_annotators else None
    return AltTest(
        winning_rate=winning_rate,
        advantage_probability=_advantage(duels, sample, len(judge), level),
        passes=None if winning_rate is None else winning_rate >= 0.5,
        reason=_reason([duel.n for duel in duels]),
        epsilon=epsilon,
        q=q,
        score=score,
        test=", ".join(sorted({used for _, used in tested if used != "none"})) or "none",
        n_annotators=n_annotators,
        n_items=len(judge),
        n_left_out=len(shared) - len(judge),
        annotators=tuple(annotators),
    )


def _check(judge: Array, humans: Array, clusters: Ids | None) -> None:
    if judge.ndim != 1 or humans.ndim != 2 or len(humans) != len(judge):
        got = f"{judge.shape} and {humans.shape}"
        raise ValueError(f"judge, humans: expected shapes (n,) and (n, r), got {got}")
    if clusters is not None and len(clusters) != len(judge):
        raise ValueError(f"clusters: expected {len(judge)} entries, got {len(clusters)}")
    if bool(np.isinf(judge).any() or np.isinf(humans).any()):
        raise ValueError("judge, humans: expected finite numbers, or NaN for missing")


def _check_options(score: str, test: str, *, epsilon: float, q: float) -> None:
    if score not in {"same", "distance"}:
        raise ValueError(f"score: expected 'same' or 'distance', got {score!r}")
    if test not in get_args(Choice):
        raise ValueError(f"test: expected one of {', '.join(get_args(Choice))}, got {test!r}")
    if not -1 < epsilon < 1:
        raise ValueError(f"epsilon: expected a number above -1 and below 1, got {epsilon}")
    if not 0 < q < 1:
        raise ValueError(f"q: expected a number between 0 and 1, got {q}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Duel:
    """The judge against one human, item by item.

    Attributes:
        rows: Shape (items,), the items that this human answered.
        judge: Shape (n,), whether the judge is at least as close to the others.
        human: Shape (n,), whether the human is.
    """

    rows: Ids
    judge: Ids
    human: Ids

    @classmethod
    def of(cls, judge: Array, humans: Array, left_out: int, score: Score) -> _Duel:
        rows = np.flatnonzero(~np.isnan(humans[:, left_out]))
        others = np.delete(humans[rows], left_out, axis=1)
        by_judge = _closeness(judge[rows], others, score)
        by_human = _closeness(humans[rows, left_out], others, score)
        # differences of decimal grades carry rounding errors, which must not break a tie
        tie = np.abs(by_judge - by_human) <= 1e-9 * np.abs(by_judge + by_human)
        return cls(rows=rows, judge=(by_judge > by_human) | tie, human=(by_human > by_judge) | tie)

    @property
    def n(self) -> int:
        """Items."""
        return len(self.rows)


def _closeness(own: Array, others: Array, score: Score) -> Array:
    """The score up to a factor that the judge and the human share, and its monotone transform."""
    if score == "same":
        return np.count_nonzero(others == own[:, None], axis=1).astype(float)
    return -np.nansum((others - own[:, None]) ** 2, axis=1)


def _p_value(
    duel: _Duel, sample: Sample, epsilon: float, test: Choice
) -> tuple[float | None, Test]:
    differences = duel.human.astype(float) - duel.judge
    moments = ratio_moments(differences, np.ones(duel.n), sample)
    if moments is None:
        return None, "none"
    clustered = moments.n_clusters < duel.n
    if test == "signed-rank" and duel.n < FEW_ITEMS and not clustered:
        return _signed_rank(differences - epsilon), "signed-rank"
    if test == "score":
        return _score(differences, moments, epsilon), "cluster-score" if clustered else "score"
    return _student(moments, epsilon), "cluster-t" if clustered else "t"


def _score(differences: Array, moments: Moments, epsilon: float) -> float:
    """Tango's score test, from the counts of items on which one of the two is ahead."""
    n = len(differences)
    human, judge = (int(np.count_nonzero(differences == sign)) for sign in (1, -1))
    b = -human - judge + (2 * n - human + judge) * epsilon
    c = -judge * epsilon * (1 - epsilon)
    # most likely share of items with the judge ahead if the human leads by epsilon
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
    error = sqrt(variance * inflation)
    return t_cdf((moments.value - epsilon) / error, moments.df)


def _student(moments: Moments, epsilon: float) -> float:
    """Student's t-test; where all differences are equal, the sign test in its place."""
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
    """Mean over humans of the judge's rate, each human weighing the same, item by item."""
    wins, items = np.zeros(n), np.zeros(n)
    for duel in duels:
        wins[duel.rows] += duel.judge / max(duel.n, 1)
        items[duel.rows] += 1 / max(duel.n, 1)
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
