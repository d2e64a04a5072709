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
"""A protocol's file outside the package is read once, not for every item."""


def no_requirement(item: Item) -> None:
    """Admits every item of the right form."""


def no_category(item: Item) -> int | None:
    """No categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Rubric, presentation and parsing of one way to grade.

    Attributes:
        name: Name on the command line.
        shape: Shape of the judge's reply; a rubric of another shape is refused.
        rubrics: Default rubric per form of prediction, shipped or a TOML file; other forms are not
            graded.
        checks: Checks by rule, in the order of their reports.
        admit: Raises RowError if a case lacks something that the protocol needs.
        categorise: The category that follows from exact names alone, or None.
        template: Folder of the prompt templates, with version.
        examines: The judged object: a tested model's ``response``, or the case itself, with its
            ``reference`` in place of the response.
        needs_query: True if no model is asked about an item without a request.
        rules: For its own checks: text for the judge on each rule's proven findings. It must not
            quote the prediction, since the judge believes it.
        instead: Shipped rubrics that lack something that the protocol grades, each with one that
            has it.
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
        """The rubric that an item is graded by.

        Args:
            item: The item.
            override: The user's own rubric, used for every item whose form it fits.

        Raises:
            RowError: If the protocol does not grade predictions of the item's form, or the rubric
                lacks something that it grades.
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
            OptionError: If its shape or form differs, or it lacks something that is graded.
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
        """The findings of every check; codes are dropped if the protocol has none.

        If the rubric has its own codes, its ``rule_codes`` map facts to them; a fact without a code
        is suspected at most. So is one that does not hold under every reading of the reply.

        At most FINDINGS_PER_RULE are recorded per rule, so that a reply with a hundred thousand
        calls does not give a judgement with a hundred thousand findings.

        Args:
            item: The item.
            rubric: The rubric that it is graded by.
            spares_reference: True if faults that the reference shares are suspected at most.
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
    """A finding in the codes of a rubric; a fact without a code can't decide."""
    if rubric.shape != "flags":
        return finding.model_copy(update={"code": None})
    if finding.code in rubric.codes:
        return finding
    code = rubric.rule_codes.get(finding.rule)
    certainty = finding.certainty if code is not None else "suspected"
    return finding.model_copy(update={"code": code, "certainty": certainty})


_FORM_NAMES: Mapping[Form, str] = {"plan": "holistic", "steps": "step-wise"}
