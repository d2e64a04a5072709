"""Cases put before single checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from apbjudge.agents.cases.findings import CaseCheck, CaseFinding, CheckedCase
from apbjudge.records import Row

EXAMPLES = Path(__file__).parents[3] / "examples"


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


def opened(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row that was built, with its parts as values; names of tools are those of the tools."""
    parts = {
        name.removesuffix("_json"): json.loads(value) if name.endswith("_json") else value
        for name, value in row.items()
    }
    assert parts.pop("tool_names") == [tool["name"] for tool in parts["tools"]]
    return parts


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A call as chat messages hold it."""
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def said(*calls: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A message of the agent's."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}
