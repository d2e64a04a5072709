"""Interface of a protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Literal

from ..errors import OptionError, RowError, guarded
from ..records import Finding, Form, Item
from ..rubrics import Rubric, load_rubric
from ..rubrics.rubric import Shape
from .checks.reference import hold_in_all_readings, spare_shared_faults

FINDINGS_PER_RULE = 50

Check = Callable[[Item, Rubric], Iterable[Finding]]


_default_rubric = lru_cache(maxsize=64)(load_rubric)
"""A file of a protocol outside the package is read once, not for every item."""


def no_requirement(item: Item) -> None:
    """Admits every item of the right form."""


def no_category(item: Item) -> int | None:
    """No categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Rubric, presentation and parsing of one way to grade.

    Attributes:
        name: As on the command line.
        shape: What a judge returns; a rubric of another shape is refused.
        rubrics: Default rubric per form of prediction, shipped or a TOML file; also says which
            forms are graded.
        checks: The facts that code can prove, in the order they are reported.
        admit: Raises RowError when a case lacks what the protocol needs.
        categorise: The category that follows from exact names alone, or None.
        template: Folder of the prompt templates, with version.
        examines: What is judged: a tested model's ``response``, or the case itself, with its
            ``reference`` in the response's place.
        needs_query: True if no model is asked about an item without a request.
        rules: For checks of its own: what the judge reads about each rule's proven findings. It
            must not quote the prediction, since a judge believes it.
        instead: Shipped rubrics that lack what the protocol grades, each with the one that has it.
    """

    name: str
    shape: Shape
    rubrics: Mapping[Form, str]
    checks: tuple[Check, ...]
    admit: Callable[[Item], None] = no_requirement
    categorise: Callable[[Item], int | None] = no_category
    template: str = "judge@1"
    examines: Literal["response", "reference"] = "response"
    needs_query: bool = True
    rules: Mapping[str, str] = field(default_factory=dict[str, str])
    instead: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        plugin = f"protocol {self.name}"
        for name in ("admit", "categorise"):
            object.__setattr__(self, name, guarded(plugin, getattr(self, name)))
        checks = tuple(guarded(plugin, check) for check in self.checks)
        object.__setattr__(self, "checks", checks)

    def rubric_for(self, item: Item, override: Rubric | None = None) -> Rubric:
        """The rubric an item is graded by.

        Args:
            item: The item.
            override: The user's own rubric, used for every item whose form it fits.

        Raises:
            RowError: If the protocol does not grade predictions of the item's form, or the rubric
                lacks what it grades.
        """
        if item.form not in self.rubrics:
            forms = " or ".join(_FORM_NAMES[form] for form in self.rubrics)
            raise RowError(
                "split" if item.split else "planning_regime",
                f"a {forms} row, for protocol {self.name}",
                item.split or _FORM_NAMES[item.form],
            )
        if override is not None and override.form != item.form:
            expected = f"a {_FORM_NAMES[override.form]} row, for rubric {override.ref}"
            raise RowError("planning_regime", expected, _FORM_NAMES[item.form])
        if override is not None and override.ref in self.instead:
            expected = f"{self.instead[override.ref]} for protocol {self.name}"
            raise RowError("rubric", expected, override.ref)
        rubric = override or _default_rubric(self.rubrics[item.form])
        kind = item.condition.unsolvable_type
        if rubric.shape == "pass" and kind is not None and kind not in rubric.types:
            expected = f"one of {', '.join(rubric.types)}, for rubric {rubric.ref}"
            raise RowError("unsolvable_type", expected, kind)
        return rubric

    def check_rubric(self, rubric: Rubric) -> None:
        """Refuses a rubric that can't serve this protocol.

        Raises:
            OptionError: If its shape or form is another, or it lacks what is graded.
        """
        if rubric.ref in self.instead:
            raise OptionError(
                f"--rubric: expected {self.instead[rubric.ref]} for protocol {self.name}, got "
                f"{rubric.ref}"
            )
        if rubric.shape != self.shape or rubric.form not in self.rubrics:
            forms = "/".join(self.rubrics)
            raise OptionError(
                f"rubric {rubric.ref}: expected shape {self.shape} and form {forms} for protocol "
                f"{self.name}, got shape {rubric.shape} and form {rubric.form}"
            )

    def find(
        self, item: Item, rubric: Rubric, *, spares_reference: bool = True
    ) -> tuple[Finding, ...]:
        """The findings of every check; codes are dropped where the protocol has none.

        Where the rubric has codes of its own, its ``rule_codes`` say which of them a fact stands
        for; a fact that stands for none is suspected at most. So is one that does not hold under
        every reading of the reply.

        Of one rule at most FINDINGS_PER_RULE are recorded, so that a reply of a hundred thousand
        calls does not make a judgement of a hundred thousand findings.

        Args:
            item: The item.
            rubric: What it is graded by.
            spares_reference: True if what the reference does too is suspected at most.
        """
        seen = Counter[tuple[str, str]]()
        findings: list[Finding] = []
        find: Callable[[Item], Iterable[Finding]] = partial(self._findings, rubric=rubric)
        if spares_reference:
            find = partial(spare_shared_faults, find=find)
        for finding in hold_in_all_readings(item, find):
            seen[finding.rule, finding.certainty] += 1
            if seen[finding.rule, finding.certainty] <= FINDINGS_PER_RULE:
                findings.append(finding)
        return tuple(_in_codes_of(rubric, finding) for finding in findings)

    def category_of(self, item: Item) -> int | None:
        """The category that exact names decide under every reading of the reply, or None."""
        decided = {self.categorise(reading) for reading in item.readings}
        return decided.pop() if len(decided) == 1 else None

    def _findings(self, item: Item, rubric: Rubric) -> Iterator[Finding]:
        return (finding for check in self.checks for finding in check(item, rubric))


def _in_codes_of(rubric: Rubric, finding: Finding) -> Finding:
    """A finding in the codes of a rubric, in which a fact without a code can't decide."""
    if rubric.shape != "flags":
        return finding.model_copy(update={"code": None})
    if finding.code in rubric.codes:
        return finding
    code = rubric.rule_codes.get(finding.rule)
    certainty = finding.certainty if code is not None else "suspected"
    return finding.model_copy(update={"code": code, "certainty": certainty})


_FORM_NAMES: Mapping[Form, str] = {"plan": "holistic", "steps": "step-wise"}
