"""Composition of a benchmark: counts of cases by kind, and lengths of their references."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import BaseModel, Field, PlainSerializer, PrivateAttr, computed_field

from ...records import SPLITS, Item
from ...records.keys import KeySet, short_key
from .cases import EFFICIENCY

STEP_RANGES = ("1-10", "11-20", ">20")
"""Lengths of references, as in Table 10 of the Agent Planning Benchmark (arXiv:2606.04874)."""
NOT_STATED = "not stated"


class DataSetCounts(BaseModel):
    """Counts of the base cases of one data set that ask for a whole plan.

    Attributes:
        cases: All of them.
        steps: Number of cases by number of the reference's calls; those without are left out.
    """

    cases: int = 0
    steps: Annotated[
        Counter[int], PlainSerializer(lambda of: {str(n): k for n, k in sorted(of.items())})
    ] = Counter()

    @computed_field
    @property
    def mean_steps(self) -> float | None:
        """Mean number of calls of a reference; None without references."""
        total = self.steps.total()
        return sum(n * count for n, count in self.steps.items()) / total if total else None

    def in_range(self, name: str) -> int:
        """Cases whose reference has a length in one of ``STEP_RANGES``."""
        low, high = {"1-10": (1, 10), "11-20": (11, 20), ">20": (21, 10**9)}[name]
        return sum(count for n, count in self.steps.items() if low <= n <= high)


class Composition(BaseModel):
    """Counts of cases, taken one at a time.

    Attributes:
        splits: Cases by published split, ``efficiency``, or ``not stated``.
        kinds: Cases by split and by kind within the split, such as the level.
        sources: Cases of ``holistic_planning``, by data set.
        categories: Tasks (different ``case_id``) by category.
        tools: Tools offered, over all cases that list tools.
        checkable_tools: The offered tools whose calls can be validated by a JSON Schema.
        with_tools: Cases that list tools.
    """

    splits: Annotated[Counter[str], PlainSerializer(dict)] = Counter()
    kinds: Annotated[
        Counter[tuple[str, str]],
        PlainSerializer(
            lambda of: [[*key, n] for key, n in sorted(of.items())],
            return_type=list[list[str | int]],
        ),
    ] = Counter()
    sources: dict[str, DataSetCounts] = {}
    categories: Annotated[Counter[str], PlainSerializer(lambda of: dict(of.most_common()))] = (
        Counter()
    )
    tools: int = 0
    checkable_tools: int = 0
    with_tools: int = Field(default=0, exclude=True)
    _tasks: KeySet = PrivateAttr(default_factory=KeySet)

    def add(self, item: Item) -> None:
        """Counts a case."""
        split = split_of(item)
        self.splits[split] += 1
        self.kinds[split, _kind(item)] += 1
        if self._tasks.add(short_key(item.case_id)):
            self.categories[str(item.groups["category"] or NOT_STATED)] += 1
        if item.tools is not None:
            self.with_tools += 1
            self.tools += len(item.tools.tools)
            self.checkable_tools += len(item.tools.checkable)
        if split == "holistic_planning":
            name = str(item.groups["dataset"] or NOT_STATED)
            counts = self.sources.setdefault(name, DataSetCounts())
            counts.cases += 1
            if item.reference is not None and (n := len(item.reference.value)):
                counts.steps[n] += 1


def split_of(item: Item) -> str:
    """The split of a case: as stated, else from its form and condition."""
    if item.split is not None:
        return item.split
    if item.form == "plan" and item.tools is not None and item.tools.has_costs:
        return EFFICIENCY
    condition = item.condition
    protocol = (
        "unsolvable"
        if condition.unsolvable_type
        else "tool-broken"
        if condition.broken_tool
        else "tool-extraneous"
        if condition.extraneous
        else "holistic"
        if item.form == "plan"
        else "step-wise"
    )
    return next((s for s, of in SPLITS.items() if of == (item.form, protocol)), NOT_STATED)


def _kind(item: Item) -> str:
    """The kind of a case within its split: reason, level, or number of steps and stage."""
    condition, groups = item.condition, item.groups
    if condition.unsolvable_type:
        return condition.unsolvable_type
    if condition.extraneous:
        return f"{len(condition.extraneous)} distractors"
    if condition.horizon and not condition.broken_tool:
        stage = f", {groups['stage']}" if groups["stage"] else ""
        return f"{condition.horizon} {'step' if condition.horizon == 1 else 'steps'}{stage}"
    return ""
