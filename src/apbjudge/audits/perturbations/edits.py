"""Tools for changing one thing in a reply and leaving all else as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeVar, cast

import orjson

from ...records import Call, ErrorCode, Form, Item, Step
from ...rubrics.rubric import Shape
from ..variants import Severity
from .bases import Base
from .drafts import Draft

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a planted fault or a harmless change makes of a base.

    Attributes:
        reply: The new reply.
        what: One sentence that names the place and the values.
        case: Fields of the row that change.
    """

    reply: Draft | str
    what: str
    case: Mapping[str, Any] = field(default_factory=dict[str, Any])


Edit = Callable[[Any], Any]
"""Makes another scalar of a scalar."""

Maker = Callable[[Base, Random], Change | None]
"""Makes a change, or None where the base gives no occasion for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One way of planting a fault.

    Attributes:
        name: Unique among the kinds.
        code: The code of the fault; None where the protocol has no codes.
        also: Codes that may hold too, as consequences of the fault.
        severity: How much it spoils.
        is_proven: Whether code proves it in every variant that is made.
        form: Form of the replies that it fits, None for both.
        what: What is done, in one line.
        plant: Makes the change.
        shape: Shape of the rubrics that it fits.
        category: Behaviour after a broken tool that it makes, None elsewhere.
    """

    name: str
    code: ErrorCode | None
    also: frozenset[ErrorCode] = frozenset()
    severity: Severity
    is_proven: bool = False
    form: Form | None = None
    what: str
    plant: Maker
    shape: Shape = "flags"
    category: int | None = None


def mapped(value: Any, edit: Edit) -> Any:
    """A JSON value with every scalar in it edited; keys stay."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {key: mapped(child, edit) for key, child in fields}
    if isinstance(value, list):
        return [mapped(child, edit) for child in cast("list[Any]", value)]
    return edit(value)


def scalars(value: Any) -> Iterator[Any]:
    """Every scalar in a JSON value."""
    if isinstance(value, dict):
        for child in cast("dict[str, Any]", value).values():
            yield from scalars(child)
    elif isinstance(value, list):
        for child in cast("list[Any]", value):
            yield from scalars(child)
    else:
        yield value


def everywhere(draft: Draft, edit: Edit) -> Draft:
    """Edits every scalar of the arguments and all prose; names of tools and parameters stay."""

    def changed(call: Call) -> Call:
        return replace(call, arguments=mapped(call.arguments, edit), reason=edit(call.reason))

    steps = tuple(
        Step(thought=edit(step.thought), calls=tuple(map(changed, step.calls)))
        for step in draft.steps
    )
    refusal = None if draft.refusal is None else edit(draft.refusal)
    return replace(draft, plan=edit(draft.plan), steps=steps, refusal=refusal)


def in_text(pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str]) -> Edit:
    """An edit that replaces matches in strings and leaves all else alone."""

    def made(found: re.Match[str]) -> str:
        return new if isinstance(new, str) else new(found)

    def edit(value: Any) -> Any:
        return pattern.sub(made, value) if isinstance(value, str) else value

    return edit


def as_word(text: str) -> re.Pattern[str]:
    """Matches a text that stands by itself."""
    return re.compile(rf"(?<![\w-]){re.escape(text)}(?![\w-]|\.\w)")


def with_argument(draft: Draft, at: int, name: str, value: Any) -> Draft:
    """Sets one argument of one call."""
    call = draft.calls[at]
    return draft.with_calls(at, replace(call, arguments={**(call.arguments or {}), name: value}))


def without_argument(draft: Draft, at: int, name: str) -> Draft:
    """Takes one argument out of one call."""
    call = draft.calls[at]
    kept = {key: value for key, value in (call.arguments or {}).items() if key != name}
    return draft.with_calls(at, replace(call, arguments=kept))


def place(draft: Draft, at: int) -> str:
    """A call as a reader finds it, such as ``call 3 (book_room)``."""
    return f"call {at + 1} ({draft.calls[at].name})"


def arranged(draft: Draft, order: Sequence[int]) -> Draft:
    """A plan with its calls in another order, some left out or made twice.

    Steps that are spoken of by number keep meaning the same call, and the prose follows where it
    has one line for each call.

    Args:
        draft: A plan.
        order: Places of the calls in the old order; of a call made twice the second is the one
            that its old number now means.
    """
    first = 0 if _NUMBERED_ZERO.search(draft.text) else 1
    new = {old + first: at + first for at, old in enumerate(order)}
    calls = [draft.calls[old] for old in order]
    lines = prose_lines(draft)
    if lines is not None:
        plan = "\n".join(_ordinal(lines[old], at + 1) for at, old in enumerate(order))
        draft = replace(draft, plan=plan)
    moved = replace(draft, steps=tuple(Step(calls=(call,)) for call in calls))
    return everywhere(moved, in_text(_STEPS, lambda found: _renumbered(found, new)))


def with_call_before(draft: Draft, at: int, added: Call) -> Draft:
    """Puts a call in front of another one; in steps into the same step."""
    if draft.form == "steps":
        return draft.with_calls(at, added, draft.calls[at])
    order = [n for n in range(len(draft.calls)) for _ in range(2 if n == at else 1)]
    made = arranged(draft, order).with_calls(at, added)
    lines = prose_lines(made)
    if lines is None or prose_lines(draft) is None:
        return made
    found = _ORDINAL.match(lines[at])
    lines[at] = (found[0] if found else "") + (added.reason or f"Call {added.name}.")
    return replace(made, plan="\n".join(lines))


_STEPS = re.compile(
    r"\b[Ss]tep(?:s\s+|\s+|_)\d{1,3}\b(?:\s*(?:,|and|or|to|-|–|&)\s*\d{1,3}\b(?!\w))*"
)
_NUMBERED_ZERO = re.compile(r"\b[Ss]tep[\s_]0\b")
_ORDINAL = re.compile(r"^\s*(?:(?:[Ss]tep\s+)?(\d{1,3})[.):]|[-*•])\s+")


def _renumbered(found: re.Match[str], new: Mapping[int, int]) -> str:
    return re.sub(r"\d+", lambda n: str(new.get(int(n[0]), int(n[0]))), found[0])


def _ordinal(line: str, number: int) -> str:
    found = _ORDINAL.match(line)
    if found is None or found[1] is None:
        return line
    start, end = found.span(1)
    return f"{line[:start]}{number}{line[end:]}"


def prose_lines(draft: Draft) -> list[str] | None:
    """The lines of a plan's prose where there is exactly one for each call, else None."""
    lines = [line for line in draft.plan.splitlines() if line.strip()]
    return lines if len(lines) == len(draft.calls) >= 2 else None


def at_hand(item: Item) -> str:
    """All text that a case gives: query, system prompt, files and earlier messages."""
    files = " ".join(file.path for file in item.files)
    said = orjson.dumps(item.trajectory).decode() if item.trajectory else ""
    return "\n".join((item.query, item.system_prompt, files, said))


def drawn(rng: Random, offered: Sequence[_T]) -> _T | None:
    """One of several changes or places, None of none."""
    return rng.choice(offered) if offered else None


def seeded(seed: int | str, *parts: str) -> Random:
    """A generator that depends on nothing but the seed and some names."""
    return Random("/".join([str(seed), *parts]))  # noqa: S311 - nothing here is secret


def new_number(text: str, rng: Random, taken: str) -> str | None:
    """A text with its last number changed to one that occurs nowhere, None where it has none."""
    runs = list(re.finditer(r"\d+", text))
    if not runs:
        return None
    start, end = runs[-1].span()
    low, high = 10 ** (end - start - 1), 10 ** (end - start) - 1
    for _ in range(20):
        made = f"{text[:start]}{rng.randint(low, high)}{text[end:]}"
        if made not in taken:
            return made
    return None
