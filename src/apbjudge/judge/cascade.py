"""A cheap judge first, a stronger one where it doubts, a human where that one still does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, fsum, inf
from typing import Any, Literal

import numpy as np
import orjson

from ..errors import OptionError
from ..records import Unscored, Verdict
from .panel import total_cost, total_usage

_Array = np.ndarray[Any, np.dtype[np.float64]]
DoubtField = str
"""``is_correct``, ``grade``, ``category``, ``max``, or a code of the rubric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Which items go to the stronger judge.

    Attributes:
        text: The condition as it was written.
        field: Whose entropy decides; ``max`` is the largest that is known.
        above: Items with more bits than this; None for a share.
        inclusive: Whether ``above`` itself is enough.
        share: This share of the items, 0 to 1, the most doubtful first; None for a threshold.
    """

    text: str
    field: DoubtField = "is_correct"
    above: float | None = None
    inclusive: bool = False
    share: float | None = None


_FORMS = (
    "entropy>BITS, entropy>=BITS, entropy.FIELD>BITS "
    "(FIELD: is_correct, grade, category, a code such as E4, or max) or share=PART"
)
_NUMBER = r"(\d+\.?\d*|\.\d+)"
_ENTROPY = re.compile(
    r"entropy(?:\.(is_correct|grade|category|max|[A-Z][A-Za-z0-9_]{0,15}))?"
    rf"\s*(>=?)\s*{_NUMBER}",
    re.ASCII,
)
_SHARE = re.compile(rf"share\s*=\s*{_NUMBER}", re.ASCII)


def parse_when(text: str) -> When:
    """Reads a condition such as ``entropy>0.5``, ``entropy.max>=1`` or ``share=0.2``.

    Raises:
        OptionError: If it is none.
    """
    asked = text.strip()
    if found := _ENTROPY.fullmatch(asked):
        field = found[1] or "is_correct"
        return When(text=asked, field=field, above=float(found[3]), inclusive=found[2] == ">=")
    if found := _SHARE.fullmatch(asked):
        if (share := float(found[1])) <= 1:
            return When(text=asked, share=share)
        raise OptionError(f"--when: expected a share from 0 to 1, got {text!r}")
    raise OptionError(f"--when: expected {_FORMS}, got {text!r}")


def doubt_score(judgement: Verdict | Unscored, when: When) -> float:
    """How doubtful a judgement is, in bits.

    Args:
        judgement: One of the cheap judge.
        when: Says whose entropy counts.

    Returns:
        Infinity where there is no verdict, or where the field was answered and its entropy is
        not known; 0 where the rubric does not have the field.

    Raises:
        OptionError: If the verdict comes without any measure of doubt, or the field is a code
            that its rubric does not have.
    """
    if isinstance(judgement, Unscored):
        return inf
    if judgement.doubt is None:
        raise OptionError(
            f"--when: expected judgements with a measure of doubt, got none from "
            f"{judgement.judge}: judge with --samples or --logprobs"
        )
    entropy = judgement.doubt.entropy
    if when.field == "max":
        return max(entropy.values(), default=inf)
    if when.field in entropy:
        return entropy[when.field]
    if when.field in ("is_correct", "grade", "category"):
        return inf if getattr(judgement, when.field) is not None else 0.0
    if judgement.errors is None:
        return 0.0
    if when.field not in judgement.errors:
        codes = ", ".join(judgement.errors)
        raise OptionError(
            f"--when: expected a code of rubric {judgement.rubric} ({codes}), got {when.field}"
        )
    return inf


def choose(scores: Sequence[float], when: When) -> list[int]:
    """Which items go to the stronger judge.

    Args:
        scores: The doubt of each item, infinity for those without a verdict.
        when: The condition. A share is rounded up to whole items.

    Returns:
        Indexes, highest doubt first, ties in input order. Items without a verdict always come
        first and all of them come, also where they are more than the share.
    """
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    if when.share is not None:
        n = ceil(when.share * len(scores) - 1e-9)
        return order[: max(n, sum(score == inf for score in scores))]
    return [i for i in order if _is_above(scores[i], when)]


def _is_above(score: float, when: When) -> bool:
    above = 0.0 if when.above is None else when.above
    return score > above or (when.inclusive and score == above)


def cascade_judgement(
    cheap: Verdict | Unscored, strong: Verdict | Unscored | None, *, strong_judge: str
) -> Verdict | Unscored:
    """The judgement of both judges together.

    The strong judge's verdict stands where there is one, else the cheap judge's;
    ``decided_by`` says whose it is. ``doubt`` stays the cheap judge's, as that is what
    sent the item on.

    Args:
        cheap: Judgement of the cheap judge.
        strong: Judgement of the strong one; None where it was not asked.
        strong_judge: Its name, also for the items it was not asked about.

    Raises:
        ValueError: If the two are on different items.
    """
    if strong is None:
        return _joined(cheap, (cheap,), strong_judge)
    if (cheap.item_id, cheap.tested_model) != (strong.item_id, strong.tested_model):
        raise ValueError(f"strong: expected item {cheap.item_id}, got {strong.item_id}")
    if isinstance(strong, Verdict):
        doubt = cheap.doubt if isinstance(cheap, Verdict) else strong.doubt
        return _joined(strong.model_copy(update={"doubt": doubt}), (cheap, strong), strong_judge)
    joined = _joined(cheap, (cheap, strong), strong_judge)
    if isinstance(joined, Verdict):
        return joined
    detail = f"{joined.detail}; {strong.judge}: {strong.reason}: {strong.detail}"
    return joined.model_copy(update={"detail": detail})


def _joined(
    decider: Verdict | Unscored, asked: Sequence[Verdict | Unscored], strong_judge: str
) -> Verdict | Unscored:
    cheap = asked[0]
    latencies = [j.latency_s for j in asked if j.latency_s is not None]
    prints = [judgement.fingerprint for judgement in asked]
    changes: dict[str, Any] = {
        "judge": f"cascade({cheap.judge}->{strong_judge})",
        "decided_by": decider.judge,
        "groups": cheap.groups,
        "line": cheap.line,
        "raw": "\n\n".join(j.raw for j in asked if j.raw) or None,
        "usage": total_usage(asked),
        "cost_usd": total_cost(asked),
        "latency_s": fsum(latencies) if latencies else None,
        "fingerprint": sha256(orjson.dumps(["cascade", *prints])).hexdigest()[:32],
    }
    return decider.model_copy(update=changes)


# For humans ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Queued:
    """An item that a human should look at.

    Attributes:
        index: Its place in the input.
        reason: ``no verdict`` (the last judge asked gave none), ``not asked`` (it was due to go
            to the strong judge and the budget ended before) or ``in doubt`` (the strong judge
            doubts as well).
        score: Doubt of the last judge that was asked, in bits; infinity without a verdict.
    """

    index: int
    reason: Literal["no verdict", "not asked", "in doubt"]
    score: float


def queue(
    cheap: Sequence[Verdict | Unscored], strong: Sequence[Verdict | Unscored | None], when: When
) -> list[Queued]:
    """The items that the judges leave to humans, most doubtful first, ties in input order.

    A strong judge's verdict without a measure of doubt is taken as final. Where ``when`` is a
    share, its doubt counts from that of the least doubtful item that was due to go to it.

    Args:
        cheap: Judgements of the cheap judge.
        strong: Those of the strong one, None where it was not asked.
        when: The condition by which items went to the strong judge.

    Raises:
        OptionError: See ``doubt_score``.
        ValueError: If the lengths differ.
    """
    _same_length(cheap, strong=strong)
    scores = [doubt_score(judgement, when) for judgement in cheap]
    due = choose(scores, when)
    still = _threshold([scores[i] for i in due], when)
    places = {*due, *(i for i, judgement in enumerate(strong) if judgement is not None)}
    found = (_queued(i, scores[i], strong[i], still) for i in sorted(places))
    return sorted((entry for entry in found if entry), key=lambda entry: -entry.score)


def _threshold(due: Sequence[float], when: When) -> When:
    """The condition as a threshold: of a share, the least doubt that was enough."""
    if when.share is None:
        return when
    least = min((score for score in due if score < inf), default=0.0)
    return When(text=when.text, field=when.field, above=least, inclusive=least > 0)


def _queued(
    index: int, score: float, strong: Verdict | Unscored | None, still: When
) -> Queued | None:
    if strong is None:
        return Queued(index, "not asked", score)
    if isinstance(strong, Unscored):
        if strong.reason == "budget":
            return Queued(index, "not asked", score)
        return Queued(index, "no verdict", inf)
    if strong.doubt is None:
        return None
    doubt = doubt_score(strong, still)
    return Queued(index, "in doubt", doubt) if _is_above(doubt, still) else None


# What a threshold costs ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What a cascade would cost and yield at one threshold.

    Attributes:
        threshold: Items with this many bits or more go to the strong judge; infinity means
            those without a verdict alone, None no item at all.
        n_escalated: How many do.
        share: Their share of all items, 0 to 1; 0 when there is none.
        cost_usd: Price of all cheap judgements and these strong ones; None when one is unknown.
        calls: Calls of the same.
        n_agree: Items whose verdict is the reference.
        n_compared: Items with both a verdict and a reference.
        n_asked: Items among those escalated that the strong judge was really asked about. Where
            they are fewer, the point is a guess that the others would change nothing.
    """

    threshold: float | None
    n_escalated: int
    share: float
    cost_usd: float | None
    calls: int
    n_agree: int
    n_compared: int
    n_asked: int

    @property
    def is_known(self) -> bool:
        """Whether the strong judge was asked about every item that this point escalates."""
        return self.n_asked == self.n_escalated


def curve(
    cheap: Sequence[Verdict | Unscored],
    strong: Sequence[Verdict | Unscored | None],
    reference: Sequence[bool | None],
    *,
    field: DoubtField = "is_correct",
) -> list[CurvePoint]:
    """Cost and agreement at every threshold that makes a difference.

    The reference of an item is its human label, else the strong judge's verdict. Where it is
    the latter, the item agrees as soon as it is escalated: such a curve shows how much of the
    strong judge's work the cheap one can take over, not how right either is. An escalated item
    without strong verdict keeps the cheap one; what was never asked costs nothing.

    Args:
        cheap: Judgements of the cheap judge, with doubt.
        strong: Those of the strong judge on the same items; None where it was not asked.
        reference: Human labels of is_correct; None where there is none.
        field: Whose entropy counts.

    Returns:
        Points from the highest threshold to the lowest: no item escalated first, all last.
        Computed in O(n log n).

    Raises:
        OptionError: See ``doubt_score``.
        ValueError: If the lengths differ.
    """
    _same_length(cheap, strong=strong, reference=reference)
    when = When(text="", field=field)
    scores = np.array([doubt_score(judgement, when) for judgement in cheap])
    items = zip(cheap, strong, reference, strict=True)
    rows = [_effect(weak, stronger, label=label) for weak, stronger, label in items]
    at_first = np.array([first for first, _ in rows]).reshape(-1, 6).sum(axis=0)
    changes = np.array([change for _, change in rows]).reshape(-1, 6)
    order = np.argsort(-scores, kind="stable")
    totals = np.vstack([at_first, at_first + np.cumsum(changes[order], axis=0)])
    ordered = scores[order].tolist()
    points = [_point(None, 0, len(rows), totals[0])]
    for end, score in enumerate(ordered, start=1):
        if end == len(ordered) or ordered[end] != score:
            points.append(_point(score, end, len(rows), totals[end]))
    return points


_Sums = tuple[float, int, int, int, int, int]
"""Price, unknown prices, calls, items that agree, items compared, items asked about."""


def _effect(
    cheap: Verdict | Unscored, strong: Verdict | Unscored | None, *, label: bool | None
) -> tuple[_Sums, _Sums]:
    """What an item adds when it is not escalated, and what changes when it is."""
    stands = strong if isinstance(strong, Verdict) else cheap
    reference = strong.is_correct if label is None and isinstance(strong, Verdict) else label
    agrees, compared = _match(cheap, reference=reference)
    agrees_then, compared_then = _match(stands, reference=reference)
    first = (*_spent(cheap), agrees, compared, 0)
    asked = int(strong is not None)
    return first, (*_spent(strong), agrees_then - agrees, compared_then - compared, asked)


def _spent(judgement: Verdict | Unscored | None) -> tuple[float, int, int]:
    if judgement is None or (isinstance(judgement, Unscored) and judgement.reason == "bad_input"):
        return 0.0, 0, 0
    calls = judgement.usage.calls if judgement.usage else 0
    return judgement.cost_usd or 0.0, int(judgement.cost_usd is None), calls


def _match(judgement: Verdict | Unscored, *, reference: bool | None) -> tuple[int, int]:
    if reference is None or isinstance(judgement, Unscored):
        return 0, 0
    return int(judgement.is_correct == reference), 1


def _point(threshold: float | None, n_escalated: int, n: int, sums: _Array) -> CurvePoint:
    cost, unknown, calls, n_agree, n_compared, n_asked = sums.tolist()
    return CurvePoint(
        threshold=threshold,
        n_escalated=n_escalated,
        share=n_escalated / n if n else 0.0,
        cost_usd=None if unknown else cost,
        calls=int(calls),
        n_agree=int(n_agree),
        n_compared=int(n_compared),
        n_asked=int(n_asked),
    )


def _same_length(cheap: Sequence[object], **others: Sequence[object]) -> None:
    for name, values in others.items():
        if len(values) != len(cheap):
            raise ValueError(f"{name}: expected {len(cheap)} entries, got {len(values)}")
