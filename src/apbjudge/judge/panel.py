"""Several judges on one item: one judgement out of theirs, and how often they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import inf
from statistics import fmean
from typing import Any, Literal

import numpy as np

from ..errors import OptionError
from ..records import Override, Unscored, Verdict
from ..records.judgements import FACTS
from ..rubrics import Rubric
from ..statistics.dawid_skene import dawid_skene as fitted
from .consistency import ParsedVerdict, is_enforced, overrides_of, own_verdict
from .uncertainty import (
    combine,
    combine_agreeing,
    joint_account,
    joint_fingerprint,
    uncertainty_of,
)
from .worker import UNASKED, Judgement

_Decision = tuple[ParsedVerdict, tuple[Override, ...]]
MIN_JUDGES = 3
"""Fewest judges for Dawid and Skene's model."""


def panel_judgement(
    judgements: Sequence[Judgement], rubric: Rubric, *, rule: Literal["majority", "mean"]
) -> Judgement:
    """The panel's judgement of one item: a verdict with its uncertainty, or why there is none.

    Judges without a verdict abstain; when all do, the panel has none either. ``majority`` is
    ``combine``. ``mean`` is the same, but the grade is the mean of the judges' grades, not
    rounded: mostly no level of the scale, and perhaps outside the band of the flags.
    """

    def decide(verdicts: list[ParsedVerdict]) -> _Decision:
        joint, overrides = combine(verdicts, rubric)
        grades = [verdict.grade for verdict in verdicts if verdict.grade is not None]
        if rule == "mean" and grades:
            return replace(joint, grade=fmean(grades)), ()
        return joint, overrides

    fingerprint = joint_fingerprint(rule, (j.fingerprint for j in judgements))
    return _joint(judgements, rubric, fingerprint, decide)


def judgement_of_codes(judgements: Sequence[Judgement], rubric: Rubric) -> Judgement:
    """The judgement of a judge that was asked about the codes of a rubric apart.

    Each of ``judgements`` has some of the codes, all together have every one. A prediction is
    correct where none is set. The grade is the lowest that was given; where it does not fit
    the flags, the nearest that does. Without a verdict on each part there is none: a code
    that nobody decided is not one that is not set. ``uncertainty`` and ``reply_fields`` stay with
    the parts.
    """
    first = judgements[0]
    if isinstance(first, Unscored) and first.reason in UNASKED:
        return first.model_copy(update={"rubric": first.rubric and rubric.ref})
    verdicts = [each for each in judgements if isinstance(each, Verdict)]

    def decide(parts: list[ParsedVerdict]) -> _Decision:
        now, own = (_united(each, rubric) for each in (parts, map(own_verdict, verdicts)))
        because = (o.because for each in verdicts for o in each.overrides if is_enforced(o))
        return now, overrides_of(own, now, "; ".join(dict.fromkeys(because)))

    fingerprint = joint_fingerprint("codes", (j.fingerprint for j in judgements))
    joint = _joint(judgements, rubric, fingerprint, decide, needs_all=True)
    findings = zip(*(j.findings for j in judgements), strict=False)  # coded in one part alone
    changes: dict[str, Any] = {
        "judge": first.judge,
        "rubric": rubric.ref,
        "findings": tuple(next((f for f in same if f.code), same[0]) for same in findings),
    }
    if isinstance(joint, Verdict):
        reasons = (f"{'+'.join(each.errors or ())}: {each.reasoning}" for each in verdicts)
        changes |= {"uncertainty": None, "reasoning": "\n".join(reasons)}
        changes["inconsistent"] = any(each.inconsistent for each in verdicts)
    return joint.model_copy(update=changes)


def _united(verdicts: Iterable[ParsedVerdict], rubric: Rubric) -> ParsedVerdict:
    parts = list(verdicts)
    flags = {code for part in parts for code in part.flags}
    grades = [part.grade for part in parts if part.grade is not None]
    grade = rubric.scale.nearest(min(grades), flags) if grades else None
    return ParsedVerdict(not flags, grade, {code: code in flags for code in rubric.codes})


def panel_dawid_skene(
    items: Sequence[Sequence[Judgement]], rubrics: Sequence[Rubric]
) -> list[Judgement]:
    """The panel's judgements where each judge's vote counts by how reliable it seems.

    is_correct is fitted over all items (``dawid_skene``): above a probability of one half an
    item counts as correct. Flags and category come from the judges who agree with that, by
    majority: fits of their own would now and then flag an item that is called correct. The
    grade is the lower median of those judges. Where no judge has that verdict, the
    majority decides. ``uncertainty`` holds the plain shares of the judges, as for a majority.
    """
    p_correct = dawid_skene([_votes(judgements) for judgements in items])
    # One item's verdict depends on all the others through the fit.
    prints = [[judgement.fingerprint for judgement in judgements] for judgements in items]
    joint_print = joint_fingerprint("dawid-skene", (each for of_item in prints for each in of_item))
    joint: list[Judgement] = []
    for judgements, rubric, own, p in zip(items, rubrics, prints, p_correct, strict=True):
        decide = partial(_weighed, rubric=rubric, p_correct=p or 0.0)
        judgement = _joint(judgements, rubric, joint_fingerprint(joint_print, own), decide)
        if isinstance(judgement, Verdict):
            reasoning = f"{judgement.reasoning}\nprobability of correct, Dawid-Skene: {p:.3f}"
            judgement = judgement.model_copy(update={"reasoning": reasoning})
        joint.append(judgement)
    return joint


def _weighed(verdicts: list[ParsedVerdict], rubric: Rubric, p_correct: float) -> _Decision:
    agreeing = [verdict for verdict in verdicts if verdict.is_correct == (p_correct > 0.5)]
    if not agreeing:
        return combine(verdicts, rubric)
    return combine_agreeing(agreeing, rubric, graded_by=agreeing)


def _joint(
    judgements: Sequence[Judgement],
    rubric: Rubric,
    fingerprint: str,
    decide: Callable[[list[ParsedVerdict]], _Decision],
    *,
    needs_all: bool = False,
) -> Judgement:
    first = next((j for j in judgements if j.protocol), judgements[0])
    shared = "item_id case_id tested_model protocol rubric findings line content_id response_id"
    facts = (fact.name for fact in FACTS if fact.label)
    latencies = [j.latency_s for j in judgements if j.latency_s is not None]
    least = min(judgements, key=lambda j: inf if j.images_shown is None else j.images_shown)
    common: dict[str, Any] = {
        **{name: getattr(first, name) for name in (*shared.split(), "groups", *facts)},
        **joint_account(judgements),
        "images_shown": least.images_shown,
        "images_of": least.images_of,
        "frame_times": least.frame_times,
        "not_shown": tuple(dict.fromkeys(kind for j in judgements for kind in j.not_shown)),
        "judge": f"panel({'+'.join(judgement.judge for judgement in judgements)})",
        "latency_s": max(latencies, default=None),  # as if they were asked side by side
        "fingerprint": fingerprint,
    }
    verdicts = [ParsedVerdict.of(each) for each in judgements if isinstance(each, Verdict)]
    if not verdicts or (needs_all and len(verdicts) < len(judgements)):
        reasons = [judgement for judgement in judgements if isinstance(judgement, Unscored)]
        names = ((j.rubric if needs_all else j.judge) or "the row" for j in reasons)
        parts = zip(names, reasons, strict=True)
        detail = "; ".join(f"{name}: {j.reason}: {j.detail}" for name, j in parts)
        return Unscored(reason=reasons[0].reason, detail=detail, **common)
    verdict, overrides = decide(verdicts)
    return Verdict(
        **verdict.fields(),
        overrides=overrides,
        uncertainty=uncertainty_of(verdicts, "panel", rubric),
        reasoning="\n".join(map(_line, judgements)),
        **common,
    )


def _line(judgement: Judgement) -> str:
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


# Dawid and Skene ----------------------------------------------------------------------------------


def dawid_skene(votes: Sequence[Mapping[str, bool]]) -> list[float | None]:
    """The probability that each item is correct (doi:10.2307/2346806); None where nobody voted.

    Judges, of whom one may be missing on an item, are weighed by how well they agree with the
    others. It assumes that judges err independently given the truth: models of one family seldom
    do, so the probabilities are too sure of themselves. It knows no human label and can't see a
    fault that most judges share.
    """
    judges = sorted({judge for item in votes for judge in item})
    refuse_too_few(len(judges))
    answers = np.array([[int(item.get(judge, -1)) for judge in judges] for item in votes])
    return [None if np.isnan(p) else float(p) for p in fitted(answers)]


def refuse_too_few(n_judges: int) -> None:
    """Refuses a panel of fewer judges than Dawid and Skene's model can be fitted to."""
    if n_judges < MIN_JUDGES:
        raise OptionError(
            f"panel: expected at least {MIN_JUDGES} judges for dawid-skene, got {n_judges}: "
            "when two differ, nothing tells which of them errs"
        )


# Disagreement -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgePair:
    """Two judges: items that both gave a verdict on, and those on which they agree."""

    first: str
    second: str
    n_items: int
    n_agree: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Counts of items on which judges differ in ``is_correct``.

    Of ``n_items``, ``n_shared`` have at least two verdicts, which differ on ``n_split``.
    """

    n_items: int
    n_shared: int
    n_split: int
    pairs: tuple[JudgePair, ...]


class VoteCounts:
    """Counts where judges differ; judges without a verdict on an item are left out there."""

    def __init__(self) -> None:
        self._judges: dict[str, None] = {}
        self._n_items = self._n_shared = self._n_split = 0
        self._shared = Counter[tuple[str, str]]()
        self._agreeing = Counter[tuple[str, str]]()

    def add(self, judgements: Sequence[Judgement]) -> None:
        """Adds an item with the judgements of all judges, in the same order as of every item."""
        self._judges |= dict.fromkeys(judgement.judge for judgement in judgements)
        votes = _votes(judgements)
        self._n_items += 1
        self._n_shared += len(votes) > 1
        self._n_split += len(set(votes.values())) > 1
        for one, other in combinations(votes, 2):
            self._shared[one, other] += 1
            self._agreeing[one, other] += votes[one] == votes[other]

    @property
    def disagreement(self) -> Disagreement:
        """The counts of all items so far."""
        return Disagreement(
            n_items=self._n_items,
            n_shared=self._n_shared,
            n_split=self._n_split,
            pairs=tuple(
                JudgePair(*pair, self._shared[pair], self._agreeing[pair])
                for pair in combinations(self._judges, 2)
            ),
        )


def _votes(judgements: Sequence[Judgement]) -> dict[str, bool]:
    return {j.judge: j.is_correct for j in judgements if isinstance(j, Verdict)}
