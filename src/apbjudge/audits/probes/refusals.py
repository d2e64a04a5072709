"""Refusals: does the judge leave faulty plans without a verdict more often than sound ones?

A judgement without a verdict counts in no other figure. A judge that has none just where a plan is
faulty looks better in all of them than it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from ..outcomes import Probe, ProbeMetric, ProbeSpec, ProbeTable, decide
from ..responses import MAIN, AuditResponses, Response
from .measures import describe, mean_text, share_of, shift

SPEC = ProbeSpec(
    name="refusals",
    title="Selective refusal",
    question="Does the judge leave faulty plans without a verdict more often than sound ones?",
)

UNEVEN = 0.10
"""Rates are about what has a verdict: ten points more missing on one side bias all of them."""

NOT_THE_JUDGE = ("budget", "bad_input", "transport")
"""Reasons of missing verdicts that say nothing of the judge."""

_NOTE = (
    "each faulty plan is compared with the sound plans of its case; refusals, unreadable and "
    "contradictory replies and time-outs count; what never reached the judge (budget, transport, "
    "bad input) does not"
)


def probe(audit: AuditResponses) -> Probe:
    """Compares the share without a verdict, faulty less sound plans of one case, with the limit.

    Compares variants of the main run with the roles fault, base and harmless.
    """
    asked = [r for r in audit.asked("fault", "base", "harmless") if _reached(r)]
    sound: defaultdict[str, list[bool]] = defaultdict(list)
    for response in asked:
        if response.variant.truth.is_correct:
            sound[response.variant.case_id].append(not response.is_scored)
    faults = [r for r in asked if not r.variant.truth.is_correct and sound.get(r.variant.case_id)]
    if not faults:
        return SPEC.unasked("no case has faulty and sound plans that reached the judge", asked)
    if not any(r.is_scored for r in asked):
        return SPEC.unasked("nothing has a verdict", asked)
    rates = {case: sum(misses) / len(misses) for case, misses in sound.items()}
    gaps = [float(not r.is_scored) - rates[r.variant.case_id] for r in faults]
    name = "without verdict, faulty minus sound plans"
    return SPEC.result(
        decide([shift(name, faults, gaps, "within", UNEVEN)]),
        asked,
        figures=_figures(asked),
        tables=_tables([r for r in audit.all if r.run == MAIN and _reached(r)]),
        examples=((r, describe(r)) for r in faults if not r.is_scored),
        notes=[_NOTE],
    )


def _reached(response: Response) -> bool:
    return response.reason not in NOT_THE_JUDGE


def _figures(asked: Sequence[Response]) -> Iterable[ProbeMetric]:
    for name, truth in (("faulty plans", False), ("sound plans", True)):
        chosen = [r for r in asked if bool(r.variant.truth.is_correct) is truth]
        if chosen:
            estimate = share_of(chosen, [not r.is_scored for r in chosen])
            yield ProbeMetric(name=f"without verdict, {name}", estimate=estimate)


def _tables(main: Sequence[Response]) -> Iterable[ProbeTable]:
    reasons = sorted({r.reason for r in main if not r.is_scored})
    if not reasons:
        return
    groups: defaultdict[str, list[Response]] = defaultdict(list)
    words = {True: ", sound", False: ", faulty", None: ""}
    for response in main:
        groups[response.variant.role + words[response.variant.truth.is_correct]].append(response)

    yield ProbeTable.of(
        "Judgements without a verdict, by kind of plan",
        "judged",
        dict(sorted(groups.items())),
        {
            "n": lambda of: str(len(of)),
            "without verdict": lambda of: mean_text([not r.is_scored for r in of]),
            **{reason: _counter(reason) for reason in reasons},
        },
    )


def _counter(reason: str) -> Callable[[Sequence[Response]], str]:
    return lambda of: str(sum(r.reason == reason for r in of if not r.is_scored))
