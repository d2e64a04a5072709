"""Bases: plans taken as correct, from which all other variants are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from ...errors import RowError
from ...judge import JudgeTask
from ...judge.source import Entry
from ...protocols import Protocol
from ...records import Finding, Item, Row
from ...records.responses import read_response
from ...records.rows import item_row
from ...rubrics import Rubric
from ...runs.rows import BadRow
from ..variants import CORRECT, OWN_FIELDS, PASSES, SOLVER, UNKNOWN, Role, Severity, Truth, Variant
from .parts import ReplyParts

Origin = Literal["reference", "label", "prediction"]
Key = tuple[str, str]
"""Item id and tested model."""


@dataclass(frozen=True, kw_only=True, eq=False)  # compared by identity: readings are cached
class Base:
    """A plan taken as correct, as the reply to its case and in parts.

    It is the reference of the case, or a prediction that humans passed (origin ``label``). With the
    origin ``prediction``, its truth is unknown: no fault is planted, but its presentation can be
    changed. The name is unique in an audit.
    """

    name: str
    item: Item
    parts: ReplyParts
    origin: Origin
    protocol: Protocol
    rubric: Rubric

    @property
    def truth(self) -> Truth:
        """The truth about the base."""
        if self.origin == "prediction":
            return UNKNOWN
        if self.rubric.shape == "flags":
            return CORRECT
        return replace(PASSES, category=self.protocol.category_of(self.item))

    @cached_property
    def variant(self) -> Variant:
        """The base itself as a variant; other variants share the values of its row."""
        origin = {
            "reference": "the reference",
            "label": "a prediction that humans passed",
            "prediction": "a prediction without a known verdict",
        }[self.origin]
        is_known = self.origin != "prediction"
        kind = "base" if is_known else "as-it-came"
        name = f"{self.name}/{kind}"
        return Variant(
            name=name,
            role="base" if is_known else "prediction",
            kind=kind,
            parent=None,
            case_id=self.item.case_id,
            truth=self.truth,
            row={k: v for k, v in (item_row(self.item) | {"id": name}).items() if v is not None},
            what=f"{origin}, unchanged",
        )

    def derived(
        self,
        role: Role,
        kind: str,
        *,
        what: str,
        truth: Truth | None = None,
        reply: ReplyParts | str | None = None,
        case: Mapping[str, Any] | None = None,
        parent: Variant | None = None,
        severity: Severity | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Variant:
        """A variant that differs from the parent (None for the base) in one point only.

        Truth and reply are those of the parent unless others are passed. ``case`` has the fields of
        the row that change, named as in plain JSON (``tools``, ``query``, …); the value None
        removes a field.
        """
        parent = parent or self.variant
        truth = truth or parent.truth
        if self.rubric.codes and not {*(truth.codes or ())} <= {*self.rubric.codes}:
            truth = replace(truth, codes=None, also=frozenset())  # the rubric has other codes
        row = dict(parent.row) | dict(case or {})
        if reply is not None:
            row["model_response"] = reply.text if isinstance(reply, ReplyParts) else reply
        row["id"] = f"{self.name if parent.parent is None else parent.name}/{kind}"
        return Variant(
            name=row["id"],
            role=role,
            kind=kind,
            parent=parent.name,
            case_id=self.item.case_id,
            truth=truth,
            row={field: value for field, value in row.items() if value is not None},
            what=what,
            severity=severity,
            tags=tags or {},
        )

    def read(self, variant: Variant) -> Item:
        """The variant as an item; raises RowError if its row can't be read."""
        return _read(self, variant)

    def findings(self, variant: Variant) -> tuple[Finding, ...]:
        """The findings by rule in a variant, under the base's protocol and rubric."""
        return _find(self, variant)

    def proven(self, variant: Variant) -> tuple[Finding, ...]:
        """The findings that are proven."""
        return tuple(f for f in self.findings(variant) if f.certainty == "proven")

    def parts_of(self, variant: Variant) -> ReplyParts | None:
        """The reply of a variant in parts; None unless the parts' text is exactly the reply."""
        parts = ReplyParts.of_prediction(self.read(variant))
        return parts if parts and parts.text == variant.row["model_response"] else None

    @cached_property
    def case(self) -> Item:
        """The base's variant as an item; all variants with the same case share its reading."""
        return Row(self.variant.row, 0, parsed=True).to_item()


_CACHED = 64
"""Number of cached readings: a fault is read right after it is planted, and again whenever another
variant is made from it."""


@lru_cache(maxsize=_CACHED)
def _read(base: Base, variant: Variant) -> Item:
    own, row = base.variant.row, Row(variant.row, 0, parsed=True)
    changed = variant.row.keys() - OWN_FIELDS
    if variant.row.keys() != own.keys() or any(variant.row[k] is not own[k] for k in changed):
        return row.to_item()
    case, response = base.case, row.response()
    prediction = read_response(response, case.form, case.condition.horizon)
    reply = {"item_id": row.identifier("id"), "response": response, "prediction": prediction}
    return case.model_copy(update=reply)


@lru_cache(maxsize=_CACHED)
def _find(base: Base, variant: Variant) -> tuple[Finding, ...]:
    return base.protocol.find(base.read(variant), base.rubric)


@lru_cache(maxsize=_CACHED)
def planned(
    base: Base, variant: Variant, *, apart_from: tuple[int, str] | None = None
) -> tuple[object, ...] | None:
    """A comparable form of a variant's plan: equal for variants that plan the same.

    It consists of the kind of the reply, faults of its form, the calls of each step with all
    arguments, the category that follows from names, and every proven finding. It ignores the value
    of the argument ``apart_from`` (number of the call, name of the parameter). None if the row
    can't be read.
    """
    try:
        item = base.read(variant)
    except RowError:
        return None
    at, parameter = apart_from or (-1, "")
    prediction = item.prediction
    calls: list[object] = []
    for n, call in enumerate(prediction.calls):
        arguments = dict(call.arguments) if call.arguments is not None else None
        if n == at and arguments:
            arguments[parameter] = type(arguments.get(parameter))
        calls.append((call.name, arguments))
    facts = Counter((f.rule, f.code, f.where) for f in base.proven(variant))
    sizes = [len(step.calls) for step in prediction.steps]
    category = base.protocol.category_of(item)
    return prediction.kind, sizes, calls, facts, prediction.problems, category


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """The bases of an audit, at most one a case, and numbers of cases without one, by reason."""

    bases: tuple[Base, ...]
    left_out: Mapping[str, int]


NO_PLAN = "neither a reference nor a passed prediction that can be read"
PROVEN = "code finds a fault in the plan that is taken as correct"
SAME_ID = "its items have the ids of another case's"


def find_bases(
    rows: Iterable[Entry], passed: Collection[Key] | None = None, *, unlabelled: bool = False
) -> Bases:
    """Chooses at most one base for each case.

    Predictions that humans passed come first, then references; among equals, rows with more
    distractors, then predictions that differ from the reference. A plan in which a rule proves a
    fault is not a base. ``passed`` has item id and tested model of the predictions that humans
    passed; None without labels. ``unlabelled``: the prediction of a case without a reference is a
    base of unknown truth.
    """
    known = frozenset(passed or ())
    by_case: dict[str, list[JudgeTask]] = {}
    for task in rows:
        if not isinstance(task, BadRow):
            by_case.setdefault(task.item.case_id, []).append(task)

    def rank(task: JudgeTask) -> tuple[bool, int, bool]:
        item = task.item
        follows = task.common()["matches_reference"] is not False
        is_passed = (item.item_id, item.tested_model) in known
        return not is_passed, -len(item.condition.extraneous), follows

    bases: dict[str, Base] = {}
    left_out: Counter[str] = Counter()
    for tasks in by_case.values():
        ranked = sorted(tasks, key=rank)
        offered = [base for task in ranked for base in _of_task(task, known, unlabelled)]
        clean = [base for base in offered if base.origin == "prediction" or _is_clean(base)]
        if new := next((base for base in clean if base.name not in bases), None):
            bases[new.name] = new
        else:
            left_out[SAME_ID if clean else PROVEN if offered else NO_PLAN] += 1
    return Bases(bases=tuple(bases.values()), left_out=dict(left_out))


def _of_task(task: JudgeTask, passed: Collection[Key], unlabelled: bool) -> Iterator[Base]:  # noqa: FBT001
    """The prediction, if humans passed it or there is no reference, and the reference."""
    item, model = task.item, task.item.tested_model
    offers: list[tuple[ReplyParts | None, Origin, str, str]] = []
    is_passed, is_open = (item.item_id, model) in passed, unlabelled and item.reference is None
    if is_passed or is_open:
        origin = "label" if is_passed else "prediction"
        name = f"{item.item_id}@{model}"
        offers.append((ReplyParts.of_prediction(item), origin, name, model))
    offers.append((ReplyParts.of_reference(item), "reference", item.item_id, SOLVER))
    for parts, origin, name, author in offers:
        if parts is not None:
            row = item_row(item) | {"model_response": parts.text, "tested_model": author}
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
        # findings usually spare the reference, but no fault can be planted next to its own fault
        findings = base.protocol.find(base.item, base.rubric, spares_reference=False)
    except RowError:
        return False
    category = base.protocol.category_of(base.item)
    is_wrong = category is not None and not base.rubric.category_is_correct(category)
    return not is_wrong and not any(finding.certainty == "proven" for finding in findings)
