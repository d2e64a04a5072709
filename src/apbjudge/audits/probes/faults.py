"""Planted faults: is the one that was planted found, and is what has none passed?

The measures are of the judge's own verdicts; figures of code and judge together come on top.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ...records import ERROR_CODES
from ..outcomes import Probe, ProbeMetric, ProbeSpec, ProbeTable, decide
from ..responses import LONG_LIST, AuditResponses, Response, passed
from ..variants import SOLVER, Severity
from .measures import describe, mean_text, rate, share_of, shift_of, unscored_note

SPEC = ProbeSpec(
    name="faults",
    title="Planted faults",
    question="Does the judge detect planted faults and pass plans without faults?",
)

CAUGHT = 0.70
"""Below it more than three in ten faulty plans pass, and a rate says little of the plans."""
PASSED = 0.85
"""Below it more than three in twenty sound plans fail for what must not matter."""
NAMED = 0.50
"""Below it the code named is wrong more often than right, and error rates can't be read."""

SEVERITIES: tuple[Severity, ...] = ("minor", "major", "fatal")
LIST_LENGTHS = (LONG_LIST, 60, 100)
"""Numbers of tools at which a longer band of list lengths begins."""
NO_CODE = "(no code)"

Groups = Mapping[str, list[Response]]


def probe(audit: AuditResponses) -> Probe:
    """Compares verdicts on planted faults and on harmless changes with the limits.

    Uses variants of the main run with the roles fault, base and harmless; those without a verdict
    do not count.
    """
    asked = audit.asked("fault", "base", "harmless")
    faults, sound = audit.scored("fault"), audit.scored("base", "harmless")
    if not faults:
        planted = bool(audit.asked("fault"))
        return SPEC.unasked(
            "no planted fault has a verdict" if planted else "nothing is planted", asked
        )
    by_code = _by_code(faults)
    named = [r for r in faults if _has_name(r)]
    measures = decide(
        [
            rate("caught, all codes", faults, _caught(faults), "at least", CAUGHT)
            if len(by_code) > 1
            else None,
            *(
                rate(f"caught {code}", of, _caught(of), "at least", CAUGHT)
                for code, of in by_code.items()
            ),
            rate("passed", sound, passed(sound).tolist(), "at least", PASSED),
            rate("named", named, list(map(_is_named, named)), "at least", NAMED),
        ]
    )
    missed = [r for r in faults if r.is_correct]
    misnamed = [r for r in named if not _is_named(r)]
    against = [*missed, *(r for r in sound if not r.is_correct), *misnamed]
    return SPEC.result(
        measures,
        asked,
        figures=_figures(audit, faults, by_code),
        tables=_tables(audit, faults, sound),
        examples=((r, describe(r)) for r in against),
        notes=[*_notes(faults), *unscored_note(asked)],
    )


def _caught(faults: Iterable[Response]) -> list[bool]:
    return [not r.is_correct for r in faults]


def _by_code(faults: Iterable[Response]) -> Groups:
    """Faults by code, those of kinds without one last."""
    groups: defaultdict[str, list[Response]] = defaultdict(list)
    for response in faults:
        for code in _codes(response):
            groups[code].append(response)
    return dict(sorted(groups.items()))


def _codes(response: Response) -> Sequence[str]:
    return sorted(response.variant.truth.codes or ()) or [NO_CODE]


def _has_name(response: Response) -> bool:
    """True if the fault was caught, under a protocol with codes."""
    has_codes = bool(response.variant.truth.codes) and response.flags is not None
    return has_codes and not response.is_correct


def _is_named(response: Response) -> bool:
    truth = response.variant.truth
    return bool((response.flags or frozenset()) & ((truth.codes or frozenset()) | truth.also))


def _figures(
    audit: AuditResponses, faults: Sequence[Response], by_code: Groups
) -> Iterator[ProbeMetric]:
    for code, of in by_code.items():
        flagged = [r for r in of if r.flags is not None]
        if flagged and code != NO_CODE:
            hits = [code in (r.flags or ()) for r in flagged]
            yield ProbeMetric(name=f"flagged {code}", estimate=share_of(flagged, hits))
    groups = {s: [r for r in faults if r.variant.severity == s] for s in SEVERITIES}
    for name, of in (*groups.items(), *by_code.items()):
        if drops := _drops(audit, of):
            estimate = shift_of([r for r, _ in drops], [drop for _, drop in drops])
            yield ProbeMetric(name=f"grade drop, {name}", estimate=estimate, unit="plain")
    for code, of in by_code.items():
        estimate = share_of(of, [r.is_proven for r in of])
        yield ProbeMetric(name=f"proven by rule, {code}", estimate=estimate)
    for code, of in _by_code(r for r in faults if not r.is_proven).items():
        name = f"caught {code}, not proven by rule"
        yield ProbeMetric(name=name, estimate=share_of(of, _caught(of)))
    enforced = [r for r in faults if r.enforced is not None]
    for name, of in {"all codes": enforced, **_by_code(enforced)}.items():
        if of:  # what judge and code catch together, which is what ``grade`` reports
            estimate = share_of(of, [not r.enforced for r in of])
            yield ProbeMetric(name=f"caught by judge and code together, {name}", estimate=estimate)
    bands = _bands(faults)
    for name, of in bands.items() if len(bands) > 1 else ():
        yield ProbeMetric(name=f"caught, {name}", estimate=share_of(of, _caught(of)))


def _drops(audit: AuditResponses, faults: Iterable[Response]) -> list[tuple[Response, float]]:
    """Grade of the parent less that of the fault, where both have one."""
    drops: list[tuple[Response, float]] = []
    for response in faults:
        parent = audit.find(response.variant.parent or "")
        if parent is not None and parent.grade is not None and response.grade is not None:
            drops.append((response, parent.grade - response.grade))
    return drops


def _tables(
    audit: AuditResponses, faults: Sequence[Response], sound: Sequence[Response]
) -> Iterator[ProbeTable]:
    present = {code for r in faults for code in (*(r.flags or ()), *(r.variant.truth.codes or ()))}
    codes = ERROR_CODES if present <= {*ERROR_CODES} else sorted(present)  # else of an own rubric

    def confusion(of: Sequence[Response]) -> Iterator[int]:
        yield len(of)
        yield from (sum(code in (r.flags or ()) for r in of) for code in codes)
        yield sum(not r.is_correct and not r.flags for r in of)
        yield sum(bool(r.is_correct) for r in of)

    yield ProbeTable(
        title="Code planted against codes flagged (one verdict may flag several)",
        columns=("planted", "n", *codes, "caught without code", "passed"),
        rows=tuple((code, *map(str, confusion(of))) for code, of in _by_code(faults).items()),
    )

    def drop(of: Sequence[Response]) -> str:
        drops = [value for _, value in _drops(audit, of)]
        return f"{sum(drops) / len(drops):+.2f}" if drops else "–"

    def caught(of: Sequence[Response]) -> str:
        return mean_text(_caught(of))

    def named(of: Sequence[Response]) -> str:
        return mean_text([_is_named(r) for r in of if _has_name(r)])

    def n(of: Sequence[Response]) -> str:
        return str(len(of))

    def mean_passed(of: Sequence[Response]) -> str:
        return mean_text(passed(of).tolist())

    yield ProbeTable.of(
        "Faults by kind",
        "kind",
        _by_kind(faults),
        {
            "code": lambda of: ", ".join(dict.fromkeys(code for r in of for code in _codes(r))),
            "n": n,
            "caught": caught,
            "named": named,
            "proven by rule": lambda of: mean_text([r.is_proven for r in of]),
            "grade drop": drop,
        },
    )
    cells = {"n": n, "passed": mean_passed}
    yield ProbeTable.of("Sound plans, by change", "kind", _by_kind(sound), cells)
    bands = _bands([*faults, *sound])
    if len(bands) > 1:
        wrong, right = _bands(faults), _bands(sound)
        split = {name: (wrong.get(name, []), right.get(name, [])) for name in bands}
        yield ProbeTable.of(
            "By length of the list of tools",
            "listed",
            split,
            {
                "cases": lambda of: str(len({r.variant.case_id for r in (*of[0], *of[1])})),
                "faults": lambda of: n(of[0]),
                "caught": lambda of: caught(of[0]),
                "named": lambda of: named(of[0]),
                "sound plans": lambda of: n(of[1]),
                "passed": lambda of: mean_passed(of[1]),
            },
        )


def _by_kind(responses: Iterable[Response]) -> Groups:
    groups: defaultdict[str, list[Response]] = defaultdict(list)
    for response in responses:
        groups[response.variant.kind].append(response)
    return dict(sorted(groups.items()))


def _bands(responses: Iterable[Response]) -> Groups:
    """Judgements by how many tools the case lists, none left out but those without a list."""
    names = [f"fewer than {LIST_LENGTHS[0]} tools"]
    names += [f"{a} to {b - 1} tools" for a, b in pairwise(LIST_LENGTHS)]
    names += [f"{LIST_LENGTHS[-1]} tools or more"]
    groups: dict[str, list[Response]] = {name: [] for name in names}
    for response in responses:
        if (n := response.variant.n_tools) is not None:
            groups[names[bisect(LIST_LENGTHS, n)]].append(response)
    return {name: of for name, of in groups.items() if of}


def _notes(faults: Sequence[Response]) -> Iterable[str]:
    n = len(faults)
    if solved := sum(r.variant.row.get("tested_model") == SOLVER for r in faults):
        yield (
            f"{solved} of {n} faults are planted in the case's own reference: a judge that sees it "
            "only has to find the one difference, so the rates for these faults are upper bounds"
        )
    if proven := sum(r.is_proven for r in faults):
        is_shown = any(r.is_informed for r in faults)
        yield f"{proven} of {n} planted faults are proven by rule; " + (
            "the judge was shown the proof, and `grade` enforces it: the figures are about "
            "the judge's own verdicts, before that"
            if is_shown
            else "the judge was not shown the proof, and nothing is enforced"
        )
