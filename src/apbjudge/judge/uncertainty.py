"""The arithmetic of doubt: how far verdicts on one item are apart, and what they amount to.

Entropy is Shannon's, in bits (doi:10.1002/j.1538-7305.1948.tb01338.x): 0 when all agree, 1 when a
yes/no question is split in half. Computed from a few replies it comes out too low on average;
no correction is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum, log2
from typing import Literal

from ..llm.logprobs import TokenChoice, number_shares, yes_share
from ..records import Doubt, ErrorCode, Override
from ..rubrics import Rubric
from .consistency import ParsedVerdict

Method = Literal["samples", "logprobs", "panel"]


def entropy_bits(shares: Iterable[float]) -> float:
    """Shannon entropy of shares that sum to 1.

    Args:
        shares: Not negative; a share of 0 adds nothing.

    Returns:
        Bits, from 0 (one share has all) to log2 of the number of shares above 0 (all equal).
    """
    some = sorted(share for share in shares if share > 0)
    entropy = 0.0 - fsum(share * log2(share) for share in some)
    return min(max(entropy, 0.0), log2(len(some))) if some else 0.0


def uncertainty_of(verdicts: Sequence[ParsedVerdict], method: Method, rubric: Rubric) -> Doubt:
    """How far some verdicts on one item are apart.

    Args:
        verdicts: At least one. Where one has no flags, grade or category, it abstains on them.
        method: Where they come from.
        rubric: What they were made by.

    Raises:
        ValueError: If there is no verdict.
    """
    _needed(verdicts)
    yes = {"is_correct": sum(r.is_correct for r in verdicts) / len(verdicts)}
    flagged = [verdict for verdict in verdicts if verdict.errors is not None]
    if rubric.shape == "flags" and flagged:
        yes |= {code: sum(code in r.flags for r in flagged) / len(flagged) for code in rubric.codes}
    grades = _shares([r.grade for r in verdicts if r.grade is not None], rubric.scale.grades)
    categories = _shares(
        [r.category for r in verdicts if r.category is not None],
        [category.number for category in rubric.categories],
    )
    return _doubt(method, len(verdicts), yes, grades, categories)


def token_uncertainty(tokens: Sequence[TokenChoice], rubric: Rubric) -> Doubt | None:
    """How sure one reply was, from the probabilities of its tokens.

    Each field's shares are those given what was written before it (see ``yes_share``), so the
    entropy of ``is_correct`` may be near 0 where the doubt sits in a flag.

    Args:
        tokens: The reply.
        rubric: What it was asked to fill.

    Returns:
        The doubt, with every field that could be read; None when ``is_correct`` could not.
    """
    fields = ("is_correct", *rubric.codes)
    shares = ((field, yes_share(tokens, field)) for field in fields)
    yes = {field: share for field, share in shares if share is not None}
    if "is_correct" not in yes:
        return None
    grades = number_shares(tokens, "grade", rubric.scale.grades) if rubric.bands else None
    numbers = [category.number for category in rubric.categories]
    categories = number_shares(tokens, "category", numbers) if numbers else None
    return _doubt("logprobs", 1, yes, grades or {}, categories or {})


def _doubt(
    method: Method,
    n: int,
    yes: dict[str, float],
    grades: Mapping[float, float],
    categories: Mapping[float, float],
) -> Doubt:
    entropy = {field: entropy_bits((share, 1 - share)) for field, share in yes.items()}
    for field, shares in (("grade", grades), ("category", categories)):
        if shares:
            entropy[field] = entropy_bits(shares.values())
    return Doubt(
        method=method,
        n=n,
        shares=yes,
        grades={str(float(grade)): share for grade, share in grades.items()},
        categories={str(int(number)): share for number, share in categories.items()},
        entropy=entropy,
    )


def _shares(votes: Sequence[float], levels: Iterable[float]) -> dict[float, float]:
    """Share of each level, and of what was voted beside them; nothing without votes."""
    if not votes:
        return {}
    counts = Counter(votes)
    return {level: counts[level] / len(votes) for level in dict.fromkeys([*levels, *votes])}


def combine(
    verdicts: Sequence[ParsedVerdict], rubric: Rubric
) -> tuple[ParsedVerdict, tuple[Override, ...]]:
    """One verdict out of several on the same item.

    1. is_correct is what more than half say; a tie counts as not correct.
    2. A flag is set when more than half of those who agree with that verdict set it. If the
       verdict is not correct and no flag gets there, those that most of them set are.
    3. The grade is the lower median of all; where it may not stand beside the flags, the
       nearest that may, which an override records.
    4. The category is the one that most of those who agree give; of a tie the smallest number.

    The order of the verdicts is of no account, and equal verdicts come out as they are. Verdicts
    that don't contradict themselves never give one that does.

    Args:
        verdicts: At least one. Where one has no flags, grade or category, it abstains on them.
        rubric: What they were made by.

    Returns:
        The verdict, and what had to be changed in it.

    Raises:
        ValueError: If there is no verdict.
    """
    _needed(verdicts)
    is_correct = 2 * sum(verdict.is_correct for verdict in verdicts) > len(verdicts)
    agreeing = [verdict for verdict in verdicts if verdict.is_correct == is_correct]
    return combine_agreeing(agreeing, rubric, graded_by=verdicts)


def combine_agreeing(
    agreeing: Sequence[ParsedVerdict], rubric: Rubric, *, graded_by: Sequence[ParsedVerdict]
) -> tuple[ParsedVerdict, tuple[Override, ...]]:
    """Flags, grade and category once the verdict stands, by rules 2 to 4 of ``combine``.

    Args:
        agreeing: The verdicts with that verdict, at least one.
        rubric: What they were made by.
        graded_by: The verdicts whose grades count.

    Raises:
        ValueError: If no verdict agrees.
    """
    _needed(agreeing)
    errors = _flags_of(agreeing)
    verdict = ParsedVerdict(
        is_correct=agreeing[0].is_correct,
        grade=_lower_median([r.grade for r in graded_by if r.grade is not None]),
        errors=errors,
        category=_most_common([r.category for r in agreeing if r.category is not None]),
    )
    if verdict.grade is None or errors is None or rubric.shape != "flags":
        return verdict, ()
    fitting = rubric.scale.nearest(verdict.grade, verdict.flags)
    if fitting == verdict.grade:
        return verdict, ()
    because = "the median grade does not go with the flags of the majority"
    change = Override(field="grade", was=verdict.grade, now=fitting, because=because)
    return replace(verdict, grade=fitting), (change,)


def _flags_of(agreeing: Sequence[ParsedVerdict]) -> dict[ErrorCode, bool] | None:
    voters = [verdict for verdict in agreeing if verdict.errors is not None]
    if not voters:
        return None
    votes: dict[ErrorCode, int] = {
        code: sum(code in verdict.flags for verdict in voters) for code in voters[0].errors or {}
    }
    # Where no flag has a majority, the least that counts is the highest number of votes.
    enough = max(1, min(len(voters) // 2 + 1, max(votes.values())))
    return {code: count >= enough for code, count in votes.items()}


def _lower_median(grades: Sequence[float]) -> float | None:
    return sorted(grades)[(len(grades) - 1) // 2] if grades else None


def _most_common(categories: Sequence[int]) -> int | None:
    counts = Counter(categories)
    return min(counts, key=lambda number: (-counts[number], number)) if counts else None


def _needed(verdicts: Sequence[ParsedVerdict]) -> None:
    if not verdicts:
        raise ValueError("verdicts: expected at least one, got none")
