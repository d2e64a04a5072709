"""An item, its prediction and its judgements as plain JSON for the report and labelling pages.

Keys without a value are left out. Texts are unchanged: the page itself makes invisible characters
visible and never reads a text as markup.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson

from ...errors import RowError
from ...protocols.checks.names import unknown_calls
from ...records import (
    Call,
    Condition,
    Item,
    Record,
    Step,
    Tool,
    Toolset,
    message_calls,
)
from ...records.judgements import COLUMNS, FACTS
from ...records.loose_json import as_object
from ...records.messages import Messages, read_messages
from ...records.messages.shapes import ARGUMENTS, NAMES, kind_of
from .alignment import align
from .steps import call_view, step_view
from .values import View, as_json, present, safe

CALLS_SHOWN = 400
"""Largest number of calls of a prediction that are shown; the others are only counted."""


# The case ----------------------------------------------------------------------------------------


_CASE_FIELDS = (
    "query system_prompt files tools trajectory reference condition groups construction".split()
)
"""Fields of an item that determine the view of its case, and so its key."""


def case_view(item: Item) -> View:
    """The part of an item that all responses to its case share.

    Returns:
        ``query``, ``system`` (prompt), ``files`` (type, path), ``tools`` (None if the row has no
        list of tools; else name, description, parameters, cost and marks of each),
        ``trajectory`` (a step for each message), ``reference`` (plan, steps; or None),
        ``condition`` (hidden from the tested model; its ``claims`` are those of the construction)
        and ``groups``. Steps are those of ``steps``.
    """
    condition, replacement, reference = item.condition, item.condition.replacement, item.reference
    return {
        "query": item.query,
        **present(system=item.system_prompt),
        "files": [{"type": file.type, "path": file.path} for file in item.files],
        "tools": None if item.tools is None else _tools(item.tools, condition),
        "trajectory": [_message(message) for message in item.trajectory],
        "reference": reference
        and {
            **present(plan=reference.plan),
            "steps": _steps(reference.steps),
        },
        "condition": present(
            horizon=condition.horizon,
            extraneous=list(condition.extraneous),
            broken_tool=condition.broken_tool,
            replacement=replacement and replacement.name,
            unsolvable_type=condition.unsolvable_type,
            claims=item.construction and item.construction.claims,
        ),
        "groups": {name: value for name, value in item.groups.items() if value not in (None, "")},
    }


def case_key(item: Item) -> bytes | None:
    """A key of the view of an item's case, much cheaper than the view: equal keys, equal views.

    Returns:
        The key; None for a case nested too deeply for JSON.
    """
    try:
        return orjson.dumps([getattr(item, name) for name in _CASE_FIELDS], default=_as_read)
    except orjson.JSONEncodeError:
        return None


def _as_read(record: Record) -> object:
    """The values that a record was read from, which determine everything else in it."""
    if isinstance(record, Toolset):
        return record.text, sorted(record.listed_names)
    return {name: getattr(record, name) for name in type(record).model_fields}


def _tools(tools: Toolset, condition: Condition) -> list[View]:
    replacement = condition.replacement and condition.replacement.name
    named_only = sorted(tools.listed_names - tools.by_name.keys())
    views: list[View] = []
    for tool in (*tools.tools, *(Tool(name=name) for name in named_only)):
        marks = {
            "distractor": tool.name in condition.distractors,
            "broken": tool.name == condition.broken_tool,
            "replacement": tool.name == replacement,
        }
        shown = present(
            description=tool.description,
            parameters=safe(tool.parameters),
            cost=tool.cost,
            marks=[mark for mark, holds in marks.items() if holds],
        )
        views.append({"name": tool.name, **shown})
    return views


# Earlier messages --------------------------------------------------------------------------------


def _message(message: Mapping[str, Any]) -> View:
    """A message as a step; other content is added to the text as JSON."""
    try:
        read = read_messages([dict(message)])
    except RowError:
        read = Messages((), unknown=[message])
    texts, rest, calls = [read.system_prompt], dict[str, Any](), list[View]()
    for m in read.messages:
        seen = [
            as_json(r.content) if not isinstance(r.content, str) else r.content for r in m.results
        ]
        thought = str(m.extra.get("thought") or m.reasoning)
        texts += [thought, m.text, *(f"[{name}]" for name in m.attachments), *seen]
        calls += [call_view(c.name, as_object(c.arguments)) for c in m.calls]
        rest |= {name: m.extra[name] for name in m.extra if name not in _NAMING}
        unread = [p for p in m.extra.get("content", ()) if kind_of(as_object(p) or {}) == "unread"]
        rest |= {"content": unread}
    for own in read.unknown:  # a step in the benchmark's form, or unknown content
        calls += map(_call, message_calls(own))
        texts.append(str(own.get("thought") or ""))
        known = {"thought", "action", *NAMES, *ARGUMENTS} if calls else {"thought"}
        rest |= {key: own[key] for key in own if key not in known}
    rest = {key: value for key, value in rest.items() if value}
    named = (result.name for m in read.messages for result in m.results)
    stated = message.get("role") or next((m.role for m in read.messages), None)
    return step_view(
        calls,
        source=stated if isinstance(stated, str) else "assistant" if calls else "message",
        name=next(filter(None, named), None),
        text="\n\n".join([*filter(None, texts), *([as_json(rest)] if rest else [])]),
    )


_NAMING = ("thought", "content", "name", "tool_call_id")


# The prediction ----------------------------------------------------------------------------------


def prediction_view(item: Item | None, findings: Iterable[Mapping[str, Any]]) -> View:
    """The response of one tested model, next to the reference, with the findings at their place.

    Args:
        item: The item; None if the prediction is unavailable: then only findings are shown.
        findings: Findings by rule, as in a row of ``judgements.jsonl``.

    Returns:
        ``kind``, ``plan``, ``steps`` (see the module of this name), ``n_calls`` if not all are
        shown, ``problems``, ``response``, ``chain`` (ours, theirs, kind of each row; left out
        without a reference) and ``findings`` (code, certainty, rule, message, where, call: index
        among the calls of all steps, path within its arguments, key: the argument; of a trajectory,
        step: its number).
    """
    if item is None:
        return {"findings": [_finding(finding, ()) for finding in findings]}
    prediction = item.prediction
    calls = tuple(prediction.calls)
    shown = calls[:CALLS_SHOWN]
    unknown = {id(call) for call in unknown_calls(item)}
    reference = item.reference
    return {
        "kind": prediction.kind,
        **present(
            plan=prediction.plan,
            n_calls=len(calls) if len(calls) > len(shown) else None,
            problems=[{"where": p.where, "message": p.message} for p in prediction.problems],
            chain=reference and [row._asdict() for row in align(shown, reference.calls)],
        ),
        "steps": _steps(prediction.steps, most=CALLS_SHOWN, unknown=unknown),
        "findings": [_finding(finding, shown) for finding in findings],
        "response": item.response,
    }


def _steps(
    steps: Sequence[Step], *, most: int | None = None, unknown: Collection[int] = ()
) -> list[View]:
    """Steps with at most ``most`` calls in all; ``unknown``: ids of calls of unknown tools."""
    views: list[View] = []
    n_calls = n_idle = 0
    for number, step in enumerate(steps, 1):
        calls = step.calls[: None if most is None else most - n_calls]
        n_calls, n_idle = n_calls + len(calls), n_idle + (not step.calls)
        # a step of a plan is one call, whose reason is the thought
        thought = "" if step.calls and step.thought == step.calls[0].reason else step.thought
        if calls or (not step.calls and n_idle <= CALLS_SHOWN):
            shown = (_call(call, unknown=id(call) in unknown or None) for call in calls)
            views.append(step_view(shown, number=number, thought=thought))
    return views


def _call(call: Call, *, unknown: bool | None = None) -> View:
    return call_view(call.name, call.arguments, reason=call.reason, unknown=unknown)


# Findings ----------------------------------------------------------------------------------------


_FINDING = ("code", "certainty", "rule", "message", "where")
_STEP = re.compile(r"step\[\d+\]")
_STEP_OF_LOG = re.compile(r"steps\[(\d+)\]")
_HOLDER = re.compile(
    r"\.(?:arguments|parameter_description|parameters|args|input|kwargs)(?=[.\[]|$)"
)


def _finding(finding: Mapping[str, Any], calls: Sequence[Call]) -> View:
    where = str(finding.get("where") or "")
    index = _place(where, calls)
    of_log = _STEP_OF_LOG.match(where)  # counts from 0
    number = None if of_log is None else int(of_log[1]) + 1
    view = present(**{name: finding.get(name) for name in _FINDING}, call=index, step=number)
    if index is None:
        return view
    _, _, path = where.partition(calls[index].where)
    return {**view, **_inside(path, calls[index].arguments or {})}


def _place(where: str, calls: Sequence[Call]) -> int | None:
    """Index of the call that contains a place, else of the step's first call; None if none."""
    step = _STEP.match(where)
    for i, call in enumerate(calls):
        if call.where and f"{where}.".startswith(f"{call.where}."):
            return i
    if step is None:
        return None
    return next((i for i, c in enumerate(calls) if c.where.startswith(f"{step[0]}.")), None)


def _inside(path: str, arguments: Mapping[str, Any]) -> View:
    """Place in a call's arguments: the path and, if it names one of them, the argument."""
    if not path.startswith("."):
        return {"path": ""}
    inner = _HOLDER.sub("", path, count=1).removeprefix(".")
    for text in (inner, path[1:]):
        keys = [key for key in arguments if text == key or text.startswith((f"{key}.", f"{key}["))]
        if keys:
            return {"path": text, "key": max(keys, key=len)}
    return {"path": inner}


# Judgements --------------------------------------------------------------------------------------


_ELSEWHERE = frozenset(
    "item_id case_id tested_model images_shown images_of not_shown frame_times findings "
    "lenient_replies line content_id response_id groups".split()
)
"""Columns that belong to the prediction, or are not shown."""


def judgement_view(row: Mapping[str, Any]) -> View:
    """A row of ``judgements.jsonl`` without its findings, which belong to the prediction.

    Returns:
        Its columns that are not empty, and under ``facts``, by label, those that have a label;
        ``inconsistent`` only if it is true.
    """
    view: View = {name: row.get(name) for name in COLUMNS if name not in _ELSEWHERE}
    facts = {fact.label: view.pop(fact.name) for fact in FACTS if fact.label}
    view["inconsistent"] = view["inconsistent"] or None
    return present(**view, facts=present(**facts))
