"""Drift: does the judge judge the same way at the end of the audit as at its beginning?

The cases stand in a random order in the schedule, and all that is asked of a case is asked
together. So the first and the second half of the calls are about other cases, and alike in all
else but time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from ..outcomes import Measure, Probe, ProbeSpec, ProbeTable, decide
from ..responses import MAIN, AuditResponses, Response, passed
from .measures import Split, beyond_kind, describe, evenly, mean_text

SPEC = ProbeSpec(
    name="drift",
    title="Drift",
    question="Does the judge judge the same way at the end of the audit as at its beginning?",
)

DRIFT = 0.15
"""A judge whose pass rates move by more within one run ranks by when a plan was judged."""
LEAST_CASES = 8
"""Cases that each half must have: intervals of fewer are too rough."""
PARTS = 8
"""Parts of the run in the table."""
_TRUTHS = {"faulty plans": False, "sound plans": True}


def probe(audit: AuditResponses) -> Probe:
    """Compares pass rates in the second half of the calls, less the first, with the limit.

    Uses responses of the main run with a verdict, a known truth and a place in the schedule.
    Replies from the cache were asked for at another time and are left out.
    """
    main = [r for r in audit.all if r.run == MAIN and r.is_scored]
    known = [r for r in main if r.variant.truth.is_correct is not None]
    timed = [r for r in known if r.turn is not None and not r.is_reused]
    halves = _halves(timed)
    if not halves:
        return SPEC.unasked(f"needs {LEAST_CASES} cases in each half of the calls", timed)
    measures = decide(
        split.measure(f"passed in the second half minus the first, {name}", DRIFT)
        for name, split in halves.items()
    )
    return SPEC.result(
        measures,
        timed,
        tables=[_table(timed)],
        examples=_examples(halves, measures),
        notes=_notes(known, timed),
    )


def _halves(timed: Sequence[Response]) -> Mapping[str, Split]:
    """Faulty and sound plans, the second half of the calls first; none with too few cases."""
    turns: defaultdict[str, list[int]] = defaultdict(list)
    for response in timed:
        turns[response.variant.case_id].append(response.turn or 0)
    middle = float(np.median([r.turn or 0 for r in timed])) if timed else 0.0
    late = {case for case, of in turns.items() if sum(of) / len(of) > middle}
    halves: dict[str, Split] = {}
    for name, truth in _TRUTHS.items():
        chosen = [r for r in timed if r.variant.truth.is_correct is truth]
        cases = [r.variant.case_id for r in chosen]
        n_late = len({*cases} & late)
        if min(n_late, len({*cases}) - n_late) >= LEAST_CASES:
            halves[name] = Split(
                responses=chosen,
                values=beyond_kind(chosen, passed(chosen)),
                first=np.array([case in late for case in cases]),
                weights=evenly(cases),
                bounds=(-1.0, 1.0),
            )
    return halves


def _table(timed: Sequence[Response]) -> ProbeTable:
    """Pass rates along the run, in parts with equally many judgements."""
    ordered = sorted(timed, key=lambda r: r.turn or 0)
    edges = np.linspace(0, len(ordered), PARTS + 1).round().astype(int).tolist()
    rows: list[tuple[str, ...]] = []
    for start, end in pairwise(edges):
        if part := ordered[start:end]:
            cells: list[str] = []
            for truth in _TRUTHS.values():
                chosen = [r for r in part if r.variant.truth.is_correct is truth]
                cells += [str(len(chosen)), mean_text(passed(chosen).tolist())]
            rows.append((f"{(part[0].turn or 0) + 1} to {(part[-1].turn or 0) + 1}", *cells))
    return ProbeTable(
        title="Pass rate along the run (the mix of planted faults differs between the parts)",
        columns=("calls", "faulty plans", "passed", "sound plans", "passed"),
        rows=tuple(rows),
    )


def _examples(
    halves: Mapping[str, Split], measures: Sequence[Measure]
) -> Iterable[tuple[Response, str]]:
    """Wrong verdicts in the half that has more of them, of what fails."""
    for (name, split), measure in zip(halves.items(), measures, strict=True):
        if measure.outcome == "fails":
            passes_more_late = (measure.estimate.value or 0.0) > 0
            is_worse_late = passes_more_late == (name == "faulty plans")
            for at in np.flatnonzero(split.first == is_worse_late).tolist():
                response = split.responses[at]
                if response.is_correct != response.variant.truth.is_correct:
                    yield response, describe(response)


def _notes(known: Sequence[Response], timed: Sequence[Response]) -> Iterable[str]:
    yield (
        "cases are asked in a random order, all runs of a case together; each plan is compared "
        "with all others with the same planted fault or change, and every case has the same "
        "weight: the halves differ in time and by chance only"
    )
    if reused := sum(r.is_reused for r in known):
        yield f"{reused} of {len(known)} replies came from the reply cache and were left out"
