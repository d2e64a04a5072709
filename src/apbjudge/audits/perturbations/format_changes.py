"""The same plan shown in another way: a judge's verdict must not depend on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import orjson

from ...protocols.images import is_image
from .kinds import Change, Makers, Occasion, by_name
from .parts import Passage, sentences, with_reversed_keys
from .references import retold_reference


def _prose(on: Occasion) -> list[str]:
    """Prose of the case and of the reply."""
    passages = on.parts.passages if on.parts else ()
    return [on.item.query, on.item.system_prompt, *(passage.text for passage in passages)]


def _tool_order(on: Occasion) -> Iterator[Change]:
    """Shuffles the tools; not if a name is defined twice, as its first definition counts."""
    tools = on.parent.row.get("tools")
    defined = on.tools.tools if on.tools else ()
    if not isinstance(tools, list) or len({tool.name for tool in defined}) != len(defined):
        return
    listed = cast("list[Any]", tools)
    shuffled = on.rng.sample(listed, len(listed))
    yield Change(case={"tools": listed[1:] + listed[:1] if shuffled == listed else shuffled})


def _reference_wording(on: Occasion) -> Iterator[Change]:
    """Rewords the expert's solution; not that of an unsolvable case, which does not count."""
    if case := retold_reference(on):
        yield Change(case=case)


def _key_order(on: Occasion) -> Iterator[Change]:
    if on.parts:
        yield Change(with_reversed_keys(on.parts))


def _markdown(on: Occasion) -> Iterator[Change]:
    head = "# Answer\n\nThe answer stands in the block below.\n\n"
    if on.parts:
        yield Change(f"{head}```json\n{on.parts.text}\n```\n")


_MARKDOWN = re.compile(r"^[^\S\n]*(?:#|\||```|~~~)", re.MULTILINE)
"""Headings, tables and blocks of code, which list numbers would break."""
_NUMBERED = re.compile(r"\s*(?:\(?\d{1,3}[.)]|[-*\u2022])\s")
_WORDS = re.compile(r"(?<![\w*`-])[^\W\d_][^\W\d_'’]*(?: [^\W\d_][^\W\d_'’]*)?(?![\w*`'’-])")


def _plan_markup(on: Occasion) -> Iterator[Change]:
    """Adds Markdown: a plan or refusal becomes a numbered list; a thought stays a paragraph."""
    names = {call.name for call in on.item.prediction.calls if call.name}
    listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))

    def bold(text: str) -> str:
        """Sets tool names in bold; if there are none, the first two words."""
        marked = (
            re.sub(rf"(?<![\w*`])(?:{listed})(?![\w*`])", r"**\g<0>**", text) if names else text
        )
        return marked if marked != text else _WORDS.sub(r"**\g<0>**", text, count=1)

    def edit(passage: Passage) -> str:
        text = passage.text
        if passage.place == "reason" or _MARKDOWN.search(text):
            return text
        if passage.place == "thought":
            return bold(text)
        lines = sentences(text)
        has_numbers = any(map(_NUMBERED.match, lines))
        numbers = ("" if has_numbers else f"{n}. " for n in range(1, len(lines) + 1))
        return "\n".join(number + bold(line) for number, line in zip(numbers, lines, strict=True))

    if on.parts:
        yield Change(on.parts.with_prose(edit))


_LABEL = re.compile(r"\b(?:step|phase|stage|part|point|note|goal|plan)(?= \d|:)", re.IGNORECASE)
_FIRST = re.compile(r"((?:\(?\d{1,3}[.)]|[-*\u2022])\s+)?([^\W\d_]+)(?=[\s,;:.!?]|$)")
_IN_MIDDLE = re.compile(r"[\w,;:(\"'-] *[\"'(]?([A-Z][^\W\d_]*)")


def _label_case(on: Occasion) -> Iterator[Change]:
    """Capitalises labels ("step 1"), and first words that are not names or parts of values."""
    item = on.item
    calls = [[call.name, call.arguments] for call in item.prediction.calls]
    fixed = orjson.dumps([calls, sorted(item.tools.names) if item.tools else []]).decode()
    names = set(re.findall(r"[^\W\d_]+", fixed))
    for text in (*_prose(on), orjson.dumps(item.trajectory).decode()):
        names.update(_IN_MIDDLE.findall(text))  # capitalised amid a sentence

    def edit(passage: Passage) -> str:
        text, at = passage.text, 0
        for sentence in sentences(text):
            start = text.find(sentence, at)
            if start < 0:
                continue
            at = start + len(sentence)
            first = _FIRST.match(sentence)
            if first and first[2] not in names:
                upper = first[2].upper()
                text = text[: start + first.start(2)] + upper + text[start + first.end(2) :]
                at += len(upper) - len(first[2])
        return _LABEL.sub(lambda match: match[0].upper(), text)

    if on.parts:
        yield Change(on.parts.with_prose(edit))


_PICTURE = re.compile(
    r"\b(?:images?|pictures?|photos?|photographs?|files?|pages?|shots?|screenshots?|scans?|frames?)\b",
    re.IGNORECASE,
)
_BY_PLACE = re.compile(
    r"\b(?:first|second|third|fourth|fifth|sixth|last|final|next|previous|earlier|later|before|after"
    r"|former|latter|order|sequence|one|two|three|four|\d+)\b",
    re.IGNORECASE,
)


def _image_order(on: Occasion) -> Iterator[Change]:
    """Reverses pictures, unless a text names one by its place or they are frames of a video."""
    item = on.item
    pictures = [file for file in item.files if is_image(file)]
    if len(pictures) < 2 or any("video" in file.type.lower() for file in item.files):
        return
    texts = [*_prose(on), *map(str, item.trajectory)]
    if item.reference:
        texts += [item.reference.plan, *(step.thought for step in item.reference.steps)]
    spoken = [sentence for text in texts for sentence in sentences(text)]
    if not any(_PICTURE.search(sentence) and _BY_PLACE.search(sentence) for sentence in spoken):
        yield Change(case={"files": on.parent.row["files"][::-1]})


def _line_breaks(on: Occasion) -> Iterator[Change]:
    if on.parts:
        yield Change(orjson.dumps(on.parts.value).decode())


def _crlf(on: Occasion) -> Iterator[Change]:
    if parts := on.parts:
        apart = parts.with_prose(lambda passage: "\r\n\r\n".join(sentences(passage.text)))
        yield Change(apart.text.replace("\n", "\r\n"))


MAKERS: Makers = by_name(
    _tool_order,
    _reference_wording,
    _key_order,
    _markdown,
    _plan_markup,
    _label_case,
    _image_order,
    _line_breaks,
    _crlf,
)
