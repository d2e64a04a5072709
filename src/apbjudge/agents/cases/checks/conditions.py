"""Checks of the condition that a case states: distractors, broken tools, no solution."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ....errors import shorten
from ....protocols.overlap import strings
from ....protocols.prompt_leaks import mentions
from ....protocols.tool_words import name_words, properties, squashed
from ....records import Call, Construction, Item, Tool
from ....records.loose_json import as_list, as_object, lenient
from ..findings import CaseCheck, CaseFinding, CheckedCase
from ..likeness import LIKE, is_same, likeness
from ..literals import places_of
from ..queries import is_english
from ..seeds import is_visual
from ..turns import calls_in, holds_result, is_agents, steps_of
from .form import BRINGS_MORE

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
_FLAG = re.compile(r"'is_?error': True|'(?:success|ok)': False", re.IGNORECASE)
"""Marks of a failed call, in the text of a message as Python writes it."""
HEADING = re.compile(r"\b(?i:important|warning|compliance|note|attention)\s*:|\*\*|\b[A-Z]{5,}\b")
"""A heading, or a word in capitals, which sets a requirement off from the query around it."""
_LEAST_LETTERS = 4
_COMMON = frozenset("get set the of a by for to in on and with api tool".split())


# Distractors --------------------------------------------------------------------------------------


def distractors(case: CheckedCase) -> Iterator[CaseFinding]:
    """Distractors are offered, not called, and no other name of a needed tool."""
    item, names = case.item, case.item.condition.distractors
    if not names:
        return
    field = "extraneous_tool_names"
    for name in sorted(names):
        if not may_be_offered(item, name):
            message = f"{shorten(name)} is no tool of the case"
            yield case.finding("distractor-not-offered", field, message)
    called = {call.name for call in _reference_calls(item)}
    before = {call.name for message in item.trajectory for call in calls_in(message)}
    remaining = case.messages("reference_remaining_steps")
    later = {call.name for message in remaining for call in calls_in(message)}
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
                message = f"{shorten(name)} and {shorten(other.name)} differ in their names alone"
                yield case.finding("distractor-equals-tool", field, message)
            elif likeness(tools[name], other) >= LIKE:
                message = f"{shorten(name)} is much like {shorten(other.name)}"
                yield case.finding("distractor-like-tool", field, message)


def _reference_calls(item: Item) -> list[Call]:
    return [call for step in steps_of(item)[0] for call in step.calls]


def may_be_offered(item: Item, name: str) -> bool:
    """True if a tool is offered, under this name or another spelling of it, or in a text."""
    if item.tools is None or not item.tools.names:
        return True
    ours = _spellings(name)
    if any(not ours.isdisjoint(_spellings(other)) for other in item.tools.names):
        return True
    shown = squashed(f"{item.query}\n{item.system_prompt}")
    return any(spelling in shown for spelling in ours)


def _spellings(name: str) -> set[str]:
    """A name without case and marks, with and without its namespace, as in ``files.open``."""
    return {squashed(name), squashed(re.split(r"[.:/]|__", name)[-1])} - {""} or {name}


# Broken tools -------------------------------------------------------------------------------------


def broken(case: CheckedCase) -> Iterator[CaseFinding]:
    """The broken tool failed last, and its replacement can take over."""
    item, name = case.item, case.item.condition.broken_tool
    if name is None:
        return
    called = [calls_in(message) for message in item.trajectory]
    calling = [at for at, calls in enumerate(called) if calls]
    yield from _failure(case, name, called, calling)
    calls = _reference_calls(item)
    if any(call.name == name for call in calls):
        message = f"the reference calls {shorten(name)}, the tool that failed"
        yield case.finding("reference-calls-broken", "ground_truth_steps", message)
    if item.condition.replacement is not None:
        failed = [call for group in called for call in group if call.name == name]
        yield from _replacement(case, item.condition.replacement, name, failed, calls)


def _failure(
    case: CheckedCase, name: str, called: Sequence[Sequence[Call]], calling: Sequence[int]
) -> Iterator[CaseFinding]:
    """Yields the faults at the end of the messages."""
    messages = case.item.trajectory
    if calling:
        first = len(calling) - 1
        while first and all(map(is_agents, messages[calling[first - 1] + 1 : calling[first]])):
            first -= 1  # calls in a row, which are answered together
        names = [call.name for at in calling[first:] for call in called[at]]
        if all(_spellings(name).isdisjoint(_spellings(other)) for other in names):
            is_proven = _is_nowhere(case.item, name, {c.name for group in called for c in group})
            check = "broken-not-called" if is_proven else "broken-not-last"
            message = f"the last call is of {shorten(', '.join(names))}, not of {shorten(name)}"
            if is_proven:
                message = f"no message calls or names {shorten(name)}; {message}"
            yield case.finding(check, "broken_tool_name", message)
    last = calling[-1] if calling else len(messages) - 1
    ends = messages[last + 1 :] if calling else [m for m in messages[-1:] if not is_agents(m)]
    answers = [*(m for m in messages[last : last + 1] if holds_result(m)), *ends]
    text = " ".join(strings([{**message, "role": ""} for message in answers])).strip()
    if answers and not _FAILURE.search(text) and not _FLAG.search(str(answers)):
        message = f"nothing at the end of the messages speaks of a failure: {shorten(text)}"
        yield case.finding("broken-without-error", "trajectory_prefix", message)


def _is_nowhere(item: Item, name: str, called: set[str]) -> bool:
    """True if the messages can't be read as if they held a failed call of an offered tool.

    Calls may be wrapped, described in prose or be of a tool under its old name. So the messages
    have to call only offered tools and must not contain the name, and all text but results has to
    be plain English that speaks of no failure.
    """
    tool = item.tools.by_name.get(name) if item.tools else None
    if item.tools is None or tool is None or not called <= item.tools.by_name.keys():
        return False
    others = [m for m in item.trajectory if m.get("role") not in ("tool", "function")]
    texts = [f"{item.query}\n{item.system_prompt}", *strings([m.get("content") for m in others])]
    for text in texts:
        is_plain = text.isascii() and is_english(text)
        if text.strip() and (not is_plain or _FAILURE.search(text)):
            return False
    names = {spelling for each in (name, *tool.other_names) for spelling in _spellings(each)}
    shown = squashed(f"{texts[0]}\n{item.trajectory}")
    return not any(each in shown for each in names)


def _replacement(
    case: CheckedCase,
    replacement: Tool,
    broken_name: str,
    failed: Sequence[Call],
    calls: Sequence[Call],
) -> Iterator[CaseFinding]:
    item, field = case.item, "replacement_tool"
    name = replacement.name
    if not may_be_offered(item, name):
        message = f"{shorten(name)} is not among the tools"
        yield case.finding("replacement-not-offered", field, message)
    shared = set(name_words(name)) & set(name_words(broken_name)) - _COMMON
    if shared:
        message = f"{shorten(name)} and {shorten(broken_name)} share {', '.join(sorted(shared))}"
        yield case.finding("replacement-alike", field, message)
    tools: Mapping[str, Tool] = item.tools.checkable if item.tools else {}
    ours, theirs = tools.get(broken_name), tools.get(name, replacement)
    if ours is not None and _is_closed(ours) and _is_closed(theirs) and not _maps(ours, theirs):
        message = (
            f"required parameters of {shorten(broken_name)} and {shorten(name)} can't be paired "
            "by their types"
        )
        yield case.finding("replacement-parameters", field, message)
    if calls and all(call.name != name for call in calls):
        message = f"the reference calls {shorten(calls[0].name)}, not {shorten(name)}"
        yield case.finding("reference-not-replacement", "ground_truth_steps", message)
    mapping = item.construction.parameter_map if item.construction else {}
    pairs = [(old, new) for old in failed for new in calls if new.name == name]
    if mapping and pairs and not any(old.is_unread or new.is_unread for old, new in pairs):
        differing = min((_unmapped(old, new, mapping) for old, new in pairs), key=len)
        if differing:
            message = (
                f"the reference's {shorten(name)} differs from the failed call: {differing[0]}"
            )
            yield case.finding("map-broken", "construction.parameter_map", message)


def _unmapped(old: Call, new: Call, mapping: Mapping[str, str]) -> list[str]:
    """Arguments that a call does not take over through the map; it may have further ones."""
    args, texts = new.arguments or {}, list[str]()
    for key, value in (old.arguments or {}).items():
        own = mapping.get(key, key)
        if own not in args and key in mapping:
            texts.append(f"{shorten(own)} is missing")
        elif own in args and _loose(args[own]) != _loose(value):
            texts.append(f"{shorten(own)} is {shorten(str(args[own]))}, not {shorten(str(value))}")
    return texts


def _loose(value: object) -> object:
    """A value apart from its type: ``"4"`` and 4, ``["a"]`` and ``"A"`` are one."""
    if isinstance(value, str):
        inner, is_json = lenient(value)
        if not is_json or isinstance(inner, str):
            return " ".join(value.split()).casefold()
        value = inner
    if isinstance(value, bool | None):
        return str(value).casefold()
    if (listed := as_list(value)) is not None:
        parts = [_loose(part) for part in listed]
        return parts[0] if len(parts) == 1 else parts
    if (spec := as_object(value)) is not None:
        return {key: _loose(part) for key, part in spec.items()}
    return value


def _is_closed(tool: Tool) -> bool:
    """True if ``properties`` describes all parameters of a tool."""
    return tool.parameter_kind == "json_schema" and BRINGS_MORE.isdisjoint(tool.parameters)


def _maps(tool: Tool, other: Tool) -> bool:
    """True if each required parameter of either tool can be paired with one of the other."""
    pairs = ((tool, other), (other, tool))
    return all(_fit(_types(a, a.required), _types(b, properties(b))) for a, b in pairs)


def _types(tool: Tool, names: Iterable[str]) -> list[str]:
    """The types of parameters, numbers as one; empty for one that may have several."""
    kinds = (properties(tool).get(name, {}).get("type") for name in names)
    texts = (kind if isinstance(kind, str) else "" for kind in kinds)
    return ["number" if text == "integer" else text for text in texts]


def _fit(wanted: list[str], offered: list[str]) -> bool:
    """True if each wanted type can be paired with another offered one; empty fits any."""
    lacking = Counter(filter(None, wanted)) - Counter(offered)
    return len(wanted) <= len(offered) and lacking.total() <= offered.count("")


# No solution --------------------------------------------------------------------------------------


def unsolvable(case: CheckedCase) -> Iterator[CaseFinding]:
    """Removed parts are absent, and contradictory limits exclude each other."""
    item = case.item
    kind = item.condition.unsolvable_type
    if kind == "visual_missing":
        for file in item.files:
            if is_visual(file):
                yield case.finding("visual-present", "files", f"{shorten(file.path)} is shown")
        if not _VISUAL.search(item.query):
            yield case.finding(
                "visual-not-needed", "query", "the query speaks of nothing to be seen"
            )
    elif kind == "tool_removal":
        yield from _removed_tools(case)
    elif kind == "information_missing":
        yield from _removed_value(case)
    elif kind == "contradictory_constraints":
        yield from _bounds(case)
    yield from _requirement(case)


def _removed_tools(case: CheckedCase) -> Iterator[CaseFinding]:
    item = case.item
    if item.tools is None:
        return
    removed = item.construction.removed_tools if item.construction else ()
    offered = item.tools.by_name if item.tools.tools else item.tools.names
    for name in removed:
        if name in offered:
            message = f"{shorten(name)}, which was removed, is offered"
            yield case.finding("removed-tool-present", "tools", message)
        words = set(name_words(name)) - _COMMON
        for tool in item.tools.tools:
            if tool.name != name and words and words <= set(name_words(tool.name)):
                message = f"{shorten(tool.name)} is much like {shorten(name)}, which was removed"
                yield case.finding("removed-tool-like", "tools", message)
    names = item.reference.names if item.reference else frozenset[str]()
    called = names.difference(item.endings or ())
    if called and called <= item.tools.names and not removed:
        message = "every tool that the reference calls is offered"
        yield case.finding("nothing-removed", "tools", message)


def _requirement(case: CheckedCase) -> Iterator[CaseFinding]:
    """A requirement is in the query; it names a tool that is offline, and none that was removed."""
    of = case.item.construction
    if of is None:
        return
    for message in _faults_of(of, case.item):
        yield case.finding("requirement-stated", "construction.requirement", message)
    if of.removed_tools and not of.requirement:
        message = "the query does not demand the result of a tool: looking may be enough"
        yield case.finding("removal-not-demanded", "query", message)


def _faults_of(of: Construction, item: Item) -> Iterator[str]:
    if of.requirement and squashed(of.requirement) not in squashed(item.query):
        yield f"{shorten(of.requirement)} is not in the query"
    if (name := of.offline_tool) is not None:
        if name not in of.requirement:
            yield f"{shorten(name)}, which is offline, is not named"
        if item.tools is not None and name not in item.tools.names:
            yield f"{shorten(name)}, which is offline, is not offered"
    named = (name for name in of.removed_tools if mentions(of.requirement, name))
    yield from (f"{shorten(name)}, which was removed, is named" for name in named)
    if heading := HEADING.search(of.requirement):
        yield f"has the heading {heading.group()}"


def _removed_value(case: CheckedCase) -> Iterator[CaseFinding]:
    item = case.item
    value = item.construction.removed_value if item.construction else None
    if value is None or (value.isalpha() and len(value) < _LEAST_LETTERS):
        return  # short words are in any text
    texts = {
        "query": [item.query],
        "system_prompt": [item.system_prompt],
        "files": [file.path for file in item.files],
        "trajectory_prefix": list(strings(item.trajectory)),
        "tools": [item.tools.text] if item.tools else [],
    }
    for field, listed in texts.items():
        if any(places_of(value, text, any_case=True) for text in listed):
            yield case.finding(
                "value-present", field, f"{shorten(value)}, which was removed, is stated"
            )


def _bounds(case: CheckedCase) -> Iterator[CaseFinding]:
    item, field = case.item, "construction.bounds"
    bounds = item.construction.bounds if item.construction else ()
    shown = [item.query, item.system_prompt, *strings(item.trajectory)]
    asked = squashed(" ".join(shown))
    for bound in bounds:
        if squashed(bound.text) not in asked:
            message = f"{shorten(bound.text)} is in no text that is shown"
            yield case.finding("bounds-agree", field, message)
    least: dict[str, float] = {}
    most: dict[str, float] = {}
    for bound in bounds:
        subject = squashed(bound.subject)
        if bound.kind == "at least":
            least[subject] = max(bound.value, least.get(subject, bound.value))
        else:
            most[subject] = min(bound.value, most.get(subject, bound.value))
    if bounds and not any(low > most[of] for of, low in least.items() if of in most):
        limits = ", ".join(f"{bound.subject} {bound.kind} {bound.value:g}" for bound in bounds)
        message = f"by subject and value no two exclude each other: {shorten(limits)}"
        yield case.finding("bounds-agree", field, message)


CONDITION_CHECKS: tuple[CaseCheck, ...] = (distractors, broken, unsolvable)
