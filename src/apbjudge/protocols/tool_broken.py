"""Tool-broken: which of five behaviours follows a tool's failure.

Categories 1 (replacement), 3 (retry) and 5 for an unknown tool follow from exact names, and so
does 4 for the explicit REJECT form; 2 against 5 for an existing tool is for a judge.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import RowError
from ..records import Finding, Item
from ..rubrics import Rubric
from .base import Protocol
from .checks.form import call_due
from .checks.names import retries, unknown_calls, unknown_tools
from .checks.rules import finding


def _names_broken_tool(item: Item) -> None:
    if item.condition.broken_tool is None:
        raise RowError("broken_tool_name", "the name of the tool that failed", None)


def category(item: Item) -> int | None:
    """The category that exact names decide, or None.

    A call of the broken tool outweighs all others, then a call of an unknown tool; the
    replacement decides only when every call is of a known tool.
    """
    names = [call.name for call in item.prediction.calls]
    if not names:
        return 4 if item.prediction.kind == "reject" else None
    if item.condition.broken_tool in names:
        return 3
    if unknown_calls(item):
        return 5
    replacement = item.condition.replacement
    return 1 if replacement is not None and replacement.name in names else None


def unreadable(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """A reply in which no step can be read; lesser faults of form are only shown."""
    proven = item.format_demanded and item.prediction.kind == "text"
    for problem in item.prediction.problems:
        if item.format_demanded or not problem.is_readable:
            certainty = "proven" if proven else "suspected"
            yield finding("format", rubric.form_code, certainty, problem.where, problem.message)


TOOL_BROKEN = Protocol(
    name="tool-broken",
    shape="category",
    rubrics={"steps": "apb-tool-broken@1"},
    checks=(unreadable, call_due, retries, unknown_tools),
    admit=_names_broken_tool,
    categorise=category,
)
