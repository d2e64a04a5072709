"""Reference dependence: does the judge examine the plan, or compare it with what it is shown?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..responses import BLIND, AuditResponses, Response, Pair, passed
from ..outcomes import (
    Exhibit,
    Figure,
    Probe,
    Side,
    Table,
    concluded,
    cost_of,
    exhibits_of,
    level_for,
    unasked,
)
from .measuring import shift
from .pairing import (
    Flips,
    change_figure,
    changes_of,
    flips_measure,
    flips_of,
    grouped,
    kind_of,
    notes_on,
    of_truth,
    repeats_of,
)
from .telling import against, mean_text, without_verdict

NAME = "reference"
TITLE = "Dependence on the reference"
QUESTION = "Does the judge examine the plan itself, or compare it with the reference it is shown?"

ECHOED = 0.15
"""A wrong reference must not make more than three faulty plans in twenty pass."""
FOREIGN = 0.15
"""Nor fail more than three sound plans in twenty."""
EQUIVALENT = 0.15
"""Two good references for one plan may turn so many verdicts, beyond those that turn anyway."""
WITHOUT = 0.15
"""Without any reference so many verdicts may change in one direction."""

Asked = tuple[str, list[Pair], Side, float]
"""A measure to be: its name, pairs, side and limit."""

_KINDS = ("echoed-reference", "foreign-reference", "equivalent-reference", "reworded-reference")


def probe(responses: AuditResponses) -> Probe:
    """Holds what other references change, and none at all, against the limits.

    Args:
        responses: All that was said; variants with the role reference are compared with their
            parents, the arm without the reference with the main arm.

    Returns:
        The probe; could not tell where neither was asked.
    """
    pairs, blind = responses.pairs("reference"), responses.across(BLIND)
    asked = _used(responses, pairs, blind)
    shifts, flips = _shifts(pairs, blind), _flips(responses, pairs)
    level = level_for(len(shifts) + len(flips))
    measures = (
        *(
            shift(name, of, changes_of(of), side, limit, level=level)
            for name, of, side, limit in shifts
        ),
        *(flips_measure(name, of, EQUIVALENT, level=level) for name, of in flips.items()),
    )
    if not measures:
        because = "no reference was exchanged or left out, or nothing of it has a verdict"
        return replace(unasked(NAME, TITLE, QUESTION, because), cost=cost_of(asked))
    exhibits = _exhibits(pairs, blind)
    return concluded(
        NAME,
        TITLE,
        QUESTION,
        measures=measures,
        figures=tuple(_figures(pairs)),
        tables=(_table(pairs, blind),),
        exhibits=exhibits,
        said=asked,
        notes=(NOTE, *notes_on(flips), *without_verdict(_asked(responses))),
    )


NOTE = (
    "leaning on the reference is no vice in itself where every case has a good one; but then what "
    "the judge says of plans that go another way hangs on it"
)


def _asked(responses: AuditResponses) -> list[Response]:
    return [*responses.asked("reference"), *(said for said in responses.all if said.arm == BLIND)]


def _used(responses: AuditResponses, pairs: Sequence[Pair], blind: Sequence[Pair]) -> list[Response]:
    """Everything asked, with what it is compared with and the repeats that count."""
    same = [parent for said, parent in pairs if said.variant.kind in SAME_PLANS]
    again = [reply for parent in same for reply in repeats_of(responses, parent)]
    return [*_asked(responses), *(other for _, other in (*pairs, *blind)), *again]


SAME_PLANS = ("equivalent-reference", "reworded-reference")
"""Kinds after which the reference is as good as before."""


def _shifts(pairs: Sequence[Pair], blind: Sequence[Pair]) -> list[Asked]:
    kinds = grouped(pairs, kind_of)
    asked: list[Asked] = [
        ("echoed", kinds.get("echoed-reference", []), "at most", ECHOED),
        ("foreign", kinds.get("foreign-reference", []), "within", FOREIGN),
        ("blind, correct plans", of_truth(blind, is_correct=True), "within", WITHOUT),
        ("blind, faulty plans", of_truth(blind, is_correct=False), "within", WITHOUT),
    ]
    return [each for each in asked if each[1]]


def _flips(responses: AuditResponses, pairs: Sequence[Pair]) -> Mapping[str, Flips]:
    same = [pair for pair in pairs if pair[0].variant.kind in SAME_PLANS]
    return {"equivalent": flips_of(responses, same)} if same else {}


def _figures(pairs: Sequence[Pair]) -> Iterable[Figure]:
    for kind, of in grouped(pairs, kind_of).items():
        yield change_figure(f"{kind}: change of passing", of)


def _table(pairs: Sequence[Pair], blind: Sequence[Pair]) -> Table:
    groups = dict(grouped(pairs, kind_of))
    for name, truth in (("correct", True), ("faulty", False)):
        if chosen := of_truth(blind, is_correct=truth):
            groups[f"no reference, {name} plans"] = chosen
    return Table(
        title="What passes, by the reference shown",
        columns=("reference", "n", "passed before", "passed with it", "change"),
        rows=tuple((name, *_cells(of)) for name, of in groups.items()),
    )


def _cells(pairs: Sequence[Pair]) -> tuple[str, ...]:
    after, before = (passed([pair[i] for pair in pairs]).tolist() for i in (0, 1))
    change = mean_text(changes_of(pairs), "points")
    return str(len(pairs)), mean_text(before), mean_text(after), change


def _exhibits(pairs: Sequence[Pair], blind: Sequence[Pair]) -> tuple[tuple[Exhibit, ...], int]:
    """Verdicts that changed, the echoed and the foreign first."""
    order = {kind: n for n, kind in enumerate(_KINDS)}
    flipped = [pair for pair in (*pairs, *blind) if pair[0].is_correct != pair[1].is_correct]
    flipped.sort(key=lambda pair: order.get(pair[0].variant.kind, len(order)))
    others = {(said.arm, said.variant.name): other for said, other in flipped}

    def tell(said: Response) -> str:
        name = "with the reference" if said.arm == BLIND else "with the case's own"
        return against(said, others[said.arm, said.variant.name], name)

    return exhibits_of([said for said, _ in flipped], tell)
