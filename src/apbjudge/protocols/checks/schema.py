"""JSON Schema, as far as a violation proves a wrong call, with bounded work.

The keywords are those of jsonschema. A schema is foreign input, so it is rewritten first: the
result has only well-formed keywords and names no other document or dialect. Steps and levels are
counted, since a few references that double at each level, or are circular, can take practically
forever; a check that takes too many ends with ``UncheckedError``.

Left out on purpose: ``pattern`` and ``format`` (dialects differ, and a hostile pattern can hang),
``not`` and conditionals (rarely written as meant), ``$dynamicRef``. ``oneOf`` is read as
``anyOf``. Only references inside the schema (``#/...``) are followed. A keyword whose own value is
malformed proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import orjson
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from ...errors import shorten
from ...records.loose_json import as_list, as_object
from ...records.parameters import COERCIBLE
from .values import LONGEST_MARK, is_placeholder

MAX_STEPS = 20_000
"""Steps for the arguments of one call: half a second or so; usual calls take dozens."""
LARGEST_KEPT = 1 << 16
"""Limit in bytes of a schema whose rewritten form is cached for the next call."""
MAX_DEPTH = 120
"""Levels of nesting, references included, so that no recursion gets near Python's limit."""
_TOO_DEEP = (
    f"they and the schema are nested more than {MAX_DEPTH} levels, or a reference leads to itself"
)


class Violation(NamedTuple):
    """A violation of a schema.

    Attributes:
        path: Path of the value inside the arguments, such as ``.passengers[0].dob``.
        rule: Name of the violated rule.
        message: One sentence.
        value: The value at fault.
    """

    path: str
    rule: str
    message: str
    value: Any


class UncheckedError(Exception):
    """Arguments can't be checked against a schema within the bounds; the text names the bound."""


class Steps:
    """A number of steps that may still be taken.

    Args:
        limit: Number of steps.
        what: Their purpose, in words.
    """

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self.taken = 0
        self.depth = 0

    def take(self, count: int) -> None:
        """Counts steps.

        Raises:
            UncheckedError: If there are more than the limit.
        """
        self.taken += count
        if self.taken > self._limit:
            raise UncheckedError(f"that takes more than {self._limit} steps for {self._what}")


def violations(
    schema: Mapping[str, Any],
    arguments: Mapping[str, Any],
    *,
    placeholders: bool = False,
    steps: Steps | None = None,
) -> tuple[Violation, ...]:
    """The violations by a call's arguments.

    Args:
        schema: The tool's parameters.
        arguments: The arguments, as JSON values.
        placeholders: True if a value may be a placeholder for a result still to come, which fits
            everything; its surroundings are checked nevertheless.
        steps: Steps left for several calls together; this one is counted there.

    Raises:
        UncheckedError: If that takes too many steps or levels.
    """
    if steps is not None:
        steps.take(0)  # none are left: no further call is checked
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:  # such as a number of more than 64 bits
        text = b""
    is_kept = 0 < len(text) <= LARGEST_KEPT
    validator = _validator(text) if is_kept else _Validator(_provable(schema))
    taken = Steps(MAX_STEPS, "one call")
    token = _steps.set(taken)
    try:
        errors = [*validator.iter_errors(_resolvable(arguments) if placeholders else arguments)]
    except RecursionError:
        raise UncheckedError(_TOO_DEEP) from None
    finally:
        _steps.reset(token)
        if steps is not None:
            steps.take(taken.taken)
    return tuple({(each.path, each.message): each for each in _faults(errors, arguments)}.values())


# The schema ---------------------------------------------------------------------------------------

_SOURCE = "x-source"
"""Key of the original of a rewritten part, for messages."""


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Any:
    return _Validator(_provable(orjson.loads(schema)))


_KINDS = ("string", "integer", "number", "boolean", "array", "object", "null")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("minItems", "maxItems")
_LENGTHS = ("minLength", "maxLength", *_COUNTS)
_is_type = Draft202012Validator.TYPE_CHECKER.is_type


def _is_well_formed(keyword: str, wanted: Any) -> bool:
    """True if a keyword without parts is known, and its value is valid."""
    match keyword:
        case "type" | "required":
            texts = as_list(wanted) or [wanted]
            is_known = all(isinstance(each, str) for each in texts)
            return is_known and all(each in _KINDS for each in texts if keyword == "type")
        case "enum":
            return isinstance(wanted, list)
        case "const":
            return True
        case _:
            is_number = keyword in (*_NUMBERS, *_LENGTHS) and _is_type(wanted, "number")
            return is_number and (wanted >= 0 or keyword in _NUMBERS)


def _provable(root: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without parts that prove nothing; references hold their targets."""
    parts: dict[int, dict[str, Any]] = {}
    left: list[tuple[Mapping[str, Any], dict[str, Any]]] = []

    def part(node: object) -> dict[str, Any]:
        spec: Any = {"enum": []} if node is False else as_object(node)
        if spec is None or ("$id" in spec and spec is not root):
            return {}
        if id(spec) not in parts:
            parts[id(spec)] = {_SOURCE: spec}  # keeps the id in use
            left.append((spec, parts[id(spec)]))
        return parts[id(spec)]

    schema, steps = part(root), Steps(MAX_STEPS, "one schema")
    while left:
        spec, provable = left.pop()
        steps.take(1 + len(spec))
        for keyword, wanted in spec.items():
            if _is_well_formed(keyword, wanted):
                provable[keyword] = wanted
            elif (inner := _rewritten(keyword, spec, root, part)) is not None:
                provable[keyword] = inner
    return schema


def _rewritten(
    keyword: str, spec: Mapping[str, Any], root: Mapping[str, Any], part: Callable[[object], Any]
) -> Any:
    """A keyword with parts, reduced to what can be proven; None if nothing can."""
    wanted = spec[keyword]
    fields, listed = as_object(wanted), as_list(wanted)
    match keyword:
        case "$ref":
            return part(_target(root, wanted))
        case "properties" if fields is not None:
            return {name: part(each) for name, each in fields.items()}
        case "allOf" | "anyOf" | "oneOf" | "prefixItems" if listed is not None:
            return [*map(part, listed)]
        case "items" if listed is None and isinstance(spec.get("prefixItems", []), list):
            return part(wanted)
        case "additionalProperties" if _names_are_known(spec):
            return wanted is not False and part(wanted)
        case _:
            return None


def _names_are_known(spec: Mapping[str, Any]) -> bool:
    """True if additional names are certain: patterns never run."""
    return "patternProperties" not in spec and isinstance(spec.get("properties", {}), dict)


def _target(root: Mapping[str, Any], reference: object) -> object:
    """Target of a reference; None if it leads nowhere, or into another document."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    node: Any = root
    for name in unquote(reference).split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901
        fields, listed = as_object(node), as_list(node)
        if listed is not None and name.isdecimal() and len(name) < 7:
            node = listed[int(name)] if int(name) < len(listed) else None
        else:
            node = fields.get(name) if fields is not None else None
        if "$id" in (as_object(node) or ()):
            return None
    return node


# The keywords -------------------------------------------------------------------------------------


class _Unknown:
    """A value still to come, which equals every other."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


_UNKNOWN = _Unknown()


def _resolvable(value: Any) -> Any:
    """A value with ``_UNKNOWN`` in place of possible placeholders."""
    if is_placeholder(value):
        return _UNKNOWN
    if (fields := as_object(value)) is not None:
        return {name: _resolvable(each) for name, each in fields.items()}
    listed = as_list(value)
    return value if listed is None else [_resolvable(each) for each in listed]


_steps: ContextVar[Steps] = ContextVar("steps")
_Errors = Iterator[ValidationError]
_Keyword = Callable[[Any, Any, Any, Any], _Errors]


def _bounded(name: str, keyword: _Keyword) -> _Keyword:
    """A keyword that counts its steps, and that a value still to come does not violate."""

    def check(validator: Any, wanted: Any, value: Any, schema: Any) -> _Errors:
        if value is _UNKNOWN or (name in _COUNTS and _is_open(value)):
            return iter(())
        steps = _steps.get()
        size = len(as_list(wanted) or as_object(wanted) or ())
        size += len(as_list(value) or as_object(value) or ())
        is_text = name == "enum" and isinstance(value, str)
        steps.take(1 + (size // 64 if is_text else size))  # texts are compared at once
        if steps.depth >= MAX_DEPTH:
            raise UncheckedError(_TOO_DEEP)
        steps.depth += 1
        try:
            return iter([*keyword(validator, wanted, value, schema)])
        finally:
            steps.depth -= 1

    return check


def _is_open(value: object) -> bool:
    """True if a list has an entry that may become any number of entries."""
    return any(each is _UNKNOWN for each in as_list(value) or ())


def _additional(validator: Any, part: Any, value: Any, schema: Any) -> _Errors:
    known = schema.get("properties", ())
    names = [name for name in as_object(value) or () if name not in known]
    if part is False and names:
        yield ValidationError("has unknown fields")
    elif part is not False:
        for name in names:
            yield from validator.descend(value[name], part, path=name)


def _required(validator: Any, names: Any, value: Any, schema: Any) -> _Errors:
    if isinstance(value, dict) and (missing := [name for name in names if name not in value]):
        yield ValidationError(f"lacks {', '.join(missing)}")


def _type(validator: Any, kinds: Any, value: Any, schema: Any) -> _Errors:
    source = schema[_SOURCE]
    wanted = [kinds] if isinstance(kinds, str) else kinds
    spelled = _spellings(value) if source.get(COERCIBLE) is True else ()
    may_be_null = value is None and source.get("nullable") is True
    if not may_be_null and not any(
        _is_type(each, kind) for each in (value, *spelled) for kind in wanted
    ):
        yield ValidationError("")


def _spellings(value: object) -> Iterator[object]:
    """Values that a value may become: what a text spells, or the text of a number or Boolean."""
    if isinstance(value, int | float):
        yield ""
    elif isinstance(value, str) and len(value) <= LONGEST_MARK:
        with suppress(orjson.JSONDecodeError):
            yield orjson.loads(value.lower())


_KEYWORDS: Mapping[str, _Keyword] = Draft202012Validator.VALIDATORS
_OWN: Mapping[str, _Keyword] = {
    "$ref": lambda validator, part, value, schema: validator.descend(value, part),
    "additionalProperties": _additional,
    "required": _required,
    "type": _type,
    "oneOf": _KEYWORDS["anyOf"],
}
_NAMES = (
    *("enum const properties items prefixItems allOf anyOf".split()),
    *_NUMBERS,
    *_LENGTHS,
    *_OWN,
)
_Validator = cast("Any", validators).create(
    meta_schema={},
    validators={name: _bounded(name, _OWN.get(name) or _KEYWORDS[name]) for name in _NAMES},
    type_checker=Draft202012Validator.TYPE_CHECKER,
)

# Violations ---------------------------------------------------------------------------------------

_RULES = {
    "type": "wrong-type",
    "enum": "not-allowed-value",
    "const": "not-allowed-value",
    "required": "missing-parameter",
    "additionalProperties": "unknown-parameter",
}


def _faults(errors: Iterable[Any], arguments: Mapping[str, Any]) -> Iterator[Violation]:
    for error in errors:
        value: Any = arguments
        path = ""
        for step in error.absolute_path:
            value = value[step]
            path += f"[{step}]" if isinstance(step, int) else f".{step}"
        keyword, message = error.validator, error.message
        if keyword not in ("required", "additionalProperties"):
            wanted = error.schema[_SOURCE][keyword]
            message = f"{shorten(value, 60)} breaks {keyword} {shorten(wanted, 60)}"
        yield Violation(path, _RULES.get(keyword, "schema-violation"), message, value)
