"""Consistency: does the judge say the same when it is asked the same?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import sqrt

import numpy as np

from ...statistics.estimates import transformed
from ...statistics.proportions import bounded
from ...statistics.variance_components import PARTS, Components, Part, nested_components
from ..outcomes import Probe, ProbeMetric, ProbeSpec, ProbeTable, decide, verdict_text
from ..responses import AGAIN, MAIN, WARM, AuditResponses, Response, passed, sample_of
from .measures import mean_text, rate, repeats_of, unscored_note

SPEC = ProbeSpec(
    name="consistency",
    title="Consistency",
    question="Does the judge give the same verdict when asked again?",
)

SAME = 0.10
"""Two runs that differ in more than a tenth of their verdicts can't be compared item by item."""
WARMER = 0.15
"""Temperature 1 shows every uncertainty; more flips than this are not about a few items."""

Groups = Mapping[str, list[list[Response]]]
"""By settings, the responses to one variant, two at least."""

_LIMITS = {"same settings": SAME, "temperature 1": WARMER}
_WORDS: Mapping[Part, str] = {
    "item": "item (which plan)",
    "prompt": "prompt (how it is shown or worded)",
    "repeat": "repeat (asked again)",
}


def probe(audit: AuditResponses) -> Probe:
    """Compares flips between responses to the same variant with the limits.

    The main run and ``again-1``, … are one group of responses, those of ``warm-1``, … another, of
    which two at least have to be there.
    """
    again = [r for r in audit.all if _is_repeat(r.run)]
    names = dict.fromkeys(r.variant.name for r in again)
    first = [audit.find(name) for name in names]
    used = [*(r for r in first if r is not None), *again]
    groups: Groups = {
        "same settings": audit.repeats(AGAIN, with_main=True),
        "temperature 1": audit.repeats(WARM, with_main=False),
    }
    if not any(groups.values()):
        return SPEC.unasked("no request was repeated, or no repeated one has a verdict", used)
    parts = _components(audit)
    return SPEC.result(
        decide(
            rate(
                f"flips, {name}",
                [group[0] for group in of],
                [_differing(group) for group in of],
                "at most",
                _LIMITS[name],
            )
            for name, of in groups.items()
        ),
        used,
        figures=_figures(groups, parts),
        tables=_tables(audit, parts),
        examples=_examples(groups),
        notes=[*_notes(groups, parts), *unscored_note(used)],
    )


def _is_repeat(run: str) -> bool:
    return run.rpartition("-")[0] in {AGAIN, WARM}


def _differing(group: Sequence[Response]) -> float:
    """Share of the pairs of responses whose verdicts differ."""
    pairs = [a.is_correct != b.is_correct for a, b in combinations(group, 2)]
    return sum(pairs) / len(pairs)


def _grades(group: Iterable[Response]) -> list[float]:
    return [r.grade for r in group if r.grade is not None]


def _components(audit: AuditResponses) -> Components:
    """Variance components of the grades of plans with several presentations or repeats."""
    others: dict[str, list[Response]] = {}
    for response in audit.scored("shown", "harmless"):
        others.setdefault(response.variant.parent or "", []).append(response)
    rows = [
        (reply, parent.variant.name, again.variant.name)
        for parent in audit.scored("base", "fault")
        for again in (parent, *others.get(parent.variant.name, ()))
        for reply in (again, *repeats_of(audit, again))
        if reply.grade is not None
    ]
    counts = Counter(item for _, item, _ in rows)
    rows = [row for row in rows if counts[row[1]] > 1]
    return nested_components(
        np.array([reply.grade for reply, _, _ in rows], dtype=float),
        np.array([item for _, item, _ in rows]),
        np.array([prompt for _, _, prompt in rows]),
        np.array([reply.variant.case_id for reply, _, _ in rows]),
    )


def _figures(groups: Groups, parts: Components) -> Iterable[ProbeMetric]:
    for name, of in groups.items():
        graded = [(group[0], grades) for group in of if len(grades := _grades(group)) > 1]
        if graded:  # root of the mean variance of the grades of one variant
            variances = np.array([float(np.var(grades, ddof=1)) for _, grades in graded])
            # two grades between 0 and 1 have a variance of 0.5 at most, more have less
            sample = sample_of([first for first, _ in graded])
            mean = bounded(variances, sample, bounds=(0.0, 0.5), level=0.95)
            estimate = transformed(mean, lambda variance: sqrt(max(0.0, variance)))
            title = f"standard deviation of the grade, {name}"
            yield ProbeMetric(name=title, estimate=estimate, unit="plain")
    for part in PARTS:
        if part in parts.shares and parts.shares[part].value is not None:
            name = f"share of the grades' variance, {_WORDS[part]}"
            yield ProbeMetric(name=name, estimate=parts.shares[part])


def _tables(audit: AuditResponses, parts: Components) -> Iterable[ProbeTable]:
    names = {r.variant.name for r in audit.all if _is_repeat(r.run)}
    rows: list[tuple[str, ...]] = []
    for run in [MAIN, *filter(_is_repeat, audit.runs)]:
        of = [r for r in audit.all if r.run == run and r.variant.name in names and r.is_scored]
        grades = _grades(of)
        mean = f"{sum(grades) / len(grades):.2f}" if grades else "–"
        flips = [a.is_correct != b.is_correct for a, b in audit.across(run)]
        against = "" if run == MAIN else mean_text(flips)
        rows.append((run, str(len(of)), mean_text(passed(of).tolist()), mean, against))
    yield ProbeTable(
        title="By run, over the repeated requests",
        columns=("run", "n", "passed", "mean grade", "flips against main"),
        rows=tuple(rows),
    )
    if parts.variances:
        shares = [
            (_WORDS[part], f"{value:.4f}", f"{sqrt(value):.3f}")
            for part, value in parts.variances.items()
        ]
        yield ProbeTable(
            title="Where the grades' variance comes from",
            columns=("part", "variance", "standard deviation"),
            rows=tuple(shares),
        )


def _examples(groups: Groups) -> Iterable[tuple[Response, str]]:
    for group in (group for of in groups.values() for group in of if _differing(group)):
        verdicts = (f"{r.run}: {verdict_text(r)}" for r in group)
        yield group[0], "; ".join([group[0].variant.what.rstrip("."), *verdicts])


def _notes(groups: Groups, parts: Components) -> Iterable[str]:
    for name, of in groups.items():
        if not of:
            yield f"{name}: no variant has two verdicts"
    if parts.note:
        yield f"no parts of the grades' variance: {parts.note}"
    if parts.variances and not any(parts.variances.values()):
        yield "no parts of the grades' variance: the grades are all equal"
    if parts.cut:
        names = ", ".join(_WORDS[part] for part in parts.cut)
        yield f"a part of the variance came out below 0 and was set to 0: {names}"
