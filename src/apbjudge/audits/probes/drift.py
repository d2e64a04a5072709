"""Drift: does the judge judge the same way at the end of the audit as at its beginning?

The cases stand in a random order in the schedule, and all that is asked of a case is asked
together. So the first and the second half of the calls are about other cases, and alike in all
else but time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..responses import MAIN, AuditResponses, Response, passed
from ..outcomes import (
    Exhibit,
    Measure,
    Probe,
    Table,
    concluded,
    cost_of,
    exhibits_of,
    level_for,
    unasked,
)
from .splits import Split, beyond_kind, evenly
from .telling import mean_text, told

NAME = "drift"
TITLE = "Drift"
QUESTION = "Does the judge judge the same way at the end of the audit as at its beginning?"

DRIFT = 0.15
"""A judge whose pass rates move by more within one run ranks by when a plan was judged."""
LEAST_CASES = 8
"""Cases that each half must have: intervals of fewer are too rough."""
PARTS = 8
"""Parts of the run in the table."""


def probe(responses: AuditResponses) -> Probe:
    """Holds pass rates in the second half of the calls, less the first, against the limit.

    Args:
        responses: All that was said; of the main arm, what has a verdict, a known truth and a place in
            the schedule is used. Replies from the cache were asked for at another time and are
            left out.

    Returns:
        The probe; could not tell where the order is not known, or the halves have few cases.
    """
    main = [s for s in responses.all if s.arm == MAIN and s.is_scored]
    known = [s for s in main if s.variant.truth.is_correct is not None]
    timed = [s for s in known if s.turn is not None and not s.is_reused]
    halves = [half for half in map(_Half.of, _by_truth(timed)) if half is not None]
    if not halves:
        because = f"needs {LEAST_CASES} cases in each half of the calls"
        if known and all(s.turn is None for s in known):
            because = "the order of the calls is not known: an earlier version began this audit"
        return replace(unasked(NAME, TITLE, QUESTION, because), cost=cost_of(timed))
    level = level_for(len(halves))
    measures = [half.measure(level) for half in halves]
    return concluded(
        NAME,
        TITLE,
        QUESTION,
        measures=measures,
        tables=(_table(timed),),
        exhibits=_exhibits(halves, measures),
        said=timed,
        notes=_notes(known, timed),
    )


def _by_truth(said: Sequence[Response]) -> Iterable[tuple[str, Sequence[Response], set[str]]]:
    late = _late_cases(said)
    for name, truth in (("faulty plans", False), ("sound plans", True)):
        yield name, [s for s in said if s.variant.truth.is_correct is truth], late


def _late_cases(said: Sequence[Response]) -> set[str]:
    """The cases that were judged in the second half of the calls."""
    turns: defaultdict[str, list[int]] = defaultdict(list)
    for one in said:
        turns[one.variant.case_id].append(one.turn or 0)
    everything = [turn for of in turns.values() for turn in of]
    middle = float(np.median(everything)) if everything else 0.0
    return {case for case, of in turns.items() if sum(of) / len(of) > middle}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Half:
    """Plans of one truth, the second half of the calls against the first.

    Attributes:
        name: Which plans.
        split: What is compared, the second half first: what passes, beyond others of its kind.
    """

    name: str
    split: Split

    @classmethod
    def of(cls, given: tuple[str, Sequence[Response], set[str]]) -> _Half | None:
        """The comparison; None where a half has too few cases."""
        name, said, late_cases = given
        cases = [s.variant.case_id for s in said]
        n_late = len({*cases} & late_cases)
        if min(n_late, len({*cases}) - n_late) < LEAST_CASES:
            return None
        split = Split(
            said=said,
            values=beyond_kind(said, passed(said)),
            first=np.array([case in late_cases for case in cases]),
            weights=evenly(cases),
            bounds=(-1.0, 1.0),
        )
        return cls(name=name, split=split)

    def measure(self, level: float) -> Measure:
        """The change of the pass rate, held against the limit."""
        name = f"passed in the second half less the first, {self.name}"
        return self.split.measure(name, "within", DRIFT, level=level)


def _table(said: Sequence[Response]) -> Table:
    """Pass rates along the run, in parts with equally many judgements."""
    ordered = sorted(said, key=lambda s: s.turn or 0)
    edges = np.linspace(0, len(ordered), PARTS + 1).round().astype(int).tolist()
    rows: list[tuple[str, ...]] = []
    for start, end in pairwise(edges):
        part = ordered[start:end]
        if not part:
            continue
        cells: list[str] = []
        for truth in (False, True):
            chosen = [s for s in part if s.variant.truth.is_correct is truth]
            cells += [str(len(chosen)), mean_text(passed(chosen).tolist())]
        rows.append((f"{(part[0].turn or 0) + 1} to {(part[-1].turn or 0) + 1}", *cells))
    return Table(
        title="What passes, along the run (planted faults are not mixed alike in each part)",
        columns=("calls", "faulty plans", "passed", "sound plans", "passed"),
        rows=tuple(rows),
    )


def _exhibits(
    halves: Sequence[_Half], measures: Sequence[Measure]
) -> tuple[tuple[Exhibit, ...], int]:
    """Wrong verdicts in the half that has more of them, of what fails."""
    wrong: list[Response] = []
    for half, measure in zip(halves, measures, strict=True):
        if measure.outcome == "fails":
            passes_more_late = (measure.estimate.value or 0.0) > 0
            is_worse_late = passes_more_late == (half.name == "faulty plans")
            at = np.flatnonzero(half.split.first == is_worse_late).tolist()
            chosen = [half.split.said[i] for i in at]
            wrong += [s for s in chosen if s.is_correct != s.variant.truth.is_correct]
    return exhibits_of(wrong, told)


_RANDOM = (
    "cases are asked in a random order, all arms of a case together; each plan is held against "
    "all others with the same planted fault or change, and each case counts alike: what differs "
    "between the halves is the time, or chance"
)


def _notes(known: Sequence[Response], timed: Sequence[Response]) -> tuple[str, ...]:
    notes = [_RANDOM]
    if reused := sum(s.is_reused for s in known):
        notes.append(
            f"{reused} of {len(known)} replies came from the reply cache and were left out"
        )
    elif len(timed) < len(known):
        notes.append(f"{len(known) - len(timed)} replies have no place in the schedule: left out")
    return tuple(notes)
