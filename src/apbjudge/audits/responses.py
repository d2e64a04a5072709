"""A judge's responses to the variants of an audit, in the form that probes use.

Verdicts, grades and flags are the judge's own, before proven findings were enforced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..judge.consistency import is_enforced, own_verdict
from ..records import ErrorCode, Unscored, Verdict
from ..statistics.estimates import Array
from ..statistics.sample import Sample
from .variants import Role, Variant

MAIN = "main"
"""The run with the judge's own settings; other runs are named after their change."""

AGAIN, WARM, BLIND = "again", "warm", "blind"
"""Runs: repeated with the same settings (``again-1``, …), at temperature 1 (``warm-1``, …), without
the reference."""

LONG_LIST = 30
"""Smallest number of tools in a long list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One judgement of a variant.

    Attributes:
        is_correct: The judge's own verdict; None if unscored.
        flags: Codes that it set; None if the protocol has no codes or the reply named none.
        category: Its own category, 1 to 5 (tool-broken); None for other protocols.
        enforced: The verdict after proven findings were enforced, as ``grade`` reports it; None if
            nothing is enforced (unscored, no evidence, the embedded judge).
        is_proven: True if a rule proved a fault.
        is_informed: True if the judge was shown the proven findings.
        is_inconsistent: True if the judge's last reply still contradicted itself.
        is_overridden: True if the rule for contradictory replies changed its verdict.
        turn: Position in the audit's schedule, from 0; None if the order is unknown.
        is_reused: True if its reply came from the reply cache, requested at another time.
        reason: Reason why there is no verdict; empty with a verdict.
        tokens: Tokens sent and received.
        groups: Fields of the case by which results are broken down.
    """

    variant: Variant
    run: str = MAIN
    is_correct: bool | None
    grade: float | None = None
    flags: frozenset[ErrorCode] | None = None
    category: int | None = None
    enforced: bool | None = None
    is_proven: bool = False
    is_informed: bool = False
    is_inconsistent: bool = False
    is_overridden: bool = False
    turn: int | None = None
    is_reused: bool = False
    reason: str = ""
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    groups: Mapping[str, str | int | None] = field(default_factory=dict[str, str | int | None])

    @property
    def is_scored(self) -> bool:
        """True if there is a verdict."""
        return self.is_correct is not None


def response_of(
    variant: Variant,
    run: str,
    judgement: Verdict | Unscored,
    *,
    evidence: bool = False,
    turn: int | None = None,
) -> Response:
    """A judgement in the form that probes need.

    Args:
        variant: The variant that was judged.
        run: Name of the run.
        judgement: The judgement.
        evidence: True if the judge was shown proven findings, and they were enforced.
        turn: Position in the audit's schedule; None if the order is unknown.
    """
    usage, n_tools = judgement.usage, variant.n_tools
    is_proven = any(finding.certainty == "proven" for finding in judgement.findings)
    length = None
    if n_tools is not None:
        length = f"{LONG_LIST} or more" if n_tools >= LONG_LIST else f"fewer than {LONG_LIST}"
    common: dict[str, Any] = {
        "variant": variant,
        "run": run,
        "is_proven": is_proven,
        "is_informed": is_proven and evidence,
        "turn": turn,
        "is_reused": bool(usage and usage.reused and not usage.calls),
        "calls": usage.calls if usage else 0,
        "tokens": usage.prompt_tokens + usage.completion_tokens if usage else 0,
        "cost_usd": judgement.cost_usd,
        "groups": judgement.groups | {"tools": length},
    }
    if isinstance(judgement, Unscored):
        return Response(is_correct=None, reason=judgement.reason, **common)
    own = own_verdict(judgement)
    return Response(
        is_correct=own.is_correct,
        grade=own.grade,
        flags=None if own.errors is None else own.flags,
        category=own.category,
        enforced=judgement.is_correct if evidence else None,
        is_inconsistent=judgement.inconsistent,
        is_overridden=not all(map(is_enforced, judgement.overrides)),
        **common,
    )


Pair = tuple[Response, Response]
"""The response to a variant and to its parent, both scored."""


@dataclass(frozen=True)
class AuditResponses:
    """The responses of every run of an audit.

    Attributes:
        judge: The judge's name, from which its family follows; empty if unknown.
        own: Tested models that are the judge itself, if the user named any.
        baseline: The source of the truth about predictions, in words: ``human labels`` or
            ``judge X as baseline``.
    """

    all: tuple[Response, ...]
    judge: str = ""
    own: tuple[str, ...] = ()
    baseline: str = ""

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Response]:
        return {(r.run, r.variant.name): r for r in self.all}

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs that were asked, in order."""
        return tuple(dict.fromkeys(r.run for r in self.all))

    def runs_of(self, stem: str) -> list[str]:
        """The runs ``stem-1``, ``stem-2``, … that were asked."""
        return [run for run in self.runs if run.rpartition("-")[0] == stem]

    @property
    def labelled(self) -> list[Response]:
        """Scored predictions of tested models whose truth is known."""
        scored = self.scored("prediction")
        return [r for r in scored if r.variant.truth.is_correct is not None]

    @cached_property
    def faults(self) -> list[Response]:
        """Verdicts on planted faults."""
        return self.scored("fault")

    @cached_property
    def sound(self) -> list[Response]:
        """Verdicts on plans without a fault."""
        return self.scored("base", "harmless")

    def find(self, name: str, run: str = MAIN) -> Response | None:
        """The response to a variant; None if there is none."""
        return self._by_name.get((run, name))

    @cached_property
    def main(self) -> tuple[Response, ...]:
        """All responses of the main run, scored or not."""
        return tuple(r for r in self.all if r.run == MAIN)

    def asked(self, *roles: Role) -> list[Response]:
        """Responses of the main run with one of these roles, scored or not."""
        return [r for r in self.main if r.variant.role in roles]

    def scored(self, *roles: Role) -> list[Response]:
        """Responses of the main run with one of these roles and a verdict."""
        return [r for r in self.asked(*roles) if r.is_scored]

    def pairs(self, *roles: Role) -> list[Pair]:
        """Variants of these roles in the main run, each with its parent; both have a verdict."""
        rows = [(r, self.find(r.variant.parent or "")) for r in self.scored(*roles)]
        return [(r, parent) for r, parent in rows if parent is not None and parent.is_scored]

    def across(self, run: str) -> list[Pair]:
        """Responses in another run, each with that of the main run to the same variant; scored."""
        rows = [(r, self.find(r.variant.name)) for r in self.all if r.run == run and r.is_scored]
        return [(r, main) for r, main in rows if main is not None and main.is_scored]

    def repeats(self, stem: str, *, with_main: bool) -> list[list[Response]]:
        """Groups of scored responses to the same variant in the runs ``stem-1``, ``stem-2``, ….

        Each group has at least two.

        Args:
            stem: ``again`` or ``warm``.
            with_main: True if the main run's response is one of them.
        """
        runs = self.runs_of(stem)
        selected = [MAIN, *runs] if with_main else runs
        names = dict.fromkeys(r.variant.name for r in self.all if r.run in runs)
        groups = [[self.find(name, run) for run in selected] for name in names]
        scored = [[r for r in group if r and r.is_scored] for group in groups]
        return [group for group in scored if len(group) > 1]


def sample_of(responses: Sequence[Response]) -> Sample:
    """The sample of judgements, with the cases as clusters."""
    numbers: dict[str, int] = {}
    clusters = [numbers.setdefault(r.variant.case_id, len(numbers)) for r in responses]
    return Sample(clusters=np.array(clusters, dtype=np.int64))


def passed(responses: Iterable[Response]) -> Array:
    """Shape (n,): 1.0 if the verdict is correct, else 0.0."""
    return np.array([float(bool(r.is_correct)) for r in responses])
