"""Broken tools: a call that failed, and a tool under another name that does the same."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from random import Random
from typing import Any

from ...records import Tool
from ...records.trajectories import Observation
from ...trajectories.steps import call_ids, messages_of
from ..cases import Context, Reject, Row, case_row
from ..likeness import name_words, properties
from ..seeds import Seed, SeedCall, draw
from .plans import NO_CALLS
from .steps import STAGES, query_of_steps

NAME = "tool_broken"
FAILURES = (
    "Error: the service did not answer within 30 seconds.",
    "Error 503: this endpoint is unavailable.",
    "Error 500: internal error, the request was not carried out.",
    "Error: connection refused.",
    "Error: the function has been disabled by its maintainers.",
    "Error 502: bad gateway.",
)
"""What a broken tool answers."""
NO_OTHER_NAME = "no other word for the tool's name"
_SUFFIXES = ("value", "input", "given")


@cache
def _groups(kind: str) -> Mapping[str, tuple[str, ...]]:
    """Other words for each word, of ``actions`` or ``things``."""
    file = resources.files(__package__ or "").joinpath("words.toml")
    others: dict[str, tuple[str, ...]] = {}
    for group in tomllib.loads(file.read_text(encoding="utf-8"))[kind]:
        words = group.split()
        for word in words:
            others[word] = (*others.get(word, ()), *(other for other in words if other != word))
    return others


def synonyms(word: str, *, is_first: bool) -> tuple[str, ...]:
    """Other words for a word of a name, whose first word says what is done; empty without."""
    kinds = ("actions", "things") if is_first else ("things", "actions")
    return next(filter(None, (_groups(kind).get(word, ()) for kind in kinds)), ())


def tool_broken(seed: Seed, context: Context) -> Iterator[Row | Reject]:
    """The next step after a call that failed; one case."""
    if not seed.calls:
        yield Reject(NAME, NO_CALLS)
        return
    rng = draw(context.seed, seed.seed_id, NAME)
    places = [
        at
        for at, call in enumerate(seed.calls)
        if _can_break(seed, at) and (at == 0 or seed.has_results) and call.name
    ]
    rng.shuffle(places)
    why = Reject(NAME, "no call that can fail", "only calls of tools with a JSON Schema can")
    for at in places:
        call = seed.calls[at]
        tool = seed.toolset.checkable[call.name]
        made = substitute_of(tool, seed, rng)
        if not isinstance(made, Reject):
            yield _row(seed, context, at, made, rng.choice(FAILURES))
            return
        why = made
    yield why


def _can_break(seed: Seed, at: int) -> bool:
    """Whether a call can be the one that fails: the first of its tool, which code can check."""
    call = seed.calls[at]
    is_first = all(earlier.name != call.name for earlier in seed.calls[:at])
    return is_first and call.name in seed.toolset.checkable


def substitute_of(tool: Tool, seed: Seed, rng: Random) -> tuple[Tool, dict[str, str]] | Reject:
    """A tool that does the same under another name, and the map of its parameters.

    Every word of the name is replaced, so that the two share none. Parameters are renamed one for
    one and keep their schemas.
    """
    words = name_words(tool.name)
    others: list[str] = []
    for at, word in enumerate(words):
        free = [o for o in synonyms(word, is_first=at == 0) if o not in words and o not in others]
        if not free:
            return Reject(NAME, NO_OTHER_NAME, word)
        others.append(rng.choice(free))
    name = _in_style_of(tool.name, others)
    if name in seed.toolset.names:
        return Reject(NAME, NO_OTHER_NAME, tool.name)
    known = properties(tool)
    parameter_map = {parameter: _other_parameter(parameter, known, rng) for parameter in known}
    if len(set(parameter_map.values())) < len(known):
        return Reject(NAME, "no other names for the tool's parameters", tool.name)
    schema = {
        **tool.parameters,
        "properties": {parameter_map[key]: spec for key, spec in known.items()},
        "required": [parameter_map.get(key, key) for key in tool.required],
    }
    replacement = Tool(
        name=name,
        description=tool.description,
        parameters=schema,
        parameter_kind="json_schema",
    )
    return replacement, parameter_map


def _other_parameter(name: str, known: Mapping[str, Any], rng: Random) -> str:
    """Another name of a parameter: with other words where there are any, else with one more."""
    words = name_words(name)
    changed = [rng.choice(synonyms(word, is_first=False) or (word,)) for word in words]
    if changed == words or _in_style_of(name, changed) in known:
        changed = [*words, rng.choice(_SUFFIXES)]
    return _in_style_of(name, changed)


def _in_style_of(name: str, words: list[str]) -> str:
    """Words put together as those of a name are."""
    titled = [word.title() for word in words]
    mark = next((mark for mark in "_-." if mark in name), "")
    if not mark and re.search(r"[a-z0-9][A-Z]", name):
        return "".join(titled if name[0].isupper() else [words[0], *titled[1:]])
    joined = (mark or "_").join(titled if name[0].isupper() else words)
    return joined.upper() if name.isupper() else joined


def _row(
    seed: Seed,
    context: Context,
    at: int,
    substitute: tuple[Tool, dict[str, str]],
    failure: str,
) -> Row:
    call, (replacement, parameter_map) = seed.calls[at], substitute
    arguments = {parameter_map.get(name, name): v for name, v in call.arguments.items()}
    made = {"type": "function", "function": {"name": replacement.name, "arguments": arguments}}
    return case_row(
        seed,
        context,
        split="step_wise_tool_broken",
        transform=NAME,
        tools=[*seed.toolset.tools, replacement],
        query=query_of_steps(seed),
        horizon=1,
        stage=STAGES[3 * at // len(seed.calls)],
        prefix=_until_failure(seed, call, failure),
        steps=[{"role": "assistant", "thought": "", "tool_calls": [made]}],
        broken_tool=call.name,
        replacement=replacement,
        parameter_map=parameter_map,
    )


def _until_failure(seed: Seed, call: SeedCall, failure: str) -> list[dict[str, Any]]:
    """The messages up to a call, with an error in place of its result."""
    if not seed.has_results:
        function = {"name": call.name, "arguments": dict(call.arguments)}
        made = {"id": "call_1", "type": "function", "function": function}
        return [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "call_1", "name": call.name, "content": failure},
        ]
    steps = seed.run.steps
    hidden = call_ids(steps, "user") - call_ids(steps, "agent")
    asked = next((i for i, s in enumerate(steps) if s.source == "user" and s.text), None)
    before = [
        m for i, s in enumerate(steps[: call.step]) if i != asked for m in messages_of(s, hidden)
    ]
    step = steps[call.step]
    made = next(c for c in step.calls if c.name == call.name)
    answers = [answer for answer in step.observations if answer.call_id == made.call_id]
    failed = replace((answers or [Observation("")])[0], content=failure, is_error=None)
    return [*before, *messages_of(replace(step, calls=(made,), observations=(failed,)), hidden)]
