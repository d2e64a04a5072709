"""Variants: the rows that are judged in an audit, with the truth about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ..records import ErrorCode

Role = Literal[
    "base",
    "fault",
    "harmless",
    "shown",
    "padded",
    "reference",
    "injected",
    "neutral",
    "prediction",
]
"""Purpose of a variant: a plan taken as correct, one with a planted fault, with a harmless change,
shown in another way, made longer, with another reference, with text for the judge, its twin with
neutral text instead, or an unchanged prediction."""

Severity = Literal["minor", "major", "fatal"]

SOLVER = "reference"
"""Name of the tested model in rows with the expert's solutions."""
OWN_FIELDS = frozenset({"id", "model_response"})
"""Fields of a row that belong to the variant; all others belong to its case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The truth about a variant, by construction or from a label.

    Attributes:
        is_correct: True correctness; None if unknown (a prediction without label).
        codes: The codes that hold; empty for a correct plan. None if unknown, or if the protocol
            has no codes.
        also: Codes that may be flagged too, as consequences of the planted fault: neither required
            nor counted as confusion.
        category: Behaviour after a broken tool, 1 to 5; None if unknown or not asked.
        grade: A human grade; None if there is none.
    """

    is_correct: bool | None
    codes: frozenset[ErrorCode] | None = None
    also: frozenset[ErrorCode] = frozenset()
    category: int | None = None
    grade: float | None = None


CORRECT = Truth(is_correct=True, codes=frozenset())
"""The truth about a base under a protocol with codes."""
PASSES = Truth(is_correct=True)
"""The truth about a base under a protocol without codes."""
UNKNOWN = Truth(is_correct=None)
"""The truth about a prediction without a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One row of an audit.

    Attributes:
        name: Unique in the audit; the row's id.
        role: Purpose of the row, such as ``base`` or ``fault``.
        kind: The change, such as ``drop-call``; ``base`` for a base.
        parent: Name of the variant that it differs from in this one point; None for a base and for
            a prediction.
        case_id: Case, the cluster of all intervals.
        truth: Known facts about its right verdict.
        row: The row to be judged.
        what: The change and its place, in one sentence.
        severity: Severity of a planted fault; None for other variants.
        tags: Values by which a probe groups variants, such as the language of a payload.
    """

    name: str
    role: Role
    kind: str
    parent: str | None
    case_id: str
    truth: Truth
    row: Mapping[str, Any]
    what: str
    severity: Severity | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def n_tools(self) -> int | None:
        """Number of tools that the case lists; None if it has no list of tools."""
        tools = self.row.get("tools")
        return len(cast("list[object]", tools)) if isinstance(tools, list) else None

    @property
    def case(self) -> Mapping[str, Any]:
        """The row's fields without id and reply."""
        return {name: value for name, value in self.row.items() if name not in OWN_FIELDS}

    def to_json(self) -> dict[str, Any]:
        """Change and truth, without the row, in JSON values."""
        names = ("name", "role", "kind", "parent", "case_id", "what", "severity")
        truth = self.truth
        return {name: getattr(self, name) for name in names} | {
            "is_correct": truth.is_correct,
            "codes": None if truth.codes is None else sorted(truth.codes),
            "also": sorted(truth.also),
            "category": truth.category,
            "tags": dict(self.tags),
        }
