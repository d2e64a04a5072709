"""A judge's reply as text: its unambiguous verdict, or the reason why it has none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import ReplyError
from ..records.loose_json import (
    THINKING_TAG,
    TRUTHS,
    Block,
    after_thinking,
    as_list,
    as_object,
    blocks,
    decodable,
)
from .base import Completion

T = TypeVar("T", bound=BaseModel)

_MOST_WRAPPINGS = 4


@dataclass(frozen=True, slots=True)
class ReplyReading(Generic[T]):
    """A reply that was read.

    Attributes:
        reply: The parsed reply.
        is_lenient: True if its syntax, a type or a wrapping differs from the request, or it is in
            the model's thinking. Prose and fences around JSON don't count.
    """

    reply: T
    is_lenient: bool


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """Another form of a reply, which maps to the requested fields.

    Attributes:
        keys: Other keys of fields, which only replies have.
        common_keys: Other keys of fields that data may have too, such as ``score``.
        within: Key of an object that may hold some of the fields; empty without.
        words: Words for the values of fields, by field, in lower case.
    """

    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    common_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    within: str = ""
    words: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    @property
    def names(self) -> tuple[str, ...]:
        """All keys of this form that the requested reply lacks."""
        return tuple(filter(None, (*self.keys, *self.common_keys, self.within)))

    def fields_of(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """The requested fields of a reply in this form; other fields stay as they are.

        Raises:
            ReplyError: If a field occurs twice with different values.
        """
        names = {**self.keys, **self.common_keys}
        inner = as_object(value.get(self.within)) or {}
        fields: dict[str, Any] = {}
        for key, each in chain(value.items(), inner.items()):
            name = names.get(key, key)
            if fields.setdefault(name, each) != each:
                raise ReplyError(f"{name}: stands twice, with different values")
        for name, words in self.words.items():
            if isinstance(word := fields.get(name), str):
                fields[name] = words.get(word.strip().lower(), word)
        return fields


OWN_FORM = ReplyForm()


def read_reply(
    text: str, reply: type[T], *, thinking: str = "", form: ReplyForm = OWN_FORM
) -> ReplyReading[T]:
    """Reads a judge's reply: JSON alone, in a fence, amid prose or after a thinking block.

    A reply that can only mean one thing is read even if it is not in the requested form: see
    ``blocks`` for the syntax; also ``"1.0"``, ``"False"``, 0 and 1 as the values that they spell,
    and an object in a list, in an object with one key, or as JSON in a string. Nothing is guessed:
    two objects that decide differently, a key that occurs twice with different values, and a field
    of the verdict outside of the object that is read are faults.

    Args:
        text: The reply's text.
        reply: The model that it must fit.
        thinking: The model's thinking, as the endpoint reports it. It is read if there is no other
            text, and only if it ends with its only verdict.
        form: Another form that it may have.

    Raises:
        ReplyError: ``unparsable``; the message names every fault and can be sent to the judge.
    """
    try:
        exact = reply.model_validate_json(text, strict=True)
        is_own = not form.names or not _any_key(form.names).search(text)
        if is_own and not any(block.fault for block in blocks(text, mends=True)):
            return ReplyReading(exact, is_lenient=False)
    except ValidationError:
        pass
    body = after_thinking(decodable(text))
    try:
        if body.strip():
            return _read(body, reply, form)
        return _of_thoughts(decodable(text.strip() or thinking), reply, form)
    except ReplyError as error:
        raise ReplyError(str(error)[:500], raw=text) from None


def _of_thoughts(text: str, reply: type[T], form: ReplyForm) -> ReplyReading[T]:
    """The only verdict in a model's thinking, at its end."""
    thoughts = THINKING_TAG.sub("", text)
    if not thoughts.strip():
        raise ReplyError("the reply is empty")
    try:
        return replace(_read(thoughts, reply, form, is_alone=True), is_lenient=True)
    except ReplyError as error:
        raise ReplyError(f"the reply is empty but for the model's thinking: {error}") from None


def _read(body: str, reply: type[T], form: ReplyForm, *, is_alone: bool = False) -> ReplyReading[T]:
    """The verdict of a text in which all verdicts agree, or which ends with its only one."""
    if THINKING_TAG.match(body.lstrip()):
        raise ReplyError("the reply ends within its thinking")
    if body.lstrip().startswith('"'):
        body = f"[{body.strip()}]"  # JSON in a string
    verdicts: list[ReplyReading[T]] = []
    rest: list[str] = []
    last, complaint = 0, ""
    for block in blocks(body, mends=True):
        try:
            read = _verdicts(block, reply, form)
        except ReplyError as error:
            complaint, read = str(error), []
        if read:
            verdicts += read
            rest.append(body[last : block.start])
            last = block.end
    rest.append(body[last:])
    keys = _any_key((*reply.model_fields, *form.keys))
    if any(keys.search(part) for part in rest):
        second = "a second verdict, besides a readable one, can't be read"
        raise ReplyError(second if verdicts else complaint or "the JSON object can't be read")
    if not verdicts:
        raise ReplyError(complaint or "no JSON object could be read")
    if len({repr(each.reply.model_dump(exclude={"reasoning"})) for each in verdicts}) > 1:
        raise ReplyError("it holds several verdicts that differ, expected one")
    if is_alone and (len(verdicts) > 1 or body[last:].strip("` \n\r\t")):
        raise ReplyError("it does not end with the only verdict in it")
    return ReplyReading(verdicts[-1].reply, any(each.is_lenient for each in verdicts))


def _verdicts(block: Block, reply: type[T], form: ReplyForm) -> list[ReplyReading[T]]:
    """The verdicts in a JSON value; none if it is not an object at all."""
    value, is_lenient = block.value, block.is_mended
    for _ in range(_MOST_WRAPPINGS):
        known, listed = as_object(value) or {}, as_list(value) or []
        inner = listed if len(listed) == 1 else [*known.values()] if len(known) == 1 else []
        if not inner or known.keys() & reply.model_fields.keys():
            break
        if isinstance(inner[0], str):
            inner = [each.value for each in blocks(inner[0], mends=True) if not each.fault]
        value, is_lenient = inner[0] if len(inner) == 1 else None, True
    values = as_list(value) or [value]
    objects = [each for each in map(as_object, values) if each is not None]
    more = "" if len(objects) == len(values) else "a list holds more than verdicts"
    if objects and (fault := block.fault or more):
        raise ReplyError(fault)
    return [_validated(each, reply, form, is_lenient=is_lenient) for each in objects]


def _validated(
    value: Mapping[str, Any], reply: type[T], form: ReplyForm, *, is_lenient: bool
) -> ReplyReading[T]:
    fields = form.fields_of(value)
    is_lenient = is_lenient or fields != value
    try:
        return ReplyReading(reply.model_validate(fields, strict=True), is_lenient)
    except ValidationError:
        spelled = {
            name: _as(reply.model_fields[name].annotation, each)
            for name, each in fields.items()
            if name in reply.model_fields
        }
    try:
        return ReplyReading(reply.model_validate(spelled, strict=True), is_lenient=True)
    except ValidationError as error:
        faults = (
            f"{'.'.join(map(str, e['loc'])) or 'reply'}: {e['msg']}"
            for e in error.errors(include_url=False, include_input=False)
        )
        raise ReplyError("; ".join(faults)) from None


def is_broken(reply: Completion) -> bool:
    """True if a reply is a refusal or cut off, so that nothing in it counts."""
    return bool(reply.refusal) or reply.finish_reason in ("length", "content_filter")


_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_TRUTHS = {word: truth for word, truth in TRUTHS.items() if word[0] not in "yn"}
"""Truth values in JSON; yes and no are words, which may belong to a sentence."""


def _as(kind: Any, value: object) -> object:
    """A value in the type that it spells; the value itself if it spells none."""
    if kind is bool:
        return _TRUTHS.get(str(value).strip().lower(), value)
    if kind in (int, float) and isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    return int(value) if kind is int and isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=64)
def _any_key(keys: tuple[str, ...]) -> re.Pattern[str]:
    """One of the keys, in the position of an object's key."""
    names = "|".join(map(re.escape, keys))
    return re.compile(rf"(?:[\"']|\{{\s*)(?:{names})\\*[\"']?\s*:")
