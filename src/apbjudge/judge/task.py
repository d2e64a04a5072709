"""One unit of work: an item with its protocol, rubric and findings; or a row that is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import RowError
from ..protocols import Protocol, matches_reference, plan_cost, uses_distractor
from ..records import Finding, Item
from ..rubrics import Rubric


@dataclass(frozen=True, slots=True)
class Task:
    """An item that is ready to be judged.

    Attributes:
        item: The item.
        protocol: How it is graded.
        rubric: What it is graded by.
        findings: What code found.
        digest: SHA-256 of the row as it came (and of its case, when joined).
        offset: Bytes of the input read so far.
    """

    item: Item
    protocol: Protocol
    rubric: Rubric
    findings: tuple[Finding, ...]
    digest: bytes
    offset: int

    def common(self) -> dict[str, Any]:
        """The fields that every judgement of this item has, whoever judges."""
        item = self.item
        return {
            "item_id": item.item_id,
            "case_id": item.case_id,
            "tested_model": item.tested_model,
            "protocol": self.protocol.name,
            "rubric": self.rubric.ref,
            "plan_cost": plan_cost(item),
            "uses_distractor": uses_distractor(item),
            "matches_reference": matches_reference(item),
            "findings": self.findings,
            "line": item.line,
            "content_id": item.content_id,
            "groups": item.groups,
        }


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that can't be judged, with what is still known of it."""

    line: int
    error: RowError
    digest: bytes
    offset: int
    item_id: str | None = None
    tested_model: str | None = None


Entry = Task | BadRow


def known(values: Mapping[str, Any], *names: str) -> str | None:
    """The first of some fields that is a usable string, of a row that may be bad elsewhere."""
    for name in names:
        value = values.get(name)
        if isinstance(value, str) and value.strip() and value.isprintable():
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None
