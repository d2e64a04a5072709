"""Planted faults: is each detected, and are plans without one passed?

The measures are of the judge's own verdicts; figures of rules and judge together are added.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from ...records import ERROR_CODES
from ..outcomes import ProbeTable
from ..responses import LONG_LIST, Response
from ..variants import SOLVER, Severity
from .base import AuditProbe
from .measures import (
    Value,
    count_text,
    describe,
    grouped,
    kind,
    mean_text,
    passed_text,
    rate,
    rates,
    shift,
)

CAUGHT = 0.70
"""Below it, more than three in ten faulty plans pass, and a rate says little about the plans."""
PASSED = 0.85
"""Below it, more than three in twenty sound plans fail for harmless properties."""
NAMED = 0.50
"""Below it, the named code is wrong more often than right, and error rates mean nothing."""

SEVERITIES: tuple[Severity, ...] = ("minor", "major", "fatal")
LIST_LENGTHS = (LONG_LIST, 60, 100)
"""Lengths of lists of tools at which a new band begins."""
NO_CODE = "(no code)"


class Faults(AuditProbe):
    """Compares verdicts on planted faults and on harmless changes with the limits.

    Uses variants of the main run with the roles fault, base and harmless, if they have a verdict.
    """

    name = "faults"
    title = "Planted faults"
    question = "Does the judge detect planted faults and pass plans without faults?"
    roles = ("fault", "base", "harmless")
    nothing = "nothing is planted, or no planted fault has a verdict"

    @cached_property
    def named(self) -> list[Response]:
        """Faults that were caught, under a protocol with codes."""
        return [r for r in self.audit.faults if _has_name(r)]

    @cached_property
    def drops(self) -> dict[str, float]:
        """By name of the fault, its parent's grade less its own, if both have one."""
        drops: dict[str, float] = {}
        for response in self.audit.faults:
            parent = self.audit.find(response.variant.parent or "")
            if parent is not None and parent.grade is not None and response.grade is not None:
                drops[response.variant.name] = parent.grade - response.grade
        return drops

    def values(self) -> Iterable[Value | None]:
        """Faults caught and named, sound plans passed; more figures by code, severity and list."""
        by_code = grouped(self.audit.faults, _codes)
        if not by_code:
            return
        if len(by_code) > 1:
            yield rate("caught, all codes", self.audit.faults, _is_caught, "at least", CAUGHT)
        yield from rates("caught {}", by_code, _is_caught, "at least", CAUGHT)
        yield rate("passed", self.audit.sound, lambda r: r.is_correct, "at least", PASSED)
        yield rate("named", self.named, _is_named, "at least", NAMED)
        for code, of in by_code.items():
            flagged = [r for r in of if r.flags is not None and code != NO_CODE]
            yield rate(f"flagged {code}", flagged, lambda r, code=code: code in (r.flags or ()))
        severities = {
            s: [r for r in self.audit.faults if r.variant.severity == s] for s in SEVERITIES
        }
        for name, of in (*severities.items(), *by_code.items()):
            graded = [r for r in of if r.variant.name in self.drops]
            title = f"grade drop, {name}"
            yield shift(title, graded, lambda r: self.drops[r.variant.name], unit="plain")
        yield from rates("proven by rule, {}", by_code, lambda r: r.is_proven)
        unproven = grouped((r for r in self.audit.faults if not r.is_proven), _codes)
        yield from rates("caught {}, not proven by rule", unproven, _is_caught)
        # faults that judge or rules catch, which is what ``grade`` reports
        enforced = [r for r in self.audit.faults if r.enforced is not None]
        together = {"all codes": enforced, **grouped(enforced, _codes)}
        title = "caught by judge and code together, {}"
        yield from rates(title, together, lambda r: not r.enforced)
        if len(bands := _bands(self.audit.faults)) > 1:
            yield from rates("caught, {}", bands, _is_caught)

    def tables(self) -> Iterable[ProbeTable]:
        """Codes planted against codes flagged, faults by kind, sound plans, lengths of lists."""
        by_code = grouped(self.audit.faults, _codes)
        flagged = {code for r in self.audit.faults for code in r.flags or ()}
        present = flagged.union(*(r.variant.truth.codes or () for r in self.audit.faults))
        # other codes are those of the user's rubric
        codes = ERROR_CODES if present <= {*ERROR_CODES} else sorted(present)

        def confusion(of: Sequence[Response]) -> Iterable[int]:
            yield len(of)
            yield from (sum(code in (r.flags or ()) for r in of) for code in codes)
            yield sum(_is_caught(r) and not r.flags for r in of)
            yield sum(bool(r.is_correct) for r in of)

        yield ProbeTable(
            title="Code planted against codes flagged (one verdict may flag several)",
            columns=("planted", "n", *codes, "caught without code", "passed"),
            rows=tuple((code, *map(str, confusion(of))) for code, of in by_code.items()),
        )
        yield ProbeTable.of(
            "Faults by kind",
            "kind",
            grouped(self.audit.faults, kind),
            {
                "code": lambda of: ", ".join(dict.fromkeys(code for r in of for code in _codes(r))),
                "n": count_text,
                "caught": _caught_text,
                "named": _named_text,
                "proven by rule": lambda of: mean_text(r.is_proven for r in of),
                "grade drop": self._drop_text,
            },
        )
        yield ProbeTable.of(
            "Sound plans, by change",
            "kind",
            grouped(self.audit.sound, kind),
            {"n": count_text, "passed": passed_text},
        )
        bands = _bands([*self.audit.faults, *self.audit.sound])
        if len(bands) > 1:
            wrong, right = _bands(self.audit.faults), _bands(self.audit.sound)
            yield ProbeTable.of(
                "By length of the list of tools",
                "listed",
                {name: name for name in bands},
                {
                    "cases": lambda name: str(len({r.variant.case_id for r in bands[name]})),
                    "faults": lambda name: count_text(wrong.get(name, [])),
                    "caught": lambda name: _caught_text(wrong.get(name, [])),
                    "named": lambda name: _named_text(wrong.get(name, [])),
                    "sound plans": lambda name: count_text(right.get(name, [])),
                    "passed": lambda name: passed_text(right.get(name, [])),
                },
            )

    def _drop_text(self, faults: Sequence[Response]) -> str:
        drops = [self.drops[r.variant.name] for r in faults if r.variant.name in self.drops]
        return f"{sum(drops) / len(drops):+.2f}" if drops else "–"

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Faults that passed, sound plans that failed, faults with a wrong name."""
        missed = (r for r in self.audit.faults if r.is_correct)
        failed = (r for r in self.audit.sound if not r.is_correct)
        misnamed = (r for r in self.named if not _is_named(r))
        return ((r, describe(r)) for r in (*missed, *failed, *misnamed))

    def notes(self) -> Iterable[str]:
        """Faults in references, and proven ones."""
        n = len(self.audit.faults)
        if solved := sum(r.variant.row.get("tested_model") == SOLVER for r in self.audit.faults):
            yield (
                f"{solved} of {n} faults are planted in the case's own reference: a judge that "
                "sees it only has to find the one difference, so the rates for these faults are "
                "upper bounds"
            )
        if proven := sum(r.is_proven for r in self.audit.faults):
            is_shown = any(r.is_informed for r in self.audit.faults)
            yield f"{proven} of {n} planted faults are proven by rule; " + (
                "the judge was shown the proof, and `grade` enforces it: the figures are about "
                "the judge's own verdicts, before that"
                if is_shown
                else "the judge was not shown the proof, and nothing is enforced"
            )
        yield from super().notes()


def _codes(response: Response) -> Sequence[str]:
    """The codes of a fault; kinds without one come last."""
    return sorted(response.variant.truth.codes or ()) or [NO_CODE]


def _is_caught(response: Response) -> bool:
    return not response.is_correct


def _caught_text(faults: Iterable[Response]) -> str:
    return mean_text(map(_is_caught, faults))


def _has_name(response: Response) -> bool:
    """True if the fault was caught, under a protocol with codes."""
    has_codes = bool(response.variant.truth.codes) and response.flags is not None
    return has_codes and _is_caught(response)


def _is_named(response: Response) -> bool:
    truth = response.variant.truth
    return bool((response.flags or frozenset()) & ((truth.codes or frozenset()) | truth.also))


def _named_text(faults: Iterable[Response]) -> str:
    return mean_text(_is_named(r) for r in faults if _has_name(r))


def _bands(responses: Iterable[Response]) -> Mapping[str, list[Response]]:
    """Judgements by length of the case's list of tools; those without a list are left out."""
    names = [f"fewer than {LIST_LENGTHS[0]} tools"]
    names += [f"{a} to {b - 1} tools" for a, b in pairwise(LIST_LENGTHS)]
    names += [f"{LIST_LENGTHS[-1]} tools or more"]

    def band(response: Response) -> str:
        n = response.variant.n_tools
        return "" if n is None else names[bisect(LIST_LENGTHS, n)]

    groups = grouped(responses, band)
    return {name: groups[name] for name in names if name in groups}
