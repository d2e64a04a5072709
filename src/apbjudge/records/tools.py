"""The tools a tested model was offered, in every shape the data comes in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, Literal, cast

import orjson

from ..errors import RowError
from .base import Record

ParameterKind = Literal["json_schema", "mapping", "absent"]

MAX_COST = 1e12

_NAME_KEYS = ("name", "tool_name", "api_name")
_TEXT_KEYS = ("description", "tool_description", "api_description")
_PARAMETER_KEYS = ("parameters", "input_schema", "inputSchema")


class Tool(Record):
    """One tool.

    Attributes:
        name: Exact, case-sensitive name.
        description: Prose, possibly empty.
        parameters: The parameter specification as given, or None when absent.
        parameter_kind: ``json_schema`` (code can check calls against it), ``mapping``
            (some other structure, shown to the judge, proves nothing) or ``absent``.
        cost: Cost of one call (efficiency cases, non-negative), or None when not stated.
    """

    name: str
    description: str = ""
    parameters: Any = None
    parameter_kind: ParameterKind = "absent"
    cost: float | None = None

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Names of the required parameters, as far as a JSON Schema states them."""
        if self.parameter_kind != "json_schema":
            return ()
        listed = cast("dict[str, Any]", self.parameters).get("required")
        names = cast("list[object]", listed) if isinstance(listed, list) else []
        return tuple(name for name in names if isinstance(name, str))


class Toolset(Record):
    """The tools of one case, with the text that a judge is shown.

    Attributes:
        tools: In the order given.
        text: The list as indented JSON, exactly as the case has it.
        listed_names: Names given apart from the definitions (``tool_names``).
    """

    tools: tuple[Tool, ...]
    text: str
    listed_names: frozenset[str] = frozenset()

    @cached_property
    def by_name(self) -> Mapping[str, Tool]:
        """Tools by exact name (the first definition wins)."""
        found: dict[str, Tool] = {}
        for tool in self.tools:
            found.setdefault(tool.name, tool)
        return found

    @cached_property
    def checkable(self) -> Mapping[str, Tool]:
        """Tools whose calls can be held against a JSON Schema: one definition for the name."""
        count = Counter(tool.name for tool in self.tools)
        return {
            name: tool
            for name, tool in self.by_name.items()
            if tool.parameter_kind == "json_schema" and count[name] == 1
        }

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that counts as existing: defined or listed."""
        return frozenset(self.by_name) | self.listed_names

    @cached_property
    def by_lower_name(self) -> Mapping[str, str]:
        """An existing name for each name in small letters; of several, the first by alphabet."""
        return {name.lower(): name for name in sorted(self.names, reverse=True)}

    @cached_property
    def has_costs(self) -> bool:
        """Whether every tool states a cost (an efficiency tool bank)."""
        return bool(self.tools) and all(tool.cost is not None for tool in self.tools)


def read_tool(value: object, field: str) -> Tool:
    """Reads one tool definition: flat, OpenAI ``function`` form, or with ``tool_name``."""
    if not isinstance(value, dict):
        raise RowError(field, "a tool definition (object with a name)", value)
    spec = cast("dict[str, Any]", value)
    inner = spec.get("function")
    body = cast("dict[str, Any]", inner) if isinstance(inner, dict) else spec
    name = next((body[key] for key in _NAME_KEYS if key in body), None)
    if not isinstance(name, str) or not name:
        raise RowError(f"{field}.name", "a non-empty string", name)
    parameters = next((body[key] for key in _PARAMETER_KEYS if key in body), None)
    description = next((body[key] for key in _TEXT_KEYS if key in body), "")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=parameters,
        parameter_kind=_parameter_kind(parameters),
        cost=_cost(spec.get("cost", body.get("cost")), field),
    )


def read_tools(value: object, field: str) -> tuple[Tool, ...]:
    """Reads a list of tools, or a mapping from name to definition."""
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        value = [
            {"name": name, **(cast("dict[str, Any]", spec) if isinstance(spec, dict) else {})}
            for name, spec in mapping.items()
        ]
    if not isinstance(value, list):
        raise RowError(field, "a list of tool definitions", value)
    listed = cast("list[object]", value)
    return tuple(read_tool(tool, f"{field}[{i}]") for i, tool in enumerate(listed))


@lru_cache(maxsize=128)
def toolset_from_text(text: str, names_text: str | None, field: str) -> Toolset:
    """Reads ``tools_json``; cached, since neighbouring rows often repeat their tools."""
    names: Any = read_json(names_text, "tool_names_json") if names_text else None
    return build_toolset(read_json(text, field), names, field)


def build_toolset(value: object, names: object, field: str) -> Toolset:
    """Builds a toolset from parsed JSON.

    Raises:
        RowError: If the structure is not a list of named tools.
    """
    tools = read_tools(value, field)
    return Toolset(tools=tools, text=pretty(value), listed_names=frozenset(read_names(names)))


def read_names(value: object, field: str = "tool_names") -> tuple[str, ...]:
    """Reads a list of names; None and missing mean an empty list."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise RowError(field, "a list of strings", value)
    listed = cast("list[object]", value)
    for i, name in enumerate(listed):
        if not isinstance(name, str):
            raise RowError(f"{field}[{i}]", "a string", name)
    return tuple(cast("list[str]", listed))


def read_json(text: str, field: str) -> Any:
    """Parses a ``*_json`` string field."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise RowError(field, f"a string that holds JSON ({error})", text) from None


def pretty(value: object) -> str:
    """Indented JSON, or a RowError when the value is nested too deeply to be written."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:
        raise RowError("line", "JSON nested at most 250 levels deep", "deeper nesting") from None


def _parameter_kind(parameters: object) -> ParameterKind:
    if parameters is None or parameters == {}:
        return "absent"
    spec: dict[str, Any] = (
        cast("dict[str, Any]", parameters) if isinstance(parameters, dict) else {}
    )
    properties: Any = spec.get("properties")
    if not isinstance(properties, dict) or spec.get("type", "object") != "object":
        return "mapping"
    described = cast("dict[str, Any]", properties).values()
    return "json_schema" if all(isinstance(p, dict | bool) for p in described) else "mapping"


def _cost(value: object, field: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COST:
        raise RowError(f"{field}.cost", f"a number from 0 to {MAX_COST:.0e}", value)
    return float(value)
