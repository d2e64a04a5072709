"""Rows with a query and tools, with or without the calls that solve it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....errors import RowError
from ....records import Call, Row
from ....records.loose_json import as_list, as_object
from ....records.parameters import parsed
from ....records.responses import call_name, read_chain
from ....records.tools import Toolset, build_toolset
from ....records.trajectories import LogPlace, TrajectoryStep
from ..cases import Reject
from ..seeds import Seed, SeedCall, leaves
from .call_texts import call_of_text
from .converting import CONVERTED, converted
from .entries import (
    TOOLS,
    SeedEntry,
    SourceFormat,
    SourceOptions,
    entries_of,
    query_in,
    rejected,
    seed_of,
    source_in,
    step_of,
    task_of,
)

CALLS = tuple(
    "calling calls tool_calls function_calls answers ground_truth actions reference_calls".split()
)
"""Names under which rows have their reference calls; the first that holds something is read."""

_RESULT_NAMES = ("responses", "label", "output_name")
_MARK = re.compile(r"[$#@<{]|.*\d")


def _calls_in(row: Mapping[str, Any]) -> tuple[str, list[Any] | None]:
    """The field with the reference calls, and these; None without."""
    for name in CALLS:
        value = parsed(Row(row, 0).structured(name))
        if value is None:
            continue
        if (spec := as_object(value)) is not None:
            value = [spec]
        if (listed := as_list(value)) is None:
            raise RowError(name, "a list of calls", value)
        return name, listed
    return CALLS[0], None


def _has_task(row: Mapping[str, Any]) -> bool:
    has_tools = any(row.get(key) is not None for name in TOOLS for key in (name, f"{name}_json"))
    try:
        return has_tools and bool(query_in(row))
    except RowError:
        return False


def _has_calls(row: Mapping[str, Any]) -> bool:
    """True if a row has calls, and not answers in words under the same name."""
    try:
        calls = _calls_in(row)[1] if query_in(row) else None
    except RowError:
        return False
    return bool(calls) and all(_is_call(call) for call in calls)


def _is_call(entry: object) -> bool:
    return bool(call_name(spec)) if (spec := as_object(entry)) is not None else False


# With calls ---------------------------------------------------------------------------------------


def _read(options: SourceOptions) -> Iterator[SeedEntry]:
    def seed(row: dict[str, Any], place: LogPlace) -> Seed | Reject:
        trajectory = task_of(row, place, options, query=query_in(row))
        field, entries = _calls_in(row)
        if not entries:
            return rejected(trajectory, "no call is made")
        toolset = build_toolset(list(trajectory.tools or ()), None, "tools")
        named_calls = list(_calls(entries, toolset, field))
        steps, calls, repairs = solved([(trajectory.query, named_calls)], toolset)
        solution = [
            replace(call, needs=needs)
            for call, needs in zip(calls, _needs(entries, calls), strict=True)
        ]
        trajectory = replace(trajectory, steps=tuple(steps))
        return seed_of(trajectory, solution, row, options, source=source_in(row), repairs=repairs)

    return entries_of(options, seed, FUNCTIONS.name)


def _calls(
    entries: Sequence[Any], toolset: Toolset, field: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and arguments of each call, in any spelling, also as ``name(parameter=value)``."""
    for i, entry in enumerate(entries):
        if isinstance(entry, str) and as_object(parsed(entry)) is None:
            yield call_of_text(entry, toolset, f"{field}[{i}]")
            continue
        (step,), problems = read_chain([parsed(entry)])
        call: Call = step.calls[0]
        if problems or call.is_unread:
            expected = "a call with a name and an object of arguments"
            raise RowError(f"{field}[{i}]", expected, entry)
        yield call.name, call.arguments or {}


def _needs(entries: Sequence[Any], calls: Sequence[SeedCall]) -> list[dict[str, int]]:
    """For each call, the earlier calls whose declared results its arguments name.

    A name counts if it looks like the name of a result, such as ``API_call_3`` or ``$var_1``, and
    is a word of the argument.
    """
    declared: dict[str, int] = {}
    needs: list[dict[str, int]] = []
    for at, (entry, call) in enumerate(zip(entries, calls, strict=True)):
        need: dict[str, int] = {}
        for parameter, value in call.arguments.items() if declared else ():
            texts = [leaf for leaf in leaves(value) if isinstance(leaf, str)]
            words = {word for text in texts for word in (text.strip(), *_WORD.findall(text))}
            if indices := [declared[word] for word in words if word in declared]:
                need[parameter] = max(indices)
        needs.append(need)
        spec = as_object(entry) or {}
        for name in _RESULT_NAMES:
            value: object = spec.get(name)
            marks = [value] if isinstance(value, str) else as_list(value) or []
            declared |= {
                mark: at for mark in marks if isinstance(mark, str) and _MARK.match(mark.strip())
            }
    return needs


_WORD = re.compile(r"[$#@]?\w+")


def solved(
    turns: Sequence[tuple[str, Sequence[tuple[str, Mapping[str, Any]]]]], toolset: Toolset
) -> tuple[list[TrajectoryStep], list[SeedCall], list[str]]:
    """A solution without results, as steps and calls, its arguments converted.

    Args:
        turns: Text of the user, and the calls that follow as names and arguments.
        toolset: The tools offered.

    Returns:
        The steps; the calls; what was mended.
    """
    steps: list[TrajectoryStep] = []
    calls: list[SeedCall] = []
    repairs: list[str] = []
    for text, named_calls in turns:
        if text:
            steps.append(TrajectoryStep("user", text=text))
        for name, arguments in named_calls:
            tool = toolset.by_name.get(name)
            fitting = dict(arguments) if tool is None else converted(arguments, tool)
            if fitting != arguments:
                repairs.append(CONVERTED)
            calls.append(SeedCall(name, fitting, len(steps)))
            steps.append(step_of(name, fitting, f"call_{len(calls)}"))
    return steps, calls, repairs


FUNCTIONS = SourceFormat(
    name="functions",
    title="queries with tools and reference calls",
    recognises=_has_calls,
    read=_read,
)

# Without ------------------------------------------------------------------------------------------


def _read_queries(options: SourceOptions) -> Iterator[SeedEntry]:
    def seed(row: dict[str, Any], place: LogPlace) -> Seed | Reject:
        trajectory = task_of(row, place, options, query=query_in(row))
        return seed_of(trajectory, (), row, options, source=source_in(row))

    return entries_of(options, seed, QUERIES.name)


QUERIES = SourceFormat(
    name="queries", title="queries with tools", recognises=_has_task, read=_read_queries
)
