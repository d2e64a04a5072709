"""Consistency: does the judge say the same when it is asked the same?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np

from ...statistics.estimates import transformed
from ...statistics.proportions import bounded
from ...statistics.variance_components import PARTS, Components, Part, nested_components
from ..heard import AGAIN, MAIN, WARM, Heard, Observed, passed, sample_of
from ..verdicts import (
    Exhibit,
    Figure,
    Measure,
    Probe,
    Table,
    concluded,
    cost_of,
    exhibits_of,
    level_for,
    said_of,
    unasked,
)
from .measuring import rate
from .pairing import repeats_of
from .telling import mean_text, without_verdict

NAME = "consistency"
TITLE = "Consistency"
QUESTION = "Does the judge say the same when it is asked the same again?"

SAME = 0.10
"""Two runs that differ in more than a tenth of their verdicts can't be compared item by item."""
WARMER = 0.15
"""Temperature 1 lets every doubt show; more flips than this are no doubts about a few items."""

Group = list[Observed]

_WORDS: Mapping[Part, str] = {
    "item": "item (which plan)",
    "prompt": "prompt (how it is shown or worded)",
    "repeat": "repeat (asked again)",
}


def probe(heard: Heard) -> Probe:
    """Holds flips between replies to the same variant against the limits.

    Args:
        heard: All that was said. The main arm and ``again-1``, … are one group of replies, those
            of ``warm-1``, … another, of which two at least have to be there.

    Returns:
        The probe; could not tell where nothing was asked again.
    """
    groups = _groups(heard)
    asked = _asked(heard)
    if not any(groups.values()):
        because = "nothing was asked again, or nothing of it has a verdict"
        return replace(unasked(NAME, TITLE, QUESTION, because), cost=cost_of(asked))
    measures = _measures(groups)
    parts = _components(heard)
    exhibits = _exhibits(groups)
    return concluded(
        NAME,
        TITLE,
        QUESTION,
        measures=measures,
        figures=(*_spreads(groups), *_shares(parts)),
        tables=(_arms(heard), *_parts(parts)),
        exhibits=exhibits,
        said=asked,
        notes=(*_notes(groups, parts), *without_verdict(asked)),
    )


SETTINGS, WARMTH = "same settings", "temperature 1"


def _groups(heard: Heard) -> dict[str, list[Group]]:
    return {
        SETTINGS: heard.repeats(AGAIN, with_main=True),
        WARMTH: heard.repeats(WARM, with_main=False),
    }


def _is_repeat(arm: str) -> bool:
    return arm.rpartition("-")[0] in {AGAIN, WARM}


def _asked(heard: Heard) -> list[Observed]:
    """Everything that was asked again, and the main arm's replies to the same variants."""
    again = [said for said in heard.all if _is_repeat(said.arm)]
    names = dict.fromkeys(said.variant.name for said in again)
    first = [heard.find(name) for name in names]
    return [*(said for said in first if said is not None), *again]


def _measures(groups: Mapping[str, list[Group]]) -> tuple[Measure, ...]:
    limits = {SETTINGS: SAME, WARMTH: WARMER}
    level = level_for(sum(bool(of) for of in groups.values()))
    return tuple(
        rate(
            f"flips, {name}",
            [group[0] for group in of],
            [_differing(group) for group in of],
            "at most",
            limits[name],
            level=level,
        )
        for name, of in groups.items()
        if of
    )


def _differing(group: Group) -> float:
    """Share of the pairs of replies whose verdicts differ."""
    pairs = [a.is_correct != b.is_correct for a, b in combinations(group, 2)]
    return sum(pairs) / len(pairs)


def _spreads(groups: Mapping[str, list[Group]]) -> Iterable[Figure]:
    """Root of the mean variance of the grades of one variant."""
    for name, of in groups.items():
        graded = [grades for group in of if len(grades := _with_grade(group)) > 1]
        if not graded:
            continue
        variances = np.array([_variance(group) for group in graded])
        sample = sample_of([group[0] for group in graded])
        # two grades between 0 and 1 have a variance of 0.5 at most, more have less
        mean = bounded(variances, sample, bounds=(0.0, 0.5), level=0.95)
        estimate = transformed(mean, lambda variance: sqrt(max(0.0, variance)))
        yield Figure(
            name=f"standard deviation of the grade, {name}", estimate=estimate, unit="plain"
        )


def _variance(graded: Group) -> float:
    return float(np.var([said.grade or 0.0 for said in graded], ddof=1))


def _with_grade(said: Iterable[Observed]) -> Group:
    return [one for one in said if one.grade is not None]


def _components(heard: Heard) -> Components:
    """Of grades: plans that were asked more than once, their presentations, and repeats."""
    others = _other_prompts(heard)
    rows = [
        (said, parent.variant.name, again.variant.name)
        for parent in heard.scored("base", "fault")
        for again in (parent, *others.get(parent.variant.name, ()))
        for said in _with_grade([again, *repeats_of(heard, again)])
    ]
    kept = _asked_more_than_once(rows)
    clusters = [said.variant.case_id for said, _, _ in kept]
    return nested_components(
        np.array([said.grade for said, _, _ in kept], dtype=float),
        np.array([item for _, item, _ in kept]),
        np.array([prompt for _, _, prompt in kept]),
        np.array(clusters),
    )


Row = tuple[Observed, str, str]
"""A reply, its plan, and the variant in which the plan was shown."""


def _asked_more_than_once(rows: Sequence[Row]) -> list[Row]:
    counts: dict[str, int] = {}
    for _, item, _ in rows:
        counts[item] = counts.get(item, 0) + 1
    return [row for row in rows if counts[row[1]] > 1]


def _other_prompts(heard: Heard) -> Mapping[str, list[Observed]]:
    """By plan, the variants that show or word it in another way."""
    found: dict[str, list[Observed]] = {}
    for said in heard.scored("shown", "harmless"):
        found.setdefault(said.variant.parent or "", []).append(said)
    return found


def _shares(parts: Components) -> Iterable[Figure]:
    for part in PARTS:
        if part in parts.shares and parts.shares[part].value is not None:
            name = f"share of the grades' variance, {_WORDS[part]}"
            yield Figure(name=name, estimate=parts.shares[part])


def _parts(parts: Components) -> Iterable[Table]:
    if parts.variances:
        rows = [
            (_WORDS[part], f"{value:.4f}", f"{sqrt(value):.3f}")
            for part, value in parts.variances.items()
        ]
        yield Table(
            title="Where the grades' variance comes from",
            columns=("part", "variance", "standard deviation"),
            rows=tuple(rows),
        )


def _arms(heard: Heard) -> Table:
    """By arm, on the variants that were asked again at all."""
    names = {said.variant.name for said in heard.all if _is_repeat(said.arm)}
    rows: list[tuple[str, ...]] = []
    for arm in [MAIN, *(arm for arm in heard.arms if _is_repeat(arm))]:
        said = [s for s in heard.all if s.arm == arm and s.variant.name in names and s.is_scored]
        flips = [a.is_correct != b.is_correct for a, b in heard.across(arm)]
        grades = [s.grade for s in said if s.grade is not None]
        mean = f"{sum(grades) / len(grades):.2f}" if grades else "–"
        against = "" if arm == MAIN else mean_text(flips)
        rows.append((arm, str(len(said)), mean_text(passed(said).tolist()), mean, against))
    return Table(
        title="By arm, on what was asked again",
        columns=("arm", "n", "passed", "mean grade", "flips against main"),
        rows=tuple(rows),
    )


def _exhibits(groups: Mapping[str, list[Group]]) -> tuple[tuple[Exhibit, ...], int]:
    flipped = {
        (group[0].arm, group[0].variant.name): group
        for of in groups.values()
        for group in of
        if _differing(group)
    }

    def tell(said: Observed) -> str:
        replies = flipped[said.arm, said.variant.name]
        return "; ".join(
            [said.variant.what.rstrip("."), *(f"{s.arm}: {said_of(s)}" for s in replies)]
        )

    return exhibits_of((group[0] for group in flipped.values()), tell)


def _notes(groups: Mapping[str, list[Group]], parts: Components) -> Iterable[str]:
    for name, of in groups.items():
        if not of:
            yield f"{name}: no variant has two verdicts"
    if parts.note:
        yield f"no parts of the grades' variance: {parts.note}"
    if parts.variances and not any(parts.variances.values()):
        yield "no parts of the grades' variance: they do not vary at all"
    if parts.cut:
        names = ", ".join(_WORDS[part] for part in parts.cut)
        yield f"a part of the variance came out below 0 and was set to 0: {names}"
