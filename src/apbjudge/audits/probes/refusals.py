"""Refusals: does the judge leave faulty plans without a verdict more often than sound ones?

A judgement without a verdict counts in no other figure. A judge that has none just where a plan is
faulty looks better in all of them than it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..responses import MAIN, AuditResponses, Response
from ..outcomes import Figure, Probe, Table, concluded, cost_of, exhibits_of, level_for, unasked
from .measuring import paired_shift, share_of
from .telling import mean_text, told

NAME = "refusals"
TITLE = "Selective refusal"
QUESTION = "Does the judge leave faulty plans without a verdict more often than sound ones?"

UNEVEN = 0.10
"""Rates are about what has a verdict: ten points more missing on one side bias all of them."""

NOT_THE_JUDGE = ("budget", "bad_input", "transport")
"""Reasons of missing verdicts that say nothing of the judge."""


def probe(responses: AuditResponses) -> Probe:
    """Holds the share without a verdict, faulty less sound plans of one case, against the limit.

    Args:
        responses: All that was said. Of the main arm, variants with the roles fault, base and
            harmless are compared; those that never reached the judge count nowhere.

    Returns:
        The probe; could not tell where no case has both sides, or nothing has a verdict.
    """
    asked = [s for s in responses.asked("fault", "base", "harmless") if _reached(s)]
    pairs = _pairs(asked)
    if not pairs or not any(s.is_scored for s in asked):
        because = "no case has faulty and sound plans that reached the judge"
        if pairs:
            because = "nothing has a verdict"
        return replace(unasked(NAME, TITLE, QUESTION, because), cost=cost_of(asked))
    faults, gaps = [fault for fault, _ in pairs], [gap for _, gap in pairs]
    level = level_for(1)
    name = "without verdict, faulty less sound plans"
    main = [s for s in responses.all if s.arm == MAIN and _reached(s)]
    return concluded(
        NAME,
        TITLE,
        QUESTION,
        measures=[paired_shift(name, faults, gaps, "within", UNEVEN, level=level)],
        figures=tuple(_figures(asked)),
        tables=tuple(_tables(main)),
        exhibits=exhibits_of((s for s in faults if not s.is_scored), told),
        said=asked,
        notes=(_NOTE,),
    )


_NOTE = (
    "each faulty plan is held against the sound plans of its case; counted are refusals, replies "
    "that could not be read or contradicted themselves, and time-outs, and not what never reached "
    "the judge (budget, transport, bad input)"
)


def _reached(said: Response) -> bool:
    return said.reason not in NOT_THE_JUDGE


def _pairs(asked: Sequence[Response]) -> list[tuple[Response, float]]:
    """Each fault, and whether it lacks a verdict less the share of its case's sound plans."""
    sound: defaultdict[str, list[bool]] = defaultdict(list)
    for said in asked:
        if said.variant.truth.is_correct:
            sound[said.variant.case_id].append(not said.is_scored)
    return [
        (said, float(not said.is_scored) - sum(misses) / len(misses))
        for said in asked
        if not said.variant.truth.is_correct and (misses := sound[said.variant.case_id])
    ]


def _figures(asked: Sequence[Response]) -> Iterable[Figure]:
    for name, truth in (("faulty plans", False), ("sound plans", True)):
        chosen = [s for s in asked if bool(s.variant.truth.is_correct) is truth]
        if chosen:
            hits = [not s.is_scored for s in chosen]
            estimate = share_of(chosen, hits, level=0.95)
            yield Figure(name=f"without verdict, {name}", estimate=estimate)


def _tables(main: Sequence[Response]) -> Iterable[Table]:
    missing = [s for s in main if not s.is_scored]
    if not missing:
        return
    reasons = sorted({s.reason for s in missing})
    rows = [(name, *_cells(of, reasons)) for name, of in _by_role(main).items()]
    yield Table(
        title="Judgements without a verdict, by what was judged",
        columns=("judged", "n", "without verdict", *reasons),
        rows=tuple(rows),
    )


def _by_role(main: Iterable[Response]) -> Mapping[str, list[Response]]:
    found: defaultdict[str, list[Response]] = defaultdict(list)
    words = {True: ", sound", False: ", faulty", None: ""}
    for said in main:
        found[said.variant.role + words[said.variant.truth.is_correct]].append(said)
    return dict(sorted(found.items()))


def _cells(said: Sequence[Response], reasons: Sequence[str]) -> tuple[str, ...]:
    counts = Counter(s.reason for s in said if not s.is_scored)
    share = mean_text([not s.is_scored for s in said])
    return str(len(said)), share, *(str(counts[reason]) for reason in reasons)
