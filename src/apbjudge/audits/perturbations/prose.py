"""The prose of a reply: where it stands, how to change it, and that nothing else changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson

from ...errors import RowError
from ...records import Item
from ..variants import Variant
from .bases import Base

Place = Literal["plan", "reason", "thought", "refusal"]
Path = tuple[str | int, ...]
"""Keys and positions that lead to a value inside a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of prose in a reply.

    Attributes:
        place: What it is.
        path: Where it stands.
        text: The prose, never blank.
        tools: Names of the tools called beside it: one for a reason, any number for a thought,
            none for the prose of a plan.
    """

    place: Place
    path: Path
    text: str
    tools: tuple[str, ...] = ()


def reply_value(variant: Variant) -> Any:
    """The reply as JSON values; None where it is anything but one JSON object or array."""
    try:
        value: Any = orjson.loads(variant.row["model_response"])
    except orjson.JSONDecodeError:
        return None
    return cast("Any", value) if isinstance(value, dict | list) else None


def turned(value: Any) -> Any:
    """A JSON value with the keys of all its objects in reverse order."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {key: turned(child) for key, child in reversed(fields)}
    if isinstance(value, list):
        return [turned(child) for child in cast("list[Any]", value)]
    return value


def written(value: Any) -> str:
    """A reply as the drafts write it."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def passages(value: Any) -> tuple[Passage, ...]:
    """All prose of a reply in the benchmark's form, in order; blank texts are none."""
    return tuple(passage for passage in _all(value) if passage.text.strip())


def _all(value: Any) -> Iterator[Passage]:
    if isinstance(value, list):
        for i, message in enumerate(cast("list[Any]", value)):
            yield from _thought(message, (i,))
    elif isinstance(value, dict):
        spec = cast("dict[str, Any]", value)
        if spec.get("status") == "REJECT":
            yield from _at(spec, "reason", "refusal", ())
        elif "tool_chain" in spec:
            yield from _at(spec, "plan", "plan", ())
            yield from _reasons(spec["tool_chain"])
        else:
            yield from _thought(spec, ())


def _reasons(chain: Any) -> Iterator[Passage]:
    for i, call in enumerate(objects(chain)):
        yield from _at(call, "reason", "reason", ("tool_chain", i), (str(call.get("name", "")),))


def _thought(message: Any, path: Path) -> Iterator[Passage]:
    for spec in objects([message]):
        bodies = objects([call.get("function") for call in objects(spec.get("tool_calls"))])
        names = tuple(str(body.get("name", "")) for body in bodies)
        yield from _at(spec, "thought", "thought", path, names)


def _at(
    spec: Mapping[str, Any], key: str, place: Place, path: Path, tools: tuple[str, ...] = ()
) -> Iterator[Passage]:
    text = spec.get(key)
    if isinstance(text, str):
        yield Passage(place=place, path=(*path, key), text=text, tools=tools)


def objects(value: Any) -> list[dict[str, Any]]:
    """The entries of a list if all of them are objects, else none."""
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return listed if all(isinstance(entry, dict) for entry in listed) else []


def rewritten(value: Any, changes: Mapping[Path, Any], at: Path = ()) -> Any:
    """A copy of a JSON value with other values in some places.

    Args:
        value: The value; stays as it is.
        changes: What comes where.
        at: Where ``value`` itself stands.
    """
    if at in changes:
        return changes[at]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: rewritten(child, changes, (*at, key)) for key, child in items}
    if isinstance(value, list):
        listed = enumerate(cast("list[Any]", value))
        return [rewritten(child, changes, (*at, i)) for i, child in listed]
    return value


def reworked(variant: Variant, change: Callable[[str], str]) -> Any:
    """A variant's reply with all its prose changed; None where nothing in it changes."""
    value = reply_value(variant)
    changes = {passage.path: change(passage.text) for passage in passages(value)}
    after = rewritten(value, changes)
    return after if after != value else None


_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+(?=[^\W\d_a-z])|\s*\n\s*")
_ABBREVIATIONS = ("Dr.", "Mr.", "Ms.", "Mrs.", "St.", "Prof.", "No.", "e.g.", "i.e.", "vs.")


def sentences(text: str) -> list[str]:
    """Sentences and lines of prose, without the blanks between them; none is empty."""
    found: list[str] = []
    for part in _SENTENCE_END.split(text.strip()):
        if found and _is_open(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        elif part:
            found.append(part)
    return found


def _is_open(part: str) -> bool:
    """Whether a full stop at the end is no end of a sentence: an initial, a number, a title."""
    last = part.rsplit(maxsplit=1)[-1]
    return (
        part.endswith(_ABBREVIATIONS) or re.fullmatch(r"\(?(?:[A-Z]|\d{1,3})\.", last) is not None
    )


def planned(
    base: Base, variant: Variant, *, apart_from: tuple[int, str] | None = None
) -> tuple[object, ...] | None:
    """What a variant plans, as far as code can tell: equal for variants that plan the same.

    Kind of the reply, faults of its form, its calls step by step with all arguments, the category
    that follows from names, and every proven finding.

    Args:
        base: Its base.
        variant: The variant.
        apart_from: An argument whose value does not count: number of the call and name of the
            parameter.

    Returns:
        Something to be compared; None where the row can't be read.
    """
    try:
        item = base.read(variant)
    except RowError:
        return None
    return (*_calls(item, apart_from), *_facts(base, item))


def _calls(item: Item, apart_from: tuple[int, str] | None) -> list[object]:
    at, parameter = apart_from or (-1, "")
    prediction = item.prediction
    found: list[object] = [prediction.kind, [len(step.calls) for step in prediction.steps]]
    for n, call in enumerate(prediction.calls):
        arguments = dict(call.arguments) if call.arguments is not None else None
        if n == at and arguments:
            arguments[parameter] = type(arguments.get(parameter))
        found.append((call.name, arguments))
    return found


def _facts(base: Base, item: Item) -> tuple[object, ...]:
    found = base.find(item)
    proven = Counter((f.rule, f.code, f.where) for f in found if f.certainty == "proven")
    return proven, item.prediction.problems, base.protocol.categorise(item)


def kept(base: Base, parent: Variant, made: Iterable[Variant | None]) -> tuple[Variant, ...]:
    """Of variants that were tried those that differ from the parent and plan the same."""
    before = planned(base, parent)
    if before is None:
        return ()
    there = (variant for variant in made if variant is not None)
    return tuple(v for v in there if _differs(parent, v) and planned(base, v) == before)


def _differs(parent: Variant, variant: Variant) -> bool:
    """Whether a judge would be shown anything else: the order of keys counts, the id does not."""
    before, after = (_shown(one.row) for one in (parent, variant))
    if list(before) != list(after):
        return True
    return any(_is_other(value, after[name]) for name, value in before.items())


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}


def _is_other(value: Any, new: Any) -> bool:
    return value is not new and orjson.dumps(value) != orjson.dumps(new)
