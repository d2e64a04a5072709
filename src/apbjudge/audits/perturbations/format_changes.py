"""The same plan shown in another way: a judge's verdict must not hang on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import orjson

from ...protocols.images import is_image
from ...records import Item
from ..variants import Variant
from .bases import Base
from .checks import faithful, parts_of
from .kinds import Change, kinds_of, variant_of
from .parts import Passage, ReplyParts, json_text, reversed_keys, seeded, sentences
from .references import retold_reference

FORMAT_CHANGES = kinds_of("formats")
"""Every way of showing the same, in the order in which they are offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What is to be shown in another way, read once; without ``parts`` where it is no JSON."""

    base: Base
    parent: Variant
    item: Item
    parts: ReplyParts | None


def change_format(
    base: Base, parent: Variant, *, seed: int, kinds: Collection[str] | None = None
) -> tuple[Variant, ...]:
    """Shows a variant in every way that fits it.

    Args:
        base: The base.
        parent: Its own variant, or one with a planted fault.
        seed: Seed of shuffles.
        kinds: Names of the ways to be tried; None for all.

    Returns:
        At most one variant a way, each with calls, arguments and proven findings of the parent.
    """
    return faithful(base, parent, _in_every_way(base, parent, seed, kinds))


def _in_every_way(
    base: Base, parent: Variant, seed: int, kinds: Collection[str] | None
) -> Iterator[Variant]:
    item = base.read(parent)
    shown = _Shown(base=base, parent=parent, item=item, parts=parts_of(base, parent))
    for kind in FORMAT_CHANGES:
        if kinds is None or kind.name in kinds:
            change = _MAKERS[kind.name](shown, seeded(seed, parent.name, kind.name))
            if change is not None:
                yield variant_of(base, "shown", kind, change, truth=parent.truth, parent=parent)


def _tool_order(shown: _Shown, rng: Random) -> Change | None:
    """Shuffles; where names are defined twice the first definition counts, so those stay."""
    tools = shown.parent.row.get("tools")
    defined = shown.base.item.tools.tools if shown.base.item.tools else ()
    if not isinstance(tools, list) or len({tool.name for tool in defined}) != len(defined):
        return None
    listed = cast("list[Any]", tools)
    shuffled = rng.sample(listed, len(listed))
    if shuffled == listed:
        shuffled = listed[1:] + listed[:1]
    return Change(case={"tools": shuffled}) if shuffled != listed else None


def _reference_wording(shown: _Shown, rng: Random) -> Change | None:
    """The words of the expert's solution; a case without a solution has none that counts."""
    case = retold_reference(shown.base, shown.parent)
    return Change(case=case) if case else None


def _key_order(shown: _Shown, rng: Random) -> Change | None:
    return shown.parts and Change(reply=json_text(reversed_keys(shown.parts.value)))


def _markdown(shown: _Shown, rng: Random) -> Change | None:
    head = "# Answer\n\nThe answer stands in the block below.\n\n"
    return shown.parts and Change(reply=f"{head}```json\n{shown.parts.text}\n```\n")


_MARKDOWN = re.compile(r"^\s*(?:#|\||```|~~~)", re.MULTILINE)
"""Headings, tables and blocks of code, which list numbers would tear apart."""
_NUMBERED = re.compile(r"\s*(?:\(?\d{1,3}[.)]|[-*\u2022])\s")
_WORDS = re.compile(r"(?<![\w*`-])[^\W\d_][^\W\d_'’]*(?: [^\W\d_][^\W\d_'’]*)?(?![\w*`'’-])")


def _plan_markup(shown: _Shown, rng: Random) -> Change | None:
    """A plan or a refusal becomes a numbered list; thoughts stay one paragraph."""
    names = {call.name for call in shown.item.prediction.calls if call.name}

    def edit(passage: Passage) -> str:
        text = passage.text
        if passage.place == "reason" or _MARKDOWN.search(text):
            return text
        if passage.place == "thought":
            return _bold(text, names)
        lines = sentences(text)
        has_numbers = any(map(_NUMBERED.match, lines))
        return "\n".join(
            ("" if has_numbers else f"{n}. ") + _bold(line, names)
            for n, line in enumerate(lines, 1)
        )

    return shown.parts and Change(reply=shown.parts.with_prose(edit))


def _bold(text: str, names: Collection[str]) -> str:
    """Tool names in bold; where there are none, the first two words."""
    if names:
        listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        marked, count = re.subn(rf"(?<![\w*`])(?:{listed})(?![\w*`])", r"**\g<0>**", text)
        if count:
            return marked
    return _WORDS.sub(r"**\g<0>**", text, count=1)


_LABEL = re.compile(r"\b(?:step|phase|stage|part|point|note|goal|plan)(?= \d|:)", re.IGNORECASE)
_FIRST = re.compile(r"^((?:\(?\d{1,3}[.)]|[-*\u2022])\s+)?([^\W\d_]+)(?=[\s,;:.!?]|$)")


def _label_case(shown: _Shown, rng: Random) -> Change | None:
    """First words of sentences in capitals, unless they are names or parts of values."""
    names = _names(shown)

    def edit(passage: Passage) -> str:
        text, parts, at = passage.text, [""], 0
        for sentence in sentences(text):
            found = text.find(sentence, at)
            if found >= 0:
                first = _FIRST.match(sentence)
                if first and first[2] not in names:
                    loud = (first[1] or "") + first[2].upper() + sentence[first.end() :]
                else:
                    loud = sentence
                parts += [text[at:found], loud]
                at = found + len(sentence)
        return _LABEL.sub(lambda match: match[0].upper(), "".join([*parts, text[at:]]))

    return shown.parts and Change(reply=shown.parts.with_prose(edit))


_IN_MIDDLE = re.compile(r"[\w,;:(\"'-] *[\"'(]?([A-Z][^\W\d_]*)")
_ANY_WORD = re.compile(r"[^\W\d_]+")


def _names(shown: _Shown) -> frozenset[str]:
    """Words that may be names: those of tools, of arguments, and capitalised amid a sentence."""
    item = shown.item
    calls = [[call.name, call.arguments] for call in item.prediction.calls]
    texts = [item.query, item.system_prompt, orjson.dumps(item.trajectory).decode()]
    texts += [passage.text for passage in shown.parts.passages] if shown.parts else []
    listed = sorted(item.tools.names) if item.tools else []
    fixed = _ANY_WORD.findall(orjson.dumps([calls, listed]).decode())
    return frozenset(word for text in texts for word in _IN_MIDDLE.findall(text)).union(fixed)


_PICTURE = re.compile(
    r"\b(?:images?|pictures?|photos?|photographs?|files?|pages?|shots?|screenshots?|scans?|frames?)\b",
    re.IGNORECASE,
)
_BY_PLACE = re.compile(
    r"\b(?:first|second|third|fourth|fifth|sixth|last|final|next|previous|earlier|later|before|after"
    r"|former|latter|order|sequence|one|two|three|four|\d+)\b",
    re.IGNORECASE,
)


def _image_order(shown: _Shown, rng: Random) -> Change | None:
    """Only of pictures that nobody speaks of by their place; frames of a video have an order."""
    item = shown.item
    pictures = [file for file in item.files if is_image(file)]
    if len(pictures) < 2 or any("video" in file.type.lower() for file in item.files):
        return None
    texts = [item.query, item.system_prompt, *map(str, item.trajectory)]
    texts += [passage.text for passage in shown.parts.passages] if shown.parts else []
    if item.reference:
        texts += [item.reference.plan, *(step.thought for step in item.reference.steps)]
    told = [sentence for text in texts for sentence in sentences(text)]
    if any(_PICTURE.search(sentence) and _BY_PLACE.search(sentence) for sentence in told):
        return None
    return Change(case={"files": shown.parent.row["files"][::-1]})


def _line_breaks(shown: _Shown, rng: Random) -> Change | None:
    return shown.parts and Change(reply=orjson.dumps(shown.parts.value).decode())


def _crlf(shown: _Shown, rng: Random) -> Change | None:
    if shown.parts is None:
        return None
    apart = shown.parts.with_prose(lambda passage: "\r\n\r\n".join(sentences(passage.text)))
    return Change(reply=apart.text.replace("\n", "\r\n"))


_MAKERS: Mapping[str, Callable[[_Shown, Random], Change | None]] = {
    "tool-order": _tool_order,
    "reference-wording": _reference_wording,
    "key-order": _key_order,
    "markdown": _markdown,
    "plan-markup": _plan_markup,
    "label-case": _label_case,
    "image-order": _image_order,
    "line-breaks": _line_breaks,
    "crlf": _crlf,
}
