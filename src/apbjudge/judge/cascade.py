"""A cheap judge first, a stronger one for uncertain items, a human for the rest."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, fsum, inf, isinf, nextafter
from typing import Any

import numpy as np

from ..document.display import Shown
from ..errors import OptionError
from ..records import Unscored, Verdict
from ..statistics.proportions import wilson
from .uncertainty import joint_account, joint_fingerprint
from .worker import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationRule:
    """The rule by which items go to the stronger judge.

    Those whose entropy of a field is above so many bits, or a share of all items, 0 to 1, the most
    uncertain first. The field is ``is_correct``, ``grade``, ``category``, a code of the rubric, or
    ``max``, the largest that is known.
    """

    field: str = "is_correct"
    above: float = 0.0
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


def parse_rule(text: str) -> EscalationRule:
    """Reads a condition such as ``entropy>0.5``, ``entropy.max>=1`` or ``share=0.2``."""
    condition = text.strip()
    if match := _ENTROPY.fullmatch(condition):
        bits = float(match[3])
        above = bits if match[2] == ">" else nextafter(bits, -inf)
        return EscalationRule(field=match[1] or "is_correct", above=above)
    if match := _SHARE.fullmatch(condition):
        if (share := float(match[1])) <= 1:
            return EscalationRule(share=share)
        raise OptionError(f"--when: expected a share from 0 to 1, got {text!r}")
    raise OptionError(f"--when: expected {_FORMS}, got {text!r}")


def uncertainty_score(judgement: Judgement, rule: EscalationRule) -> float:
    """The uncertainty of a judgement of the cheap judge, in bits.

    Infinity where there is no verdict, or where the field was answered and its entropy is not
    known; 0 where the rubric does not have the field.
    """
    if isinstance(judgement, Unscored):
        return inf
    if judgement.uncertainty is None:
        raise OptionError(
            f"--when: expected judgements with a measure of uncertainty, got none from "
            f"{judgement.judge}: judge with --samples or --logprobs"
        )
    entropy = judgement.uncertainty.entropy
    if rule.field == "max":
        return max(entropy.values(), default=inf)
    if rule.field in entropy:
        return entropy[rule.field]
    if rule.field in ("is_correct", "grade", "category"):
        return inf if getattr(judgement, rule.field) is not None else 0.0
    if judgement.errors is None:
        return 0.0
    if rule.field not in judgement.errors:
        codes = ", ".join(judgement.errors)
        raise OptionError(
            f"--when: expected a code of rubric {judgement.rubric} ({codes}), got {rule.field}"
        )
    return inf


def choose(scores: Sequence[float], rule: EscalationRule) -> list[int]:
    """Items that go to the stronger judge, by uncertainty: indexes, the most uncertain first.

    Ties are in input order, and a share is rounded up to whole items. Items without a verdict
    (infinity) always come first and all of them come, also where they are more than the share.
    """
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    if rule.share is not None:
        n = ceil(rule.share * len(scores) - 1e-9)
        return order[: max(n, sum(score == inf for score in scores))]
    return [i for i in order if scores[i] > rule.above]


def cascade_judgement(
    cheap: Judgement, strong: Judgement | None, *, strong_judge: str
) -> Judgement:
    """The judgement of both judges together; the strong one may not have been asked.

    The strong judge's verdict decides where there is one, else the cheap judge's; ``decided_by``
    says whose it is. ``uncertainty`` stays the cheap judge's, as that is what sent the item on.
    """
    judgements = [cheap] if strong is None else [cheap, strong]
    latencies = [j.latency_s for j in judgements if j.latency_s is not None]
    changes: dict[str, Any] = {
        **joint_account(judgements),
        "judge": f"cascade({cheap.judge}->{strong_judge})",
        "decided_by": cheap.judge,
        "groups": cheap.groups,
        "line": cheap.line,
        "latency_s": fsum(latencies) if latencies else None,
        "fingerprint": joint_fingerprint("cascade", (j.fingerprint for j in judgements)),
    }
    if isinstance(strong, Verdict):
        uncertainty = cheap.uncertainty if isinstance(cheap, Verdict) else strong.uncertainty
        return strong.model_copy(
            update=changes | {"decided_by": strong.judge, "uncertainty": uncertainty}
        )
    if isinstance(strong, Unscored) and isinstance(cheap, Unscored):
        changes["detail"] = f"{cheap.detail}; {strong.judge}: {strong.reason}: {strong.detail}"
    return cheap.model_copy(update=changes)


# For humans ---------------------------------------------------------------------------------------


def queue(
    cheap: Sequence[Judgement], strong: Sequence[Judgement | None], rule: EscalationRule
) -> list[dict[str, Any]]:
    """The items that the judges leave to humans, most uncertain first, ties in input order.

    Their ``reason`` is ``no verdict`` (the last judge asked gave none), ``not asked`` (it was due
    to go to the strong judge and the budget ended before) or ``in doubt`` (the strong judge is
    uncertain as well), ``entropy`` the uncertainty of the last judge that was asked, None without
    a verdict.

    A strong judge's verdict without a measure of uncertainty is taken as final. Where ``rule`` is a
    share, its uncertainty counts from that of the least uncertain item that was due to go to it.
    """
    scores = [uncertainty_score(judgement, rule) for judgement in cheap]
    due = set(choose(scores, rule))
    above = rule.above
    if rule.share is not None:
        least = min((scores[i] for i in due if scores[i] < inf), default=0.0)
        above = nextafter(least, -inf) if least > 0 else 0.0
    queued: list[tuple[float, int, str]] = []
    for i, last in enumerate(strong):
        if last is None or (isinstance(last, Unscored) and last.reason == "budget"):
            if i in due or last is not None:
                queued.append((-scores[i], i, "not asked"))
        elif isinstance(last, Unscored):
            queued.append((-inf, i, "no verdict"))
        elif last.uncertainty is not None and (score := uncertainty_score(last, rule)) > above:
            queued.append((-score, i, "in doubt"))
    return [
        {
            "item_id": cheap[i].item_id,
            "tested_model": cheap[i].tested_model,
            "line": cheap[i].line,
            "reason": reason,
            "entropy": None if isinf(score) else -score,
        }
        for score, i, reason in sorted(queued)
    ]


# What a threshold costs ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Cost and agreement of a cascade at one threshold.

    Attributes:
        threshold: Items with this many bits or more go to the strong judge; infinity means
            those without a verdict alone, None no item at all.
        share: Share of the escalated items, 0 to 1; 0 without items.
        cost_usd: Price of all cheap judgements and these strong ones; None when one is unknown.
        n_agree: Items whose verdict is the reference, of ``n_compared`` that have both.
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
        """True if the strong judge was asked about every item that this point escalates."""
        return self.n_asked == self.n_escalated


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class CascadeCurve(Shown):
    """Cost and agreement of a cascade by threshold, and the number of items it leaves to humans.

    There is a point for every threshold down to which the strong judge was asked; agreement is
    with the verdicts of the judge ``reference``.
    """

    points: tuple[CurvePoint, ...]
    reference: str
    n_queued: int

    def to_csv(self) -> str:
        """The points as CSV; see ``curve_csv``."""
        return curve_csv(self.points)

    def _printed(self) -> str:
        from .summary_text import ensemble_text

        return ensemble_text(self)


def curve(
    cheap: Sequence[Judgement],
    strong: Sequence[Judgement | None],
    reference: Sequence[bool | None],
    *,
    field: str = "is_correct",
) -> list[CurvePoint]:
    """Cost and agreement at every threshold that makes a difference, from no item escalated to all.

    The reference of an item is its human label, else the strong judge's verdict. Where it is
    the latter, the item agrees as soon as it is escalated: such a curve shows how much of the
    strong judge's work the cheap one can take over, not how right either is. An escalated item
    without strong verdict keeps the cheap one; what was never asked costs nothing.
    """
    rule = EscalationRule(field=field)
    n = len(cheap)
    scores = np.array([uncertainty_score(judgement, rule) for judgement in cheap])
    # per item: price, unknown prices, calls, items that agree, items compared, items asked about
    before, changes = np.zeros((n, 6)), np.zeros((n, 6))
    for i, (weak, better, label) in enumerate(zip(cheap, strong, reference, strict=True)):
        decided = better if isinstance(better, Verdict) else weak
        truth = better.is_correct if label is None and isinstance(better, Verdict) else label
        before[i] = (*_spent(weak), *_match(weak, truth=truth), 0)
        gained = np.subtract(_match(decided, truth=truth), _match(weak, truth=truth))
        changes[i] = (*_spent(better), *gained, better is not None)
    order = np.argsort(-scores, kind="stable")
    totals = np.cumsum(np.vstack([before.sum(axis=0), changes[order]]), axis=0)
    ordered = scores[order].tolist()
    ends = [end for end in range(1, n + 1) if end == n or ordered[end] != ordered[end - 1]]
    points: list[CurvePoint] = []
    for end in (0, *ends):
        cost, unknown, *counts = totals[end].tolist()
        calls, n_agree, n_compared, n_asked = map(int, counts)
        points.append(
            CurvePoint(
                threshold=ordered[end - 1] if end else None,
                n_escalated=end,
                share=end / n if n else 0.0,
                cost_usd=None if unknown else cost,
                calls=calls,
                n_agree=n_agree,
                n_compared=n_compared,
                n_asked=n_asked,
            )
        )
    return points


def _spent(judgement: Judgement | None) -> tuple[float, int, int]:
    if judgement is None or (isinstance(judgement, Unscored) and judgement.reason == "bad_input"):
        return 0.0, 0, 0
    calls = judgement.usage.calls if judgement.usage else 0
    return judgement.cost_usd or 0.0, int(judgement.cost_usd is None), calls


def _match(judgement: Judgement, *, truth: bool | None) -> tuple[int, int]:
    if truth is None or isinstance(judgement, Unscored):
        return 0, 0
    return int(judgement.is_correct == truth), 1


def curve_csv(points: Sequence[CurvePoint]) -> str:
    """All thresholds as CSV: entropy in bits, shares from 0 to 1, 95 % Wilson intervals."""
    counts = "n_escalated share cost_usd calls n_agree n_compared".split()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["threshold", *counts, "agreement", "low", "high"])
    for point in points:
        n, agreement = point.n_compared, [None, None, None]
        if n:
            agreement = [point.n_agree / n, *wilson(point.n_agree, n)]
        values = (getattr(point, name) for name in counts)
        writer.writerow([threshold_text(point), *values, *agreement])
    return out.getvalue()


def threshold_text(point: CurvePoint) -> str:
    """The threshold of a point; ``none`` if nothing is escalated."""
    if point.threshold is None:
        return "none"
    return "no verdict" if isinf(point.threshold) else f"{point.threshold:.4f}"
