"""JSON Schema, as far as a breach of it proves a wrong call.

Left out on purpose: ``pattern`` and ``format`` (dialects differ, and a hostile pattern can hang),
``not`` and conditionals (rarely written as meant). ``oneOf`` is read as ``anyOf``. References to
other documents are never fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast

import orjson

from ...errors import shorten

_PROVING = (
    "$ref $dynamicRef allOf anyOf const enum exclusiveMaximum exclusiveMinimum items maxItems "
    "maxLength maximum minItems minLength minimum prefixItems properties required "
    "additionalProperties"
).split()
_RULES = {"type": "wrong-type", "enum": "not-allowed-value", "const": "not-allowed-value"}


RECURSION_DEPTH = 5
"""Arguments nested deeper are not held against a schema with references: a recursive one that
branches at every level takes exponential time."""


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


def violations(schema: dict[str, Any], arguments: dict[str, Any]) -> tuple[Violation, ...]:
    """The breaches that a call's arguments make; none when the schema itself is unusable."""
    text = orjson.dumps(schema)
    refers = b'Ref"' in text or b'$ref"' in text
    if refers and _deeper_than(arguments, RECURSION_DEPTH):
        return ()
    try:
        given = orjson.dumps(arguments)
    except orjson.JSONEncodeError:  # nested too deeply to be written
        return _breaches(text, arguments)
    if len(given) > _LONG or b"null" in given:  # which stands for NaN as well
        return _breaches(text, arguments)
    return _known_breaches(text, given)


_LONG = 4096
"""Bytes of arguments; nothing is kept of longer ones."""


@lru_cache(maxsize=1024)
def _known_breaches(schema: bytes, arguments: bytes) -> tuple[Violation, ...]:
    """The same of arguments as JSON: the same call is often made again, by other tested models."""
    return _breaches(schema, orjson.loads(arguments))


def _breaches(schema: bytes, arguments: dict[str, Any]) -> tuple[Violation, ...]:
    validator = _validator(schema)
    if validator is None:
        return ()
    try:
        errors = list(validator.iter_errors(arguments))
    except Exception:  # noqa: BLE001 - an unresolvable reference or endless recursion: nothing is proven
        return ()
    return tuple(map(_violation, errors))


def _deeper_than(value: Any, limit: int) -> bool:
    level: list[Any] = [value]
    for _ in range(limit + 1):
        level = [child for node in level for child in _children(node)]
    return bool(level)


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return cast("dict[str, Any]", node).values()
    return cast("list[Any]", node) if isinstance(node, list) else ()


def _violation(error: Any) -> Violation:
    parts = (f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    kind = str(error.validator)
    wanted = shorten(error.validator_value, 60)
    got = shorten(error.instance, 60)
    if kind == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return Violation(
            "".join(parts), "missing-parameter", f"lacks {', '.join(missing)}", error.instance
        )
    if kind == "additionalProperties":
        return Violation("".join(parts), "unknown-parameter", "has unknown fields", error.instance)
    message = f"{got} breaks {kind} {wanted}"
    return Violation("".join(parts), _RULES.get(kind, "schema-violation"), message, error.instance)


@lru_cache(maxsize=1024)
def _validator(schema: bytes) -> Any | None:
    """A validator for a schema, or None when the schema is malformed."""
    cls = _validator_class()
    loaded = orjson.loads(schema)
    import referencing
    from jsonschema.exceptions import SchemaError

    registry: Callable[[], Any] = getattr(referencing, "Registry")  # noqa: B009 - generic
    try:
        cls.check_schema(loaded)
    except (SchemaError, RecursionError):
        return None
    return cls(loaded, registry=registry())


@lru_cache(maxsize=1)
def _validator_class() -> Any:
    # Imported late: static grading of whole plans never needs it.
    from jsonschema import validators

    base: Any = validators.Draft202012Validator
    create: Callable[..., Any] = getattr(validators, "create")  # noqa: B009 - untyped
    rules = {name: base.VALIDATORS[name] for name in _PROVING}
    rules["oneOf"] = base.VALIDATORS["anyOf"]
    rules["additionalProperties"] = _additional
    rules["type"] = _type
    return create(meta_schema=base.META_SCHEMA, validators=rules, type_checker=base.TYPE_CHECKER)


def _additional(
    validator: Any, allowed: Any, instance: Any, schema: dict[str, Any]
) -> Iterator[Any]:
    """As in JSON Schema, but silent beside ``patternProperties``, whose patterns never run."""
    from jsonschema.exceptions import ValidationError

    if allowed is not False or "patternProperties" in schema or not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    if any(name not in known for name in cast("dict[str, Any]", instance)):
        yield ValidationError("unknown fields")


def _type(validator: Any, types: Any, instance: Any, schema: dict[str, Any]) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if instance is None and schema.get("nullable") is True:
        return
    wanted = [types] if isinstance(types, str) else types
    if not any(validator.is_type(instance, kind) for kind in wanted):
        yield ValidationError(f"not of type {types}")
