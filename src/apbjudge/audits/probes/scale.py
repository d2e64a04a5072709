"""Leniency, use of the six grades, contradictions, halo."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import log2

import numpy as np

from ...records import ERROR_CODES, ErrorCode
from ...statistics.agreement import phi
from ...statistics.estimates import Array, Estimate
from ...statistics.jackknife import jackknife
from ...statistics.proportions import bounded, share
from ...statistics.sample import Sample, tabulate
from ..outcomes import Probe, ProbeMetric, ProbeSpec, ProbeTable, amount, decide, verdict_text
from ..responses import MAIN, AuditResponses, Response, passed, sample_of
from .measures import Split, evenly, rate, share_of, shift_of

SPEC = ProbeSpec(
    name="scale",
    title="Leniency, scale use, halo",
    question="Is the judge lenient or severe, does it use its scale, does one fault bring others?",
)

TILT = 0.25
"""A judge that errs four times as often to one side as it may to the other moves every rate."""
ONE_GRADE = 0.85
"""Faults of three codes or severities that all get one grade are not graded."""
CONTRADICTIONS = 0.12
"""Each contradictory reply is resolved by a rule of ours; 50 cases without one tell 0.12 from 0."""
FURTHER = 0.20
"""Two codes beyond the one fault and its consequences are no oversight but a halo."""

LEAST_KINDS = 3
LEAST_GRADED = 10
LEAST_OF_CODE = 5
GRADES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_BALANCE = "lenient balance"
_OF_PREDICTIONS = "lenient balance, predictions"
_PAIRS = tuple(combinations(range(len(ERROR_CODES)), 2))
_CELLS = ((0, 0), (0, 1), (1, 0), (1, 1))
_MASKS = 2 ** len(ERROR_CODES)


def probe(audit: AuditResponses) -> Probe:
    """Measures leniency, use of grades, contradictions and halo."""
    faults, labelled = audit.scored("fault"), audit.labelled
    tilts = _tilts(audit, faults, labelled)
    caught = [r for r in faults if not r.is_overridden and not r.is_correct]
    graded = [r for r in caught if r.grade is not None]
    if len(graded) < LEAST_GRADED or _n_kinds(graded) < LEAST_KINDS:
        graded = []
    commonest = Counter(r.grade for r in graded).most_common(1)
    replies = [r for r in audit.all if r.run == MAIN and (r.is_scored or _contradicts(r))]
    flagged = [r for r in caught if r.flags is not None and len(r.variant.truth.codes or ()) == 1]
    measures = decide(
        [
            *(split.measure(name, TILT) for name, split in tilts.items()),
            rate(
                "one grade for all faults",
                graded,
                [r.grade == commonest[0][0] for r in graded],
                "at most",
                ONE_GRADE,
            ),
            rate(
                "contradictory replies",
                replies,
                [_contradicts(r) for r in replies],
                "at most",
                CONTRADICTIONS,
            ),
            rate(
                "further codes flagged",
                flagged,
                [len(_further(r)) > 1 for r in flagged],
                "at most",
                FURTHER,
            ),
        ]
    )
    if not measures:
        return SPEC.unasked("needs verdicts on plans whose truth is known")
    by_code: defaultdict[str, list[Response]] = defaultdict(list)
    for response in faults:
        if not response.is_informed:
            by_code[_code(response)].append(response)
    return SPEC.result(
        measures,
        [r for r in audit.all if r.run == MAIN],
        figures=_figures(audit, tilts, flagged),
        tables=_tables(_graded(audit), by_code),
        examples=_examples(replies, flagged),
        notes=_notes(faults, by_code, has_grades=bool(graded), has_labels=bool(labelled)),
    )


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


def _tilts(
    audit: AuditResponses, faults: Sequence[Response], labelled: Sequence[Response]
) -> dict[str, Split]:
    """Pass rate of what is wrong less fail rate of what is right: 0 for one that errs evenly.

    Planted faults count if the judge was shown no proof of them and if their code is planted often
    enough.
    """
    unproven = [r for r in faults if not r.is_informed]
    often = Counter(map(_code, unproven))
    unproven = [r for r in unproven if often[_code(r)] >= LEAST_OF_CODE]
    sides = {
        _BALANCE: (unproven, audit.scored("base", "harmless"), [_code(r) for r in unproven]),
        _OF_PREDICTIONS: (
            wrong := [r for r in labelled if not r.variant.truth.is_correct],
            [r for r in labelled if r.variant.truth.is_correct],
            [""] * len(wrong),
        ),
    }
    return {
        name: Split(
            responses=[*wrong, *right],
            values=np.concatenate([passed(wrong), 1 - passed(right)]),
            first=np.arange(len(wrong) + len(right)) < len(wrong),
            weights=np.concatenate([evenly(groups), np.ones(len(right))]),
        )
        for name, (wrong, right, groups) in sides.items()
        if wrong and right
    }


_SIDES = {
    _BALANCE: ("faulty plans passed, every code with the same weight", "correct plans failed"),
    _OF_PREDICTIONS: (
        "wrong predictions passed",
        "right predictions failed",
    ),
}


def _figures(
    audit: AuditResponses, tilts: Mapping[str, Split], flagged: Sequence[Response]
) -> Iterator[ProbeMetric]:
    for tilt, split in tilts.items():
        for name, part in zip(_SIDES[tilt], (split.first, ~split.first), strict=True):
            responses = [split.responses[i] for i in np.flatnonzero(part).tolist()]
            clusters = sample_of(responses).clusters
            sample = Sample(clusters=clusters, weights=split.weights[part])
            estimate = share(split.values[part], np.ones(len(responses)), sample)
            yield ProbeMetric(name=name, estimate=estimate)
    labelled, graded = audit.labelled, _graded(audit)
    if labelled:
        biases = [bool(r.is_correct) - bool(r.variant.truth.is_correct) for r in labelled]
        bias = shift_of(labelled, biases)
        yield ProbeMetric(name="judge CR - true CR", estimate=bias, unit="points")
    if graded:
        for grade in GRADES:
            hits = [r.grade == grade for r in graded]
            yield ProbeMetric(name=f"graded {grade:g}", estimate=share_of(graded, hits))
        yield ProbeMetric(name="entropy of grades, bits", estimate=_entropy(graded), unit="plain")
    if flagged:
        numbers = np.array([float(len(_further(r))) for r in flagged])
        bounds = (0.0, float(len(ERROR_CODES) - 1))
        estimate = bounded(numbers, sample_of(flagged), bounds=bounds, level=0.95)
        yield ProbeMetric(name="further codes a caught fault", estimate=estimate, unit="plain")
    coded = [r for r in labelled if r.flags is not None and r.variant.truth.codes is not None]
    if any({*ERROR_CODES} & {*(r.flags or ()), *(r.variant.truth.codes or ())} for r in coded):
        name = "correlation between flags, judge minus truth"
        yield ProbeMetric(name=name, estimate=_correlation(coded), unit="plain")


def _graded(audit: AuditResponses) -> list[Response]:
    graded = [r for r in audit.all if r.run == MAIN and r.grade is not None]
    return graded if all(r.grade in GRADES for r in graded) else []  # else another scale


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

    Each item counts in two columns of one table: by the judge's set of flags, and by the true one.
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


def _tables(
    graded: Sequence[Response], by_code: Mapping[str, Sequence[Response]]
) -> Iterator[ProbeTable]:
    by_truth: dict[str, Counter[float]] = {}
    names = {True: "correct", False: "faulty", None: "not known"}
    for response in graded:
        variant = response.variant
        name = (
            f"faulty, {variant.severity}" if variant.severity else names[variant.truth.is_correct]
        )
        by_truth.setdefault(name, Counter())[response.grade or 0.0] += 1
    if by_truth:
        yield ProbeTable(
            title="Grades by truth",
            columns=("plans", *(f"{grade:g}" for grade in GRADES)),
            rows=tuple((k, *(str(n[g]) for g in GRADES)) for k, n in sorted(by_truth.items())),
        )
    if by_code:
        rows: list[tuple[str, ...]] = []
        for code, of in sorted(by_code.items()):
            n = sum(bool(r.is_correct) for r in of)
            rows.append((code, str(len(of)), str(n), amount("share", n / len(of))))
        title = "Planted faults passed, by code (those of which the judge was shown no proof)"
        yield ProbeTable(
            title=title, columns=("code", "faults", "passed", "share"), rows=tuple(rows)
        )


def _examples(
    replies: Sequence[Response], flagged: Sequence[Response]
) -> Iterator[tuple[Response, str]]:
    for r in replies:
        if _contradicts(r):
            yield r, f"{r.variant.what}: contradicted itself in every attempt; {verdict_text(r)}"
    for r in flagged:
        further = sorted(_further(r))
        if len(further) > 1 and not _contradicts(r):
            names = ", ".join(further)
            yield r, f"{r.variant.what}: {verdict_text(r)}; not explained by the fault: {names}"


def _notes(
    faults: Sequence[Response],
    by_code: Mapping[str, Sequence[Response]],
    *,
    has_grades: bool,
    has_labels: bool,
) -> Iterator[str]:
    yield (
        "lenient balance: share of wrong plans passed minus share of right plans failed; a "
        "judge that errs equally to both sides has 0, however often it errs"
    )
    if n_informed := sum(r.is_informed for r in faults):
        yield (
            f"{n_informed} planted faults of which the judge was shown a proof show little about "
            "leniency: left out of the balance"
        )
    if few := sorted(code for code, of in by_code.items() if len(of) < LEAST_OF_CODE):
        yield (
            f"left out of the balance, planted less than {LEAST_OF_CODE} times: {', '.join(few)}"
        )
    if not has_grades:
        yield (
            f"one grade for all faults: needs {LEAST_GRADED} graded faults of "
            f"{LEAST_KINDS} codes or severities that the judge itself caught"
        )
    if not has_labels:
        yield "predictions without labels: their balance and correlations are unknown"
