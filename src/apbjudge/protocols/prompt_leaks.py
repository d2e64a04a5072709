"""Checks for information in a prompt that the tested model should not have."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from ..records import Item
from .leak_patterns import (
    BROKEN,
    CONDITIONAL,
    DISTRACTORS,
    HINTS,
    PROMPT_LEAKS,
    REPLACEMENT,
    SAYS_UNSOLVABLE,
    STEMS,
    THIS_TASK,
    TYPE_WORDS,
    UNSOLVABLE,
)
from .overlap import strings

_LIST_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")
_FLAT_LIST = re.compile(r"\[[^\[\]{}]*\]")
_NOT_FROM_US = ("assistant", "tool", "function")
_LEAST_CUT = 12
_SENTENCE = re.compile(r"\n|(?<=[.!?;])\s")
_PLAIN_NAME = re.compile(r"[A-Za-z]?[a-z]+")
_QUOTES = "`'\"“”‘’"


class PromptLeak(NamedTuple):
    """Something a tested model should not know: one of ``PROMPT_LEAKS``, its field, a sentence."""

    kind: str
    field: str
    what: str


def secrets_of(item: Item) -> list[str]:
    """Kinds of facts, of ``PROMPT_LEAKS``, that the tested model of a case must not know."""
    condition = item.condition
    held = (
        condition.extraneous,
        condition.unsolvable_type,
        condition.broken_tool,
        condition.replacement,
    )
    return [kind for kind, secret in zip(PROMPT_LEAKS, held, strict=True) if secret]


def sent_text(row: Mapping[str, Any]) -> str:
    """Texts sent to a tested model, without replies and results: ``prompt`` and ``messages``."""
    texts: list[str] = []
    for name in ("prompt", "messages"):
        value = row.get(name)
        for part in cast("list[object]", value) if isinstance(value, list) else [value]:
            if not isinstance(part, Mapping):
                texts += strings(part)
                continue
            message = cast("Mapping[str, object]", part)
            if message.get("role") not in _NOT_FROM_US:
                texts += strings(message.get("content"))
    return "\n".join(texts)


def leaks_in_prompt(item: Item, row: Mapping[str, Any]) -> Iterator[PromptLeak]:
    """Leaks in the query, the system prompt and the prompt that was sent.

    Args:
        item: The item.
        row: Its row, perhaps with ``prompt`` or ``messages`` as sent to the tested model.

    Yields:
        At most one of each kind and field.
    """
    kinds = secrets_of(item)
    if not kinds:
        return
    prompt = sent_text(row)
    if prompt:  # the case's own parts are checked separately or may state anything
        material = [item.query, item.system_prompt, *strings(item.trajectory)]
        if item.tools is not None:
            material += [item.tools.text, *strings(row.get("tools_json"))]
            material += _descriptions(item.tools.text)
        prompt = _without(prompt, material)
    texts = {"query": item.query, "system_prompt": item.system_prompt, "prompt": prompt}
    for kind in kinds:
        for field, text in texts.items():
            if kind == UNSOLVABLE:
                what = _type_leak(item, field, text)
            else:
                what = _tool_leak(item, kind, field, text)
            if what:
                yield PromptLeak(kind, field, what)


@lru_cache(maxsize=64)
def _descriptions(tools: str) -> tuple[str, ...]:
    """Descriptions of tools and parameters; cached, since rows often repeat tools."""
    return tuple(text for text in strings(json.loads(tools)) if " " in text)


def _without(text: str, material: Iterable[str]) -> str:
    """The text without the material, in plain form and as JSON writes it."""
    for part in sorted(
        {part for part in material if len(part) >= _LEAST_CUT}, key=len, reverse=True
    ):
        text = text.replace(part, " ")
        if any(character in part for character in '"\\\n\t'):
            text = text.replace(json.dumps(part, ensure_ascii=False)[1:-1], " ")
    return text


def _tool_leak(item: Item, kind: str, field: str, text: str) -> str:
    """The way in which a tool's name gives something away, in words; empty if it does not.

    In query and system prompt any mention counts, unless all tools are listed there. In a prompt,
    which has to name the tools, it counts if the sentence states the tool's role, or if only the
    distractors are listed.
    """
    condition = item.condition
    replacement = condition.replacement.name if condition.replacement else ""
    secret = {
        DISTRACTORS: condition.extraneous,
        BROKEN: (condition.broken_tool or "",),
        REPLACEMENT: (replacement,),
    }[kind]
    named = [name for name in secret if mentions(text, name)]
    if not named:
        return ""
    others = (item.tools.names if item.tools else frozenset[str]()) - set(secret)
    listed = field == "prompt" or (bool(others) and all(mentions(text, n) for n in others))
    if not listed:
        return f"names {_quoted(named)}"
    for line in _lines(text, HINTS[kind], named):
        here = [name for name in named if mentions(line, name)]
        if here:
            return f"says what {_quoted(here)} is: {_short(line)}"
    if kind == DISTRACTORS and len(secret) > 1 and len(named) == len(secret):
        for part in (*text.splitlines(), *_FLAT_LIST.findall(text)):
            has_all = all(name in part and mentions(part, name) for name in secret)
            if has_all and not any(mentions(part, name) for name in others):
                return f"lists just the distractors: {_short(part)}"
    return ""


def _lines(text: str, hint: re.Pattern[str], names: Collection[str]) -> Iterator[str]:
    """Sentences with a hint word, and items of a list under a heading with one."""
    under = False
    for sentence in sentences(text):
        heads = sentence.rstrip().endswith(":")
        if (heads or any(name in sentence for name in names)) and hint.search(sentence):
            under = heads
            yield sentence
        elif under and _LIST_ITEM.match(sentence):
            yield sentence
        else:
            under = False


def _type_leak(item: Item, field: str, text: str) -> str:
    """A sentence that states that, or why, this case can't be solved; empty without one."""
    secret = item.condition.unsolvable_type or ""
    if secret in text and not any(name in text for name in TYPE_WORDS if name != secret):
        return f"holds the type `{secret}`"
    patterns = [SAYS_UNSOLVABLE, *([TYPE_WORDS[secret]] if field != "query" else [])]
    lowered = text.casefold()
    if not any(stem in lowered for stem in STEMS):
        return ""
    for sentence in sentences(text):
        says_so = any(p.search(sentence) for p in patterns) and THIS_TASK.search(sentence)
        if says_so and not CONDITIONAL.search(sentence):
            return f"says that it can't be solved: {_short(sentence)}"
    return ""


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:119]}…"


def sentences(text: str) -> list[str]:
    """The sentences of each line, without blank ones."""
    return [part for part in _SENTENCE.split(text) if part.strip()]


def mentions(text: str, name: str) -> bool:
    """True if a text names a tool.

    Args:
        text: The text.
        name: The tool's name. A plain word (``search``) counts only in quotes or backticks, before
            a bracket or next to the word tool.
    """
    if not name:
        return False
    is_plain = _PLAIN_NAME.fullmatch(name) is not None
    at = text.find(name)
    while at >= 0:
        before, after = text[max(0, at - 6) : at], text[at + len(name) : at + len(name) + 6]
        is_part = any(c.isalnum() or c in "_-" for c in before[-1:] + after[:1])
        if not is_part and (not is_plain or _is_marked(before, after)):
            return True
        at = text.find(name, at + 1)
    return False


def _is_marked(before: str, after: str) -> bool:
    is_quoted = bool(before and after) and before[-1] in _QUOTES and after[0] in _QUOTES
    return is_quoted or after.startswith(("(", " tool")) or before.endswith(("tool ", "tool: "))
