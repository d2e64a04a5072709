"""The same plan shown in another way: a judge's verdict must not hang on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import orjson

from ...protocols.images import is_image
from ...records import Item
from ..variants import Variant
from .bases import Base
from .prose import kept, passages, reply_value, reworked, rewritten, sentences, turned, written
from .references import retold


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is shown in another way.

    Attributes:
        reply: The raw reply, None for that of the parent.
        case: Fields of the row that change.
    """

    reply: str | None = None
    case: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatChange:
    """One way of way the same.

    Attributes:
        name: Machine name.
        what: One sentence on it.
        change: Makes it; None where the case gives no occasion.
    """

    name: str
    what: str
    change: Callable[[_Given, Random], Change | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What is to be shown, read once.

    Attributes:
        base: The base.
        parent: The variant.
        item: The variant as an item.
        value: Its reply as JSON values.
    """

    base: Base
    parent: Variant
    item: Item
    value: Any


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
    wanted = [way for way in FORMAT_CHANGES if kinds is None or way.name in kinds]
    return kept(base, parent, _in_every_way(base, parent, wanted, seed))


def _in_every_way(
    base: Base, parent: Variant, wanted: Sequence[FormatChange], seed: int
) -> Iterator[Variant | None]:
    given = _Given(base=base, parent=parent, item=base.read(parent), value=reply_value(parent))
    for way in wanted:
        yield _shown(given, way, seed)


def _shown(given: _Given, way: FormatChange, seed: int) -> Variant | None:
    base, parent = given.base, given.parent
    change = way.change(given, Random(f"{seed}/{parent.name}/{way.name}"))  # noqa: S311
    if change is None:
        return None
    return base.derived(
        "shown",
        way.name,
        what=way.what,
        truth=parent.truth,
        reply=change.reply,
        case=change.case,
        parent=parent,
    )


def _tool_order(given: _Given, rng: Random) -> Change | None:
    """Shuffles; where names are defined twice the first definition counts, so those stay."""
    tools = given.parent.row.get("tools")
    defined = given.base.item.tools.tools if given.base.item.tools else ()
    if not isinstance(tools, list) or len({tool.name for tool in defined}) != len(defined):
        return None
    listed = cast("list[Any]", tools)
    shuffled = rng.sample(listed, len(listed))
    if shuffled == listed:
        shuffled = listed[1:] + listed[:1]
    return Change(case={"tools": shuffled}) if shuffled != listed else None


def _reference_wording(given: _Given, rng: Random) -> Change | None:
    """The words of the expert's solution; a case without a solution has none that counts."""
    case = retold(given.base, given.parent)
    return Change(case=case) if case else None


def _key_order(given: _Given, rng: Random) -> Change | None:
    value = given.value
    return None if value is None else Change(reply=written(turned(value)))


def _markdown(given: _Given, rng: Random) -> Change | None:
    value = given.value
    if value is None:
        return None
    head = "# Answer\n\nThe answer stands in the block below.\n\n"
    return Change(reply=f"{head}```json\n{written(value)}\n```\n")


def _plan_markup(given: _Given, rng: Random) -> Change | None:
    """A plan or a refusal becomes a numbered list; thoughts stay one paragraph."""
    value = given.value
    names = {call.name for call in given.item.prediction.calls if call.name}
    changes = {
        passage.path: _bold(passage.text, names)
        if passage.place == "thought"
        else _listed(passage.text, names)
        for passage in passages(value)
        if passage.place != "reason" and not _MARKDOWN.search(passage.text)
    }
    return Change(reply=written(rewritten(value, changes))) if changes else None


_MARKDOWN = re.compile(r"^\s*(?:#|\||```|~~~)", re.MULTILINE)
"""Headings, tables and blocks of code, which list numbers would tear apart."""

_NUMBERED = re.compile(r"\s*(?:\(?\d{1,3}[.)]|[-*\u2022])\s")


def _listed(text: str, names: Collection[str]) -> str:
    lines = sentences(text)
    has_numbers = any(_NUMBERED.match(line) for line in lines)
    return "\n".join(
        _bold(line, names) if has_numbers else f"{n}. {_bold(line, names)}"
        for n, line in enumerate(lines, 1)
    )


_WORDS = re.compile(r"(?<![\w*`-])[^\W\d_][^\W\d_'’]*(?: [^\W\d_][^\W\d_'’]*)?(?![\w*`'’-])")


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


def _label_case(given: _Given, rng: Random) -> Change | None:
    names = _names(given)
    after = reworked(given.parent, lambda text: _loud(text, names))
    return None if after is None else Change(reply=written(after))


def _loud(text: str, names: Collection[str]) -> str:
    parts, at = [""], 0
    for sentence in sentences(text):
        found = text.find(sentence, at)
        if found >= 0:
            parts += [text[at:found], _loud_start(sentence, names)]
            at = found + len(sentence)
    return _LABEL.sub(lambda match: match.group().upper(), "".join([*parts, text[at:]]))


def _loud_start(sentence: str, names: Collection[str]) -> str:
    """The first word in capitals, unless it is a name or a part of a value."""
    match = _FIRST.match(sentence)
    if match is None or match[2] in names:
        return sentence
    return f"{match[1] or ''}{match[2].upper()}{sentence[match.end() :]}"


_IN_MIDDLE = re.compile(r"[\w,;:(\"'-] *[\"'(]?([A-Z][^\W\d_]*)")
_ANY_WORD = re.compile(r"[^\W\d_]+")


def _names(given: _Given) -> frozenset[str]:
    """Words that may be names: those of tools, of arguments, and capitalised amid a sentence."""
    item = given.item
    calls = [[call.name, call.arguments] for call in item.prediction.calls]
    told = [item.query, item.system_prompt, orjson.dumps(item.trajectory).decode()]
    prose = [passage.text for passage in passages(given.value)]
    spoken = {word for text in (*told, *prose) for word in _IN_MIDDLE.findall(text)}
    listed = item.tools.names if item.tools else frozenset[str]()
    fixed = _ANY_WORD.findall(orjson.dumps([calls, sorted(listed)]).decode())
    return frozenset(spoken).union(fixed)


_PICTURE = re.compile(
    r"\b(?:images?|pictures?|photos?|photographs?|files?|pages?|shots?|screenshots?|scans?|frames?)\b",
    re.IGNORECASE,
)
_BY_PLACE = re.compile(
    r"\b(?:first|second|third|fourth|fifth|sixth|last|final|next|previous|earlier|later|before|after"
    r"|former|latter|order|sequence|one|two|three|four|\d+)\b",
    re.IGNORECASE,
)


def _image_order(given: _Given, rng: Random) -> Change | None:
    """Only of pictures that nobody speaks of by their place; frames of a video have an order."""
    item = given.item
    pictures = [file for file in item.files if is_image(file)]
    if len(pictures) < 2 or any("video" in file.type.lower() for file in item.files):
        return None
    if any(_counts_pictures(sentence) for sentence in _told(given)):
        return None
    return Change(case={"files": given.parent.row["files"][::-1]})


def _counts_pictures(sentence: str) -> bool:
    """Whether a sentence may speak of a picture by its place; many that don't are suspected too."""
    return bool(_PICTURE.search(sentence) and _BY_PLACE.search(sentence))


def _told(given: _Given) -> Iterator[str]:
    """Every sentence about the case: of query, prompt, trajectory, reply and reference."""
    item = given.item
    texts = [item.query, item.system_prompt, *map(str, item.trajectory)]
    texts += [passage.text for passage in passages(given.value)]
    if item.reference:
        texts += [item.reference.plan, *(step.thought for step in item.reference.steps)]
    for text in texts:
        yield from sentences(text)


def _one_line(given: _Given, rng: Random) -> Change | None:
    value = given.value
    return None if value is None else Change(reply=orjson.dumps(value).decode())


def _crlf(given: _Given, rng: Random) -> Change | None:
    value = given.value
    changes = {p.path: "\r\n\r\n".join(sentences(p.text)) for p in passages(value)}
    if value is None:
        return None
    return Change(reply=written(rewritten(value, changes)).replace("\n", "\r\n"))


FORMAT_CHANGES: tuple[FormatChange, ...] = (
    FormatChange(
        name="tool-order",
        what="the tools are listed in another order",
        change=_tool_order,
    ),
    FormatChange(
        name="reference-wording",
        what="the reference says the same in other words, with the same calls",
        change=_reference_wording,
    ),
    FormatChange(
        name="key-order",
        what="the keys of every JSON object in the reply stand in reverse order",
        change=_key_order,
    ),
    FormatChange(
        name="markdown",
        what="the reply stands in a fenced block of Markdown, under a heading",
        change=_markdown,
    ),
    FormatChange(
        name="plan-markup",
        what="the prose of the reply has list numbers and bold words; the words are the same",
        change=_plan_markup,
    ),
    FormatChange(
        name="label-case",
        what="labels and first words of the sentences in the reply are in capitals",
        change=_label_case,
    ),
    FormatChange(
        name="image-order",
        what="the files are listed, and the pictures shown, in reverse order",
        change=_image_order,
    ),
    FormatChange(
        name="line-breaks",
        what="the reply stands on a single line",
        change=_one_line,
    ),
    FormatChange(
        name="crlf",
        what="lines end in CR and LF, and blank lines part the sentences of the reply",
        change=_crlf,
    ),
)
"""Every way of way the same, in the order in which they are offered."""
