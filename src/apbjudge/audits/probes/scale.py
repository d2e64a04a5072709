"""Leniency, use of the six grades, contradictions, halo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import log2

import numpy as np

from ...records import ERROR_CODES, ErrorCode
from ...statistics.agreement import phi
from ...statistics.bootstrap import jackknife
from ...statistics.estimates import Array, Estimate
from ...statistics.proportions import share
from ...statistics.sample import Sample, tabulate
from ..heard import MAIN, Heard, Observed, passed, sample_of
from ..verdicts import (
    Figure,
    Measure,
    Probe,
    Table,
    concluded,
    exhibits_of,
    level_for,
    said_of,
    shown,
    unasked,
)
from .measuring import mean_figure, rate, share_of, shift_of
from .splits import Split, evenly

NAME = "scale"
TITLE = "Leniency, scale use, halo"
QUESTION = "Is the judge lenient or severe, does it use its scale, does one fault bring others?"

TILT = 0.25
"""A judge that errs four times as often to one side as it may to the other moves every rate."""
ONE_GRADE = 0.85
"""Faults of three codes or severities that all get one grade are not graded."""
CONTRADICTIONS = 0.12
"""Each contradictory reply is settled by a rule of ours; 50 cases without one tell 0.12 from 0."""
FURTHER = 0.20
"""Two codes beyond the one fault and its consequences are no oversight but a halo."""

_BALANCE = (
    "lenient balance: share passed of what is wrong less share failed of what is right; a judge "
    "that errs evenly to both sides has 0, however often it errs"
)
LEAST_KINDS = 3
LEAST_GRADED = 10
LEAST_OF_CODE = 5
GRADES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_PAIRS = tuple(combinations(range(len(ERROR_CODES)), 2))
_CELLS = ((0, 0), (0, 1), (1, 0), (1, 1))
_MASKS = 2 ** len(ERROR_CODES)


def probe(heard: Heard) -> Probe:
    """Looks at what kind of verdicts, grades and flags the judge gives.

    Args:
        heard: What was said.
    """
    tilts = _tilts(heard)
    faulted = [s for s in _faults(heard) if not s.is_overridden and not s.is_correct]
    grades = [s for s in faulted if s.grade is not None]
    settled = [s for s in heard.all if s.arm == MAIN and (s.is_scored or _contradicts(s))]
    flagged = [s for s in faulted if s.flags is not None and len(s.variant.truth.codes or ()) == 1]
    has_grades = len(grades) >= LEAST_GRADED and _n_kinds(grades) >= LEAST_KINDS
    level = level_for(len(tilts) + has_grades + bool(settled) + bool(flagged))
    measures = [split.measure(name, "within", TILT, level=level) for name, split in tilts.items()]
    if has_grades:
        measures.append(_one_grade(grades, level))
    if settled:
        hits = [_contradicts(s) for s in settled]
        name = "contradictory replies"
        measures.append(rate(name, settled, hits, "at most", CONTRADICTIONS, level=level))
    if flagged:
        hits = [len(_further(s)) > 1 for s in flagged]
        measures.append(
            rate("further codes flagged", flagged, hits, "at most", FURTHER, level=level)
        )
    if not measures:
        return unasked(NAME, TITLE, QUESTION, "needs verdicts on plans whose truth is known")
    exhibits = exhibits_of(_odd(settled, flagged), _told)
    return concluded(
        NAME,
        TITLE,
        QUESTION,
        measures=measures,
        figures=tuple(_figures(heard, tilts, flagged)),
        tables=tuple(_tables(heard)),
        exhibits=exhibits,
        said=[s for s in heard.all if s.arm == MAIN],
        notes=_notes(heard, has_grades=has_grades),
    )


def _faults(heard: Heard) -> list[Observed]:
    return heard.scored("fault")


def _open_faults(heard: Heard) -> list[Observed]:
    """Planted faults of which the judge was shown no proof, of codes planted often enough."""
    found = [s for s in _faults(heard) if not s.is_informed]
    often = Counter(map(_code, found))
    return [s for s in found if often[_code(s)] >= LEAST_OF_CODE]


def _code(said: Observed) -> str:
    return ",".join(sorted(said.variant.truth.codes or ())) or "no code"


def _n_kinds(said: Sequence[Observed]) -> int:
    """Of codes or severities, whichever are more."""
    return max(len({_code(s) for s in said}), len({s.variant.severity for s in said}))


def _contradicts(said: Observed) -> bool:
    return said.is_inconsistent or said.reason == "inconsistent"


def _further(said: Observed) -> frozenset[ErrorCode]:
    """Codes flagged beyond what the fault explains."""
    truth = said.variant.truth
    return (said.flags or frozenset()) - (truth.codes or frozenset()) - truth.also


def _labelled(heard: Heard) -> list[Observed]:
    return [s for s in heard.scored("prediction") if s.variant.truth.is_correct is not None]


def _tilts(heard: Heard) -> dict[str, Split]:
    """Pass rate of what is wrong less fail rate of what is right: 0 for one that errs evenly."""
    faults, correct = _open_faults(heard), heard.scored("base", "harmless")
    labelled = _labelled(heard)
    wrong = [s for s in labelled if not s.variant.truth.is_correct]
    right = [s for s in labelled if s.variant.truth.is_correct]
    found: dict[str, Split] = {}
    if faults and correct:
        found["lenient balance"] = _tilt(faults, correct)
    if wrong and right:
        found["lenient balance, predictions"] = _tilt(wrong, right, by_code=False)
    return found


def _tilt(wrong: list[Observed], right: list[Observed], *, by_code: bool = True) -> Split:
    groups = [_code(s) if by_code else "" for s in wrong]
    return Split(
        said=[*wrong, *right],
        values=np.concatenate([passed(wrong), 1 - passed(right)]),
        first=np.arange(len(wrong) + len(right)) < len(wrong),
        weights=np.concatenate([evenly(groups), np.ones(len(right))]),
    )


def _one_grade(said: Sequence[Observed], level: float) -> Measure:
    (most, _), *_ = Counter(s.grade for s in said).most_common(1)
    hits = [s.grade == most for s in said]
    return rate("one grade for all faults", said, hits, "at most", ONE_GRADE, level=level)


def _figures(
    heard: Heard, tilts: dict[str, Split], flagged: Sequence[Observed]
) -> Iterator[Figure]:
    names = {
        "lenient balance": ("faulty plans passed, codes weighing the same", "correct plans failed"),
        "lenient balance, predictions": (
            "predictions that are wrong, passed",
            "predictions that are right, failed",
        ),
    }
    for tilt, split in tilts.items():
        for name, part in zip(names[tilt], (split.first, ~split.first), strict=True):
            yield Figure(name=name, estimate=_part_of(split, part))
    labelled = _labelled(heard)
    if labelled:
        biases = [bool(s.is_correct) - bool(s.variant.truth.is_correct) for s in labelled]
        yield Figure(
            name="judge CR - true CR",
            estimate=shift_of(labelled, biases, level=0.95),
            unit="points",
        )
    graded = _graded(heard)
    for grade in GRADES if graded else ():
        hits = [s.grade == grade for s in graded]
        yield Figure(name=f"graded {grade:g}", estimate=share_of(graded, hits, level=0.95))
    if graded:
        yield Figure(name="entropy of grades, bits", estimate=_entropy(graded), unit="plain")
    if flagged:
        numbers = [float(len(_further(s))) for s in flagged]
        bounds = (0.0, float(len(ERROR_CODES) - 1))
        yield mean_figure("further codes a caught fault", flagged, numbers, bounds=bounds)
    coded = [s for s in labelled if s.flags is not None and s.variant.truth.codes is not None]
    if coded:
        name = "correlation between flags, judge less truth"
        yield Figure(name=name, estimate=_correlation(coded), unit="plain")


def _part_of(split: Split, part: np.ndarray) -> Estimate:
    said = [split.said[i] for i in np.flatnonzero(part).tolist()]
    sample = Sample(clusters=sample_of(said).clusters, weights=split.weights[part])
    return share(split.values[part], np.ones(len(said)), sample)


def _graded(heard: Heard) -> list[Observed]:
    return [s for s in heard.all if s.arm == MAIN and s.grade in GRADES]


def _entropy(graded: Sequence[Observed]) -> Estimate:
    """Of the distribution over the six grades; at most log2 6 = 2.58 bits."""

    def bits(tables: Array) -> Array:
        shares = tables / tables.sum(axis=-1, keepdims=True)
        return -(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=-1)

    codes = np.array([GRADES.index(s.grade or 0.0) for s in graded])
    strata = tabulate(codes, len(GRADES), sample_of(graded))
    return jackknife(strata, bits, n_items=len(graded), bounds=(0.0, log2(len(GRADES))))


def _correlation(coded: Sequence[Observed]) -> Estimate:
    """Mean phi over the pairs of codes that both sides use, judge less truth, by jackknife.

    Each item counts in two columns of one table: by the judge's set of flags, and by the true one.
    """
    judged = [_mask(s.flags or frozenset()) for s in coded]
    true = [_MASKS + _mask(s.variant.truth.codes or frozenset()) for s in coded]
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
    return sum(1 << ERROR_CODES.index(code) for code in codes)


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


def _tables(heard: Heard) -> Iterator[Table]:
    graded = _graded(heard)
    by_truth: dict[str, Counter[float]] = {}
    for said in graded:
        by_truth.setdefault(_sort(said), Counter())[said.grade or 0.0] += 1
    if by_truth:
        yield Table(
            title="Grades given, by what is true",
            columns=("plans", *(f"{grade:g}" for grade in GRADES)),
            rows=tuple((k, *(str(n[g]) for g in GRADES)) for k, n in sorted(by_truth.items())),
        )
    rows = [_code_row(code, said) for code, said in sorted(_by_code(heard).items())]
    if rows:
        title = "Planted faults passed, by code (those of which the judge was shown no proof)"
        yield Table(title=title, columns=("code", "faults", "passed", "share"), rows=tuple(rows))


def _sort(said: Observed) -> str:
    truth = said.variant.truth.is_correct
    if said.variant.severity is not None:
        return f"faulty, {said.variant.severity}"
    return {True: "correct", False: "faulty", None: "not known"}[truth]


def _by_code(heard: Heard) -> dict[str, list[Observed]]:
    found: dict[str, list[Observed]] = {}
    for said in _faults(heard):
        if not said.is_informed:
            found.setdefault(_code(said), []).append(said)
    return found


def _code_row(code: str, said: Sequence[Observed]) -> tuple[str, ...]:
    n = sum(bool(s.is_correct) for s in said)
    return code, str(len(said)), str(n), shown("share", n / len(said))


def _odd(settled: Iterable[Observed], flagged: Iterable[Observed]) -> Iterator[Observed]:
    yield from (s for s in settled if _contradicts(s))
    yield from (s for s in flagged if len(_further(s)) > 1 and not _contradicts(s))


def _told(said: Observed) -> str:
    if _contradicts(said):
        return f"{said.variant.what}: contradicted itself to the end; {said_of(said)}"
    further = ", ".join(sorted(_further(said)))
    return f"{said.variant.what}: {said_of(said)}; not explained by the fault: {further}"


def _notes(heard: Heard, *, has_grades: bool) -> tuple[str, ...]:
    n_informed = sum(s.is_informed for s in _faults(heard))
    few = sorted(c for c, said in _by_code(heard).items() if len(said) < LEAST_OF_CODE)
    notes = [_BALANCE]
    if n_informed:
        notes.append(
            f"{n_informed} planted faults of which the judge was shown a proof tell little of "
            "leniency: left out of the balance"
        )
    if few:
        notes.append(
            f"left out of the balance, planted less than {LEAST_OF_CODE} times: {', '.join(few)}"
        )
    if not has_grades:
        notes.append(
            f"use of one grade for all faults: needs {LEAST_GRADED} graded faults of "
            f"{LEAST_KINDS} codes or severities that the judge itself found"
        )
    if not _labelled(heard):
        notes.append("predictions without labels: their balance and correlations are not known")
    return tuple(notes)
