"""Refusals: does the judge leave faulty plans without a verdict more often than sound ones?

A judgement without a verdict counts in no other figure. A judge that returns none mainly for faulty
plans looks better in those figures than it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from ..outcomes import ProbeTable
from ..responses import Response
from .base import AuditProbe
from .measures import Value, count_text, describe, grouped, mean_text, rate, shift

UNEVEN = 0.10
"""Rates are over verdicts: if one side lacks ten points more of them, all rates are biased."""

NOT_THE_JUDGE = ("budget", "bad_input", "transport")
"""Reasons for missing verdicts that say nothing about the judge."""

_TRUTHS = {True: ", sound", False: ", faulty", None: ""}


class Refusals(AuditProbe):
    """Compares the share without a verdict, faulty less sound plans of one case, with the limit.

    Compares variants of the main run with the roles fault, base and harmless.
    """

    name = "refusals"
    title = "Selective refusal"
    question = "Does the judge leave faulty plans without a verdict more often than sound ones?"
    roles = ("fault", "base", "harmless")
    nothing = "no case has faulty and sound plans that reached the judge, or nothing has a verdict"

    @cached_property
    def asked(self) -> list[Response]:
        """The variants that reached the judge."""
        return [r for r in self.audit.asked(*self.roles) if r.reason not in NOT_THE_JUDGE]

    @cached_property
    def sound(self) -> dict[str, list[Response]]:
        """Sound plans by case."""
        sound = (r for r in self.asked if r.variant.truth.is_correct)
        return dict(grouped(sound, lambda r: r.variant.case_id))

    @cached_property
    def faults(self) -> list[Response]:
        """Faulty plans of cases that have sound ones."""
        faults = (r for r in self.asked if not r.variant.truth.is_correct)
        return [r for r in faults if r.variant.case_id in self.sound]

    def values(self) -> Iterable[Value | None]:
        """The difference within cases, and both shares."""
        if not self.faults or not any(r.is_scored for r in self.asked):
            return
        rates = {c: sum(map(_is_missing, of)) / len(of) for c, of in self.sound.items()}
        yield shift(
            "without verdict, faulty minus sound plans",
            self.faults,
            lambda r: _is_missing(r) - rates[r.variant.case_id],
            "within",
            UNEVEN,
        )
        for name, truth in (("faulty plans", False), ("sound plans", True)):
            chosen = [r for r in self.asked if bool(r.variant.truth.is_correct) is truth]
            yield rate(f"without verdict, {name}", chosen, _is_missing)

    def tables(self) -> Iterable[ProbeTable]:
        """Reasons for missing verdicts by kind of plan, over all variants of the main run."""
        main = [r for r in self.audit.main if r.reason not in NOT_THE_JUDGE]
        if reasons := sorted({r.reason for r in main if not r.is_scored}):
            yield ProbeTable.of(
                "Judgements without a verdict, by kind of plan",
                "judged",
                grouped(main, lambda r: r.variant.role + _TRUTHS[r.variant.truth.is_correct]),
                {
                    "n": count_text,
                    "without verdict": lambda of: mean_text(map(_is_missing, of)),
                    **{reason: _counter(reason) for reason in reasons},
                },
            )

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Faulty plans without a verdict."""
        return ((r, describe(r)) for r in filter(_is_missing, self.faults))

    def notes(self) -> Iterable[str]:
        """Remarks on the comparison and on the counted replies."""
        yield (
            "each faulty plan is compared with the sound plans of its case; refusals, unreadable "
            "and contradictory replies and time-outs count; what never reached the judge (budget, "
            "transport, bad input) does not"
        )


def _is_missing(response: Response) -> bool:
    return not response.is_scored


def _counter(reason: str) -> Callable[[Sequence[Response]], str]:
    return lambda of: str(sum(r.reason == reason for r in of if not r.is_scored))
