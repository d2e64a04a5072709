"""JSON Schema, as far as a breach of it proves a wrong call, with bounded work.

A schema is foreign input: a few references that double at each level can ask for more steps than
anybody can wait for. Each part of a schema is therefore held only once against each value, every
step is counted, and a check that takes too many ends with ``UncheckedError``. A general validator
offers neither, nor values that are not known yet (``placeholders``).

Left out on purpose: ``pattern`` and ``format`` (dialects differ, and a hostile pattern can hang),
``not`` and conditionals (rarely written as meant), ``$dynamicRef``. ``oneOf`` is read as
``anyOf``. Only references inside the schema (``#/...``) are followed. A keyword whose own value is
malformed proves nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from ...errors import shorten
from ...records.loose_json import as_list, as_object
from ...records.parameters import COERCIBLE
from .values import LONGEST_MARK, is_placeholder

MAX_STEPS = 100_000
"""Steps for the arguments of one call: a tenth of a second or so; usual calls take dozens."""
MAX_DEPTH = 120
"""Levels of nesting, references included, so that no recursion gets near Python's limit."""
_TOO_DEEP = f"they and the schema are nested more than {MAX_DEPTH} levels"


class Violation(NamedTuple):
    """A breach of a schema.

    Attributes:
        path: Path of the value inside the arguments, such as ``.passengers[0].dob``.
        rule: Name of the rule broken.
        message: One sentence.
        value: The value at fault.
    """

    path: str
    rule: str
    message: str
    value: Any


class UncheckedError(Exception):
    """Arguments can't be held against a schema within the bounds; the text says which."""


class Steps:
    """A number of steps that may still be taken.

    Args:
        limit: How many.
        what: What they are meant for, in words.
    """

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self.taken = 0

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
    """The breaches that a call's arguments make.

    Args:
        schema: The tool's parameters.
        arguments: The arguments, as JSON values.
        placeholders: Whether a value may stand for a result still to come, and then fits
            everything; what stands around it is held against the schema all the same.
        steps: Steps left to several calls together; those taken here are counted there.

    Raises:
        UncheckedError: If that takes too many steps or levels.
    """
    if steps is not None:
        steps.take(0)  # none are left: not even one more call is looked at
    check = _Check(schema, placeholders=placeholders)
    try:
        check.collect(schema, arguments, "", 0)
    except RecursionError:
        raise UncheckedError(_TOO_DEEP) from None
    finally:
        if steps is not None:
            steps.take(check.steps.taken)
    return tuple(check.breaches)


class _Check:
    """One call's arguments against one schema."""

    def __init__(self, root: Mapping[str, Any], *, placeholders: bool) -> None:
        self._root = root
        self._placeholders = placeholders
        self._visited: set[tuple[int, str]] = set()
        self._fits: dict[tuple[int, int], bool] = {}
        self._unknown: dict[int, bool] = {}
        self.steps = Steps(MAX_STEPS, "one call")
        self.breaches: list[Violation] = []

    def collect(self, schema: Any, value: Any, path: str, depth: int) -> None:
        """Adds the breaches of a value; of the same part at the same place, only once."""
        if (id(schema), path) in self._visited or self._is_unknown(value):
            return
        self._visited.add((id(schema), path))
        spec = self._enter(schema, value, path, depth)
        for keyword, wanted in spec.items():
            if (inside := _INSIDE.get(keyword)) is not None:
                for part, child, step in inside(self, wanted, value, spec):
                    self.collect(part, child, path + step, depth + 1)
            if (holds := _HOLDS.get(keyword)) and not holds(self, wanted, value, spec, depth):
                self.breaches.append(_violation(keyword, wanted, value, path))

    def fits(self, schema: Any, value: Any, depth: int) -> bool:
        """Whether a value makes no breach."""
        if self._is_unknown(value):
            return True
        key = id(schema), id(value)
        if key not in self._fits:
            self._fits[key] = True  # of a schema that refers to itself with nothing in between
            self._fits[key] = self._judge(schema, value, depth)
        return self._fits[key]

    def _judge(self, schema: Any, value: Any, depth: int) -> bool:
        spec = self._enter(schema, value, "", depth)
        for keyword, wanted in spec.items():
            if (inside := _INSIDE.get(keyword)) is not None:
                for part, child, _ in inside(self, wanted, value, spec):
                    if not self.fits(part, child, depth + 1):
                        return False
            if (holds := _HOLDS.get(keyword)) and not holds(self, wanted, value, spec, depth):
                return False
        return True

    def _enter(self, schema: Any, value: Any, path: str, depth: int) -> Mapping[str, Any]:
        """The keywords of a part of the schema; none where it says nothing that can be proven."""
        spec = _NOTHING if schema is False else as_object(schema)
        if spec is None:
            return {}
        if depth > MAX_DEPTH:
            raise UncheckedError(_TOO_DEEP)
        # Path and values are charged for as well: they are copied, hashed and compared.
        self.steps.take(1 + len(spec) + len(path) // 64)
        return {} if "$id" in spec and spec is not self._root else spec

    def _is_unknown(self, value: object) -> bool:
        if not self._placeholders:
            return False
        key = id(value)
        if key not in self._unknown:
            self._unknown[key] = is_placeholder(value)
        return self._unknown[key]

    def target(self, reference: Any) -> Any:
        """What a reference leads to; True, which allows everything, where it leads nowhere."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return True
        node: Any = self._root
        for name in unquote(reference).split("/")[1:]:
            self.steps.take(1)
            name = name.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901
            fields, listed = as_object(node), as_list(node)
            if fields is not None and name in fields:
                node = fields[name]
            elif listed is not None and name.isdecimal() and len(name) < 7:
                node = listed[int(name)] if int(name) < len(listed) else True
            else:
                return True
            if "$id" in (as_object(node) or ()):
                return True
        return node

    def equal(self, wanted: Any, value: Any) -> bool:
        """Whether two JSON values are the same, or may be once placeholders are resolved."""
        self.steps.take(1)
        if self._is_unknown(value):
            return True
        if (first := as_object(wanted)) is not None and (second := as_object(value)) is not None:
            return first.keys() == second.keys() and all(
                self.equal(first[name], second[name]) for name in first
            )
        if (those := as_list(wanted)) is not None and (these := as_list(value)) is not None:
            return len(those) == len(these) and all(map(self.equal, those, these))
        is_bool = isinstance(wanted, bool) or isinstance(value, bool)
        return wanted is value if is_bool else wanted == value

    def holds_placeholder(self, value: list[Any]) -> bool:
        """Whether a list has an entry that may stand for any number of them."""
        self.steps.take(len(value))
        return any(map(self._is_unknown, value))


_NOTHING: dict[str, Any] = {"enum": []}
"""The schema ``false``."""

_Inside = Callable[[_Check, Any, Any, Mapping[str, Any]], "Sequence[tuple[Any, Any, str]]"]
_Holds = Callable[[_Check, Any, Any, Mapping[str, Any], int], bool]


def _all_of(check: _Check, parts: Any, value: Any, spec: Mapping[str, Any]) -> Any:
    listed = as_list(parts) or []
    check.steps.take(len(listed))
    return [(part, value, "") for part in listed]


def _reference(check: _Check, address: Any, value: Any, spec: Mapping[str, Any]) -> Any:
    return ((check.target(address), value, ""),)


def _properties(check: _Check, parts: Any, value: Any, spec: Mapping[str, Any]) -> Any:
    known, fields = as_object(parts), as_object(value)
    if known is None or fields is None:
        return ()
    check.steps.take(len(fields))
    return [(known[name], fields[name], f".{name}") for name in fields if name in known]


def _additional_parts(check: _Check, part: Any, value: Any, spec: Mapping[str, Any]) -> Any:
    names = _additional_names(check, value, spec) if isinstance(part, dict) else ()
    return [(part, value[name], f".{name}") for name in names]


def _additional_names(check: _Check, value: Any, spec: Mapping[str, Any]) -> Sequence[str]:
    """Names without a property; none beside ``patternProperties``, whose patterns never run."""
    known, fields = as_object(spec.get("properties", {})), as_object(value)
    if fields is None or known is None or "patternProperties" in spec:
        return ()
    check.steps.take(len(fields))
    return [name for name in fields if name not in known]


def _prefix_items(check: _Check, parts: Any, value: Any, spec: Mapping[str, Any]) -> Any:
    pairs = list(zip(as_list(parts) or (), as_list(value) or (), strict=False))
    check.steps.take(len(pairs))
    return [(part, child, f"[{i}]") for i, (part, child) in enumerate(pairs)]


def _items(check: _Check, part: Any, value: Any, spec: Mapping[str, Any]) -> Any:
    listed, prefix = as_list(value), as_list(spec.get("prefixItems", []))
    if listed is None or not isinstance(part, dict | bool):
        return ()
    check.steps.take(len(listed))
    start = len(listed) if prefix is None else len(prefix)
    return [(part, listed[i], f"[{i}]") for i in range(start, len(listed))]


_INSIDE: Mapping[str, _Inside] = {
    "$ref": _reference,
    "allOf": _all_of,
    "properties": _properties,
    "additionalProperties": _additional_parts,
    "prefixItems": _prefix_items,
    "items": _items,
}
"""Keywords that hold further schemas: pairs of such a part and a value it is meant for."""


def _any_of(check: _Check, parts: Any, value: Any, spec: Mapping[str, Any], depth: int) -> bool:
    if (listed := as_list(parts)) is None:
        return True
    check.steps.take(len(listed))
    return any(check.fits(part, value, depth + 1) for part in listed)


def _is_type(check: _Check, types: Any, value: Any, spec: Mapping[str, Any], depth: int) -> bool:
    if value is None and spec.get("nullable") is True:
        return True
    wanted = [types] if isinstance(types, str) else as_list(types)
    if wanted is None or not all(isinstance(kind, str) and kind in _TYPES for kind in wanted):
        return True
    if any(_TYPES[kind](value) for kind in wanted):
        return True
    return spec.get(COERCIBLE) is True and _may_become(value, wanted)


def _may_become(value: Any, wanted: list[Any]) -> bool:
    """Whether a text spells a value of a type that is wanted, or a text is, and this has one."""
    if not isinstance(value, str):
        return "string" in wanted and (_is_number(value) or isinstance(value, bool))
    try:
        spelled = orjson.loads(value.lower()) if len(value) <= LONGEST_MARK else None
    except orjson.JSONDecodeError:
        return False
    return any(_TYPES[kind](spelled) for kind in wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def _in_enum(check: _Check, allowed: Any, value: Any, spec: Mapping[str, Any], depth: int) -> bool:
    if (listed := as_list(allowed)) is None:
        return True
    if isinstance(value, str):
        check.steps.take(1 + len(listed) // 64)
        return value in listed
    return any(check.equal(each, value) for each in listed)


def _is_const(check: _Check, wanted: Any, value: Any, spec: Mapping[str, Any], depth: int) -> bool:
    return check.equal(wanted, value)


def _required(check: _Check, names: Any, value: Any, spec: Mapping[str, Any], depth: int) -> bool:
    listed = as_list(names)
    if listed is None or not isinstance(value, dict):
        return True
    check.steps.take(len(listed))
    return not all(isinstance(name, str) for name in listed) or all(n in value for n in listed)


def _closed(check: _Check, allowed: Any, value: Any, spec: Mapping[str, Any], depth: int) -> bool:
    return allowed is not False or not _additional_names(check, value, spec)


def _bound(measure: Callable[[Any], Any], breaks: Callable[[Any, Any], bool]) -> _Holds:
    """A limit on something measured, which is None where the limit does not apply."""

    def holds(check: _Check, limit: Any, value: Any, spec: Mapping[str, Any], depth: int) -> bool:
        measured = measure(value)
        if measured is None or not _is_number(limit) or (limit < 0 and not _is_number(value)):
            return True
        if (listed := as_list(value)) is not None and check.holds_placeholder(listed):
            return True
        return not breaks(measured, limit)

    return holds


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    return None if (listed := as_list(value)) is None else len(listed)


def _number(value: Any) -> Any:
    return value if _is_number(value) else None


_HOLDS: Mapping[str, _Holds] = {
    "anyOf": _any_of,
    "oneOf": _any_of,
    "type": _is_type,
    "enum": _in_enum,
    "const": _is_const,
    "required": _required,
    "additionalProperties": _closed,
    "minimum": _bound(_number, operator.lt),
    "maximum": _bound(_number, operator.gt),
    "exclusiveMinimum": _bound(_number, operator.le),
    "exclusiveMaximum": _bound(_number, operator.ge),
    "minLength": _bound(_length, operator.lt),
    "maxLength": _bound(_length, operator.gt),
    "minItems": _bound(_count, operator.lt),
    "maxItems": _bound(_count, operator.gt),
}
"""Keywords that a value as a whole keeps or breaks."""


_RULES = {
    "type": "wrong-type",
    "enum": "not-allowed-value",
    "const": "not-allowed-value",
    "required": "missing-parameter",
    "additionalProperties": "unknown-parameter",
}


def _violation(keyword: str, wanted: Any, value: Any, path: str) -> Violation:
    if keyword == "required":
        message = f"lacks {', '.join(name for name in wanted if name not in value)}"
    elif keyword == "additionalProperties":
        message = "has unknown fields"
    else:
        message = f"{shorten(value, 60)} breaks {keyword} {shorten(wanted, 60)}"
    return Violation(path, _RULES.get(keyword, "schema-violation"), message, value)
