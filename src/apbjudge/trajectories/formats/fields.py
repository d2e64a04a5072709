"""Fields of foreign logs; each function raises RowError where a field is of another kind.

``where`` is put before the field's name in errors; a field that is missing or null is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ...errors import RowError


def object_in(holder: Mapping[str, Any], name: str, where: str = "") -> dict[str, Any]:
    """A JSON object."""
    value = holder.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RowError(f"{where}{name}", "an object", value)
    return cast("dict[str, Any]", value)


def list_in(
    holder: Mapping[str, Any], name: str, where: str = "", *, is_needed: bool = False
) -> list[Any]:
    """A list; where ``is_needed``, one that is there."""
    value = holder.get(name)
    if value is None and not is_needed:
        return []
    if not isinstance(value, list):
        raise RowError(f"{where}{name}", "a list", value)
    return cast("list[Any]", value)


def objects_in(
    holder: Mapping[str, Any], name: str, where: str = ""
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a list, numbered from 0."""
    for number, value in enumerate(list_in(holder, name, where)):
        if not isinstance(value, dict):
            raise RowError(f"{where}{name}.{number}", "an object", value)
        yield number, cast("dict[str, Any]", value)


def text_in(holder: Mapping[str, Any], name: str, where: str = "") -> str:
    """A text."""
    value = holder.get(name)
    if value is not None and not isinstance(value, str):
        raise RowError(f"{where}{name}", "text", value)
    return value or ""
