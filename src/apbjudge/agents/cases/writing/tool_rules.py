"""Rules for tools that a model invented."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....errors import RowError
from ....protocols.leak_patterns import TELLS_TOOL
from ....protocols.tool_words import name_words, properties, squashed
from ....records import Tool
from ....records.loose_json import as_list, as_object
from ....records.tools import read_tool
from ..likeness import definition_of, is_like, style_of
from ..literals import is_worded
from .complaints import Complaint, TextReading, text_in
from .tasks import WritingTask

MOST_INVENTED = 10
"""Tools that are invented for a seed: as many as the highest published level has distractors."""
_LONGEST_DESCRIPTION = 600


def distractors(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    """Reads invented tools; those without a complaint count whatever the others are."""
    entries = (as_list(answer["tools"]) or [])[:MOST_INVENTED]
    if not entries:
        return TextReading(None, (Complaint("empty", '"tools" is no list of tools, or empty.'),))
    offered = [read_tool(tool, "tools") for tool in task.tools]
    accepted: dict[str, dict[str, Any]] = {}
    complaints: list[Complaint] = []
    for number, entry in enumerate(entries, start=1):
        read = valid_tool(entry)
        if isinstance(read, str):
            detail = f"Tool {number} is no valid definition: {read}."
            complaints.append(Complaint("definition invalid", detail))
            continue
        faults = list(tool_complaints(task, read, offered))
        if squashed(read.name) in accepted:
            faults.append(Complaint("name taken", f"Two tools are called {read.name!r}."))
        if faults:
            complaints += faults
        else:
            accepted[squashed(read.name)] = definition_of(read)
    return TextReading({"tools": list(accepted.values())} if accepted else None, tuple(complaints))


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{1,63}")
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")


def valid_tool(entry: object) -> Tool | str:
    """A tool, or the reason why its definition is invalid."""
    spec = as_object(entry) or {}
    try:
        tool = read_tool({key: part for key, part in spec.items() if key != "cost"}, "tool")
    except RowError as error:
        return str(error)
    if not _NAME.fullmatch(tool.name) or tool.other_names:
        return f"expected one name without spaces, got {tool.name[:80]!r}"
    if len(tool.description.split()) < 2:
        return f"{tool.name}: expected a description"
    fault = "" if tool.parameter_kind == "absent" else _schema_fault(tool)
    return f"{tool.name}: {fault}" if fault else tool


def _schema_fault(tool: Tool) -> str:
    if tool.parameter_kind != "json_schema":
        return "expected parameters as the JSON Schema of an object"
    described = properties(tool)
    if undefined := next((name for name in tool.required if name not in described), None):
        return f"the required parameter {undefined!r} is not among the properties"
    wrong = next((name for name, spec in described.items() if spec.get("type") not in _TYPES), None)
    return "" if wrong is None else f"parameter {wrong!r}: expected one type of {', '.join(_TYPES)}"


def tool_complaints(task: WritingTask, tool: Tool, offered: Sequence[Tool]) -> Iterator[Complaint]:
    """Yields complaints about an invented tool whose definition is valid.

    Args:
        task: The task that it must not serve.
        tool: The tool.
        offered: The tools offered, those that the solution calls among them.
    """
    name = tool.name
    if squashed(name) in {squashed(other.name) for other in offered}:
        yield Complaint("name taken", f"A tool called {name!r} is offered already.")
    used = [other for other in offered if other.name in task.used]
    for other in used:
        if is_like(tool, other):
            detail = f"{name!r} is much like {other.name!r} and might serve in its place."
            yield Complaint("like a needed tool", detail)
    style = _common_style([other.name for other in offered])
    if style and style_of(name) not in ("", style):
        yield Complaint(
            "other naming style", f"{name!r} is not named in {style}, as the others are."
        )
    if len(tool.description) > _LONGEST_DESCRIPTION:
        detail = f"The description of {name!r} has more than {_LONGEST_DESCRIPTION} characters."
        yield Complaint("too long", detail)
    shown = " ".join((*name_words(name), tool.description, text_in(properties(tool))))
    if match := TELLS_TOOL.search(shown):
        detail = f"{name!r} says what it is here for: {match.group()!r}."
        yield Complaint("condition told", detail)
    others = text_in(list(task.tools))
    for literal in task.literals:
        if len(literal) > 2 and is_worded(literal, shown) and not is_worded(literal, others):
            yield Complaint("task quoted", f"{name!r} states {literal!r}, a value of the task.")
    if _describe_all(offered) and not _describe_all([tool]):
        detail = f"A parameter of {name!r} has no description, unlike those of the other tools."
        yield Complaint("parameter not described", detail)


def _describe_all(tools: Sequence[Tool]) -> bool:
    return all(spec.get("description") for tool in tools for spec in properties(tool).values())


def _common_style(names: Sequence[str]) -> str:
    """The style of most names of several words; empty without one, or if two are as common."""
    styles = Counter(style for name in names if (style := style_of(name)))
    ranked = [*styles.most_common(2), ("", 0)]
    return "" if len(ranked) == 3 and ranked[0][1] == ranked[1][1] else ranked[0][0]
