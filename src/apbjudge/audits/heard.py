"""What a judge said of each variant, ready for the probes.

Verdicts, grades and flags are the judge's own: as they were before what code proves was enforced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..records import ErrorCode
from ..statistics.estimates import Array
from ..statistics.sample import Sample
from .variants import Role, Variant

MAIN = "main"
"""The arm with the judge's own settings; others are named for what they change."""

AGAIN, WARM, BLIND = "again", "warm", "blind"
"""Arms: the same once more (``again-1``, …), at a temperature above 0 (``warm-1``, …), without the
reference."""

LONG_LIST = 30
"""Tools in a list from which on it counts as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One judgement of a variant.

    Attributes:
        variant: What was judged.
        arm: Under which settings.
        is_correct: The judge's own verdict, None where there is none (unscored).
        grade: Its own grade, None where there is none.
        flags: Codes that it set, None where the protocol has none or nothing was said.
        category: Its own category, 1 to 5 (tool-broken), None elsewhere.
        enforced: The verdict after what code proves was enforced, as ``grade`` reports it; None
            where nothing is enforced (unscored, no evidence, the embedded judge).
        is_proven: Whether code proved a fault.
        is_informed: Whether the judge was shown what code proved.
        is_inconsistent: Whether the judge's own reply contradicted itself to the end.
        is_overridden: Whether the rule for contradictory replies changed its verdict.
        turn: Position in the audit's schedule, from 0; None where the order is not known.
        is_reused: Whether its reply came from the reply cache, asked for at another time.
        reason: Why there is no verdict; empty where there is one.
        calls: Calls made for it.
        tokens: Tokens sent and received.
        cost_usd: Price, None where not known.
        groups: Fields of the case by which results are broken down.
    """

    variant: Variant
    arm: str = MAIN
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
        """Whether there is a verdict."""
        return self.is_correct is not None


def list_length(variant: Variant) -> str | None:
    """Whether a variant's list of tools is long, in words; None where it has none."""
    n = variant.n_tools
    if n is None:
        return None
    return f"{LONG_LIST} or more" if n >= LONG_LIST else f"fewer than {LONG_LIST}"


Pair = tuple[Observed, Observed]
"""What was judged, and its parent, both scored."""


@dataclass(frozen=True)
class Heard:
    """All that was said in an audit.

    Attributes:
        all: Every judgement of every arm.
    """

    all: tuple[Observed, ...]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Observed]:
        return {(said.arm, said.variant.name): said for said in self.all}

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms that were asked, in order."""
        return tuple(dict.fromkeys(said.arm for said in self.all))

    def arms_of(self, stem: str) -> list[str]:
        """The arms ``stem-1``, ``stem-2``, … that were asked."""
        return self._arms_by_stem.get(stem, [])

    @cached_property
    def _arms_by_stem(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for arm in self.arms:
            found.setdefault(arm.rpartition("-")[0], []).append(arm)
        return found

    def find(self, name: str, arm: str = MAIN) -> Observed | None:
        """What was said of a variant, None where it was not asked."""
        return self._by_name.get((arm, name))

    def asked(self, *roles: Role, arm: str = MAIN) -> list[Observed]:
        """Everything with one of these roles, scored or not."""
        return [said for said in self.all if said.arm == arm and said.variant.role in roles]

    def scored(self, *roles: Role, arm: str = MAIN) -> list[Observed]:
        """Everything with one of these roles that has a verdict."""
        return [said for said in self.asked(*roles, arm=arm) if said.is_scored]

    def pairs(self, *roles: Role, arm: str = MAIN, parent_arm: str | None = None) -> list[Pair]:
        """Variants of these roles, each with its parent; both have a verdict.

        Args:
            roles: Roles of the variant.
            arm: Where the variant was judged.
            parent_arm: Where its parent was; None for the same arm.
        """
        found: list[Pair] = []
        for said in self.scored(*roles, arm=arm):
            parent = self.find(said.variant.parent or "", parent_arm or arm)
            if parent is not None and parent.is_scored:
                found.append((said, parent))
        return found

    def across(self, arm: str) -> list[Pair]:
        """What was said in another arm of the same variant, each with the main arm's; scored."""
        found = [(said, self.find(said.variant.name)) for said in self.all if said.arm == arm]
        return [
            (said, main)
            for said, main in found
            if main is not None and said.is_scored and main.is_scored
        ]

    def repeats(self, stem: str, *, with_main: bool) -> list[list[Observed]]:
        """Replies to the same variant under the arms ``stem-1``, ``stem-2``, …; two at least.

        Args:
            stem: ``again`` or ``warm``.
            with_main: Whether the main arm's reply is one of them.
        """
        arms = self.arms_of(stem)
        wanted = [MAIN, *arms] if with_main else arms
        names = dict.fromkeys(said.variant.name for said in self.all if said.arm in arms)
        groups = [[self.find(name, arm) for arm in wanted] for name in names]
        scored = [[said for said in group if said and said.is_scored] for group in groups]
        return [group for group in scored if len(group) > 1]


def sample_of(said: Sequence[Observed]) -> Sample:
    """How judgements were drawn: those of one case together."""
    numbers: dict[str, int] = {}
    clusters = [numbers.setdefault(one.variant.case_id, len(numbers)) for one in said]
    return Sample(clusters=np.array(clusters, dtype=np.int64))


def passed(said: Iterable[Observed]) -> Array:
    """1.0 where the verdict is correct, else 0.0."""
    return np.array([float(bool(s.is_correct)) for s in said])
