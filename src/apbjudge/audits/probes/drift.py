"""Drift: does the judge judge the same way at the end of the audit as at its beginning?

The schedule has the cases in random order, and all requests about a case together. So the first and
the second half of the calls are about different, randomly chosen cases, and otherwise differ only
in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..outcomes import ProbeTable
from ..responses import Response, passed
from .base import AuditProbe
from .measures import Split, Value, beyond_kind, count_text, describe, evenly, of_truth, passed_text

DRIFT = 0.15
"""If pass rates change by more within one run, rankings depend on when a plan was judged."""
LEAST_CASES = 8
"""Smallest number of cases in each half: intervals of fewer are too rough."""
PARTS = 8
"""Number of parts of the run in the table."""
_TRUTHS = {"faulty plans": False, "sound plans": True}


class Drift(AuditProbe):
    """Compares pass rates in the second half of the calls, less the first, with the limit.

    Uses responses of the main run with a verdict, a known truth and a place in the schedule.
    Replies from the cache were requested at another time and are left out.
    """

    name = "drift"
    title = "Drift"
    question = "Does the judge judge the same way at the end of the audit as at its beginning?"
    nothing = f"needs {LEAST_CASES} cases in each half of the calls"

    @cached_property
    def known(self) -> list[Response]:
        """Verdicts on plans whose truth is known."""
        main = self.audit.main
        return [r for r in main if r.is_scored and r.variant.truth.is_correct is not None]

    @cached_property
    def timed(self) -> list[Response]:
        """The known verdicts that were requested in this audit."""
        return [r for r in self.known if r.turn is not None and not r.is_reused]

    @cached_property
    def halves(self) -> Mapping[str, Split]:
        """Faulty and sound plans; ``first`` marks the second half. Empty with too few cases."""
        turns: defaultdict[str, list[int]] = defaultdict(list)
        for response in self.timed:
            turns[response.variant.case_id].append(response.turn or 0)
        middle = float(np.median([r.turn or 0 for r in self.timed])) if turns else 0.0
        late = {case for case, of in turns.items() if sum(of) / len(of) > middle}
        halves: dict[str, Split] = {}
        for name, truth in _TRUTHS.items():
            chosen = of_truth(self.timed, is_correct=truth)
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

    def values(self) -> Iterable[Value]:
        """The difference between the halves, for faulty and for sound plans."""
        for name, split in self.halves.items():
            yield split.value(f"passed in the second half minus the first, {name}", DRIFT)

    def used(self) -> Iterable[Response]:
        """The verdicts that were requested in this audit."""
        return self.timed

    def tables(self) -> Iterable[ProbeTable]:
        """Pass rates along the run, in parts with equally many judgements."""
        ordered = sorted(self.timed, key=lambda r: r.turn or 0)
        edges = np.linspace(0, len(ordered), PARTS + 1).round().astype(int).tolist()
        parts = [part for start, end in pairwise(edges) if (part := ordered[start:end])]
        yield ProbeTable(
            title="Pass rate along the run (the mix of planted faults differs between the parts)",
            columns=("calls", "faulty plans", "passed", "sound plans", "passed"),
            rows=tuple(map(_line, parts)),
        )

    def examples(self) -> Iterable[tuple[Response, str]]:
        """For failed measures, wrong verdicts in the half that has more of them."""
        for (name, split), measure in zip(self.halves.items(), self.measures, strict=True):
            if measure.outcome == "fails":
                passes_more_late = (measure.estimate.value or 0.0) > 0
                is_worse_late = passes_more_late == (name == "faulty plans")
                for at in np.flatnonzero(split.first == is_worse_late).tolist():
                    response = split.responses[at]
                    if response.is_correct != response.variant.truth.is_correct:
                        yield response, describe(response)

    def notes(self) -> Iterable[str]:
        """The division into halves, and the rows that were left out."""
        yield (
            "cases are asked in a random order, all runs of a case together; each plan is compared "
            "with all others with the same planted fault or change, and every case has the same "
            "weight: the halves differ in time and by chance only"
        )
        if reused := sum(r.is_reused for r in self.known):
            n = len(self.known)
            yield f"{reused} of {n} replies came from the reply cache and were left out"


def _line(part: Sequence[Response]) -> tuple[str, ...]:
    groups = [of_truth(part, is_correct=truth) for truth in _TRUTHS.values()]
    calls = f"{(part[0].turn or 0) + 1} to {(part[-1].turn or 0) + 1}"
    return calls, *(text for of in groups for text in (count_text(of), passed_text(of)))
