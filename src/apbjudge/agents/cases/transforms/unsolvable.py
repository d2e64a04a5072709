"""Cases that can't be solved, with their solvable twins (arXiv:2606.04874, section 3.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import orjson

from ....protocols.tool_words import name_words, properties
from ....records import Tool, UnsolvableType
from ....records.construction import ContradictionKind
from ..cases import Context, Reject, Row, RowMaker, row_id, transform
from ..likeness import (
    definition_of,
    does_learn,
    does_work,
    is_like,
    may_serve,
    object_words,
    stems,
)
from ..limits import exclusive_bounds, is_amount
from ..literals import is_worded, places_of
from ..queries import is_english, with_sentences, without_sentence
from ..references import purpose_of
from ..requirements import offline_requirement, removal_requirement
from ..seeds import Seed, SeedCall, draw, is_visual, leaves

_UNSOLVABLE = "holistic_unsolvable"
NO_CALL = "no call that the task turns on"


def _claim(seed: Seed, kind: UnsolvableType, plan: str, **claims: Any) -> dict[str, Any]:
    """Arguments of ``case_row`` that state why a case is unsolvable, and its solvable twin."""
    claims["twin"] = row_id(seed, "holistic")
    return {"unsolvable_type": kind, "plan": plan, "tool_chain": [], "claims": claims}


# Picture ------------------------------------------------------------------------------------------

_PICTURE_WORDS = re.compile(
    r"\b(?:chart|clip|diagram|figure|film|footage|frame|gif|image|photo|photograph|picture|scan|"
    r"screen|screenshot|shot|video)s?\b",
    re.IGNORECASE,
)


@transform(_UNSOLVABLE)
def visual_missing(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The task without its files, if it depends on a picture or a video."""
    pictures = [file for file in seed.files if is_visual(file)]
    query = f"{seed.trajectory.query}\n{seed.trajectory.system_prompt}"
    paths = {part for file in pictures for part in (file.path, PurePath(file.path).name)}
    passed = {leaf for call in seed.calls for leaf in leaves(call.arguments)}
    if not pictures:
        return Reject("no picture or video")
    if any(path.casefold() in query.casefold() for path in paths):
        return Reject("the query names the file")
    if re.search(r"https?://", seed.trajectory.query):
        return Reject("the query has an address that may lead to the picture")
    if paths.isdisjoint(passed) and not _PICTURE_WORDS.search(seed.trajectory.query):
        return Reject("neither query nor solution speaks of the picture")
    kind = "video" if all("video" in file.type.casefold() for file in pictures) else "picture"
    plan = f"The task can't be done: the {kind} that it is about is not there, and has to be sent."
    return row(**_claim(seed, "visual_missing", plan), files=False)


# Tools --------------------------------------------------------------------------------------------


@transform(_UNSOLVABLE)
def tool_removal(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The task without a capability that its solution needs.

    It removes the tool of the last call, or one whose result a later call needs, with every tool
    like it. A capability of two tools or more is preferred. An English query then demands the
    result of a tool, so that nobody passes by looking.
    """
    removal = removal_of(seed)
    if isinstance(removal, str):
        return Reject(removal)
    tool, gone, left = removal
    plan = f"The task can't be done: no tool is there for this step: {purpose_of(tool.name, tool)}."
    removed = tuple(each.name for each in gone)
    query, rng = seed.trajectory.query, draw(context.seed, seed.seed_id, "tool_removal")
    requirement = seed.requirements.get("tool_removal", "")
    requirement = requirement or removal_requirement(query, removed, tool.name, rng)
    claims = {"requirement": requirement, "compliance": bool(requirement)}
    claim = _claim(seed, "tool_removal", plan, removed_tools=removed, **claims)
    asked = with_sentences(query, [requirement]) if requirement else query
    return row(**claim, tools=left, query=asked)


class Removal(NamedTuple):
    """A capability that a task can lose.

    Attributes:
        tool: The tool that its solution calls.
        gone: The tools like it, itself among them.
        left: The others.
    """

    tool: Tool
    gone: Sequence[Tool]
    left: Sequence[Tool]


def removal_of(seed: Seed) -> Removal | str:
    """The capability that ``tool_removal`` takes away, or the reason why there is none."""
    tools = seed.toolset.tools
    shown = f"{seed.trajectory.query}\n{seed.trajectory.system_prompt}"
    reason, chosen = NO_CALL, None
    for name in _deciding(seed):
        tool = seed.tool(name)
        if tool is None:
            reason = "the solution calls a tool that is not offered"
            continue
        gone = [each for each in tools if is_like(each, tool)]
        left = [each for each in tools if each not in gone]
        if not left:
            reason = "no tool would be left"
        elif not object_words(name):
            reason = "the name of the tool does not say what it is for"
        elif any(each.name in shown for each in gone):
            reason = "the query or the system prompt names the tool"
        elif any(may_serve(each, tool) for each in left):
            reason = "another tool may serve"
        elif chosen is None or len(gone) > 1:
            chosen = Removal(tool, gone, left)
            if len(gone) > 1:
                break
    return reason if chosen is None else chosen


def _deciding(seed: Seed) -> list[str]:
    """Names of the tools that the task depends on: the last call's tool, and tools needed later."""
    needed = {at for call in seed.calls for at in call.needs.values()}
    working = [at for at, call in enumerate(seed.calls) if does_work(call.name, seed.ends)]
    names = [seed.calls[at].name for at in working if at in needed or at == working[-1]]
    return [*dict.fromkeys(reversed(names))]


# Limits -------------------------------------------------------------------------------------------


@transform(_UNSOLVABLE)
def contradictory_constraints(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The task with two limits on one of its amounts that exclude each other."""
    query = seed.trajectory.query
    rng = draw(context.seed, seed.seed_id, "contradictory_constraints")
    amounts = [
        (parameter, value)
        for call in seed.calls
        for parameter, value in call.arguments.items()
        if parameter not in call.needs and is_amount(parameter, value)
    ]
    if amounts and not is_english(query):
        return Reject("the query is not English")
    reason = "no amount among the arguments"
    rng.shuffle(amounts)
    for parameter, value in amounts:
        others = [name for name, other in amounts if (name, other) != (parameter, value)]
        bounds = exclusive_bounds(query, parameter, value, others=others, rng=rng)
        if bounds is None:
            reason = "the query does not state the amount by its name"
            continue
        first, second = bounds
        plan = (
            f"The task can't be done: the {first.subject} can't be {first.kind} {first.value:g} "
            f"and {second.kind} {second.value:g} at once."
        )
        asked = with_sentences(query, [bound.text for bound in bounds])
        claims: dict[str, Any] = {"bounds": bounds, "contradiction_kind": "bounds"}
        return row(**_claim(seed, "contradictory_constraints", plan, **claims), query=asked)
    return Reject(reason)


# Outages ------------------------------------------------------------------------------------------


@transform(_UNSOLVABLE)
def missing_dimension(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The task that depends on something that only one tool can see, which is out of service."""
    return _offline(seed, context, row, "missing_dimension")


@transform(_UNSOLVABLE)
def compliance_lock(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The task for which only one tool's results count, which is out of service."""
    return _offline(seed, context, row, "compliance_lock")


@transform(_UNSOLVABLE)
def dynamic_state(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The task that may be done only after a live check by a tool that is out of service."""
    return _offline(seed, context, row, "dynamic_state")


def _offline(seed: Seed, context: Context, row: RowMaker, kind: ContradictionKind) -> Row | Reject:
    """The task with a requirement that a tool, still offered, can't meet for its outage."""
    query = seed.trajectory.query
    if not is_english(query):
        return Reject("the query is not English")
    tools = offline_tools(seed)
    if isinstance(tools, str):
        return Reject(tools)
    name, rng = tools[kind], draw(context.seed, seed.seed_id, kind)
    requirement = seed.requirements.get(kind) or offline_requirement(kind, name, rng)
    plan = f"The task can't be done as asked: it demands a result of {name}, which can't be had."
    claims = {"contradiction_kind": kind, "requirement": requirement, "offline_tool": name}
    claim = _claim(seed, "contradictory_constraints", plan, **claims)
    return row(**claim, query=with_sentences(query, [requirement]))


def offline_tools(seed: Seed) -> dict[ContradictionKind, str] | str:
    """The tool that a requirement of each kind demands, or the reason why there is none.

    Of the tools that the task turns on one that learns something is preferred, but where results
    have to be signed.
    """
    offered = [name for name in _deciding(seed) if seed.tool(name) is not None]
    if not offered:
        return "the solution calls a tool that is not offered" if seed.used else NO_CALL
    learning = next((name for name in offered if does_learn(name)), offered[0])
    return {
        "missing_dimension": learning,
        "compliance_lock": offered[0],
        "dynamic_state": learning,
    }


# Information --------------------------------------------------------------------------------------

_GUESSED = frozenset(
    "cm current daily en english eur kg km latest metric none today us usa usd".split()
)
_KINDS = (
    frozenset(
        "address area city country county destination district location nation origin place region "
        "state town".split()
    ),
    frozenset("date day end month period start time timeframe year".split()),
)
"""Words in names of parameters that take values of one kind."""

_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()


class _Literal(NamedTuple):
    """A value of a call that the query states, and its place there."""

    call: SeedCall
    parameter: str
    text: str
    start: int
    end: int


@transform(_UNSOLVABLE)
def information_missing(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The task without a value that nothing but its query states."""
    if not is_english(seed.trajectory.query):
        return Reject("the query is not English")
    literals = _literals(seed)
    draw(context.seed, seed.seed_id, "information_missing").shuffle(literals)
    reason = "no value of a required parameter is in the query word for word"
    for literal in literals:
        asked, reason = _without(seed, literal)
        if not reason:
            words = " ".join(name_words(literal.parameter))
            # The tool's description is shown to the tested model, so that it is not repeated here.
            gap = f"the query gives no {words}, which {literal.call.name} needs"
            plan = f"The task can't be done as asked: {gap}."
            claim = _claim(seed, "information_missing", plan, removed_value=literal.text)
            return row(**claim, query=asked)
    return Reject(reason)


@transform(_UNSOLVABLE)
def private_reference(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The task with a reference to private knowledge in a value's place, as a model wrote it."""
    if seed.private is None:
        return Reject("no model wrote one; --model names it")
    query, value = seed.private
    plan = "The task can't be done as asked: it rests on something that only the user knows."
    return row(**_claim(seed, "information_missing", plan, removed_value=value), query=query)


def removable_values(seed: Seed) -> tuple[str, ...]:
    """Values in the query that can't be known, looked up or guessed without it."""
    values = (each.text for each in _literals(seed) if not any(_uncertainties(seed, each)))
    return tuple(dict.fromkeys(values))


def _literals(seed: Seed) -> list[_Literal]:
    """The values of required parameters that the query states word for word."""
    return [
        _Literal(call, name, str(value), *places[0])
        for call in seed.calls
        if (tool := seed.toolset.checkable.get(call.name))
        for name, value in call.arguments.items()
        if name in tool.required
        and name not in call.needs
        and isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and (places := places_of(str(value), seed.trajectory.query))
    ]


def _without(seed: Seed, literal: _Literal) -> tuple[str, str]:
    """The query without a value, and what is uncertain about it; empty if nothing is."""
    query, text = seed.trajectory.query, literal.text
    if uncertainty := next(_uncertainties(seed, literal), ""):
        return query, uncertainty
    left = without_sentence(query, literal.start, literal.end)
    if left is None or is_worded(text, left):
        return query, "the value has no sentence of its own; --model rewrites such queries"
    others = {str(leaf) for call in seed.calls for leaf in call.own_values}
    lost = any(is_worded(each, query) and not is_worded(each, left) for each in others - {text})
    return left, "another value would be lost" if lost else ""


def _uncertainties(seed: Seed, literal: _Literal) -> Iterator[str]:
    """Yields reasons why the task may be solved without a value."""
    call, parameter, text, start, _ = literal
    schema = properties(seed.toolset.checkable[call.name])[parameter]
    if not _is_distinctive(text, seed.trajectory.query, start):
        yield "the value may be guessed"
    if not {"default", "enum", "const"}.isdisjoint(schema):
        yield "the schema supplies the value"
    if any(is_worded(text, result) for result in _results_without(seed, text)):
        yield "a result may state the value"
    if _is_elsewhere(seed, text, start):
        yield "the value is stated elsewhere"
    if _may_look_up(seed, call, parameter):
        yield "a tool may look the value up"
    if _has_rival(seed, parameter, text):
        yield "another value may be taken in its place"


def _is_distinctive(text: str, query: str, start: int) -> bool:
    """True if a value is a name, a number or in quotation marks, and can't be guessed.

    A common word may follow from the rest of the query, and the year asked about may be this one.
    """
    if text.casefold() in _GUESSED or re.fullmatch(r"(?:19|20)\d\d", text):
        return False
    is_first = re.search(r"(?:^|[.?!]\s+)[\"'“‘]?$", query[:start]) is not None
    is_name = any(word[0].isupper() for word in text.split()) and not (is_first and " " not in text)
    has_digit = any(character.isdigit() for character in text)
    return is_name or has_digit or query[max(start - 1, 0) : start] in {*"'\"“‘`"}


def _results_without(seed: Seed, text: str) -> Iterator[str]:
    """Results of the calls that can be made by someone who does not know a value."""
    blocked: set[int] = set()
    for at, call in enumerate(seed.calls):
        passed = map(str, leaves(call.arguments))
        if text in passed or not blocked.isdisjoint(call.needs.values()):
            blocked.add(at)
        elif call.result:
            yield call.result


def _is_elsewhere(seed: Seed, text: str, start: int) -> bool:
    """True if the value, or a name or number in it, is shown a second time."""
    trajectory = seed.trajectory
    rest = f"{trajectory.query[:start]} | {trajectory.query[start + len(text) :]}"
    shown = [rest, trajectory.system_prompt, *(file.path for file in seed.files)]
    shown += [orjson.dumps(definition_of(tool)).decode() for tool in seed.toolset.tools]
    if any(is_worded(text, part) for part in shown):
        return True
    parts = [word for word in re.findall(r"[^\W_]{2,}", text) if not word.islower()]
    parts = [word for word in parts if stems(word) or not word.isalpha()]
    if text.isdecimal() and int(text) < len(_NUMBERS):
        parts.append(_NUMBERS[int(text)])
    spoken = {
        word.casefold() for word in re.findall(r"[^\W_]+", f"{rest}\n{trajectory.system_prompt}")
    }
    return not spoken.isdisjoint(part.casefold() for part in parts)


def _may_look_up(seed: Seed, call: SeedCall, parameter: str) -> bool:
    """True if a tool that does not take the value itself mentions its meaning."""
    generic = stems("code name number text title type value")
    wanted = stems(" ".join(name_words(parameter))) - generic or object_words(call.name)
    return any(
        parameter not in properties(tool)
        and wanted <= stems(f"{' '.join(name_words(tool.name))} {tool.description}")
        for tool in seed.toolset.tools
    )


def _has_rival(seed: Seed, parameter: str, text: str) -> bool:
    """True if the query states another value of the same kind, by the parameters' names."""
    words = set(name_words(parameter))
    kind = next((kind for kind in _KINDS if words & kind), frozenset[str]())
    return any(
        str(value) != text
        and is_worded(str(value), seed.trajectory.query)
        and (name == parameter or not kind.isdisjoint(name_words(name)))
        for call in seed.calls
        for name, value in call.arguments.items()
        if name not in call.needs and isinstance(value, str | int | float)
    )
