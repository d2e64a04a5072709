"""Rules for a text that a model wrote; every rule is a pure function."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ....errors import RowError
from ....protocols.leak_patterns import TELLS_CASE, TELLS_TOOL
from ....protocols.prompt_leaks import mentions
from ....protocols.tool_words import name_words, properties, squashed
from ....records import Tool, json_values
from ....records.loose_json import as_list, as_object
from ....records.tools import read_tool
from ...prediction.writing import Complaint, TextReading
from ..likeness import definition_of, is_like, style_of
from ..literals import is_worded, numbers_in, places_of
from ..seeds import leaves
from .config import KEYS, Kind
from .tasks import WritingTask

MOST_INVENTED = 10
"""Tools that are invented for a seed: as many as the highest published level has distractors."""
_LONGEST_DESCRIPTION = 600


def read_reply(task: WritingTask, reply: str) -> TextReading:
    """Reads a model's reply and checks it by all rules of the task."""
    wanted = KEYS[task.kind]
    answers = [value for each in json_values(reply) if (value := _answer_in(each, task.kind))]
    if not answers:
        keys = " and ".join(f'"{key}"' for key in wanted)
        return TextReading(None, (Complaint("no JSON", f"Answer with a JSON object with {keys}."),))
    return _READERS[task.kind](task, answers[-1])


def _answer_in(value: object, kind: Kind) -> dict[str, Any] | None:
    """The object that was asked for; of tools also a bare list of them."""
    answer = as_object(value)
    if answer is None and kind == "distractors" and as_list(value):
        answer = {"tools": value}
    return answer if answer is not None and set(KEYS[kind]) <= answer.keys() else None


# Texts --------------------------------------------------------------------------------------------


def _query(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    text = _text(answer["query"])
    return _reading({"query": text}, query_complaints(task, text, task.literals))


def _private(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    text, removed = _text(answer["query"]), str(answer["removed"]).strip()
    if removed not in task.removable:
        detail = f'"removed" must be one of the values listed as removable, not {removed[:80]!r}.'
        return TextReading(None, (Complaint("not removable", detail),))
    literals = [literal for literal in task.literals if literal != removed]
    complaints = list(query_complaints(task, text, literals))
    if is_worded(removed, text):
        detail = f"The query still states {removed!r}, also if in another spelling."
        complaints.append(Complaint("value still there", detail))
    return _reading({"query": text, "removed": removed}, complaints)


def _plan(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    text = _text(answer["plan"])
    return _reading({"plan": text}, plan_complaints(task, text))


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _reading(
    value: dict[str, Any], complaints: Iterator[Complaint] | Sequence[Complaint]
) -> TextReading:
    listed = tuple(complaints)
    return TextReading(None if listed else value, listed)


def query_complaints(task: WritingTask, text: str, literals: Sequence[str]) -> Iterator[Complaint]:
    """Yields complaints about a query.

    Args:
        task: The task, with the query as it was.
        text: The new query.
        literals: Values that have to stand in it.
    """
    yield from _length("query", text, most=3 * len(task.query) + 600)
    if squashed(text) == squashed(task.query):
        yield Complaint("same as before", "The query is the same as before.")
    for literal in literals:
        if not places_of(literal, text):
            detail = f"The query lacks the value {literal!r}, which must stand in it word for word."
            yield Complaint("literal lost", detail)
    for number in numbers_in(text):
        if not is_worded(number, task.query):
            yield Complaint("value added", f"The query states {number!r}, as it did not before.")
    for name in task.offered:
        if mentions(text, name) and not mentions(task.query, name):
            yield Complaint("tool named", f"The query names the tool {name!r}.")
    yield from _disclosures(task, text, "The query")
    if (match := TELLS_CASE.search(text)) and not TELLS_CASE.search(task.query):
        detail = f"The query itself must not say what is special about it: {match.group()!r}."
        yield Complaint("condition told", detail)


def _text_in(value: object) -> str:
    """The texts, numbers and names of fields in a JSON value."""
    return "\n".join(map(str, leaves(value, names=True)))


def _length(name: str, text: str, *, most: int) -> Iterator[Complaint]:
    if not text:
        yield Complaint("empty", f'"{name}" is empty or no text.')
    elif len(text) > most:
        detail = f"The {name} has {len(text)} characters, more than the {most} allowed."
        yield Complaint("too long", detail)


def _disclosures(task: WritingTask, text: str, subject: str) -> Iterator[Complaint]:
    for result in task.results:
        if places_of(result, text):
            detail = f"{subject} states {result!r}, which is known from a tool's result alone."
            yield Complaint("result told", detail)


_IDENTIFIER = re.compile(r"(?<![\w/.@-])(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*)(?![\w/@])")


def plan_complaints(task: WritingTask, text: str) -> Iterator[Complaint]:
    """Yields complaints about the prose of a plan."""
    yield from _length("plan", text, most=600 + 600 * len(task.solution))
    if text.startswith(("{", "[")):
        yield Complaint("no prose", "The plan is JSON, not prose.")
    for name in sorted(task.used):
        if not places_of(name, text):
            yield Complaint("step missing", f"The plan does not name {name!r}, which is called.")
    sources = task.query, task.system_prompt, _text_in([*task.tools, *task.solution])
    known = "\n".join(sources)
    for word in dict.fromkeys(_IDENTIFIER.findall(text)):
        if word not in task.offered and word not in known:
            yield Complaint("unknown tool", f"No tool that is offered is called {word!r}.")
    steps = {str(number) for number in range(len(task.solution) + 1)}
    for number in numbers_in(text):
        if number.strip("#()") not in steps and not is_worded(number, known):
            yield Complaint(
                "value added", f"The plan states {number!r}, which is in no text above."
            )
    yield from _disclosures(task, text, "The plan")


# Tools --------------------------------------------------------------------------------------------


def _distractors(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    entries = (as_list(answer["tools"]) or [])[:MOST_INVENTED]
    if not entries:
        return TextReading(None, (Complaint("empty", '"tools" is no list of tools, or empty.'),))
    offered = [read_tool(tool, "tools") for tool in task.tools]
    accepted: dict[str, dict[str, Any]] = {}
    complaints: list[Complaint] = []
    for number, entry in enumerate(entries, start=1):
        read = _invented(entry)
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


def _invented(entry: object) -> Tool | str:
    """A tool, or why its definition is no valid one."""
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
    shown = " ".join((*name_words(name), tool.description, _text_in(properties(tool))))
    if match := TELLS_TOOL.search(shown):
        detail = f"{name!r} says what it is here for: {match.group()!r}."
        yield Complaint("condition told", detail)
    others = _text_in(list(task.tools))
    for literal in task.literals:
        if len(literal) > 2 and is_worded(literal, shown) and not is_worded(literal, others):
            yield Complaint("task quoted", f"{name!r} states {literal!r}, a value of the task.")
    if _describe_all(offered) and not _describe_all([tool]):
        detail = f"A parameter of {name!r} has no description, unlike those of the other tools."
        yield Complaint("parameter not described", detail)


def _describe_all(tools: Sequence[Tool]) -> bool:
    return all(spec.get("description") for tool in tools for spec in properties(tool).values())


def _common_style(names: Sequence[str]) -> str:
    """The style of most names of several words; empty without one, or where two are as common."""
    styles = Counter(style for name in names if (style := style_of(name)))
    ranked = [*styles.most_common(2), ("", 0)]
    return "" if len(ranked) == 3 and ranked[0][1] == ranked[1][1] else ranked[0][0]


_READERS: Mapping[Kind, Callable[[WritingTask, Mapping[str, Any]], TextReading]] = {
    "query": _query,
    "plan": _plan,
    "distractors": _distractors,
    "private": _private,
}
