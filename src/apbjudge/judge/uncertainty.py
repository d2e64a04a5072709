"""Several verdicts on one item: their spread, the verdict that they amount to, and their cost.

Entropy is Shannon's, in bits (doi:10.1002/j.1538-7305.1948.tb01338.x): 0 when all agree, 1 when a
yes/no question is split in half. Computed from a few replies it comes out too low on average;
no correction is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from hashlib import sha256
from math import fsum
from operator import add
from statistics import median_low
from typing import Any, Literal, Protocol

import orjson

from ..llm.logprobs import TokenChoice, number_shares, yes_share
from ..records import ErrorCode, Override, Uncertainty, Usage
from ..rubrics import Rubric
from ..statistics.entropy import shannon_entropy
from .consistency import ParsedVerdict

Method = Literal["samples", "logprobs", "panel"]


def entropy_bits(shares: Iterable[float]) -> float:
    """Shannon entropy of shares that sum to 1, in bits; a share of 0 adds nothing."""
    return shannon_entropy(shares, unit="bits")


def uncertainty_of(
    verdicts: Sequence[ParsedVerdict], method: Method, rubric: Rubric
) -> Uncertainty:
    """The spread of several verdicts on one item.

    A verdict without flags, grade or category abstains on them.
    """
    yes = {"is_correct": sum(each.is_correct for each in verdicts) / len(verdicts)}
    flagged = [verdict for verdict in verdicts if verdict.errors is not None]
    if rubric.shape == "flags" and flagged:
        for code in rubric.codes:
            yes[code] = sum(code in verdict.flags for verdict in flagged) / len(flagged)
    grades = _shares([v.grade for v in verdicts if v.grade is not None], rubric.scale.grades)
    categories = _shares(
        [v.category for v in verdicts if v.category is not None],
        [category.number for category in rubric.categories],
    )
    return _uncertainty(method, len(verdicts), yes, grades, categories)


def token_uncertainty(tokens: Sequence[TokenChoice], rubric: Rubric) -> Uncertainty | None:
    """The uncertainty of one reply from its tokens' probabilities; None if is_correct has none.

    Each field's shares are those given what was written before it (see ``yes_share``), so the
    entropy of ``is_correct`` may be near 0 where the uncertainty sits in a flag. A judge that is
    asked for several codes alone never says ``is_correct``.
    """
    fields = ("is_correct", *rubric.codes)
    shares = ((field, yes_share(tokens, field)) for field in fields)
    yes = {field: share for field, share in shares if share is not None}
    if rubric.codes_only and len(yes) == len(rubric.codes) == 1:
        yes["is_correct"] = 1 - yes[rubric.codes[0]]
    if "is_correct" not in yes:
        return None
    grades = number_shares(tokens, "grade", rubric.scale.grades) if rubric.bands else None
    numbers = [category.number for category in rubric.categories]
    categories = number_shares(tokens, "category", numbers) if numbers else None
    return _uncertainty("logprobs", 1, yes, grades or {}, categories or {})


def _uncertainty(
    method: Method,
    n: int,
    yes: dict[str, float],
    grades: Mapping[float, float],
    categories: Mapping[float, float],
) -> Uncertainty:
    bits = {field: entropy_bits((share, 1 - share)) for field, share in yes.items()}
    for field, shares in (("grade", grades), ("category", categories)):
        if shares:
            bits[field] = entropy_bits(shares.values())
    return Uncertainty(
        method=method,
        n=n,
        shares=yes,
        grades={str(float(grade)): share for grade, share in grades.items()},
        categories={str(int(number)): share for number, share in categories.items()},
        entropy=bits,
    )


def _shares(votes: Sequence[float], levels: Iterable[float]) -> dict[float, float]:
    """Share of each level, and of other values that were voted; empty without votes."""
    if not votes:
        return {}
    counts = Counter(votes)
    return {level: counts[level] / len(votes) for level in dict.fromkeys([*levels, *votes])}


def combine(
    verdicts: Sequence[ParsedVerdict], rubric: Rubric
) -> tuple[ParsedVerdict, tuple[Override, ...]]:
    """One verdict from several on the same item, and the changes to it.

    1. is_correct is what more than half say; a tie counts as not correct.
    2. A flag is set when more than half of those who agree with that verdict set it. If the
       verdict is not correct and no flag gets there, those that most of them set are.
    3. The grade is the lower median of all; where it does not fit the flags, the nearest
       that does, which an override records.
    4. The category is the one that most of those who agree give; of a tie the smallest number.

    The order of the verdicts does not matter, and equal verdicts come out as they are. Verdicts
    that don't contradict themselves never give one that does. Where one has no flags, grade or
    category, it abstains on them.
    """
    is_correct = 2 * sum(verdict.is_correct for verdict in verdicts) > len(verdicts)
    agreeing = [verdict for verdict in verdicts if verdict.is_correct == is_correct]
    return combine_agreeing(agreeing, rubric, graded_by=verdicts)


def combine_agreeing(
    agreeing: Sequence[ParsedVerdict], rubric: Rubric, *, graded_by: Sequence[ParsedVerdict]
) -> tuple[ParsedVerdict, tuple[Override, ...]]:
    """Flags, grade and category once is_correct is decided, by rules 2 to 4 of ``combine``.

    ``agreeing`` are the verdicts with the decided is_correct, ``graded_by`` those whose grades
    count.
    """
    errors: dict[ErrorCode, bool] | None = None
    if voters := [verdict for verdict in agreeing if verdict.errors is not None]:
        votes: dict[ErrorCode, int] = {
            code: sum(code in verdict.flags for verdict in voters)
            for code in voters[0].errors or {}
        }
        # Where no flag has a majority, the least that counts is the highest number of votes.
        enough = max(1, min(len(voters) // 2 + 1, max(votes.values())))
        errors = {code: count >= enough for code, count in votes.items()}
    grades = [verdict.grade for verdict in graded_by if verdict.grade is not None]
    categories = Counter(v.category for v in agreeing if v.category is not None)
    verdict = ParsedVerdict(
        is_correct=agreeing[0].is_correct,
        grade=median_low(grades) if grades else None,
        errors=errors,
        category=min(categories, key=lambda number: (-categories[number], number), default=None),
    )
    if verdict.grade is None or errors is None or rubric.shape != "flags":
        return verdict, ()
    fitting = rubric.scale.nearest(verdict.grade, verdict.flags)
    if fitting == verdict.grade:
        return verdict, ()
    because = "the median grade does not go with the flags of the majority"
    change = Override(field="grade", was=verdict.grade, now=fitting, because=because)
    return replace(verdict, grade=fitting), (change,)


class _Part(Protocol):
    @property
    def raw(self) -> str | None: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def lenient_replies(self) -> int: ...
    @property
    def cost_usd(self) -> float | None: ...


def joint_account(parts: Sequence[_Part]) -> dict[str, Any]:
    """Replies, usage and cost of several judgements or conversations about one item together.

    The cost is None as soon as one is not known, the usage when no part has one.
    """
    costs = [part.cost_usd for part in parts]
    known = [cost for cost in costs if cost is not None]
    usages = [part.usage for part in parts if part.usage is not None]
    return {
        "raw": "\n\n".join(part.raw for part in parts if part.raw) or None,
        "lenient_replies": sum(part.lenient_replies for part in parts),
        "usage": reduce(add, usages) if usages else None,
        "cost_usd": fsum(known) if len(known) == len(costs) else None,
    }


def joint_fingerprint(rule: str, fingerprints: Iterable[str]) -> str:
    """The fingerprint of a judgement that is made of others by a rule."""
    return sha256(orjson.dumps([rule, *fingerprints])).hexdigest()[:32]
