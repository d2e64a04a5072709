"""Several judges on one item: one judgement out of theirs, and how often they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import combinations
from math import fsum
from typing import Any, Literal

import orjson

from ..records import Override, Unscored, Usage, Verdict
from ..rubrics import Rubric
from .consistency import ParsedVerdict
from .dawid_skene import dawid_skene
from .uncertainty import combine, combine_agreeing, uncertainty_of

Rule = Literal["majority", "mean"]


def panel_judgement(
    judgements: Sequence[Verdict | Unscored], rubric: Rubric, *, rule: Rule
) -> Verdict | Unscored:
    """The panel's judgement of one item.

    Judges without a verdict abstain; when all do, the panel has none either.

    Args:
        judgements: One of each judge, at least one, all on the same item.
        rubric: What they were made by.
        rule: ``majority``: as ``combine`` says. ``mean``: the same, but the grade is the mean
            of the judges' grades, not rounded. It is then mostly no level of the scale, and may
            lie outside the band of the flags.

    Returns:
        A verdict whose ``doubt`` is over the judges that gave one, or why there is none.

    Raises:
        ValueError: If there is no judgement, or they are on different items.
    """
    _same_item(judgements)
    fingerprint = _fingerprint(judgements, rule)
    verdicts = _parsed(judgements)
    if not verdicts:
        return _no_verdict(judgements, fingerprint)
    joint, overrides = combine(verdicts, rubric)
    grades = [verdict.grade for verdict in verdicts if verdict.grade is not None]
    if rule == "mean" and grades:
        joint, overrides = replace(joint, grade=fsum(grades) / len(grades)), ()
    return _verdict(judgements, rubric, joint, overrides, fingerprint)


def panel_dawid_skene(
    items: Sequence[Sequence[Verdict | Unscored]], rubrics: Sequence[Rubric]
) -> list[Verdict | Unscored]:
    """The panel's judgements where each judge's vote counts by how reliable it seems.

    is_correct is fitted over all items (``dawid_skene``): above a probability of one half an
    item counts as correct. Flags and category come from the judges who agree with that, by
    majority: fits of their own would now and then flag an item that is called correct. The
    grade is the lower median of those judges. Where no judge has that verdict, the
    majority decides. ``doubt`` holds the plain shares of the judges, as for a majority.

    Args:
        items: Per item one judgement of each judge, distinguished by ``judge``.
        rubrics: The rubric of each item.

    Returns:
        One judgement per item, in their order.

    Raises:
        OptionError: See ``dawid_skene``.
        ValueError: If lengths differ, an item has no judgement, or a judge is there twice.
    """
    if len(items) != len(rubrics):
        raise ValueError(f"rubrics: expected {len(items)}, one per item, got {len(rubrics)}")
    for judgements in items:
        _same_item(judgements)
    fit = dawid_skene([_votes(judgements) for judgements in items])
    # One item's verdict depends on all the others through the fit.
    whole = _fingerprint([j for judgements in items for j in judgements], "dawid-skene")
    return [
        _weighed(judgements, rubric, p_correct, _fingerprint(judgements, whole))
        for judgements, rubric, p_correct in zip(items, rubrics, fit.p_correct, strict=True)
    ]


def _weighed(
    judgements: Sequence[Verdict | Unscored],
    rubric: Rubric,
    p_correct: float | None,
    fingerprint: str,
) -> Verdict | Unscored:
    if p_correct is None:
        return _no_verdict(judgements, fingerprint)
    verdicts = _parsed(judgements)
    agreeing = [verdict for verdict in verdicts if verdict.is_correct == (p_correct > 0.5)]
    if agreeing:
        joint, overrides = combine_agreeing(agreeing, rubric, graded_by=agreeing)
    else:
        joint, overrides = combine(verdicts, rubric)
    verdict = _verdict(judgements, rubric, joint, overrides, fingerprint)
    note = f"probability of correct, Dawid-Skene: {p_correct:.3f}"
    return verdict.model_copy(update={"reasoning": f"{verdict.reasoning}\n{note}"})


# Disagreement -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """Two judges.

    Attributes:
        first: Name of the one.
        second: Name of the other.
        n_items: Items that both gave a verdict on.
        n_agree: Those on which they agree whether the plan is correct.
    """

    first: str
    second: str
    n_items: int
    n_agree: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """How often judges differ on whether a plan is correct.

    Attributes:
        n_items: All items.
        n_shared: Items with at least two verdicts.
        n_split: Those on which the verdicts are not all the same.
        pairs: Every two judges, in the order in which they first appear.
    """

    n_items: int
    n_shared: int
    n_split: int
    pairs: tuple[Pair, ...]


def disagreement(items: Iterable[Sequence[Verdict | Unscored]]) -> Disagreement:
    """Counts where judges differ; judges without a verdict on an item are left out there.

    Args:
        items: Per item one judgement of each judge, distinguished by ``judge``.

    Raises:
        ValueError: If a judge is there twice on one item.
    """
    judges: dict[str, None] = {}
    votes: list[dict[str, bool]] = []
    for judgements in items:
        judges |= dict.fromkeys(judgement.judge for judgement in judgements)
        votes.append(_votes(judgements))
    shared = [item for item in votes if len(item) > 1]
    return Disagreement(
        n_items=len(votes),
        n_shared=len(shared),
        n_split=sum(len(set(item.values())) > 1 for item in shared),
        pairs=tuple(_pair(a, b, shared) for a, b in combinations(judges, 2)),
    )


def _pair(first: str, second: str, votes: Iterable[Mapping[str, bool]]) -> Pair:
    both = [(item[first], item[second]) for item in votes if first in item and second in item]
    return Pair(first, second, len(both), sum(one == other for one, other in both))


def _votes(judgements: Sequence[Verdict | Unscored]) -> dict[str, bool]:
    names = [judgement.judge for judgement in judgements]
    if len(set(names)) < len(names):
        raise ValueError(f"judgements: expected each judge once, got {', '.join(names)}")
    return {j.judge: j.is_correct for j in judgements if isinstance(j, Verdict)}


# Putting together ---------------------------------------------------------------------------------


def _same_item(judgements: Sequence[Verdict | Unscored]) -> None:
    if not judgements:
        raise ValueError("judgements: expected at least one, got none")
    items = {(j.item_id, j.tested_model) for j in judgements}
    protocols = {j.protocol for j in judgements if j.protocol}  # none for a row that was unusable
    if len(items) > 1 or len(protocols) > 1:
        n = max(len(items), len(protocols))
        raise ValueError(f"judgements: expected one item, got {n}")


def _parsed(judgements: Iterable[Verdict | Unscored]) -> list[ParsedVerdict]:
    return [ParsedVerdict.of(each) for each in judgements if isinstance(each, Verdict)]


def _verdict(
    judgements: Sequence[Verdict | Unscored],
    rubric: Rubric,
    joint: ParsedVerdict,
    overrides: tuple[Override, ...],
    fingerprint: str,
) -> Verdict:
    return Verdict(
        **joint.fields(),
        overrides=overrides,
        doubt=uncertainty_of(_parsed(judgements), "panel", rubric),
        reasoning="\n".join(map(_line, judgements)),
        **_common(judgements, fingerprint),
    )


def _no_verdict(judgements: Sequence[Verdict | Unscored], fingerprint: str) -> Unscored:
    reasons = [judgement for judgement in judgements if isinstance(judgement, Unscored)]
    detail = "; ".join(f"{j.judge}: {j.reason}: {j.detail}" for j in reasons)
    return Unscored(reason=reasons[0].reason, detail=detail, **_common(judgements, fingerprint))


def _common(judgements: Sequence[Verdict | Unscored], fingerprint: str) -> dict[str, Any]:
    first = next((j for j in judgements if j.protocol), judgements[0])
    shared = (
        "item_id case_id tested_model protocol rubric plan_cost uses_distractor matches_reference "
        "findings line content_id groups"
    )
    return {
        **{name: getattr(first, name) for name in shared.split()},
        "judge": f"panel({'+'.join(judgement.judge for judgement in judgements)})",
        "raw": "\n\n".join(j.raw for j in judgements if j.raw) or None,
        "usage": total_usage(judgements),
        "cost_usd": total_cost(judgements),
        # The judges are taken to be asked side by side.
        "latency_s": max(
            (j.latency_s for j in judgements if j.latency_s is not None), default=None
        ),
        "fingerprint": fingerprint,
    }


def total_cost(judgements: Iterable[Verdict | Unscored]) -> float | None:
    """What some judgements cost together; None as soon as one price is unknown."""
    costs = [judgement.cost_usd for judgement in judgements]
    known = [cost for cost in costs if cost is not None]
    return fsum(known) if len(known) == len(costs) else None


def total_usage(judgements: Iterable[Verdict | Unscored]) -> Usage | None:
    """Tokens and calls of some judgements together; None when none of them says."""
    usages = [judgement.usage for judgement in judgements if judgement.usage is not None]
    return sum(usages, Usage()) if usages else None


def _line(judgement: Verdict | Unscored) -> str:
    """One judge's vote, such as ``a: not correct 0.4 (E2, E4)``."""
    if isinstance(judgement, Unscored):
        return f"{judgement.judge}: no verdict ({judgement.reason})"
    parts = [f"{judgement.judge}: {'correct' if judgement.is_correct else 'not correct'}"]
    if judgement.grade is not None:
        parts.append(str(judgement.grade))
    flags = [code for code, is_set in (judgement.errors or {}).items() if is_set]
    if flags:
        parts.append(f"({', '.join(flags)})")
    if judgement.category is not None:
        parts.append(f"(category {judgement.category})")
    return " ".join(parts)


def _fingerprint(judgements: Iterable[Verdict | Unscored], rule: str) -> str:
    content = [rule, *(judgement.fingerprint for judgement in judgements)]
    return sha256(orjson.dumps(content)).hexdigest()[:32]
