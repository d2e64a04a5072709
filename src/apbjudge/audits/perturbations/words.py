"""What names and words tell: which call needs what another one yields, what a tool does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...protocols.checks.values import referenced_step, referenced_tool
from ...records import Call, Tool, Toolset
from .parts import ReplyParts, scalars


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A call that needs what at least one of some earlier calls yields, by their places."""

    call: int
    on: frozenset[int]
    because: str


def sure_needs(parts: ReplyParts, tools: Toolset | None, given: str = "") -> tuple[Need, ...]:
    """The dependencies that nobody would doubt; many others are missed.

    A machine-readable reference to a tool's result, an argument that names the earlier tool or
    step, or one whose value stands nowhere in the case and whose parameter is said to come from
    the earlier tool.

    Args:
        parts: The calls.
        tools: Their tools, None where the case lists none.
        given: Text of the case: what stands in it needs no call.
    """
    return tuple(
        Need(call=at, on=on, because=because)
        for at, call in enumerate(parts.calls)
        for on, because in _sources(parts, at, call, tools, given)
    )


def possible_needs(parts: ReplyParts, tools: Toolset | None) -> frozenset[tuple[int, int]]:
    """Pairs (earlier, later) of calls of which the later might need the earlier; few are missed.

    Beside the sure ones: a described value may come from any earlier call that shares a word
    with it, or from all of them where none does; and a call that changes something may matter
    to every later one that passes an equal value.
    """
    calls = parts.calls
    pairs = {(on, need.call) for need in sure_needs(parts, tools) for on in need.on}
    about = [_about(call, tools) for call in calls]
    values = [_values(call) for call in calls]
    changing = [n for n, call in enumerate(calls) if not is_lookup(call.name, tools)]
    for later, call in enumerate(calls):
        pairs.update((earlier, later) for earlier in _described_from(call, about[:later]))
        pairs.update((n, later) for n in changing if n < later and values[n] & values[later])
    return frozenset(pairs)


def _sources(
    parts: ReplyParts, at: int, call: Call, tools: Toolset | None, given: str
) -> Iterator[tuple[frozenset[int], str]]:
    earlier = parts.calls[:at]
    for name, value in (call.arguments or {}).items():
        texts = [text for text in scalars(value) if isinstance(text, str) and text not in given]
        for text in texts:
            yield from _named(text, at, earlier, is_plan=parts.form == "plan")
        source = source_of(call.name, name, tools)
        sources = frozenset(n for n, other in enumerate(earlier) if other.name == source)
        if texts and sources:
            yield sources, f"its {name} comes from {source}"


def _named(
    text: str, at: int, earlier: tuple[Call, ...], *, is_plan: bool
) -> Iterator[tuple[frozenset[int], str]]:
    """Sources that an argument names."""
    reference = referenced_tool(text)
    for name in dict.fromkeys(call.name for call in earlier if call.name):
        if reference == name or (_has_word(text, name) and _is_telling(name)):
            on = frozenset(n for n, call in enumerate(earlier) if call.name == name)
            yield on, f"an argument names {name}"
    steps = [int(n) for n in re.findall(r"\b[Ss]tep\s+(\d{1,3})\b", text)]
    if (marked := referenced_step(text)) is not None:
        steps.append(marked)
    for step in steps if is_plan else ():
        if 1 <= step <= at:
            yield frozenset({step - 1}), f"an argument names step {step}"


def source_of(tool_name: str, parameter: str, tools: Toolset | None) -> str | None:
    """The tool that a parameter's description says it comes from, where it names exactly one."""
    tool = tools.by_name.get(tool_name) if tools else None
    if tools is None or tool is None:
        return None
    text = str(schema_of(tool, parameter).get("description", ""))
    spoken = [name for name in tools.by_name if name in text]
    named = [name for name in spoken if _is_telling(name) and _has_word(text, name)]
    return named[0] if len(named) == 1 and named[0] != tool_name else None


def properties(tool: Tool) -> Mapping[str, Any]:
    """A tool's parameters with their schemas; empty where there is no JSON Schema."""
    if tool.parameter_kind != "json_schema":
        return {}
    return cast("dict[str, dict[str, Any]]", tool.parameters)["properties"]


def schema_of(tool: Tool, parameter: str) -> dict[str, Any]:
    """The schema of one parameter; empty where there is none or it says nothing."""
    spec = properties(tool).get(parameter)
    return cast("dict[str, Any]", spec) if isinstance(spec, dict) else {}


def _is_telling(name: str) -> bool:
    """Whether a name is no word of everyday language."""
    return len(name) >= 5 and ("_" in name or re.search(r"[a-z][A-Z]", name) is not None)


def _has_word(text: str, name: str) -> bool:
    if name not in text:
        return False
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _described_from(call: Call, earlier: Sequence[frozenset[str]]) -> set[int]:
    """Places of earlier calls, given by what they are about, that described values may need."""
    found: set[int] = set()
    for text in scalars(call.arguments):
        if not isinstance(text, str) or not _DESCRIPTION.search(text):
            continue
        words = stems(text)
        shared = {n for n, about in enumerate(earlier) if not words.isdisjoint(about)}
        found |= shared or set(range(len(earlier)))
    return found


_DESCRIPTION = re.compile(r"[^\W\d_A-Z]\s|[${<\[]|PREVIOUS|[^\x00-\u024f]{4}")
"""A small letter before a space, the mark of a reference, or a word in another script, which may
well be a description without any space."""


def _about(call: Call, tools: Toolset | None) -> frozenset[str]:
    """Words of a call, its tool and its parameters."""
    tool = tools.by_name.get(call.name) if tools else None
    said = " ".join(str(value) for value in scalars(call.arguments))
    about = f"{tool.description} {' '.join(properties(tool))}" if tool else ""
    return stems(" ".join((*name_words(call.name), said, about.replace("_", " "), call.reason)))


def _values(call: Call) -> set[str]:
    return {v for v in scalars(call.arguments) if isinstance(v, str) and len(v) >= 3}


_STOP = frozenset(
    "about after also been before both each every from have here into more most must none only "
    "other over said same some such than that their them then there these they this those "
    "until what when where which will with without your given value values".split()
)


def stems(text: str) -> frozenset[str]:
    """The words of a text of four letters or more, singular, cut to five, without the idlest."""
    words = (word.lower() for word in re.findall(r"[^\W\d_]{4,}", text))
    return frozenset(_singular(word)[:5] for word in words if word not in _STOP)


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def name_words(name: str) -> list[str]:
    """The words of a tool's name, in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.\s]+", " ", name)
    return [word.lower() for word in spaced.split()]


_LOOKUPS = frozenset(
    "search find list get read look lookup fetch check show view count describe query retrieve "
    "browse inspect estimate calculate compute convert sum compare price locate see".split()
)
_TELLS = frozenset(
    "searches lists returns finds looks describes shows counts reads fetches gets computes "
    "evaluates tells says calculates converts adds".split()
)
_ACTS = frozenset(
    "add apply append assign book buy cancel change close commit confirm create delete deliver "
    "parts edit email enter export file finish fix format hold insert install issue log mail "
    "make merge message move notify open order pay place post print publish put record refund "
    "register release rename reply report request reserve restart run save schedule sell send "
    "set share sign start stop store submit take transfer type update upload write carry turn "
    "toggle click press choose select scale adds books sends creates orders pays writes".split()
)


def is_lookup(name: str, tools: Toolset | None) -> bool:
    """Whether a tool only tells something; in doubt it does not."""
    words = name_words(name)
    if not words or words[0] in _ACTS:
        return False
    tool = tools.by_name.get(name) if tools else None
    first = (tool.description.split() or [""])[0].lower() if tool else ""
    return words[0] in _LOOKUPS or first in _TELLS


def is_action(name: str) -> bool:
    """Whether a tool makes or changes something; in doubt it does not."""
    words = name_words(name)
    return bool(words) and words[0] in _ACTS


_BY_WORD: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"email", "mail", "to", "recipient"}), "info@example.org"),
    (frozenset({"iban"}), "DE02120300000000202051"),
    (frozenset({"date", "day", "until", "from_date", "deadline", "start", "in"}), "2026-06-01"),
    (frozenset({"out", "end", "return"}), "2026-06-03"),
    (frozenset({"month"}), "2026-06"),
    (frozenset({"time"}), "09:00"),
    (frozenset({"city", "town", "place", "location"}), "Berlin"),
    (frozenset({"country"}), "Germany"),
    (frozenset({"currency"}), "EUR"),
    (frozenset({"phone", "telephone"}), "+49 30 1234567"),
    (frozenset({"name", "customer", "guest", "person", "supplier"}), "Anna Schmidt"),
    (frozenset({"company", "firm", "vendor"}), "Brightwater"),
    (frozenset({"path", "file", "image", "folder"}), "data/input.csv"),
    (frozenset({"subject", "title"}), "Your request"),
    (frozenset({"text", "body", "message", "note", "reason", "comment"}), "Done as agreed."),
    (frozenset({"id", "number", "no", "code", "reference", "account", "order"}), "A-1001"),
)
_BY_FORMAT = {"date": "2026-06-01", "email": "info@example.org"}


def guessed_arguments(tool: Tool) -> dict[str, Any]:
    """A made-up value for every required parameter, of the type that its schema asks for."""
    known = properties(tool)
    return {name: _guess(name, known.get(name)) for name in tool.required}


def _guess(name: str, spec: Any) -> Any:
    fields = cast("dict[str, Any]", spec) if isinstance(spec, dict) else {}
    allowed = fields.get("enum")
    if isinstance(allowed, list) and allowed:
        return cast("list[Any]", allowed)[0]
    kind = fields.get("type", "string")
    if kind == "object":
        inner: dict[str, Any] = fields.get("properties") or {}
        wanted: list[str] = fields.get("required") or []
        return {key: _guess(key, inner.get(key)) for key in wanted}
    if kind in ("integer", "number"):
        least = fields.get("minimum")
        bound = int(least) + 1 if isinstance(least, int | float) else 0
        return max(bound, 1 if kind == "integer" else 100)
    if kind == "array":
        return [_guess(name.removesuffix("s"), fields.get("items"))]
    known = _BY_FORMAT.get(str(fields.get("format")))
    words = reversed(name_words(name))
    guesses = (text for word in words for marks, text in _BY_WORD if word in marks)
    return True if kind == "boolean" else known or next(guesses, "standard")
