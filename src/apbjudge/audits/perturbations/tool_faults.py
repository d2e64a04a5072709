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
from .kinds import Change
from .parts import as_word, everywhere, in_text, one_of, rearranged, retold
from .words import guessed_arguments, is_lookup, name_words, properties, schema_of, stems


def _checkable(base: Base) -> Iterator[tuple[int, Call, Tool]]:
    tools = base.item.tools
    for at, call in enumerate(base.parts.calls):
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
    call = base.parts.calls[at]
    rest = {key: value for key, value in (call.arguments or {}).items() if key != name}
    return Change(
        reply=base.parts.with_calls(at, replace(call, arguments=rest)),
        what=f"{base.parts.place(at)} lacks its required {name}",
    )


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
    what = f"{base.parts.place(at)} passes {name}, which the tool does not have"
    return Change(reply=base.parts.with_argument(at, name, value), what=what)


def wrong_tool(base: Base, rng: Random) -> Change | None:
    """Gives the arguments of a call to another tool that does something else.

    The other tool only tells something, so that nothing is done that must not be done, and is
    the one that is least like the right one of those that neither plan nor reference calls.
    """
    tools, parts = base.item.tools, base.parts
    others = _uncalled_lookups(base)
    if tools is None or not others or not parts.calls:
        return None
    at = rng.choice(range(len(parts.calls)))
    call = parts.calls[at]
    wanted = _words(tools, call.name)
    if not wanted or not call.arguments:
        return None
    likeness = {name: len(wanted & _words(tools, name)) for name in others}
    name = min(others, key=lambda other: likeness[other])
    if likeness[name] > LOW_OVERLAP * len(wanted):
        return None
    what = f"{parts.place(at)} is made of {name} instead, which can't do that"
    return Change(reply=parts.with_calls(at, replace(call, name=name)), what=what)


def _uncalled_lookups(base: Base) -> list[str]:
    item, tools = base.item, base.item.tools
    barred = {call.name for call in base.parts.calls} | set(item.condition.extraneous)
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
    tools, parts = base.item.tools, base.parts
    names = [n for n in base.item.condition.extraneous if tools and n in tools.by_name]
    if tools is None or not names or not parts.calls:
        return None
    name, at = rng.choice(names), rng.choice(range(len(parts.calls)))
    tool = tools.by_name[name]
    has_reasons = any(call.reason for call in parts.calls)
    reason = (tool.description or "Useful for the next step.") if has_reasons else ""
    added = Call(name, guessed_arguments(tool), reason=reason)
    what = f"a call of the distractor {name} stands before {parts.place(at)}"
    if parts.form == "steps":
        return Change(reply=parts.with_calls(at, added, parts.calls[at]), what=what)
    order = sorted([*range(len(parts.calls)), at])
    longer = rearranged(parts, order, tools).with_calls(at, added)
    plan = retold(longer.calls, tools) if parts.plan else ""
    return Change(reply=replace(longer, plan=plan), what=what)


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
    "parts": "prepare",
}


def unknown_tool(base: Base, rng: Random) -> Change | None:
    """Renames the tool of one call to a likely name that does not exist."""
    parts = base.parts
    if base.item.tools is None or not parts.calls:
        return None
    at = rng.choice(range(len(parts.calls)))
    call = parts.calls[at]
    taken = _names_taken(base)
    name = next((n for n in _likely_names(call.name) if n not in taken), None)
    if name is None or not call.name:
        return None
    renamed = parts
    if sum(c.name == call.name for c in parts.calls) == 1:
        renamed = everywhere(parts, in_text(as_word(call.name), name))
    what = f"{parts.place(at)} is made of {shorten(name)}, which does not exist"
    return Change(
        reply=renamed.with_calls(at, replace(renamed.calls[at], name=name)),
        what=what,
    )


def _names_taken(base: Base) -> set[str]:
    item = base.item
    taken = set(item.tools.names) if item.tools else set[str]()
    taken |= {*item.condition.extraneous, *(call.name for call in base.parts.calls)}
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
                what = f"{name} of {base.parts.place(at)} is {wrong!r}, not of type {kind}"
                change = Change(reply=base.parts.with_argument(at, name, wrong), what=what)
                (texts if kind == "string" else typed).append(change)
    return one_of(rng, typed or texts)


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
                what = f"{name} of {base.parts.place(at)} is {wrong!r}, not among the allowed"
                made.append(Change(reply=base.parts.with_argument(at, name, wrong), what=what))
    return one_of(rng, made)


def _outside(value: str) -> Iterator[str]:
    yield "standard" if value.islower() else "Standard" if not value.isupper() else "STD"
    yield f"{value}-other"
    number = 2
    while True:
        yield f"{value}-{number}"
        number += 1
