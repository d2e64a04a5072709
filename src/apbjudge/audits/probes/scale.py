"""Leniency, use of the six grades, contradictions, halo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations
from math import log2

import numpy as np

from ...records import ERROR_CODES, ErrorCode
from ...statistics.agreement import phi
from ...statistics.estimates import Array, Estimate, Ids
from ...statistics.jackknife import jackknife
from ...statistics.proportions import bounded, share
from ...statistics.sample import Sample, tabulate
from ..outcomes import ProbeMetric, ProbeTable, verdict_text
from ..responses import Response, passed, sample_of
from .base import AuditProbe
from .measures import (
    Groups,
    Split,
    Value,
    count_text,
    error,
    evenly,
    grouped,
    of_truth,
    passed_text,
    rate,
    shift,
)

TILT = 0.25
"""A judge that errs four times as often to one side as it may to the other biases every rate."""
ONE_GRADE = 0.85
"""A judge that gives most faults of three codes or severities the same grade does not grade."""
CONTRADICTIONS = 0.12
"""A rule of ours resolves each contradictory reply; 50 cases without one exclude a rate of 0.12."""
FURTHER = 0.20
"""Two codes beyond the one fault and its consequences are a halo, not an oversight."""

LEAST_KINDS = 3
LEAST_GRADED = 10
LEAST_OF_CODE = 5
GRADES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_BALANCE = "lenient balance"
_OF_PREDICTIONS = "lenient balance, predictions"
_SIDES = {
    _BALANCE: ("faulty plans passed, every code with the same weight", "correct plans failed"),
    _OF_PREDICTIONS: ("wrong predictions passed", "right predictions failed"),
}
_PAIRS = tuple(combinations(range(len(ERROR_CODES)), 2))
_CELLS = ((0, 0), (0, 1), (1, 0), (1, 1))
_MASKS = 2 ** len(ERROR_CODES)


class Scale(AuditProbe):
    """Measures leniency, use of grades, contradictions and halo."""

    name = "scale"
    title = "Leniency, scale use, halo"
    question = "Is the judge lenient or severe, does it use its scale, does one fault bring others?"
    nothing = "needs verdicts on plans whose truth is known"

    @cached_property
    def unproven(self) -> Groups[Response]:
        """By code, planted faults of which the judge was shown no proof."""
        return grouped((r for r in self.audit.faults if not r.is_informed), _code)

    @cached_property
    def caught(self) -> list[Response]:
        """Planted faults with the judge's own verdict *not correct*."""
        return [r for r in self.audit.faults if not r.is_overridden and not r.is_correct]

    @cached_property
    def graded_faults(self) -> list[Response]:
        """Caught faults with a grade; empty if too few, or with too few codes and severities."""
        graded = [r for r in self.caught if r.grade is not None]
        return graded if len(graded) >= LEAST_GRADED and _n_kinds(graded) >= LEAST_KINDS else []

    @cached_property
    def flagged(self) -> list[Response]:
        """Caught faults with one true code, under a protocol with codes."""
        coded = (r for r in self.caught if r.flags is not None)
        return [r for r in coded if len(r.variant.truth.codes or ()) == 1]

    @cached_property
    def replies(self) -> list[Response]:
        """Replies of the main run that can be read."""
        return [r for r in self.audit.main if r.is_scored or _contradicts(r)]

    @cached_property
    def tilts(self) -> Mapping[str, Split]:
        """Pass rate of faulty plans less fail rate of correct ones: 0 for an even-handed judge.

        Planted faults count if the judge was shown no proof of them and if their code is planted
        often enough.
        """
        often = {code for code, of in self.unproven.items() if len(of) >= LEAST_OF_CODE}
        faults = [r for r in self.audit.faults if not r.is_informed and _code(r) in often]
        wrong = of_truth(self.audit.labelled, is_correct=False)
        sides = {
            _BALANCE: (
                faults,
                self.audit.sound,
                evenly(list(map(_code, faults))),
            ),
            _OF_PREDICTIONS: (
                wrong,
                of_truth(self.audit.labelled, is_correct=True),
                evenly([""] * len(wrong)),
            ),
        }
        return {
            name: Split(
                responses=[*wrong, *right],
                values=np.concatenate([passed(wrong), 1 - passed(right)]),
                first=np.arange(len(wrong) + len(right)) < len(wrong),
                weights=np.concatenate([weights, np.ones(len(right))]),
            )
            for name, (wrong, right, weights) in sides.items()
            if wrong and right
        }

    @cached_property
    def graded(self) -> list[Response]:
        """All graded replies of the main run; empty under other scales than the six grades."""
        graded = [r for r in self.audit.main if r.grade is not None]
        return graded if all(r.grade in GRADES for r in graded) else []

    def values(self) -> Iterable[Value | None]:
        """Leniency, one grade for all, contradictions and halo; more on sides, grades and flags."""
        yield from (split.value(name, TILT) for name, split in self.tilts.items())
        commonest = Counter(r.grade for r in self.graded_faults).most_common(1)
        yield rate(
            "one grade for all faults",
            self.graded_faults,
            lambda r: r.grade == commonest[0][0],
            "at most",
            ONE_GRADE,
        )
        yield rate("contradictory replies", self.replies, _contradicts, "at most", CONTRADICTIONS)
        yield rate("further codes flagged", self.flagged, _has_halo, "at most", FURTHER)
        for tilt, split in self.tilts.items():
            for name, part in zip(_SIDES[tilt], (split.first, ~split.first), strict=True):
                yield ProbeMetric(name=name, estimate=_side(split, part))
        yield shift("judge CR - true CR", self.audit.labelled, error)
        if self.graded:
            for grade in GRADES:
                yield rate(
                    f"graded {grade:g}", self.graded, lambda r, grade=grade: r.grade == grade
                )
            title = "entropy of grades, bits"
            yield ProbeMetric(name=title, estimate=_entropy(self.graded), unit="plain")
        if self.flagged:
            title = "further codes a caught fault"
            yield ProbeMetric(name=title, estimate=_mean_further(self.flagged), unit="plain")
        coded = [r for r in self.audit.labelled if r.flags is not None]
        coded = [r for r in coded if r.variant.truth.codes is not None]
        if any({*ERROR_CODES} & {*(r.flags or ()), *(r.variant.truth.codes or ())} for r in coded):
            title = "correlation between flags, judge minus truth"
            yield ProbeMetric(name=title, estimate=_correlation(coded), unit="plain")

    def used(self) -> Iterable[Response]:
        """The main run, if anything in it can be measured."""
        return self.audit.main if self.taken else ()

    def tables(self) -> Iterable[ProbeTable]:
        """Grades by truth, and faults passed by code."""
        if self.graded:
            yield ProbeTable.of(
                "Grades by truth",
                "plans",
                grouped(self.graded, _truth_text),
                {f"{grade:g}": partial(_count_of, grade) for grade in GRADES},
            )
        if self.unproven:
            yield ProbeTable.of(
                "Planted faults passed, by code (those of which the judge was shown no proof)",
                "code",
                self.unproven,
                {
                    "faults": count_text,
                    "passed": lambda of: str(sum(bool(r.is_correct) for r in of)),
                    "share": passed_text,
                },
            )

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Contradictory replies, and faults with codes that they do not explain."""
        for r in filter(_contradicts, self.replies):
            yield r, f"{r.variant.what}: contradicted itself in every attempt; {verdict_text(r)}"
        for r in self.flagged:
            if _has_halo(r) and not _contradicts(r):
                names = ", ".join(sorted(_further(r)))
                yield r, f"{r.variant.what}: {verdict_text(r)}; not explained by the fault: {names}"

    def notes(self) -> Iterable[str]:
        """Remarks on the meaning of the balance, and on the plans that it leaves out."""
        yield (
            "lenient balance: share of wrong plans passed minus share of right plans failed; a "
            "judge that errs equally to both sides has 0, however often it errs"
        )
        if n_informed := sum(r.is_informed for r in self.audit.faults):
            yield (
                f"{n_informed} planted faults of which the judge was shown a proof show little "
                "about leniency: left out of the balance"
            )
        if few := ", ".join(c for c, of in self.unproven.items() if len(of) < LEAST_OF_CODE):
            yield f"left out of the balance, planted less than {LEAST_OF_CODE} times: {few}"
        if not self.graded_faults:
            yield (
                f"one grade for all faults: needs {LEAST_GRADED} graded faults of "
                f"{LEAST_KINDS} codes or severities that the judge itself caught"
            )
        if not self.audit.labelled:
            yield "predictions without labels: their balance and correlations are unknown"


def _code(response: Response) -> str:
    return ",".join(sorted(response.variant.truth.codes or ())) or "no code"


def _n_kinds(responses: Sequence[Response]) -> int:
    """The number of codes or of severities, the larger one."""
    return max(len({*map(_code, responses)}), len({r.variant.severity for r in responses}))


def _contradicts(response: Response) -> bool:
    return response.is_inconsistent or response.reason == "inconsistent"


def _further(response: Response) -> frozenset[ErrorCode]:
    """Codes flagged beyond what the fault explains."""
    truth = response.variant.truth
    return (response.flags or frozenset()) - (truth.codes or frozenset()) - truth.also


def _has_halo(response: Response) -> bool:
    """True if more than one code is flagged that the fault does not explain."""
    return len(_further(response)) > 1


def _side(split: Split, part: Ids) -> Estimate:
    """The mean over one part of a split."""
    responses = [split.responses[i] for i in np.flatnonzero(part).tolist()]
    sample = replace(sample_of(responses), weights=split.weights[part])
    return share(split.values[part], np.ones(len(responses)), sample)


def _mean_further(flagged: Sequence[Response]) -> Estimate:
    numbers = np.array([float(len(_further(r))) for r in flagged])
    bounds = (0.0, float(len(ERROR_CODES) - 1))
    return bounded(numbers, sample_of(flagged), bounds=bounds, level=0.95)


def _entropy(graded: Sequence[Response]) -> Estimate:
    """Entropy of the distribution over the six grades; at most log2 6 = 2.58 bits."""

    def bits(tables: Array) -> Array:
        shares = tables / tables.sum(axis=-1, keepdims=True)
        return -(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=-1)

    codes = np.array([GRADES.index(r.grade or 0.0) for r in graded])
    strata = tabulate(codes, len(GRADES), sample_of(graded))
    return jackknife(strata, bits, n_items=len(graded), bounds=(0.0, log2(len(GRADES))))


def _correlation(coded: Sequence[Response]) -> Estimate:
    """Mean phi over the pairs of codes that both sides use, judge less truth, by jackknife.

    Each item counts twice in one table: by the judge's set of flags, and by the true set.
    """
    judged = [_mask(r.flags or frozenset()) for r in coded]
    true = [_MASKS + _mask(r.variant.truth.codes or frozenset()) for r in coded]
    clusters = sample_of(coded).clusters
    ids = np.arange(len(coded)) if clusters is None else clusters
    sample = Sample(clusters=np.concatenate([ids, ids]))
    strata = tabulate(np.array(judged + true), 2 * _MASKS, sample)
    both = np.sum([kinds.observed for kinds in strata], axis=0)
    used = ~np.isnan(_phis(both[:_MASKS]) + _phis(both[_MASKS:]))

    def excess(tables: Array) -> Array:
        judge, truth = _phis(tables[..., :_MASKS]), _phis(tables[..., _MASKS:])
        return (judge - truth)[..., used].mean(axis=-1) if used.any() else np.nan * judge[..., 0]

    return jackknife(strata, excess, n_items=len(coded), bounds=(-2.0, 2.0))


def _mask(codes: Iterable[ErrorCode]) -> int:
    return sum(1 << ERROR_CODES.index(code) for code in codes if code in ERROR_CODES)


def _phis(counts: Array) -> Array:
    """Phi of each pair of codes, shape (..., 15), from counts of each set of codes."""
    cells = [
        [(m >> i & 1, m >> j & 1) == cell for m in range(_MASKS)]
        for i, j in _PAIRS
        for cell in _CELLS
    ]
    design = np.array(cells, dtype=float)
    tables = np.einsum("...m,cm->...c", counts, design)
    return phi(tables.reshape(*counts.shape[:-1], len(_PAIRS), 2, 2))


def _truth_text(response: Response) -> str:
    """The truth about a plan in words, with the severity of a planted fault."""
    variant = response.variant
    if variant.severity:
        return f"faulty, {variant.severity}"
    return {True: "correct", False: "faulty", None: "not known"}[variant.truth.is_correct]


def _count_of(grade: float, responses: Sequence[Response]) -> str:
    return str(sum(r.grade == grade for r in responses))
