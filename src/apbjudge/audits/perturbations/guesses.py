"""Values for parameters that nobody gave: what a careless planner would put in."""

from __future__ import annotations

from typing import Any, cast

from ...records import Tool
from .dependencies import name_words, properties

_BY_WORD: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"email", "mail", "to", "recipient"}), "info@example.org"),
    (frozenset({"iban"}), "DE02120300000000202051"),
    (frozenset({"date", "day", "until", "from_date", "deadline", "start", "in"}), "2026-06-01"),
    (frozenset({"out", "end", "return"}), "2026-06-03"),
    (frozenset({"month"}), "2026-06"),
    (frozenset({"time"}), "09:00"),
    (frozenset({"city", "town", "place", "location"}), "Berlin"),
    (frozenset({"country"}), "Germany"),
    (frozenset({"currency"}), "EUR"),
    (frozenset({"phone", "telephone"}), "+49 30 1234567"),
    (frozenset({"name", "customer", "guest", "person", "supplier"}), "Anna Schmidt"),
    (frozenset({"company", "firm", "vendor"}), "Brightwater"),
    (frozenset({"path", "file", "image", "folder"}), "data/input.csv"),
    (frozenset({"subject", "title"}), "Your request"),
    (frozenset({"text", "body", "message", "note", "reason", "comment"}), "Done as agreed."),
    (frozenset({"id", "number", "no", "code", "reference", "account", "order"}), "A-1001"),
)


def guessed_arguments(tool: Tool) -> dict[str, Any]:
    """A made-up value for every required parameter, of the type that its schema asks for."""
    known = properties(tool)
    return {name: _guess(name, known.get(name)) for name in tool.required}


def _guess(name: str, spec: Any) -> Any:
    fields = cast("dict[str, Any]", spec) if isinstance(spec, dict) else {}
    allowed = fields.get("enum")
    if isinstance(allowed, list) and allowed:
        return cast("list[Any]", allowed)[0]
    kind = fields.get("type", "string")
    if kind in ("integer", "number"):
        return max(_bound(fields.get("minimum")), 1 if kind == "integer" else 100)
    if kind == "boolean":
        return True
    if kind == "array":
        return [_guess(name.removesuffix("s"), fields.get("items"))]
    if kind == "object":
        return _object(fields)
    return _text(name, fields)


def _bound(value: Any) -> int:
    return int(value) + 1 if isinstance(value, int | float) else 0


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = fields.get("properties") or {}
    wanted: list[str] = fields.get("required") or []
    return {name: _guess(name, inner.get(name)) for name in wanted}


def _text(name: str, fields: dict[str, Any]) -> str:
    by_format = {"date": "2026-06-01", "email": "info@example.org"}
    if (form := str(fields.get("format"))) in by_format:
        return by_format[form]
    words = reversed(name_words(name))
    return next((text for word in words for marks, text in _BY_WORD if word in marks), "standard")
