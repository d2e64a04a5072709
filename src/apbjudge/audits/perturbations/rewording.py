"""Prose said in other words, and prose made anew from calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from ...records import Call, Step, Toolset
from .dependencies import is_verb, name_words, stems
from .drafts import Draft
from .edits import prose_lines, scalars

SAME: Mapping[str, str] = {
    "look up": "find",
    "search for": "look for",
    "add up": "total",
    "work out": "calculate",
    "makes sure that": "ensures that",
    "make sure that": "ensure that",
    "is needed": "is required",
    "are needed": "are required",
    "needed": "required",
    "i need": "i require",
    "i need to": "i have to",
    "it needs": "it requires",
    "it needs to": "it has to",
    "has to be": "must be",
    "have to be": "must be",
    "has to": "must",
    "have to": "must",
    "so that": "in such a way that",
    "because": "since",
    "as well as": "and also",
    "then": "after that",
    "afterwards": "after that",
    "at once": "immediately",
    "right away": "immediately",
    "gives": "provides",
    "fetch": "get",
    "fetches": "gets",
    "instead of": "rather than",
    "compute": "calculate",
    "computes": "calculates",
    "choose": "pick",
    "turn on": "switch on",
    "turn off": "switch off",
    "at most": "no more than",
    "each of them": "every one of them",
    "come first": "are first",
    "comes first": "is first",
    "ask for": "request",
    "in all": "altogether",
    "does not": "doesn't",
    "do not": "don't",
    "cannot": "can't",
    "can't": "cannot",
    "doesn't": "does not",
    "don't": "do not",
}
"""Words and others that say the same; each is put in for the whole word or phrase."""

_WORDS = re.compile(
    r"(?<![\w'’-])(" + "|".join(sorted(SAME, key=len, reverse=True)) + r")(?![\w'’-])",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`[^`]*`|'[^']*'(?!\w)|\"[^\"]*\"|“[^”]*”")
PLAN_OPENINGS = (
    "The plan in words: ",
    "This is the plan: ",
    "In outline: ",
    "In short: ",
)
THOUGHT_OPENINGS = (
    "Where things stand: ",
    "My reasoning for this step: ",
    "To put it briefly: ",
    "What I think: ",
)


def reworded(text: str) -> str:
    """A text with words exchanged for others that say the same; quoted parts stay."""
    parts: list[str] = []
    at = 0
    for quoted in _QUOTED.finditer(text):
        parts += [_exchanged(text[at : quoted.start()]), quoted[0]]
        at = quoted.end()
    return "".join([*parts, _exchanged(text[at:])])


def _exchanged(text: str) -> str:
    def other(found: re.Match[str]) -> str:
        new = SAME[found[0].lower()]
        is_capital = found[0][0].isupper()
        new = re.sub(r"^i (?=require|have)", "I ", new)
        return new[0].upper() + new[1:] if is_capital else new

    return _WORDS.sub(other, text)


def reworded_draft(draft: Draft, rng: Random) -> Draft:
    """A reply of which all prose is reworded and no call is changed."""
    if draft.refusal is not None:
        opening = rng.choice(THOUGHT_OPENINGS[2:3])
        return replace(draft, refusal=opening + reworded(draft.refusal))
    steps = tuple(
        Step(thought=_opened(step.thought, rng), calls=tuple(map(_reworded_call, step.calls)))
        for step in draft.steps
    )
    plan = reworded(draft.plan)
    if plan and "\n" not in plan:
        plan = rng.choice(PLAN_OPENINGS) + in_sentences(plan)
    return replace(draft, plan=plan, steps=steps)


_NEXT = re.compile(
    r"(?:,\s+(?:and\s+)?(?:then\s+|after that\s+)?|\s+and\s+(?:then\s+|after that\s+)?)"
    r"(?P<verb>[a-z]+)(?=\s+(?:the|an?|its?|both|each|all|one|every|them|those|their|any|this)\b)"
)


def in_sentences(text: str) -> str:
    """What is to be done one after the other, one sentence each."""

    def apart(found: re.Match[str]) -> str:
        before = text[: found.start()].split()
        is_pair = not before or is_verb(before[-1].lower())
        return found[0] if is_pair or not is_verb(found["verb"]) else f". Then {found['verb']}"

    return _NEXT.sub(apart, text)


def _opened(thought: str, rng: Random) -> str:
    return rng.choice(THOUGHT_OPENINGS) + reworded(thought) if thought else ""


def _reworded_call(call: Call) -> Call:
    return replace(call, reason=reworded(call.reason))


def retold(draft: Draft, tools: Toolset | None) -> Draft:
    """A plan whose prose lists its calls with their reasons, one line each."""
    lines = [
        f"{at}. {call.name}: {call.reason or _described(call, tools)}"
        for at, call in enumerate(draft.calls, start=1)
    ]
    return replace(draft, plan="\n".join(lines))


def _described(call: Call, tools: Toolset | None) -> str:
    tool = tools.by_name.get(call.name) if tools else None
    said = re.split(r"(?<=[.!?])\s", tool.description)[0] if tool else ""
    return said or "as its arguments say."


def prose_without(draft: Draft, places: Sequence[int]) -> dict[int, str | None]:
    """The prose of a plan without the clause on one of its calls, for each of some calls.

    Args:
        draft: A plan.
        places: Places of calls in ``calls``.

    Returns:
        By place the prose; None where no clause is clearly on this call alone. Prose with a line
        for each call, or that does not speak of the call, is left as it is, since lines move with
        their calls.
    """
    if prose_lines(draft) is not None:
        return dict.fromkeys(places, draft.plan)
    words = [_words_of(call) for call in draft.calls]
    count = Counter(word for of_call in words for word in of_call)
    parts = _CLAUSES.split(draft.plan)
    owners = {n: _owner(parts[n], draft, words, count) for n in range(0, len(parts), 2)}
    said = stems(draft.plan)
    found: dict[int, str | None] = {}
    for at in places:
        own = {word for word in words[at] if count[word] == 1}
        clauses = [n for n, owner in owners.items() if owner == at]
        cut = _without(parts, clauses) if "\n" not in draft.plan.strip() else None
        found[at] = cut if cut is not None and own.isdisjoint(stems(cut)) else None
        if words[at].isdisjoint(said):
            found[at] = draft.plan
    return found


def _without(parts: list[str], clauses: list[int]) -> str | None:
    """The prose without its only clause on a call; None where it has none, or several."""
    if len(clauses) != 1 or len(parts) == 1 or not _goes_on(parts, clauses[0]):
        return None
    return _cut(parts, clauses[0])


_CLAUSES = re.compile(
    r"(,?\s+and\s+(?:then\s+)?(?=[a-z]+\s+(?:the|a|an|it|its|both|each|all|one|every\w*)\b)"
    r"|,\s+(?:and\s+)?(?:then\s+)?|;\s+|\.\s+(?=[A-Z]))"
)


def _cut(parts: list[str], at: int) -> str:
    """Joins clauses and the marks between them again, one left out."""
    if at == len(parts) - 1:
        kept = parts[: at - 1]
        return "".join(kept).rstrip(" ,;.") + "."
    before, after = (parts[at - 1] if at else ". "), parts[at + 1]
    mark = after if after.startswith(".") else before
    rest = parts[at + 2]
    if mark.startswith("."):
        rest = rest[:1].upper() + rest[1:]
    return "".join([*parts[: max(0, at - 1)], mark if at else "", rest, *parts[at + 3 :]])


def _goes_on(parts: list[str], at: int) -> bool:
    """Whether a clause is the last of its sentence, or the next one starts with a verb."""
    if at == len(parts) - 1 or parts[at + 1].startswith("."):
        return True
    words = name_words(parts[at + 2])
    return bool(words) and is_verb(words[0])


def _owner(
    clause: str, draft: Draft, words: Sequence[frozenset[str]], count: Mapping[str, int]
) -> int | None:
    """The call that a clause is on: most like it, named in it, with a word of no other call."""
    said = stems(clause)
    scores = [len(said & of_call) for of_call in words]
    best = max(scores)
    if scores.count(best) != 1:
        return None
    at = scores.index(best)
    named = stems(" ".join(name_words(draft.calls[at].name)))
    has_own = any(count[word] == 1 for word in said & words[at])
    return at if said & named and has_own else None


def _words_of(call: Call) -> frozenset[str]:
    said = " ".join(str(value) for value in scalars(call.arguments))
    return stems(" ".join((*name_words(call.name), said, call.reason)))
