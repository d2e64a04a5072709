"""Consistency: does the judge give the same verdict on the same item?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, combinations
from math import sqrt

import numpy as np

from ...statistics.estimates import Estimate, transformed
from ...statistics.proportions import bounded
from ...statistics.variance_components import PARTS, Components, Part, nested_components
from ..outcomes import ProbeMetric, ProbeTable, verdict_text
from ..responses import AGAIN, MAIN, WARM, Response, sample_of
from .base import AuditProbe
from .measures import (
    Groups,
    Value,
    count_text,
    flipped,
    mean_text,
    passed_text,
    rate,
    repeats_of,
    unscored_note,
)

SAME = 0.10
"""If more than a tenth of verdicts differ between repetitions, items can't be compared singly."""
WARMER = 0.15
"""Temperature 1 shows every uncertainty; more flips than this do not come from a few items."""

_LIMITS = {"same settings": SAME, "temperature 1": WARMER}
_WORDS: dict[Part, str] = {
    "item": "item (which plan)",
    "prompt": "prompt (how it is shown or worded)",
    "repeat": "repeat (asked again)",
}


class Consistency(AuditProbe):
    """Compares flips between responses to the same variant with the limits.

    The main run and ``again-1``, … are one group of responses; ``warm-1``, … are another, which
    needs at least two runs.
    """

    name = "consistency"
    title = "Consistency"
    question = "Does the judge give the same verdict when asked again?"
    nothing = "no request was repeated, or no repeated one has a verdict"

    @cached_property
    def groups(self) -> Groups[Sequence[Response]]:
        """By settings, groups of at least two responses to one variant."""
        return {
            "same settings": [*self.audit.repeats(AGAIN, with_main=True)],
            "temperature 1": [*self.audit.repeats(WARM, with_main=False)],
        }

    @cached_property
    def runs(self) -> dict[str, list[Response]]:
        """Responses by run, of the variants that were asked again."""
        again = [MAIN, *self.audit.runs_of(AGAIN), *self.audit.runs_of(WARM)]
        names = {r.variant.name for r in self.audit.all if r.run in again[1:]}
        return {
            run: [r for r in self.audit.all if r.run == run and r.variant.name in names]
            for run in again
        }

    @cached_property
    def components(self) -> Components:
        """Variance components of the grades of plans with several presentations or repeats."""
        others: dict[str, list[Response]] = {}
        for response in self.audit.scored("shown", "harmless"):
            others.setdefault(response.variant.parent or "", []).append(response)
        rows = [
            (reply, parent.variant.name, again.variant.name)
            for parent in self.audit.scored("base", "fault")
            for again in (parent, *others.get(parent.variant.name, ()))
            for reply in (again, *repeats_of(self.audit, again))
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

    def values(self) -> Iterable[Value | None]:
        """Flips by settings, spread of the grades and its sources."""
        if not any(self.groups.values()):
            return
        for name, of in self.groups.items():
            yield rate(f"flips, {name}", of, _differing, "at most", _LIMITS[name])
        for name, of in self.groups.items():
            if graded := [group for group in of if len(_grades(group)) > 1]:
                title = f"standard deviation of the grade, {name}"
                yield ProbeMetric(name=title, estimate=_deviation(graded), unit="plain")
        for part in PARTS:
            share = self.components.shares.get(part)
            if share is not None and share.value is not None:
                name = f"share of the grades' variance, {_WORDS[part]}"
                yield ProbeMetric(name=name, estimate=share)

    def used(self) -> Iterable[Response]:
        """The variants that were asked again, with all responses to them."""
        return chain(*self.runs.values())

    def tables(self) -> Iterable[ProbeTable]:
        """Verdicts and grades by run, and the parts of the grades' variance."""
        scored = {run: [r for r in of if r.is_scored] for run, of in self.runs.items()}

        def mean_grade(run: str) -> str:
            grades = _grades(scored[run])
            return f"{sum(grades) / len(grades):.2f}" if grades else "–"

        def against_main(run: str) -> str:
            return "" if run == MAIN else mean_text(map(flipped, self.audit.across(run)))

        yield ProbeTable.of(
            "By run, over the repeated requests",
            "run",
            {run: run for run in scored},
            {
                "n": lambda run: count_text(scored[run]),
                "passed": lambda run: passed_text(scored[run]),
                "mean grade": mean_grade,
                "flips against main": against_main,
            },
        )
        if variances := self.components.variances:
            yield ProbeTable.of(
                "Where the grades' variance comes from",
                "part",
                {_WORDS[part]: value for part, value in variances.items()},
                {
                    "variance": lambda value: f"{value:.4f}",
                    "standard deviation": lambda value: f"{sqrt(value):.3f}",
                },
            )

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Variants with differing verdicts, and the verdicts."""
        for group in filter(_differing, chain(*self.groups.values())):
            verdicts = (f"{r.run}: {verdict_text(r)}" for r in group)
            yield group[0], "; ".join([group[0].variant.what.rstrip("."), *verdicts])

    def notes(self) -> Iterable[str]:
        """Reasons why measures could not be computed."""
        parts = self.components
        for name, of in self.groups.items():
            if not of:
                yield f"{name}: no variant has two verdicts"
        if parts.note:
            yield f"no parts of the grades' variance: {parts.note}"
        if parts.variances and not any(parts.variances.values()):
            yield "no parts of the grades' variance: the grades are all equal"
        if parts.cut:
            names = ", ".join(_WORDS[part] for part in parts.cut)
            yield f"a part of the variance came out below 0 and was set to 0: {names}"
        yield from unscored_note([*self.used()])


def _differing(group: Sequence[Response]) -> float:
    """Share of the pairs of responses whose verdicts differ."""
    pairs = [*combinations(group, 2)]
    return sum(map(flipped, pairs)) / len(pairs)


def _grades(group: Iterable[Response]) -> list[float]:
    return [r.grade for r in group if r.grade is not None]


def _deviation(groups: Sequence[Sequence[Response]]) -> Estimate:
    """Root of the mean variance of the grades of one variant."""
    variances = np.array([float(np.var(_grades(group), ddof=1)) for group in groups])
    # two grades between 0 and 1 have a variance of 0.5 at most, more have less
    sample = sample_of([group[0] for group in groups])
    mean = bounded(variances, sample, bounds=(0.0, 0.5), level=0.95)
    return transformed(mean, lambda variance: sqrt(max(0.0, variance)))
