"""Planted faults: is the one that was planted found, and is what has none passed?

All of it on the judge's own verdicts; what code and judge catch together stands beside it.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ...records import ERROR_CODES
from ..responses import LONG_LIST, AuditResponses, Response, passed
from ..variants import SOLVER, Severity
from ..outcomes import (
    Figure,
    Measure,
    Probe,
    Table,
    concluded,
    cost_of,
    exhibits_of,
    level_for,
    unasked,
)
from .measuring import rate, share_of, shift_of
from .telling import mean_text, told, without_verdict

NAME = "faults"
TITLE = "Planted faults"
QUESTION = "Does the judge find a fault that was planted, and pass what has none?"

CAUGHT = 0.70
"""Below it more than three in ten faulty plans pass, and a rate says little of the plans."""
PASSED = 0.85
"""Below it more than three in twenty sound plans fail for what must not matter."""
NAMED = 0.50
"""Below it the code named is wrong more often than right, and error rates can't be read."""

SEVERITIES: tuple[Severity, ...] = ("minor", "major", "fatal")


def probe(responses: AuditResponses) -> Probe:
    """Holds what was said of planted faults and of harmless changes against the limits.

    Args:
        responses: All that was said. Of the main arm, variants with the roles fault, base and
            harmless are used; those without a verdict count nowhere.

    Returns:
        The probe; could not tell where no fault has a verdict.
    """
    asked = responses.asked("fault", "base", "harmless")
    faults, sound = responses.scored("fault"), responses.scored("base", "harmless")
    if not faults:
        because = "no planted fault has a verdict" if responses.asked("fault") else "nothing is planted"
        return replace(unasked(NAME, TITLE, QUESTION, because), cost=cost_of(asked))
    measures = _measures(faults, sound)
    missed = [s for s in faults if s.is_correct]
    misnamed = [s for s in faults if _has_name(s) and not _is_named(s)]
    speaking = [*missed, *(s for s in sound if not s.is_correct), *misnamed]
    exhibits = exhibits_of(speaking, told)
    return concluded(
        NAME,
        TITLE,
        QUESTION,
        measures=measures,
        figures=tuple(_figures(responses, faults)),
        tables=(_confusion(faults), _kinds(responses, faults), _sound(sound), *_lists(faults, sound)),
        exhibits=exhibits,
        said=asked,
        notes=(*_notes(faults), *without_verdict(asked)),
    )


def _measures(faults: Sequence[Response], sound: Sequence[Response]) -> tuple[Measure, ...]:
    named = [s for s in faults if _has_name(s)]
    coded = _by(faults)
    asked: list[tuple[str, Sequence[Response], list[bool], float]] = [
        ("caught, all codes", faults if len(coded) > 1 else (), _caught(faults), CAUGHT),
        *((f"caught {code}", of, _caught(of), CAUGHT) for code, of in coded),
        ("passed", sound, [bool(s.is_correct) for s in sound], PASSED),
        ("named", named, [_is_named(s) for s in named], NAMED),
    ]
    known = [each for each in asked if each[1]]
    level = level_for(len(known))
    return tuple(
        rate(name, said, hits, "at least", limit, level=level) for name, said, hits, limit in known
    )


def _caught(faults: Iterable[Response]) -> list[bool]:
    return [not s.is_correct for s in faults]


def _by(faults: Iterable[Response]) -> list[tuple[str, list[Response]]]:
    """Faults by code, those of kinds without one last."""
    found: defaultdict[str, list[Response]] = defaultdict(list)
    for said in faults:
        for code in _codes(said):
            found[code].append(said)
    return sorted(found.items())


NO_CODE = "(no code)"


def _codes(said: Response) -> Sequence[str]:
    return sorted(said.variant.truth.codes or ()) or [NO_CODE]


def _has_name(said: Response) -> bool:
    """Whether it was caught, under a protocol with codes."""
    return not said.is_correct and bool(said.variant.truth.codes) and said.flags is not None


def _is_named(said: Response) -> bool:
    truth = said.variant.truth
    return bool((said.flags or frozenset()) & ((truth.codes or frozenset()) | truth.also))


def _figures(responses: AuditResponses, faults: Sequence[Response]) -> Iterable[Figure]:
    coded = _by(faults)
    for code, said in coded:
        flagged = [s for s in said if s.flags is not None]
        if flagged and code != NO_CODE:
            hits = [code in (s.flags or ()) for s in flagged]
            yield Figure(name=f"flagged {code}", estimate=share_of(flagged, hits, level=0.95))
    for severity in SEVERITIES:
        chosen = [s for s in faults if s.variant.severity == severity]
        yield from _drop(responses, f"grade drop, {severity}", chosen)
    for code, said in coded:
        yield from _drop(responses, f"grade drop, {code}", said)
    for code, said in coded:
        hits = [s.is_proven for s in said]
        yield Figure(name=f"proven by code, {code}", estimate=share_of(said, hits, level=0.95))
    for code, said in _by(s for s in faults if not s.is_proven):
        name = f"caught {code}, not proven by code"
        yield Figure(name=name, estimate=share_of(said, _caught(said), level=0.95))
    yield from _enforced(faults)
    yield from _by_length(faults)


def _enforced(faults: Sequence[Response]) -> Iterable[Figure]:
    """What judge and code catch together, which is what ``grade`` reports."""
    known = [s for s in faults if s.enforced is not None]
    for name, said in (("all codes", known), *_by(known)):
        if said:
            hits = [not s.enforced for s in said]
            estimate = share_of(said, hits, level=0.95)
            yield Figure(name=f"caught by judge and code together, {name}", estimate=estimate)


def _drops(responses: AuditResponses, faults: Iterable[Response]) -> list[tuple[Response, float]]:
    """Grade of the parent less that of the fault, where both have one."""
    found: list[tuple[Response, float]] = []
    for said in faults:
        parent = responses.find(said.variant.parent or "")
        if parent is not None and parent.grade is not None and said.grade is not None:
            found.append((said, parent.grade - said.grade))
    return found


def _drop(responses: AuditResponses, name: str, faults: Iterable[Response]) -> Iterable[Figure]:
    drops = _drops(responses, faults)
    if drops:
        values = [drop for _, drop in drops]
        estimate = shift_of([s for s, _ in drops], values, level=0.95)
        yield Figure(name=name, estimate=estimate, unit="plain")


def _confusion(faults: Sequence[Response]) -> Table:
    def row(code: str, said: Sequence[Response]) -> tuple[str, ...]:
        counts = [
            len(said),
            *(sum(flag in (s.flags or ()) for s in said) for flag in ERROR_CODES),
            sum(not s.is_correct and not s.flags for s in said),
            sum(bool(s.is_correct) for s in said),
        ]
        return code, *map(str, counts)

    return Table(
        title="Code planted against codes flagged (one verdict may flag several)",
        columns=("planted", "n", *ERROR_CODES, "caught without code", "passed"),
        rows=tuple(row(code, said) for code, said in _by(faults)),
    )


def _by_kind(said: Iterable[Response]) -> Mapping[str, list[Response]]:
    found: defaultdict[str, list[Response]] = defaultdict(list)
    for one in said:
        found[one.variant.kind].append(one)
    return dict(sorted(found.items()))


def _kinds(responses: AuditResponses, faults: Sequence[Response]) -> Table:
    columns: Mapping[str, Callable[[list[Response]], str]] = {
        "code": lambda said: ", ".join(dict.fromkeys(code for s in said for code in _codes(s))),
        "n": lambda said: str(len(said)),
        "caught": lambda said: mean_text([not s.is_correct for s in said]),
        "named": lambda said: mean_text([_is_named(s) for s in said if _has_name(s)]),
        "proven by code": lambda said: mean_text([s.is_proven for s in said]),
        "grade drop": lambda said: _mean([drop for _, drop in _drops(responses, said)]),
    }
    return Table(
        title="Faults by kind",
        columns=("kind", *columns),
        rows=tuple(
            (kind, *(cell(said) for cell in columns.values()))
            for kind, said in _by_kind(faults).items()
        ),
    )


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):+.2f}" if values else "–"


def _sound(sound: Sequence[Response]) -> Table:
    return Table(
        title="Sound plans by what was changed",
        columns=("kind", "n", "passed"),
        rows=tuple(
            (kind, str(len(said)), mean_text(passed(said).tolist()))
            for kind, said in _by_kind(sound).items()
        ),
    )


LIST_LENGTHS = (LONG_LIST, 60, 100)
"""Numbers of tools at which a longer band of list lengths begins."""


def _bands(said: Iterable[Response]) -> Mapping[str, list[Response]]:
    """Judgements by how many tools the case lists, none left out but those without a list."""
    names = [f"fewer than {LIST_LENGTHS[0]} tools"]
    names += [f"{a} to {b - 1} tools" for a, b in pairwise(LIST_LENGTHS)]
    names += [f"{LIST_LENGTHS[-1]} tools or more"]
    found: dict[str, list[Response]] = {name: [] for name in names}
    for one in said:
        if (n := one.variant.n_tools) is not None:
            found[names[bisect(LIST_LENGTHS, n)]].append(one)
    return {name: of for name, of in found.items() if of}


def _by_length(faults: Sequence[Response]) -> Iterable[Figure]:
    """Caught by how many tools are listed, where lists of several lengths were asked about."""
    bands = _bands(faults)
    for name, said in bands.items() if len(bands) > 1 else ():
        yield Figure(name=f"caught, {name}", estimate=share_of(said, _caught(said), level=0.95))


def _lists(faults: Sequence[Response], sound: Sequence[Response]) -> Iterable[Table]:
    wrong, right = _bands(faults), _bands(sound)
    names = list(_bands([*faults, *sound]))
    if len(names) < 2:
        return

    def row(name: str) -> tuple[str, ...]:
        of, good = wrong.get(name, []), right.get(name, [])
        cases = {s.variant.case_id for s in (*of, *good)}
        named = [_is_named(s) for s in of if _has_name(s)]
        counts = str(len(cases)), str(len(of)), mean_text(_caught(of)), mean_text(named)
        return name, *counts, str(len(good)), mean_text(passed(good).tolist())

    yield Table(
        title="By length of the list of tools",
        columns=("listed", "cases", "faults", "caught", "named", "sound plans", "passed"),
        rows=tuple(map(row, names)),
    )


def _notes(faults: Sequence[Response]) -> Iterable[str]:
    n = len(faults)
    solved = sum(s.variant.row.get("tested_model") == SOLVER for s in faults)
    if solved:
        yield (
            f"{solved} of {n} faults are planted in the case's own reference: a judge that sees it "
            "has only to find the one difference, so that what is caught of them is an upper bound"
        )
    if proven := sum(s.is_proven for s in faults):
        shown = sum(s.is_informed for s in faults)
        yield f"{proven} of {n} planted faults are proven by code; " + (
            "the judge was shown the proof, and `grade` enforces it: what is caught here is what "
            "the judge itself said, before that"
            if shown
            else "the judge was not shown the proof, and nothing is enforced"
        )
