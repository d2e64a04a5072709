"""Facts read from names and words: calls that need another call's result, actions of tools."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, cast

from ...protocols.checks.values import referenced_step, referenced_tool
from ...protocols.tool_words import name_words, properties
from ...records import Call, Tool, Toolset
from ...records.loose_json import as_object
from .parts import ReplyParts, scalars, tool_of


@cache
def table(name: str) -> dict[str, Any]:
    """A TOML file of the folder ``data``."""
    file = resources.files("apbjudge.audits").joinpath("data", f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def vocabulary(name: str) -> frozenset[str]:
    """A set of words of ``data/words.toml``."""
    return frozenset(table("words")[name].split())


class ValueNeed(NamedTuple):
    """A call that needs the result of at least one of some earlier calls, by their places."""

    call: int
    on: frozenset[int]
    because: str


def sure_needs(parts: ReplyParts, tools: Toolset | None, case: str = "") -> tuple[ValueNeed, ...]:
    """Evident dependencies between calls; many others are missed.

    Evidence is a machine-readable reference to a tool's result, an argument that names the earlier
    tool or step, or a parameter whose description names the earlier tool as its source. Values that
    occur in ``case``, the text of the case, need no call.
    """
    needs: list[ValueNeed] = []
    for at, call in enumerate(parts.calls):
        earlier = parts.calls[:at]
        for name, value in (call.arguments or {}).items():
            texts = [text for text in scalars(value) if isinstance(text, str) and text not in case]
            for text in texts:
                needs += _named(text, at, earlier, is_plan=parts.form == "plan")
            source = source_of(call.name, name, tools)
            on = frozenset(n for n, other in enumerate(earlier) if other.name == source)
            if texts and on:
                needs.append(ValueNeed(at, on, f"its {name} comes from {source}"))
    return tuple(needs)


def _named(text: str, at: int, earlier: tuple[Call, ...], *, is_plan: bool) -> Iterator[ValueNeed]:
    """The needs of an argument that names earlier tools or steps."""
    reference = referenced_tool(text)
    for name in dict.fromkeys(call.name for call in earlier if call.name):
        if reference == name or _speaks_of(text, name):
            on = frozenset(n for n, call in enumerate(earlier) if call.name == name)
            yield ValueNeed(at, on, f"an argument names {name}")
    steps = [int(n) for n in re.findall(r"\b[Ss]tep\s+(\d{1,3})\b", text)]
    if (marked := referenced_step(text)) is not None:
        steps.append(marked)
    for step in steps if is_plan else ():
        if 1 <= step <= at:
            yield ValueNeed(at, frozenset({step - 1}), f"an argument names step {step}")


def _speaks_of(text: str, name: str) -> bool:
    """True if a text contains the name of a tool, and the name is not an everyday word."""
    is_telling = len(name) >= 5 and ("_" in name or re.search(r"[a-z][A-Z]", name) is not None)
    # the first test is fast and nearly always fails
    return name in text and is_telling and bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def source_of(tool_name: str, parameter: str, tools: Toolset | None) -> str | None:
    """The source of a parameter: the other tool that its description names, if it names one."""
    text = str(schema_of(tool_of(tools, tool_name), parameter).get("description", ""))
    named = [name for name in tools.by_name if _speaks_of(text, name)] if tools and text else []
    return named[0] if len(named) == 1 and named[0] != tool_name else None


_DESCRIPTION = re.compile(r"[^\W\d_A-Z]\s|[${<\[]|PREVIOUS|[^\x00-\u024f]{4}")
"""A lower-case letter before a space, the mark of a reference, or a word in another script, which
may be a description without spaces."""


def possible_needs(parts: ReplyParts, tools: Toolset | None) -> frozenset[tuple[int, int]]:
    """Pairs (earlier, later) of calls where the later might need the earlier; few are missed.

    In addition to the sure ones: a described value may come from any earlier call that shares a
    word with it, or from all of them if none does; and a call that changes something may affect
    every later one that passes an equal value.
    """
    calls = parts.calls
    pairs = {(on, need.call) for need in sure_needs(parts, tools) for on in need.on}
    texts = [[v for v in scalars(call.arguments) if isinstance(v, str)] for call in calls]
    values = [{text for text in of_call if len(text) >= 3} for of_call in texts]
    about = [_about(call, tools) for call in calls]
    changing = [n for n, call in enumerate(calls) if not is_lookup(call.name, tools)]
    for later in range(len(calls)):
        for text in filter(_DESCRIPTION.search, texts[later]):
            alike = [n for n in range(later) if not about[n].isdisjoint(stems(text))]
            pairs.update((earlier, later) for earlier in alike or range(later))
        pairs.update((n, later) for n in changing if n < later and values[n] & values[later])
    return frozenset(pairs)


def _about(call: Call, tools: Toolset | None) -> frozenset[str]:
    """Stems of the words of a call, its tool and its parameters."""
    tool = tool_of(tools, call.name)
    values = " ".join(str(value) for value in scalars(call.arguments))
    about = f"{tool.description} {' '.join(properties(tool))}".replace("_", " ") if tool else ""
    return stems(" ".join((*name_words(call.name), values, about, call.reason)))


def schema_of(tool: Tool | None, parameter: str) -> dict[str, Any]:
    """The schema of one parameter; empty if there is none or it states nothing."""
    return properties(tool).get(parameter, {}) if tool else {}


def stems(text: str) -> frozenset[str]:
    """Stems of the words of four letters or more: singular, five letters, without stop words."""
    words = {word.lower() for word in re.findall(r"[^\W\d_]{4,}", text)} - vocabulary("stop")
    return frozenset(re.sub(r"(?<!s)s$", "", word)[:5] for word in words)


def is_lookup(name: str, tools: Toolset | None) -> bool:
    """True if a tool only returns information; False in doubt."""
    words = name_words(name)
    if not words or words[0] in vocabulary("acts"):
        return False
    tool = tool_of(tools, name)
    first = (tool.description.split() or [""])[0].lower() if tool else ""
    return words[0] in vocabulary("lookups") or first in vocabulary("tells")


def is_action(name: str) -> bool:
    """True if a tool makes or changes something; False in doubt."""
    return not vocabulary("acts").isdisjoint(name_words(name)[:1])


def guessed_arguments(tool: Tool) -> dict[str, Any]:
    """A made-up value for every required parameter, of the type that its schema asks for."""
    known = properties(tool)
    return {name: _guess(name, known.get(name)) for name in tool.required}


def _guess(name: str, spec: Any) -> Any:
    fields = as_object(spec) or {}
    allowed = fields.get("enum")
    if isinstance(allowed, list) and allowed:
        return cast("list[Any]", allowed)[0]
    kind = fields.get("type", "string")
    if kind == "object":
        inner: dict[str, Any] = fields.get("properties") or {}
        required: list[str] = fields.get("required") or []
        return {key: _guess(key, inner.get(key)) for key in required}
    if kind in ("integer", "number"):
        least = fields.get("minimum")
        bound = int(least) + 1 if isinstance(least, int | float) else 0
        return max(bound, 1 if kind == "integer" else 100)
    if kind == "array":
        return [_guess(name.removesuffix("s"), fields.get("items"))]
    if kind == "boolean":
        return True
    hints = [fields["format"]] if fields.get("format") in ("date", "email") else name_words(name)
    values = table("words")["values"]
    guesses = (v["value"] for hint in reversed(hints) for v in values if hint in v["of"].split())
    return next(guesses, "standard")
