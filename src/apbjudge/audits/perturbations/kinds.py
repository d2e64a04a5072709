"""The table of perturbations: data/perturbations.toml, checked once."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from random import Random
from typing import Any

from ...records import ErrorCode, Form, Record
from ...rubrics.rubric import Shape
from ..variants import Role, Severity, Truth, Variant
from .bases import Base
from .parts import ReplyParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a perturbation makes of a reply and its case.

    Attributes:
        reply: The new reply; None for the old one.
        what: One sentence that names the place and the values; empty for that of the kind.
        case: Fields of the row that change.
    """

    reply: ReplyParts | str | None = None
    what: str = ""
    case: Mapping[str, Any] = field(default_factory=dict[str, Any])


Maker = Callable[[Base, Random], Change | None]
"""Makes a change of a base, or None where the base gives no occasion for it."""


class Kind(Record):
    """One way of changing a plan, its case or how they are shown.

    Attributes:
        name: Unique among the kinds of its table.
        what: What is done, in one line.
        form: Form of the replies that it fits, None for both.
        shapes: Shapes of the rubrics that it fits.
        code: The code of a fault; None where the protocol has no codes, and of harmless kinds.
        also: Codes that may hold too, as consequences of the fault.
        severity: How much a fault spoils.
        is_proven: Whether code proves the fault in every variant that is made.
        category: Behaviour after a broken tool that a fault makes, None elsewhere.
    """

    name: str
    what: str
    form: Form | None = None
    shapes: tuple[Shape, ...] = ("flags", "category", "pass")
    code: ErrorCode | None = None
    also: frozenset[ErrorCode] = frozenset()
    severity: Severity | None = None
    is_proven: bool = False
    category: int | None = None

    def fits(self, base: Base) -> bool:
        """Whether it fits a base's protocol and form."""
        return base.rubric.shape in self.shapes and self.form in (None, base.item.form)


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, tuple[Kind, ...]]:
    file = resources.files("apbjudge.audits").joinpath("data", "perturbations.toml")
    tables: dict[str, list[Any]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        name: tuple(Kind.model_validate(entry) for entry in listed)
        for name, listed in tables.items()
    }


def kinds_of(table: str) -> tuple[Kind, ...]:
    """The kinds of a table (``faults``, ``harmless`` or ``formats``), in its order."""
    return _tables()[table]


def variant_of(
    base: Base,
    role: Role,
    kind: Kind,
    change: Change,
    *,
    truth: Truth,
    parent: Variant | None = None,
) -> Variant:
    """The variant that a change of a kind makes of a base, or of one of its variants."""
    return base.derived(
        role,
        kind.name,
        what=change.what or kind.what,
        truth=truth,
        reply=change.reply,
        case=change.case,
        parent=parent,
        severity=kind.severity,
    )
