"""Bases: plans taken as correct, from which all other variants are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from ...errors import RowError
from ...judge import Task
from ...judge.source import Entry
from ...protocols import Protocol
from ...records import Finding, Item, Row
from ...records.responses import read_response
from ...records.rows import item_row
from ...rubrics import Rubric
from ...runs.rows import BadRow
from ..variants import CORRECT, PASSES, SOLVER, Role, Severity, Truth, Variant
from .parts import ReplyParts

Origin = Literal["reference", "label"]
Key = tuple[str, str]
"""Item id and tested model."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """A plan taken as correct, with its case.

    Attributes:
        name: Unique among the bases of an audit.
        item: The case with this plan as its reply.
        parts: The plan, ready to be edited.
        origin: Whether it is the case's reference or a prediction that humans passed.
        protocol: How it is graded.
        rubric: What it is graded by.
    """

    name: str
    item: Item
    parts: ReplyParts
    origin: Origin
    protocol: Protocol
    rubric: Rubric

    @property
    def truth(self) -> Truth:
        """What is true of it."""
        if self.rubric.shape == "flags":
            return CORRECT
        return replace(PASSES, category=self.protocol.categorise(self.item))

    @cached_property
    def variant(self) -> Variant:
        """The base itself as a variant."""
        origin = (
            "the reference" if self.origin == "reference" else "a prediction that humans passed"
        )
        return self.derived("base", "base", what=f"{origin}, unchanged", truth=self.truth)

    def derived(
        self,
        role: Role,
        kind: str,
        *,
        what: str,
        truth: Truth,
        reply: ReplyParts | str | None = None,
        case: Mapping[str, Any] | None = None,
        parent: Variant | None = None,
        severity: Severity | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Variant:
        """A variant of this base or of one of its variants.

        Args:
            role: Why it is judged.
            kind: What was done.
            what: One sentence on it.
            truth: What is true of it.
            reply: The reply, None for that of the parent (the base's where there is none).
            case: Fields of the row that change, named as in plain JSON (``tools``, ``query``,
                ``tool_chain``, …); None as a value takes a field out.
            parent: What it differs from in this point alone; None for the base.
            severity: Of a planted fault.
            tags: Whatever a probe tells variants apart by.
        """
        row = dict(parent.row if parent else self._row) | dict(case or {})
        if reply is not None:
            row["model_response"] = reply.text if isinstance(reply, ReplyParts) else reply
        above = None if role == "base" else (parent.name if parent else f"{self.name}/base")
        stem = parent.name if parent and parent.role != "base" else self.name
        name = f"{stem}/{kind}"
        row["id"] = name
        return Variant(
            name=name,
            role=role,
            kind=kind,
            parent=above,
            case_id=self.item.case_id,
            truth=truth,
            row={field: value for field, value in row.items() if value is not None},
            what=what,
            severity=severity,
            tags=tags or {},
        )

    def read(self, variant: Variant) -> Item:
        """The variant as an item.

        Raises:
            RowError: If its row can't be read.
        """
        return _item(_Of(self, variant))

    def read_anew(self, variant: Variant) -> Item:
        """The same, whether or not it was read just before."""
        row = Row(variant.row, 0, parsed=True)
        if not self._is_case_of(variant):
            return row.to_item()
        case, response = self._case, row.response()
        prediction = read_response(response, case.form, case.condition.horizon)
        own = {"item_id": row.identifier("id"), "response": response, "prediction": prediction}
        return case.model_copy(update=own)

    def _is_case_of(self, variant: Variant) -> bool:
        """Whether a variant's row has the very values of the base's, the reply apart."""
        own, row = self.variant.row, variant.row
        return len(own) == len(row) and all(
            value is own.get(name) for name, value in row.items() if name not in _OWN
        )

    @cached_property
    def _row(self) -> Mapping[str, Any]:
        """The row that variants start from; they share its values."""
        return item_row(self.item)

    @cached_property
    def _case(self) -> Item:
        """The base's variant as an item: the case is read once for all variants with it."""
        return Row(self.variant.row, 0, parsed=True).to_item()

    def findings(self, variant: Variant) -> tuple[Finding, ...]:
        """What code finds in a variant under the base's protocol and rubric."""
        return self.find(self.read(variant))

    def find(self, item: Item) -> tuple[Finding, ...]:
        """The same of an item."""
        return _findings(_Of(self, item))


class _Of(NamedTuple):
    """Something of a base; equal to nothing but the very same thing of the very same base."""

    base: Base
    thing: Any

    def __hash__(self) -> int:
        return hash((id(self.base), id(self.thing)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Of) and self.base is other.base and self.thing is other.thing


_CACHED = 64
"""Readings that are cached: a fault is looked at right after it is planted, and again whenever
another variant is made from it."""


@lru_cache(maxsize=_CACHED)
def _item(variant: _Of) -> Item:
    return variant.base.read_anew(variant.thing)


@lru_cache(maxsize=_CACHED)
def _findings(item: _Of) -> tuple[Finding, ...]:
    return item.base.protocol.find(item.thing, item.base.rubric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """The bases of an audit.

    Attributes:
        bases: One a case at most, in the order of the cases.
        left_out: Cases without a base, by reason.
    """

    bases: tuple[Base, ...]
    left_out: Mapping[str, int]


_OWN = ("id", "model_response")
"""Fields of a row that are each variant's own."""

NO_PLAN = "neither a reference nor a passed prediction that can be read"
PROVEN = "code finds a fault in the plan that is taken as correct"
SAME_ID = "its items have the ids of another case's"


def find_bases(rows: Iterable[Entry], passed: Collection[Key] | None = None) -> Bases:
    """Chooses at most one base for each case.

    A prediction that humans passed comes first, of several the first that takes another way than
    the reference; then the reference. Of rows of one case with distractors, the one with the most
    serves as the case. Whatever code can prove a fault in is no base.

    Args:
        rows: The rows, as a Source yields them; those that can't be judged are left out.
        passed: Item id and tested model of the predictions that humans passed; None for no labels.
    """
    known = frozenset(passed or ())
    by_case: dict[str, list[Task]] = {}
    for task in rows:
        if not isinstance(task, BadRow):
            by_case.setdefault(task.item.case_id, []).append(task)
    bases: dict[str, Base] = {}
    left_out: Counter[str] = Counter()
    for tasks in by_case.values():
        offered = [base for task in _preferred(tasks, known) for base in _of_task(task, known)]
        clean = [base for base in offered if _is_clean(base)]
        if new := next((base for base in clean if base.name not in bases), None):
            bases[new.name] = new
        else:
            left_out[SAME_ID if clean else PROVEN if offered else NO_PLAN] += 1
    return Bases(bases=tuple(bases.values()), left_out=dict(left_out))


def _preferred(rows: list[Task], passed: Collection[Key]) -> list[Task]:
    def rank(task: Task) -> tuple[bool, int, bool]:
        item = task.item
        follows = task.common()["matches_reference"] is not False
        is_passed = (item.item_id, item.tested_model) in passed
        return not is_passed, -len(item.condition.extraneous), follows

    return sorted(rows, key=rank)


def _of_task(task: Task, passed: Collection[Key]) -> Iterator[Base]:
    """The prediction, if humans passed it, and the reference."""
    item = task.item
    name = f"{item.item_id}@{item.tested_model}"
    offers: list[tuple[ReplyParts | None, Origin, str, str]] = [
        (ReplyParts.of_reference(item), "reference", item.item_id, SOLVER)
    ]
    if (item.item_id, item.tested_model) in passed:
        offers.insert(0, (ReplyParts.of_prediction(item), "label", name, item.tested_model))
    for parts, origin, name, model in offers:
        if parts is not None:
            row = item_row(item) | {"model_response": parts.text, "tested_model": model}
            yield Base(
                name=name,
                item=Row(row, item.line).to_item(),
                parts=parts,
                origin=origin,
                protocol=task.protocol,
                rubric=task.rubric,
            )


def _is_clean(base: Base) -> bool:
    try:
        # A reference with a fault spares itself, and yet nothing can be planted beside that fault.
        findings = base.protocol.find(base.item, base.rubric, spares_reference=False)
    except RowError:
        return False
    category = base.protocol.categorise(base.item)
    wrong = category is not None and not base.rubric.category_is_correct(category)
    return not wrong and not any(finding.certainty == "proven" for finding in findings)
