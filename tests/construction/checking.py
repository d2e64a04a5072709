"""Cases put before single checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from apbjudge.construction.cases import Reject
from apbjudge.construction.cases import Row as Values
from apbjudge.construction.findings import CaseCheck, CaseFinding, CheckedCase
from apbjudge.construction.transforms.broken import tool_broken
from apbjudge.construction.transforms.distractors import extraneous_plans
from apbjudge.construction.transforms.plans import holistic
from apbjudge.construction.transforms.steps import step_wise
from apbjudge.records import Row

from .test_transforms import BAKERY
from .worlds import context_of, seed_of

EXAMPLES = Path(__file__).parents[2] / "examples"
BUILT = {
    "plan": holistic,
    "steps": step_wise,
    "broken": tool_broken,
    "extraneous": extraneous_plans,
}


def built(kind: str) -> Values:
    """A case without faults, by kind."""
    context = context_of(seed_of(), BAKERY, levels=(2,), horizons=(1,))
    return next(row for row in BUILT[kind](seed_of(), context) if not isinstance(row, Reject))


def case_of(row: Mapping[str, Any], line: int = 1, file: Path | None = None) -> CheckedCase:
    """A row as it is checked, with its files among the examples."""
    file = file or EXAMPLES / "cases.jsonl"
    item = Row(row, line).to_case()
    return CheckedCase(item=item, row=row, file=file, roots=(file.parent,))


def findings_of(checks: Iterable[CaseCheck], row: Mapping[str, Any]) -> list[CaseFinding]:
    """What some checks find in a row."""
    case = case_of(row)
    return [finding for check in checks for finding in check(case)]


def codes(checks: Iterable[CaseCheck], row: Mapping[str, Any]) -> list[str]:
    """Names of the checks that find something, once each."""
    return sorted({finding.check for finding in findings_of(checks, row)})
