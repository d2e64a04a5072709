"""Rules for a text that a model wrote; every rule is a pure function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ....protocols.leak_patterns import TELLS_CASE
from ....protocols.prompt_leaks import mentions
from ....protocols.tool_words import squashed
from ....records import json_values
from ....records.loose_json import as_list, as_object
from ..literals import is_worded, numbers_in, places_of
from .complaints import Complaint, TextReading, length, reading, text_in, text_of
from .config import KEYS, Kind
from .requirement_rules import contradictory, removal
from .tasks import WritingTask
from .tool_rules import distractors
from .trajectories import simulated


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
    text = text_of(answer["query"])
    return reading({"query": text}, query_complaints(task, text, task.literals))


def _private(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    text, removed = text_of(answer["query"]), str(answer["removed"]).strip()
    if removed not in task.removable:
        detail = f'"removed" must be one of the values listed as removable, not {removed[:80]!r}.'
        return TextReading(None, (Complaint("not removable", detail),))
    literals = [literal for literal in task.literals if literal != removed]
    complaints = list(query_complaints(task, text, literals))
    if is_worded(removed, text):
        detail = f"The query still states {removed!r}, also if in another spelling."
        complaints.append(Complaint("value still there", detail))
    return reading({"query": text, "removed": removed}, complaints)


def _plan(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    text = text_of(answer["plan"])
    return reading({"plan": text}, plan_complaints(task, text))


def query_complaints(task: WritingTask, text: str, literals: Sequence[str]) -> Iterator[Complaint]:
    """Yields complaints about a query.

    Args:
        task: The task, with the query as it was.
        text: The new query.
        literals: Values that have to stand in it.
    """
    yield from length("query", text, most=3 * len(task.query) + 600)
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


def _disclosures(task: WritingTask, text: str, subject: str) -> Iterator[Complaint]:
    for result in task.results:
        if places_of(result, text):
            detail = f"{subject} states {result!r}, which is known from a tool's result alone."
            yield Complaint("result told", detail)


_IDENTIFIER = re.compile(r"(?<![\w/.@-])(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*)(?![\w/@])")


def plan_complaints(task: WritingTask, text: str) -> Iterator[Complaint]:
    """Yields complaints about the prose of a plan."""
    yield from length("plan", text, most=600 + 600 * len(task.solution))
    if text.startswith(("{", "[")):
        yield Complaint("no prose", "The plan is JSON, not prose.")
    for name in sorted(task.used):
        if not places_of(name, text):
            yield Complaint("step missing", f"The plan does not name {name!r}, which is called.")
    sources = task.query, task.system_prompt, text_in([*task.tools, *task.solution])
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


_READERS: Mapping[Kind, Callable[[WritingTask, Mapping[str, Any]], TextReading]] = {
    "trajectory": simulated,
    "query": _query,
    "plan": _plan,
    "distractors": distractors,
    "private": _private,
    "contradictory": contradictory,
    "removal": removal,
}
