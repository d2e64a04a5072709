"""The embedded judge: proven findings and nothing else. It needs no key, no network, no model.

It can prove that a prediction is wrong and never that it is right: its correctness rate and its
grades are upper bounds, its error rates lower bounds.
"""

from __future__ import annotations

from hashlib import sha256

from ..records import ErrorCode, Finding, Verdict
from ..rubrics import Rubric
from .source import Task
from .spec import STATIC

STATIC_VERSION = 2
"""Raised with every change that can move a static verdict."""

UPPER_BOUND = (
    "The static judge only proves faults: CR is an upper bound (no provable fault), and so are "
    "grades and refusal rates; rates of errors and of decided categories are lower bounds."
)


class StaticJudge:
    """Judges by what code can prove. See the module's text for what its figures mean."""

    name = STATIC

    def fingerprint(self, task: Task) -> str:
        """Hash of the row, the rubric, the protocol and this judge's version."""
        head = f"static@{STATIC_VERSION} {task.protocol.name} {task.rubric.digest}".encode()
        return sha256(head + task.digest).hexdigest()[:32]

    def judge(self, task: Task, fingerprint: str) -> Verdict:
        """The verdict: correct when nothing speaks against it."""
        proven = [finding for finding in task.findings if finding.certainty == "proven"]
        category = task.protocol.categorise(task.item)
        wrong_category = category is not None and not task.rubric.category_is_correct(category)
        return Verdict(
            judge=self.name,
            is_correct=not proven and not wrong_category,
            category=category,
            reasoning=_reasoning(proven),
            fingerprint=fingerprint,
            cost_usd=0.0,
            **_graded(proven, task.rubric),
            **task.common(),
        )


def _graded(proven: list[Finding], rubric: Rubric) -> dict[str, object]:
    if rubric.shape != "flags":
        return {}
    flags = frozenset[ErrorCode](finding.code for finding in proven if finding.code is not None)
    errors = {code: code in flags for code in rubric.codes}
    return {"errors": errors, "grade": rubric.scale.allowed(flags)[0]}


def _reasoning(proven: list[Finding]) -> str:
    if not proven:
        return "no provable fault"
    return "; ".join(f"{finding.where}: {finding.message}" for finding in proven)
