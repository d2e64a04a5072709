"""Base of the probes: their texts, and the result from their values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from ...errors import ApbJudgeError, fault_text
from ..outcomes import (
    LISTED,
    Measure,
    Probe,
    ProbeItem,
    ProbeMetric,
    ProbeTable,
    cost_of,
    level_for,
    outcome_of,
)
from ..responses import AuditResponses, Pair, Response
from ..variants import Role
from .measures import Value, unscored_note


class ProbeFrame:
    """Name and question of a probe.

    Attributes:
        name: Machine name, such as ``faults``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    question: ClassVar[str]

    @classmethod
    def unasked(cls, because: str, used: Iterable[Response] = ()) -> Probe:
        """The result if there is nothing to measure."""
        return Probe(
            name=cls.name,
            title=cls.title,
            question=cls.question,
            outcome="could not tell",
            because=because,
            cost=cost_of(used),
        )

    @classmethod
    def contained(cls, take: Callable[[], Probe]) -> Probe:
        """The result; if the probe raises, one without measures that states the place of the error.

        So a fault in one probe does not lose the results of the others.
        """
        try:
            return take()
        except (ApbJudgeError, ModuleNotFoundError):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours, which the card names
            text = fault_text(error, "apbjudge")
            return cls.unasked(f"the probe itself failed, please report it: {text}")


class AuditProbe(ProbeFrame, ABC):
    """A probe of an audit's responses.

    A subclass states its texts, the roles of its variants, and its values: each with a name, the
    judgements or pairs of judgements that it is computed from, and the side and limit that decide.
    It may add tables, examples and notes, which are shown only if there are values.

    Attributes:
        roles: Roles of the variants of the main run that it is about.
        nothing: The reason if there are no values.
    """

    roles: ClassVar[tuple[Role, ...]] = ()
    nothing: ClassVar[str] = "there is nothing to measure"

    def __init__(self, audit: AuditResponses) -> None:
        self.audit = audit

    @classmethod
    def of(cls, audit: AuditResponses) -> Probe:
        """The result of an audit's responses."""
        return cls(audit).result()

    def result(self) -> Probe:
        """The result: its outcome follows from its measures."""
        if not self.taken:
            return self.unasked(self.because(self.nothing), self.used())
        outcome, reason = outcome_of(self.measures)
        examples = [ProbeItem(name=r.variant.name, run=r.run, what=x) for r, x in self.examples()]
        return replace(
            self.unasked(self.because(reason), self.used()),
            outcome=outcome,
            measures=self.measures,
            figures=tuple(value for value in self.taken if isinstance(value, ProbeMetric)),
            tables=tuple(self.tables()),
            examples=tuple(examples[:LISTED]),
            n_examples=len(examples),
            notes=tuple(self.notes()),
        )

    @cached_property
    def taken(self) -> tuple[Value, ...]:
        """The values that can be computed."""
        return tuple(value for value in self.values() if value is not None)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The values with a limit, with intervals at the level that follows from their number."""
        return decide(self.taken)

    @cached_property
    def asked(self) -> list[Response]:
        """The judgements that the probe is about, scored or not."""
        return self.audit.asked(*self.roles)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The scored judgements, each with its parent, which is scored too."""
        return self.audit.pairs(*self.roles)

    @abstractmethod
    def values(self) -> Iterable[Value | None]:
        """The values in the order of the card; None for those that can't be computed."""

    def used(self) -> Iterable[Response]:
        """The judgements that the probe uses, for its cost."""
        return self.asked

    def because(self, reason: str) -> str:
        """The reason for the outcome, from the reason that the values give."""
        return reason

    def tables(self) -> Iterable[ProbeTable]:
        """Breakdowns."""
        return ()

    def examples(self) -> Iterable[tuple[Response, str]]:
        """Judgements that show faults of the judge, each with a sentence."""
        return ()

    def notes(self) -> Iterable[str]:
        """Remarks for readers on the origin of the values."""
        return unscored_note(self.asked)


def decide(values: Iterable[Value | None]) -> tuple[Measure, ...]:
    """The measures of the values with a limit, at the level for their number; skips None."""
    takes = [value for value in values if value and not isinstance(value, ProbeMetric)]
    level = level_for(len(takes))
    return tuple(take(level) for take in takes)
