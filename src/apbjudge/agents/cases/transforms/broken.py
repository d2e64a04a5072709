"""Broken tools: a call that failed, and a tool under another name that does the same."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from random import Random
from typing import Any

from ....protocols.tool_words import name_words, properties
from ....records import Tool
from ....records.trajectories import ToolResult
from ....trajectories.steps import messages_of
from ..cases import Context, Reject, Row, RowMaker, transform
from ..likeness import definition_of, does_work, in_style_of, stems, synonyms
from ..seeds import Seed, SeedCall, draw
from ..sources.solutions import agent_calls
from .steps import STAGES, messages_before, predicted, query_of_steps

FAILURES = (
    "Error: the service did not answer within 30 seconds.",
    "Error 503: this endpoint is unavailable.",
    "Error 500: internal error, the request was not carried out.",
    "Error: connection refused.",
    "Error: the function has been disabled by its maintainers.",
    "Error 502: bad gateway.",
)
"""Answers of broken tools."""
NO_OTHER_NAME = "no other word for the tool's name"
_SUFFIXES = ("value", "input", "given")
_TAILS = ("details", "info", "report", "record")
"""Last words for the name of a look-up whose own last word has no synonym."""
_WORKS_ON = {"get": "by", "calculate": "from", "predict": "from", "convert": ""}
"""Verbs after which a parameter can stand for the object, and what links the two."""
_LINKS = frozenset("and by for in of on to with".split())
"""Words that connect others; two names may share them."""


@cache
def _groups() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Other words for each word, by kind: ``actions`` or ``things``."""
    file = resources.files(__package__ or "").joinpath("words.toml")
    listed = tomllib.loads(file.read_text(encoding="utf-8"))
    by_kind: dict[str, dict[str, list[str]]] = {"actions": {}, "things": {}}
    for kind, others in by_kind.items():
        for group in listed[kind]:
            head, is_one_way, rest = group.partition(":")
            words = rest.split() if is_one_way else head.split()
            for word in [head] if is_one_way else words:
                known = others.setdefault(word, [])
                known += [other for other in words if other not in (word, *known)]
    things, countless = by_kind["things"], set(listed["uncountable"])
    for word in [word for word in things if word not in countless]:
        if others := [_plural(other) for other in things[word] if other not in countless]:
            things.setdefault(_plural(word), others)
    return {kind: {word: tuple(o) for word, o in of.items()} for kind, of in by_kind.items()}


def _plural(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return word if word.endswith("ics") else f"{word}es" if _HISSES.search(word) else f"{word}s"


_HISSES = re.compile(r"(?:s|x|z|ch|sh)$")


def other_words(word: str, *, is_first: bool) -> tuple[str, ...]:
    """Synonyms of a word of a name, whose first word is an action; empty without."""
    groups = _groups()
    return (groups["actions"].get(word, ()) if is_first else ()) or groups["things"].get(word, ())


@transform("step_wise_tool_broken")
def tool_broken(seed: Seed, context: Context, row: RowMaker) -> Row | Reject:
    """The next step after a call that failed; one case."""
    rng = draw(context.seed, seed.seed_id, "tool_broken")
    places = [
        at
        for at, call in enumerate(seed.calls)
        if _can_break(seed, at) and (at == 0 or seed.has_results) and call.name
    ]
    rng.shuffle(places)
    condition = "it needs a JSON Schema, does work and is not named in the task"
    why = Reject("no call that can fail", condition)
    for at in places:
        call = seed.calls[at]
        tool = seed.toolset.checkable[call.name]
        substitute = substitute_of(tool, seed, rng)
        if not isinstance(substitute, Reject):
            return row(**_fields(seed, at, *substitute, rng.choice(FAILURES)))
        why = substitute
    return why


def _can_break(seed: Seed, at: int) -> bool:
    """True if a call can fail: the first of a tool that does work and that code can check.

    A tool that the task names can't fail, since the task could not be done as it is stated.
    """
    name = seed.calls[at].name
    is_first = all(earlier.name != name for earlier in seed.calls[:at])
    is_named = len(name_words(name)) > 1 and name.casefold() in seed.trajectory.query.casefold()
    return (
        is_first and name in seed.toolset.checkable and does_work(name, seed.ends) and not is_named
    )


def substitute_of(tool: Tool, seed: Seed, rng: Random) -> tuple[Tool, dict[str, str]] | Reject:
    """A tool that does the same under another name, and the map of its parameters.

    The two names share no word of meaning, and neither is part of the other. Parameters are renamed
    one for one and keep their schemas.
    """
    known = properties(tool)
    parameter_map = _other_parameters(known, rng)
    if not parameter_map.keys().isdisjoint(parameter_map.values()):
        return Reject("no other names for the tool's parameters", tool.name)
    renamed = (other for old, other in parameter_map.items() if old in tool.required)
    telling = [other for other in renamed if name_words(other)[-1] not in _SUFFIXES]
    others = _other_name(name_words(tool.name), telling, rng)
    is_taken = any(set(others) == set(name_words(each)) for each in seed.toolset.names)
    if not others or is_taken:
        return Reject(NO_OTHER_NAME, tool.name)
    name = in_style_of(tool.name, others)
    schema = {
        **tool.parameters,
        "properties": {parameter_map[key]: spec for key, spec in known.items()},
        "required": [parameter_map.get(key, key) for key in tool.required],
    }
    replacement = Tool(
        name=name,
        description=re.sub(rf"\b{re.escape(tool.name)}\b", name, tool.description),
        parameters=schema,
        parameter_kind="json_schema",
    )
    return replacement, parameter_map


def _other_name(words: Sequence[str], parameters: Iterable[str], rng: Random) -> list[str]:
    """The words of a name that means nearly the same; none if no such name reads well.

    Words without a synonym are left out as long as most of the name remains; for the last word of
    a look-up there are substitutes. If too little remains, a parameter says what the tool works
    on.
    """
    first, *rest = words
    taken = [word for word in words if word not in _LINKS]
    verb = _drawn(first, taken, rng, is_first=True)
    if not verb or not rest:
        return [verb] if verb else []
    like = synonyms(first)
    things, has_last = _other_things(rest, taken, rng)
    if things and not has_last and "get" in like:
        tails = [tail for tail in _TAILS if not _is_akin(tail, taken)]
        return [verb, *things, rng.choice(tails)]
    if things and has_last:
        return [verb, *things]
    how = next((how for known, how in _WORKS_ON.items() if known in like), None)
    for parameter in parameters if how is not None else ():
        if not any(_is_akin(word, taken) for word in name_words(parameter)):
            return [*filter(None, (verb, how)), *name_words(parameter)]
    return []


def _other_things(words: Sequence[str], taken: list[str], rng: Random) -> tuple[list[str], bool]:
    """Synonyms of the things in a name, and whether the last word has one.

    None if half of the words or more have no synonym.
    """
    things: list[str] = []
    link, n_lost, has_last = "", 0, False
    for at, word in enumerate(words):
        if word in _LINKS:
            link = word if things or at == 0 else ""
            continue
        other = _drawn(word, taken, rng)
        has_last = bool(other)
        n_lost += not other
        things += filter(None, (link, other)) if other else ()
        link = ""
    n_replaced = sum(word not in _LINKS for word in things)
    return (things, has_last) if n_replaced > n_lost else ([], False)


def _drawn(word: str, taken: list[str], rng: Random, *, is_first: bool = False) -> str:
    """Draws a synonym that is akin to no word taken, and adds it to these; empty without."""
    free = [o for o in other_words(word, is_first=is_first) if not _is_akin(o, taken)]
    if not free:
        return ""
    taken.append(rng.choice(free))
    return taken[-1]


def _is_akin(word: str, others: Sequence[str]) -> bool:
    """True if a word equals another one, is a part of it or has the same stem."""
    return any(
        word == other
        or (min(len(word), len(other)) > 2 and (word in other or other in word))
        or bool(stems(word) & stems(other))
        for other in others
    )


def _other_parameters(known: Iterable[str], rng: Random) -> dict[str, str]:
    """Another name for each parameter, with other words if there are any, else with one more."""
    renamed: dict[str, str] = {}
    for name in known:
        words, taken = name_words(name), {*known, *renamed.values()}
        changed = [rng.choice(other_words(word, is_first=False) or (word,)) for word in words]
        suffixes = rng.sample(_SUFFIXES, len(_SUFFIXES))
        names = (in_style_of(name, each) for each in (changed, *([*words, s] for s in suffixes)))
        renamed[name] = next((each for each in names if each not in taken), name)
    return renamed


def _fields(
    seed: Seed, at: int, replacement: Tool, parameter_map: dict[str, str], failure: str
) -> dict[str, Any]:
    """Arguments of ``case_row`` for the failure of a call."""
    call = seed.calls[at]
    arguments = {parameter_map.get(name, name): v for name, v in call.arguments.items()}
    return {
        "tools": [*seed.toolset.tools, replacement],
        "query": query_of_steps(seed),
        "prediction_horizon": 1,
        "stage": STAGES[3 * at // len(seed.calls)],
        "trajectory_prefix": _until_failure(seed, call, failure),
        "ground_truth_steps": [predicted(replacement.name, arguments)],
        "reference_remaining_steps": [],
        "broken_tool_name": call.name,
        "replacement_tool": definition_of(replacement),
        "claims": {"parameter_map": parameter_map},
    }


def _until_failure(seed: Seed, call: SeedCall, failure: str) -> list[dict[str, Any]]:
    """The messages up to a call, with an error in place of its result."""
    if not seed.has_results:
        function = {"name": call.name, "arguments": dict(call.arguments)}
        tool_call = {"id": "call_1", "type": "function", "function": function}
        return [
            {"role": "assistant", "content": None, "tool_calls": [tool_call]},
            {"role": "tool", "tool_call_id": "call_1", "name": call.name, "content": failure},
        ]
    step = seed.trajectory.steps[call.step]
    worked = zip(step.calls, agent_calls([step]), strict=True)
    last = next(c for c, attempt in worked if c.name == call.name and not attempt.is_failed)
    answers = [answer for answer in step.observations if answer.call_id == last.call_id]
    failed = replace((answers or [ToolResult("")])[0], content=failure, is_error=None)
    step = replace(step, calls=(last,), observations=(failed,))
    return [*messages_before(seed, call.step), *messages_of(step, frozenset())]
