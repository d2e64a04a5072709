"""Faults in how tools are used: their names, their parameters, their types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, cast

from ...errors import shorten
from ...protocols.checks.hints import LOW_OVERLAP
from ...records import Call, Tool, Toolset, message_tools
from .bases import Base
from .dependencies import is_lookup, name_words, properties, schema_of, stems
from .drafts import Draft
from .edits import (
    Change,
    as_word,
    drawn,
    everywhere,
    in_text,
    place,
    with_argument,
    with_call_before,
    without_argument,
)
from .guesses import guessed_arguments


def _checkable(base: Base) -> Iterator[tuple[int, Call, Tool]]:
    tools = base.item.tools
    for at, call in enumerate(base.draft.calls):
        if tools is not None and call.name in tools.checkable and call.arguments is not None:
            yield at, call, tools.checkable[call.name]


def drop_parameter(base: Base, rng: Random) -> Change | None:
    """Leaves out a required parameter."""
    offered = [
        (at, name)
        for at, call, tool in _checkable(base)
        for name in tool.required
        if name in (call.arguments or {})
    ]
    if not offered:
        return None
    at, name = rng.choice(offered)
    what = f"{place(base.draft, at)} lacks its required {name}"
    return Change(reply=without_argument(base.draft, at, name), what=what)


_INVENTED: tuple[tuple[str, Any], ...] = (
    ("priority", "high"),
    ("verbose", True),
    ("timeout_seconds", 30),
    ("output_format", "json"),
    ("language", "en"),
)


def invent_parameter(base: Base, rng: Random) -> Change | None:
    """Adds a parameter that the tool does not have."""
    offered = [
        (at, name, value)
        for at, _, tool in _checkable(base)
        for name, value in _INVENTED
        if name not in properties(tool)
    ]
    if not offered:
        return None
    at, name, value = rng.choice(offered)
    what = f"{place(base.draft, at)} passes {name}, which the tool does not have"
    return Change(reply=with_argument(base.draft, at, name, value), what=what)


def wrong_tool(base: Base, rng: Random) -> Change | None:
    """Gives the arguments of a call to another tool that does something else.

    The other tool only tells something, so that nothing is done that must not be done, and is
    the one that is least like the right one of those that neither plan nor reference calls.
    """
    tools, draft = base.item.tools, base.draft
    others = _uncalled_lookups(base)
    if tools is None or not others or not draft.calls:
        return None
    at = rng.choice(range(len(draft.calls)))
    call = draft.calls[at]
    wanted = _words(tools, call.name)
    if not wanted or not call.arguments:
        return None
    likeness = {name: len(wanted & _words(tools, name)) for name in others}
    name = min(others, key=lambda other: likeness[other])
    if likeness[name] > LOW_OVERLAP * len(wanted):
        return None
    what = f"{place(draft, at)} is made of {name} instead, which can't do that"
    return Change(reply=draft.with_calls(at, replace(call, name=name)), what=what)


def _uncalled_lookups(base: Base) -> list[str]:
    item, tools = base.item, base.item.tools
    barred = {call.name for call in base.draft.calls} | set(item.condition.extraneous)
    barred |= set(item.reference.names) if item.reference else set()
    for message in item.trajectory:
        barred |= message_tools(message)
    names = tools.by_name if tools else ()
    return [name for name in names if name not in barred and is_lookup(name, tools)]


def _words(tools: Toolset, name: str) -> frozenset[str]:
    tool = tools.by_name.get(name)
    return stems(f"{' '.join(name_words(name))} {tool.description}") if tool else frozenset()


def use_distractor(base: Base, rng: Random) -> Change | None:
    """Adds a call of a distractor, with all its parameters."""
    tools, draft = base.item.tools, base.draft
    names = [n for n in base.item.condition.extraneous if tools and n in tools.by_name]
    if tools is None or not names or not draft.calls:
        return None
    name, at = rng.choice(names), rng.choice(range(len(draft.calls)))
    tool = tools.by_name[name]
    added = Call(name, guessed_arguments(tool), reason=_reason(tool) if _has_reasons(draft) else "")
    return Change(
        reply=with_call_before(draft, at, added),
        what=f"a call of the distractor {name} stands before {place(draft, at)}",
    )


def _has_reasons(draft: Draft) -> bool:
    return any(call.reason for call in draft.calls)


def _reason(tool: Tool) -> str:
    return tool.description or "Useful for the next step."


_OTHER_VERBS = {
    "search": "browse",
    "find": "locate",
    "get": "retrieve",
    "list": "enumerate",
    "read": "load",
    "look": "peek",
    "lookup": "resolve",
    "book": "reserve",
    "send": "dispatch",
    "create": "make",
    "add": "append",
    "open": "launch",
    "run": "execute",
    "write": "compose",
    "check": "verify",
    "fetch": "download",
    "post": "submit",
    "hold": "keep",
    "edit": "modify",
    "draft": "prepare",
}


def unknown_tool(base: Base, rng: Random) -> Change | None:
    """Renames the tool of one call to a likely name that does not exist."""
    draft = base.draft
    if base.item.tools is None or not draft.calls:
        return None
    at = rng.choice(range(len(draft.calls)))
    call = draft.calls[at]
    taken = _names_taken(base)
    name = next((n for n in _likely_names(call.name) if n not in taken), None)
    if name is None or not call.name:
        return None
    renamed = draft
    if sum(c.name == call.name for c in draft.calls) == 1:
        renamed = everywhere(draft, in_text(as_word(call.name), name))
    what = f"{place(draft, at)} is made of {shorten(name)}, which does not exist"
    return Change(
        reply=renamed.with_calls(at, replace(renamed.calls[at], name=name)),
        what=what,
    )


def _names_taken(base: Base) -> set[str]:
    item = base.item
    taken = set(item.tools.names) if item.tools else set[str]()
    taken |= {*item.condition.extraneous, *(call.name for call in base.draft.calls)}
    taken |= set(item.reference.names) if item.reference else set()
    for message in item.trajectory:
        taken |= message_tools(message)
    return taken


def _likely_names(name: str) -> Iterator[str]:
    """Names as another toolbox might have them, in the style of the given one."""
    words = name_words(name)
    other = _OTHER_VERBS.get(words[0]) if words else None
    if other and len(words) > 1:
        rest = name[len(words[0]) :]
        yield (other.capitalize() if name[:1].isupper() else other) + rest
    if not name:
        return
    if " " in name:
        yield f"Smart {name}"
    elif "_" in name or not name.isascii() or name.islower():
        yield f"smart_{name}"
    else:
        yield f"{'Smart' if name[0].isupper() else 'smart'}{name[0].upper()}{name[1:]}"
    yield f"{name}_extended"


def wrong_type(base: Base, rng: Random) -> Change | None:
    """Passes a value of a type that the schema does not allow; text only where all is text."""
    typed: list[Change] = []
    texts: list[Change] = []
    for at, call, tool in _checkable(base):
        for name, value in (call.arguments or {}).items():
            kind = schema_of(tool, name).get("type")
            if (wrong := _of_wrong_type(value, kind)) is not None:
                what = f"{name} of {place(base.draft, at)} is {wrong!r}, not of type {kind}"
                change = Change(reply=with_argument(base.draft, at, name, wrong), what=what)
                (texts if kind == "string" else typed).append(change)
    return drawn(rng, typed or texts)


def _of_wrong_type(value: Any, kind: Any) -> Any:
    if kind in ("integer", "number") and not isinstance(value, str | bool):
        return f"about {value}"
    if kind == "boolean" and isinstance(value, bool):
        return "yes" if value else "no"
    if kind == "array" and isinstance(value, list):
        return ", ".join(str(part) for part in cast("list[Any]", value)) or "all"
    if kind == "string" and isinstance(value, str):
        return {"value": value}
    return None


def wrong_enum(base: Base, rng: Random) -> Change | None:
    """Passes a word that is none of those which the schema allows."""
    made: list[Change] = []
    for at, call, tool in _checkable(base):
        for name, value in (call.arguments or {}).items():
            allowed = schema_of(tool, name).get("enum")
            if isinstance(allowed, list) and isinstance(value, str) and value in allowed:
                wrong = next(w for w in _outside(value) if w not in allowed)
                what = f"{name} of {place(base.draft, at)} is {wrong!r}, not among the allowed"
                made.append(Change(reply=with_argument(base.draft, at, name, wrong), what=what))
    return drawn(rng, made)


def _outside(value: str) -> Iterator[str]:
    yield "standard" if value.islower() else "Standard" if not value.isupper() else "STD"
    yield f"{value}-other"
    number = 2
    while True:
        yield f"{value}-{number}"
        number += 1
