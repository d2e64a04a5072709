"""Checks of the form of a case: its fields, tools, files, earlier messages and reference."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import orjson

from ....errors import RowError, shorten
from ....protocols import PROTOCOLS
from ....protocols.images import find_file
from ....records import SPLITS, Condition, Finding, Form, Item, Prediction
from ....records.loose_json import as_list, as_object
from ....records.parameters import COERCIBLE
from ....rubrics import Rubric, load_rubric
from ..findings import CaseCheck, CaseFinding, CheckedCase
from ..turns import (
    Message,
    calls_in,
    holds_result,
    is_agents,
    is_known,
    is_parallel,
    steps_of,
    turns_of,
)

# Tools --------------------------------------------------------------------------------------------


def tools(case: CheckedCase) -> Iterator[CaseFinding]:
    """Each tool is defined once, and all listed tools are defined."""
    toolset = case.item.tools
    if toolset is None:
        return
    count = Counter(tool.name for tool in toolset.tools)
    for name in (name for name, n in count.items() if n > 1):
        message = f"{shorten(name)} is defined {count[name]} times"
        yield case.finding("duplicate-tool", "tools", message)
    if toolset.tools:
        defined = {name for tool in toolset.tools for name in (tool.name, *tool.other_names)}
        for name in sorted(toolset.listed_names - defined):
            message = f"{shorten(name)} is listed and not defined"
            yield case.finding("undefined-tool", "tool_names", message)


def schemas(case: CheckedCase) -> Iterator[CaseFinding]:
    """Parameters have valid JSON Schemas; those in other formats are not checked."""
    for tool in case.item.tools.tools if case.item.tools else ():
        if tool.parameter_kind != "json_schema":
            continue
        field = f"tools.{tool.name[:80]}.parameters"
        if fault := _schema_fault(orjson.dumps(tool.parameters)):
            yield case.finding("bad-schema", field, fault)
        described = as_object(tool.parameters.get("properties")) or {}
        if not BRINGS_MORE.isdisjoint(tool.parameters):
            continue
        for name in tool.required:
            if name not in described:
                message = f"{shorten(name)} is required and not described"
                yield case.finding("undescribed-parameter", field, message)


BRINGS_MORE = frozenset("allOf anyOf oneOf $ref $dynamicRef patternProperties".split())
"""Keywords that may describe parameters besides ``properties``."""


@lru_cache(maxsize=4096)
def _schema_fault(schema: bytes) -> str:
    """A fault of a JSON Schema by every draft's rules; empty if there is none.

    Tools do not state the draft of their schemas, and one draft forbids what another demands
    (``exclusiveMinimum: true``, a list under ``items``). So a place is at fault only where the
    drafts agree.
    """
    from jsonschema import Draft4Validator, Draft7Validator, Draft202012Validator

    plain = _stated(orjson.loads(schema))
    # The newest comes last, since its own rules take longest to apply; errors are not typed.
    drafts: Any = (Draft7Validator, Draft4Validator, Draft202012Validator)
    faults: list[list[tuple[list[Any], str]]] = []
    try:
        for draft in drafts:
            errors = draft(draft.META_SCHEMA).iter_errors(plain)
            faults.append([(list(error.absolute_path), error.message) for error in errors])
            if not faults[-1]:
                return ""
    except RecursionError:
        return ""  # nested too deeply to be checked
    *others, newest = faults
    for path, message in newest:
        if all(any(_is_within(path, other) for other, _ in of) for of in others):
            place = ".".join(map(str, path))[:80] or "the schema"
            return f"{place} is no JSON Schema: {shorten(message)}"
    return ""


def _is_within(path: Sequence[Any], other: Sequence[Any]) -> bool:
    """True if one of two places is inside the other."""
    n = min(len(path), len(other))
    return path[:n] == other[:n]


_VALUES = frozenset("default const enum examples example".split())
_ANNOTATIONS = frozenset("title description $comment format examples example deprecated".split())


def _stated(schema: object) -> object:
    """A schema without the parts that say nothing or that no call is checked against.

    These are null in place of a keyword, empty lists of names or values, annotations that are no
    objects, and types as text, since unknown ones are not read.
    """
    if (listed := as_list(schema)) is not None:
        return [_stated(part) for part in listed]
    if (parts := as_object(schema)) is None:
        return schema
    return {
        key: part if key in _VALUES else _stated(part)
        for key, part in parts.items()
        if part is not None
        and key != COERCIBLE
        and not (key in ("required", "enum") and part == [])
        and not (key in _ANNOTATIONS and as_object(part) is None)
        and not (key == "type" and isinstance(part, str))
    }


# The row ------------------------------------------------------------------------------------------


def task(case: CheckedCase) -> Iterator[CaseFinding]:
    """The case asks for something."""
    if not case.item.has_task:
        yield case.finding("no-task", "query", "neither it nor anything else asks for something")


def condition(case: CheckedCase) -> Iterator[CaseFinding]:
    """The row states the condition of its split, and no other."""
    item = case.item
    if item.split is None:
        return
    own = SPLITS[item.split][1]
    stated = {
        "tool-broken": ("broken_tool_name", item.condition.broken_tool or ""),
        "unsolvable": ("unsolvable_type", item.condition.unsolvable_type or ""),
        "tool-extraneous": ("extraneous_tool_names", ", ".join(item.condition.extraneous)),
    }
    for protocol, (field, value) in stated.items():
        # level 0 is the base condition of an extraneous case
        if protocol == own and not value and protocol != "tool-extraneous":
            yield case.finding("missing-condition", field, f"{item.split} needs it")
        elif protocol != own and value:
            message = f"{shorten(value)} in a row of {item.split}"
            yield case.finding("stray-condition", field, message)


def files(case: CheckedCase) -> Iterator[CaseFinding]:
    """Files exist."""
    for i, file in enumerate(case.item.files):
        field = f"files[{i}].path"
        try:
            find_file(case.roots, file.path, field)
        except RowError as error:
            yield case.finding("missing-file", field, f"expected {error.expected}, got {error.got}")


# Earlier messages ---------------------------------------------------------------------------------


def prefix(case: CheckedCase) -> Iterator[CaseFinding]:
    """Calls have results, and the reference comes after them."""
    item = case.item
    messages = item.trajectory
    called = [calls_in(message) for message in messages]
    calling = [at for at, calls in enumerate(called) if calls]
    if not calling:
        return
    last = calling[-1]
    ends = item.endings or ()
    if any(call.name not in ends for call in called[last]) and not holds_result(messages[last]):
        names = ", ".join(call.name for call in called[last])
        if last == len(messages) - 1:
            message = f"the messages end with a call of {shorten(names)} that nothing answers"
            yield case.finding("prefix-unanswered", "trajectory_prefix", message)
        elif all(map(is_agents, messages[last + 1 :])):
            message = f"after the call of {shorten(names)} nobody but the agent speaks"
            yield case.finding("prefix-gap", f"trajectory_prefix[{last}]", message)
    gaps = [
        at
        for at, following in pairwise(calling)
        if all(map(is_agents, messages[at + 1 : following]))
        and not holds_result(messages[at])
        and not is_parallel(messages, called, at)
    ]
    if gaps:
        more = f", {len(gaps)} times in all" if len(gaps) > 1 else ""
        message = f"message {gaps[0]} calls a tool, and nothing answers before the next call{more}"
        yield case.finding("prefix-gap", f"trajectory_prefix[{gaps[0]}]", message)
    if item.reference is None or item.form != "steps":
        return
    first = next((call for step in steps_of(item)[0] for call in step.calls), None)
    if first and any((c.name, c.arguments) == (first.name, first.arguments) for c in called[last]):
        message = f"the last messages make the reference's call of {shorten(first.name)}"
        yield case.finding("prefix-has-reference", "trajectory_prefix", message)


# The reference ------------------------------------------------------------------------------------

_REFERENCE_RULES = {
    rule: f"reference-{rule}"
    for rule in (
        "unknown-tool missing-parameter unknown-parameter wrong-type not-allowed-value "
        "schema-violation used-before-made"
    ).split()
}
_FIELDS: Mapping[Form, str] = {"plan": "tool_chain", "steps": "ground_truth_steps"}


def reference(case: CheckedCase) -> Iterator[CaseFinding]:
    """The reference is there, has the right length, and its calls can be made."""
    item = case.item
    if item.condition.unsolvable_type is not None:
        return  # a solution of such a case is no way to be taken
    ref = item.reference
    field = _FIELDS[item.form]
    if ref is None or not ref.value:
        if item.split is not None and (ref is None or item.form == "steps"):
            yield case.finding("no-reference", field, "the row has none")
        return
    steps, places = steps_of(item)
    horizon = item.condition.horizon
    if horizon is not None and case.row.get("prediction_horizon") is not None:
        least, most = _lengths(ref.value)
        if not least <= horizon <= most:
            n = most if horizon > most else least
            message = f"{n} step{'' if n == 1 else 's'} where {horizon} are asked for"
            yield case.finding("wrong-horizon", field, message)
    prediction = Prediction(kind=item.form, plan=ref.plan, steps=steps)
    names = {call.where: call.name for call in prediction.calls}
    for fact in _facts(item, prediction):
        name = names.get(fact.where, "")
        if fact.rule == "unknown-tool" and _is_offered_in_words(item, name):
            continue
        place = _STEP.sub(lambda match: f"{field}[{places[int(match[1])]}]", fact.where)
        if fact.rule == "unknown-tool" and name in (item.endings or ()):
            yield case.finding("terminator-not-offered", place, fact.message)
        elif fact.rule in _REFERENCE_RULES:
            yield case.finding(_REFERENCE_RULES[fact.rule], place, fact.message)


_STEP = re.compile(r"^step\[(\d+)\]")


def _lengths(messages: Sequence[Message]) -> tuple[int, int]:
    """The least and the greatest number of steps that the messages of a reference may be.

    Text next to a call may be a step or belong to the call's step, and so may calls that are
    messages of their own. If the kind or the speaker of a message is unknown, there may be any
    number.
    """
    if not all(map(is_known, messages)):
        return 0, sys.maxsize
    turns = [turn for message in messages for turn in turns_of(message)]
    least, after_item = 0, False
    for turn in turns:
        is_step = bool(turn.calls) or not {"action", "tool_calls"}.isdisjoint(turn.entry)
        least += is_step and not (turn.is_item and after_item)
        after_item = turn.is_item
    return max(least, min(1, len(turns))), len(turns)


def _facts(item: Item, prediction: Prediction) -> list[Finding]:
    """Proven findings of the reference in the place of a prediction.

    The checks are those of a plain plan or of plain steps: a broken tool may be named, and the
    names that the reference itself uses do not make them offered.
    """
    shown = item.model_copy(
        update={
            "prediction": prediction,
            "response": "$",  # it may hold references to results, which are looked for
            "reference": None,
            "ends": frozenset[str](),
            "format_demanded": False,
            "condition": Condition(
                horizon=item.condition.horizon, replacement=item.condition.replacement
            ),
        }
    )
    protocol = PROTOCOLS[_PROTOCOLS[item.form]]
    findings = protocol.find(shown, _rubric(item.form), spares_reference=False)
    return [finding for finding in findings if finding.certainty == "proven"]


_PROTOCOLS: Mapping[Form, str] = {"plan": "holistic", "steps": "step-wise"}


@lru_cache(maxsize=2)
def _rubric(form: Form) -> Rubric:
    return load_rubric(PROTOCOLS[_PROTOCOLS[form]].rubrics[form])


def _is_offered_in_words(item: Item, name: str) -> bool:
    """True if tools may be described in a text: there is no list, or the text has the name."""
    if item.tools is None or not item.tools.names:
        return True
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(pattern.search(text) is not None for text in (item.system_prompt, item.query))


FORM_CHECKS: tuple[CaseCheck, ...] = (tools, schemas, task, condition, files, prefix, reference)
