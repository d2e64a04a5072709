"""Whether a case is what its condition says: distractors, broken tools, no solution."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from ...errors import RowError, shorten
from ...records import Call, Item, Row, Tool, message_calls
from ...records.loose_json import as_list, as_object
from ..findings import CaseCheck, CaseFinding, CheckedCase
from ..likeness import LIKE, is_same, likeness, name_words, properties
from ..overlap import strings, words
from ..turns import calls_in, is_agents

_FAILURE = re.compile(
    r"error|fail|unavailable|timed? ?out|timeout|not (?:work|respond|answer|reach)|refused|"
    r"unable|can(?:not|'t|’t)|denied|disabled|invalid|exception|outage|down\b|[45]\d\d\b|broken",
    re.IGNORECASE,
)
_VISUAL = re.compile(
    r"image|picture|photo|video|frame|screenshot|chart|figure|diagram|drawing|map|scan|shown|see|"
    r"look|visible|attach|enclos|visual|footage|clip|poster|logo|painting|sign|plot|graph",
    re.IGNORECASE,
)
_COMMON = frozenset("get set the of a by for to in on and with api tool".split())


# Distractors --------------------------------------------------------------------------------------


def distractors(case: CheckedCase) -> Iterator[CaseFinding]:
    """Distractors are offered, not called, and no other name of a needed tool."""
    item, names = case.item, case.item.condition.distractors
    if not names:
        return
    field = "extraneous_tool_names"
    if item.tools is not None:
        for name in sorted(names - item.tools.names):
            yield case.finding("distractor-not-offered", field, f"{shorten(name)} is no tool")
    called = item.reference.names if item.reference else frozenset[str]()
    before = {call.name for message in item.trajectory for call in calls_in(message)}
    later = _remaining(case)
    for check, where, used in (
        ("distractor-used", "the reference calls", called),
        ("distractor-called", "earlier messages call", before),
        ("distractor-called", "later steps call", later),
    ):
        for name in sorted(names & used):
            yield case.finding(check, field, f"{where} {shorten(name)}")
    tools: Mapping[str, Tool] = item.tools.by_name if item.tools else {}
    needed = [tools[name] for name in sorted((called | before | later) - names) if name in tools]
    for name in sorted(names & tools.keys()):
        for other in needed:
            if is_same(tools[name], other):
                message = f"{shorten(name)} is {shorten(other.name)} under another name"
                yield case.finding("distractor-equals-tool", field, message)
            elif likeness(tools[name], other) >= LIKE:
                message = f"{shorten(name)} is much like {shorten(other.name)}"
                yield case.finding("distractor-like-tool", field, message)


def _remaining(case: CheckedCase) -> set[str]:
    """Names of tools called after the reference."""
    try:
        value = Row(case.row, case.item.line).structured("reference_remaining_steps")
    except RowError:
        return set()
    steps = [spec for each in as_list(value) or () if (spec := as_object(each)) is not None]
    return {call.name for step in steps for call in message_calls(step)}


# Broken tools -------------------------------------------------------------------------------------


def broken(case: CheckedCase) -> Iterator[CaseFinding]:
    """The broken tool failed last, and its replacement can take over."""
    item, condition = case.item, case.item.condition
    name = condition.broken_tool
    if name is None:
        return
    field = "broken_tool_name"
    last = _last_turn(item)
    names = [call.name for call in last]
    if last and name not in names:
        message = f"the messages end with {shorten(', '.join(names))}, not with {shorten(name)}"
        yield case.finding("broken-not-called", field, message)
    if item.trajectory and not is_agents(item.trajectory[-1]):
        answer = " ".join(strings(item.trajectory[-1].get("content")))
        if not _FAILURE.search(answer):
            message = f"the last message is {shorten(answer)}"
            yield case.finding("broken-without-error", "trajectory_prefix", message)
    calls = item.reference.calls if item.reference else ()
    if any(call.name == name for call in calls):
        message = f"it calls {shorten(name)}, which has just failed"
        yield case.finding("reference-calls-broken", "ground_truth_steps", message)
    if condition.replacement is not None:
        yield from _replacement(case, condition.replacement, name, last, calls)


def _last_turn(item: Item) -> tuple[Call, ...]:
    """The agent's calls in its last message with any, and in those directly before it."""
    calls: list[Call] = []
    for message in reversed(item.trajectory):
        if made := calls_in(message):
            calls += made
        elif calls:
            break
    return tuple(calls)


def _replacement(
    case: CheckedCase,
    replacement: Tool,
    broken_name: str,
    failed: tuple[Call, ...],
    calls: tuple[Call, ...],
) -> Iterator[CaseFinding]:
    item, field = case.item, "replacement_tool"
    name = replacement.name
    if item.tools is not None and name not in item.tools.names:
        message = f"{shorten(name)} is not among the tools"
        yield case.finding("replacement-not-offered", field, message)
    shared = set(name_words(name)) & set(name_words(broken_name)) - _COMMON
    if shared:
        message = f"{shorten(name)} and {shorten(broken_name)} share {', '.join(sorted(shared))}"
        yield case.finding("replacement-alike", field, message)
    tools: Mapping[str, Tool] = item.tools.checkable if item.tools else {}
    ours, theirs = tools.get(broken_name), tools.get(name, replacement)
    if ours is not None and theirs.parameter_kind == "json_schema" and not _maps(ours, theirs):
        message = f"no map of {shorten(broken_name)}'s parameters keeps their types"
        yield case.finding("replacement-parameters", field, message)
    if calls and all(call.name != name for call in calls):
        message = f"the reference calls {shorten(calls[0].name)}"
        yield case.finding("reference-not-replacement", "ground_truth_steps", message)
    if item.construction is None or not (mapping := item.construction.parameter_map):
        return
    field = "construction.parameter_map"
    for tool, parameters in ((ours, mapping), (theirs, mapping.values())):
        if tool is None or not (known := properties(tool)):
            continue
        for parameter in sorted({*parameters} - known.keys()):
            message = f"{shorten(tool.name)} has no parameter {shorten(parameter)}"
            yield case.finding("map-broken", field, message)
    made = [call for call in calls if call.name == name]
    before = [call for call in failed if call.name == broken_name]
    if made and before and not any(_follows(*each, mapping) for each in product(before, made)):
        message = f"the call of {shorten(name)} has other arguments than the map gives"
        yield case.finding("map-not-followed", field, message)


def _follows(failed: Call, made: Call, mapping: Mapping[str, str]) -> bool:
    """Whether a call passes what another one passed, as text, to the parameters of a map."""
    given, passed = failed.arguments or {}, made.arguments or {}
    return all(
        str(passed.get(other)) == str(given[name])
        for name, other in mapping.items()
        if name in given
    )


def _maps(one: Tool, other: Tool) -> bool:
    """Whether each required parameter can stand for one of the other tool, and the other way."""
    ours = [_types(properties(one).get(name, {})) for name in one.required]
    theirs = [_types(properties(other).get(name, {})) for name in other.required]
    every = [_types(spec) for spec in properties(other).values()]
    back = [_types(spec) for spec in properties(one).values()]
    return _matching(ours, every) and _matching(theirs, back)


def _types(spec: Mapping[str, Any]) -> frozenset[str]:
    kind = spec.get("type")
    listed = as_list(kind)
    names = [kind] if listed is None else listed
    return frozenset(name for name in names if isinstance(name, str))


def _matching(wanted: list[frozenset[str]], offered: list[frozenset[str]]) -> bool:
    """Whether each wanted type finds a place of its own (augmenting paths; empty fits any)."""
    taken: dict[int, int] = {}

    def place(at: int, tried: set[int]) -> bool:
        for n, types in enumerate(offered):
            fits = not wanted[at] or not types or _compatible(wanted[at], types)
            if n in tried or not fits:
                continue
            tried.add(n)
            if n not in taken or place(taken[n], tried):
                taken[n] = at
                return True
        return False

    return all(place(at, set()) for at in range(len(wanted)))


def _compatible(one: frozenset[str], other: frozenset[str]) -> bool:
    numbers = {"integer", "number"}
    return bool(one & other) or (bool(one & numbers) and bool(other & numbers))


# No solution --------------------------------------------------------------------------------------


def unsolvable(case: CheckedCase) -> Iterator[CaseFinding]:
    """What is missing is missing, and limits that exclude each other do."""
    item = case.item
    kind = item.condition.unsolvable_type
    if kind == "visual_missing":
        if item.files:
            message = f"{shorten(item.files[0].path)} is there"
            yield case.finding("visual-present", "files", message)
        if not _VISUAL.search(item.query):
            yield case.finding("visual-not-needed", "query", "it speaks of nothing to be seen")
    elif kind == "tool_removal":
        yield from _removed_tools(case)
    elif kind == "information_missing":
        yield from _removed_value(case)
    elif kind == "contradictory_constraints":
        yield from _bounds(case)


def _removed_tools(case: CheckedCase) -> Iterator[CaseFinding]:
    item = case.item
    if item.tools is None:
        return
    removed = item.construction.removed_tools if item.construction else ()
    for name in removed:
        if name in item.tools.names:
            message = f"{shorten(name)} is offered"
            yield case.finding("removed-tool-present", "tools", message)
        own = set(name_words(name)) - _COMMON
        for tool in item.tools.tools:
            if tool.name != name and own and own <= set(name_words(tool.name)):
                message = f"{shorten(tool.name)} is much like {shorten(name)}, which was removed"
                yield case.finding("removed-tool-like", "tools", message)
    called = item.reference.names if item.reference else frozenset[str]()
    if called and called <= item.tools.names and not removed:
        message = "every tool that the reference calls is offered"
        yield case.finding("nothing-removed", "tools", message)


def _removed_value(case: CheckedCase) -> Iterator[CaseFinding]:
    item = case.item
    value = item.construction.removed_value if item.construction else None
    if value is None:
        return
    texts = {
        "query": [item.query],
        "system_prompt": [item.system_prompt],
        "files": [file.path for file in item.files],
        "trajectory_prefix": list(strings(item.trajectory)),
        "tools": [item.tools.text] if item.tools else [],
    }
    for field, listed in texts.items():
        if any(states(text, value) for text in listed):
            yield case.finding("value-present", field, f"{shorten(value)} is stated")


def states(text: str, value: str) -> bool:
    """Whether a text states a value, letter case apart; 3 is not stated in 35 or in 3.5."""
    if value.casefold() not in text.casefold():
        return False
    pattern = rf"(?<![\w])(?<!\d[.,]){re.escape(value)}(?![\w])(?![.,]\d)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _bounds(case: CheckedCase) -> Iterator[CaseFinding]:
    item, field = case.item, "construction.bounds"
    bounds = item.construction.bounds if item.construction else ()
    if not bounds:
        return
    query = f" {' '.join(words(item.query))} "
    for bound in bounds:
        if f" {' '.join(words(bound.text))} " not in query:
            message = f"{shorten(bound.text)} is not in the query"
            yield case.finding("bounds-not-stated", field, message)
    least: dict[str, float] = {}
    most: dict[str, float] = {}
    for bound in bounds:
        if bound.kind == "at least":
            least[bound.subject] = max(bound.value, least.get(bound.subject, bound.value))
        else:
            most[bound.subject] = min(bound.value, most.get(bound.subject, bound.value))
    if not any(low > most[subject] for subject, low in least.items() if subject in most):
        yield case.finding("bounds-agree", field, "all limits can be kept at once")


CONDITION_CHECKS: tuple[CaseCheck, ...] = (distractors, broken, unsolvable)
