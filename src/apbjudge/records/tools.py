"""The tools that a tested model was offered, in every shape that data has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import orjson

from ..errors import RowError
from .base import Record
from .loose_json import as_list, as_object
from .parameters import ParameterKind, is_schema, parsed, read_parameters

MAX_COST = 1e12

_NAME_KEYS = ("name", "tool_name", "api_name", "api", "function_name", "tool")
_TEXT_KEYS = ("description", "tool_description", "api_description")
_PARAMETER_KEYS = tuple(
    "parameters input_schema inputSchema parametersJsonSchema parameters_json_schema arguments "
    "param params parameter_definitions args args_schema inputs".split()
)
_INNER_KEYS = ("function", "toolSpec")
_WRAPPERS = ("tools", "functions", "functionDeclarations", "function_declarations")
_NO_TOOLS = ("tool_choice", "toolChoice", "function_call", "tool_config", "toolConfig")
_FIELDS = {*_NAME_KEYS, *_TEXT_KEYS, *_PARAMETER_KEYS, *_INNER_KEYS, "type", "strict", "cost"}


class Tool(Record):
    """One tool.

    Attributes:
        name: Case-sensitive.
        other_names: Further names in the definition: a call by one of them is to an existing tool.
        parameters: The parameters as JSON Schema if they can be read as such, else as given; None
            when absent.
        parameter_kind: ``json_schema`` (code can check calls against it), ``mapping``
            (some other structure, shown to the judge, proves nothing) or ``absent``.
        cost: Cost of one call (efficiency cases, non-negative), or None when not stated.
    """

    name: str
    description: str = ""
    other_names: tuple[str, ...] = ()
    parameters: Any = None
    parameter_kind: ParameterKind = "absent"
    cost: float | None = None

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Names of the required parameters, as far as a JSON Schema states them."""
        if self.parameter_kind != "json_schema":
            return ()
        names = as_list(self.parameters.get("required")) or []
        return tuple(name for name in names if isinstance(name, str))


class Toolset(Record):
    """The tools of one case, with the text that a judge is shown.

    Attributes:
        text: The list as JSON, exactly as the case has it, one tool a line.
        listed_names: Names given apart from the definitions (``tool_names``).
    """

    tools: tuple[Tool, ...]
    text: str
    listed_names: frozenset[str] = frozenset()

    @cached_property
    def by_name(self) -> Mapping[str, Tool]:
        """Tools by exact name (the first definition wins)."""
        by_name: dict[str, Tool] = {}
        for tool in self.tools:
            by_name.setdefault(tool.name, tool)
        return by_name

    @cached_property
    def checkable(self) -> Mapping[str, Tool]:
        """Tools whose calls can be checked against a JSON Schema: one definition for the name."""
        count = Counter(tool.name for tool in self.tools)
        return {
            name: tool
            for name, tool in self.by_name.items()
            if tool.parameter_kind == "json_schema" and count[name] == 1
        }

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that counts as existing: defined or listed."""
        others = (name for tool in self.tools for name in tool.other_names)
        return frozenset((*self.by_name, *others)) | self.listed_names

    @cached_property
    def by_lower_name(self) -> Mapping[str, str]:
        """An existing name for each name in lower case; of several, the alphabetically first."""
        return {name.lower(): name for name in sorted(self.names, reverse=True)}

    @cached_property
    def has_costs(self) -> bool:
        """True if every tool states a cost (an efficiency tool bank)."""
        return bool(self.tools) and all(tool.cost is not None for tool in self.tools)


def read_tool(value: object, field: str) -> Tool:
    """Reads one tool definition, whatever its fields are called.

    Raises:
        RowError: If it is not an object, has no name, or its cost is not a number in range.
    """
    spec = as_object(parsed(value))
    if spec is None:
        raise RowError(field, "a tool definition (object with a name)", value)
    body = _body(spec)
    name, other_names = _names(body, spec)
    if not isinstance(name, str) or not name:
        raise RowError(f"{field}.name", "a non-empty string", name)
    description = next((body[key] for key in _TEXT_KEYS if key in body), "")
    parameters, kind = read_parameters(_parameters(body), body.get("required"))
    return Tool(
        name=name,
        other_names=other_names,
        description=description if isinstance(description, str) else "",
        parameters=parameters,
        parameter_kind=kind,
        cost=_cost(spec.get("cost", body.get("cost")), field),
    )


def _body(spec: dict[str, Any]) -> dict[str, Any]:
    """The part of a definition that holds the name: itself, or what is under ``function``."""
    inner = _inner(spec)
    return spec if inner is None else {**_names_of(spec), **inner}


def _inner(spec: dict[str, Any]) -> dict[str, Any] | None:
    return next((inner for key in _INNER_KEYS if (inner := as_object(spec.get(key)))), None)


def _names_of(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: spec[key] for key in _NAME_KEYS if isinstance(spec.get(key), str)}


def _names(body: dict[str, Any], spec: dict[str, Any]) -> tuple[object, tuple[str, ...]]:
    """The name, and the others that a definition gives in further fields."""
    if not isinstance(spec.get("function"), str):
        body = {key: value for key, value in body.items() if key != "function"}
    names = [body[key] for key in (*_NAME_KEYS, "function") if body.get(key) is not None]
    others = [name for name in names[1:] if isinstance(name, str) and name and name != names[0]]
    return (names[0] if names else None), tuple(dict.fromkeys(others))


def _parameters(body: dict[str, Any]) -> object:
    parameters = next((body[key] for key in _PARAMETER_KEYS if body.get(key) is not None), None)
    if parameters is None and as_object(body.get("properties")) is not None:
        keys = ("properties", "required", "additionalProperties", "$defs", "definitions")
        return {"type": "object", **{key: body[key] for key in keys if key in body}}
    return parameters


def read_tools(value: object, field: str) -> tuple[Tool, ...]:
    """Reads tools in any of their usual shapes.

    A list of definitions or names; one bare definition; a mapping from name to definition; one
    of these under ``tools``, ``functions`` or ``functionDeclarations``, also inside a list; and
    each of them as a JSON string.

    Raises:
        RowError: If it is none of these. What may be either one tool or a group of several is
            refused as well, since calls of a missed tool would look invented.
    """
    value = parsed(value)
    if (listed := as_list(value)) is not None:
        return tuple(t for i, entry in enumerate(listed) for t in _entry(entry, f"{field}[{i}]"))
    spec = as_object(value)
    if spec is None:
        raise RowError(field, "a list of tool definitions, or definitions by name", value)
    if (wrapped := _wrapped(spec, field)) is not None:
        return wrapped
    if _is_definition(spec, field):
        return (read_tool(spec, field),)
    return tuple(_mapped(name, entry, f"{field}.{name[:80]}") for name, entry in spec.items())


def _entry(value: object, field: str) -> tuple[Tool, ...]:
    """The tools that one entry of a list defines."""
    value = parsed(value)
    if isinstance(value, str):
        if not _NAME.fullmatch(value):
            raise RowError(field, "a tool definition (object) or a name without spaces", value)
        return (Tool(name=value),)
    spec = as_object(value)
    if spec is None:
        raise RowError(field, "a tool definition (object with a name)", value)
    if (wrapped := _wrapped(spec, field)) is not None:
        return wrapped
    has_name = isinstance(_names(_body(spec), spec)[0], str)  # "name" may be a tool
    if not has_name and spec and all(map(_describes, spec.values())):
        return tuple(_mapped(name, entry, f"{field}.{name[:80]}") for name, entry in spec.items())
    return (read_tool(spec, field),)


_NAME = re.compile(r"[^\s(){}\[\],;=\"'`]*[^\s(){}\[\],;=\"'`:.!?]")


def _wrapped(spec: dict[str, Any], field: str) -> tuple[Tool, ...] | None:
    """The tools under ``tools`` and the like; None if the object is not such a wrapper."""
    wrapped = {key: parsed(spec[key]) for key in _WRAPPERS if key in spec}
    is_tool = any(spec.get(key) is not None for key in _PARAMETER_KEYS) and _names_of(spec)
    keys = [key for key, value in wrapped.items() if isinstance(value, list) or _is_mapping(value)]
    if wrapped and not keys and not any(spec.values()):
        raise RowError(field, "a list of tool definitions, or definitions by name", spec)
    if is_tool or not keys:
        return None
    for name, value in spec.items():
        if name not in (*keys, *_NO_TOOLS) and _takes_parameters(as_object(value) or {}):
            expected = f"either {keys[0]!r} or definitions by name, not both"
            raise RowError(f"{field}.{name[:80]}", expected, value)
    return tuple(tool for key in keys for tool in read_tools(wrapped[key], f"{field}.{key}"))


def _is_mapping(value: object) -> bool:
    """True for a mapping of names to definitions, even if a tool has the name of a field."""
    spec = as_object(value)
    if not spec or (len(spec) == 1 and (inner := _inner(spec)) and _names_of(inner)):
        return False
    return all(map(_has_fields, spec.values()))


def _describes(value: object) -> bool:
    """True for the definition of one tool, perhaps without its name."""
    spec = as_object(parsed(value))
    return (spec is not None and is_schema(spec)) or (_has_fields(spec) and not _is_mapping(spec))


def _takes_parameters(spec: dict[str, Any]) -> bool:
    return any(isinstance(spec.get(key), dict | list) for key in _PARAMETER_KEYS)


def _has_fields(value: object) -> bool:
    """True if a value has fields that definitions have and JSON Schemas don't."""
    spec = as_object(parsed(value))
    if spec is None:
        return False
    if _takes_parameters(spec) or _names_of(spec):
        return True
    if _inner(spec) is not None:
        return True
    described = any(isinstance(spec.get(key), str) for key in _TEXT_KEYS)
    has_cost = "cost" in spec and as_object(spec["cost"]) is None
    return (described or has_cost) and not is_schema(spec)


def _is_definition(spec: dict[str, Any], field: str) -> bool:
    """True if an object is one definition, not a mapping from names to definitions.

    Raises:
        RowError: If it may be either.
    """
    if _is_mapping(spec):
        return False
    if _inner(spec) is not None:
        return True
    described = any(isinstance(spec.get(key), str) for key in _TEXT_KEYS)
    takes = _takes_parameters(spec)
    named = _names_of(spec)
    if not named:
        return described and (takes or set(spec) <= _FIELDS)
    if described or takes or set(spec) <= _FIELDS:
        return True
    if any(" " in name for name in named.values()):
        return False  # names of tools, each with a description
    others = [value for key, value in spec.items() if key not in _FIELDS]
    if any(isinstance(value, str | dict | list) for value in others):
        expected = "a definition with a description or parameters, or definitions by name"
        raise RowError(field, expected, spec)
    return True


def _mapped(name: str, value: object, field: str) -> Tool:
    """The tool that a mapping from names to definitions holds under a name."""
    expected = "a tool definition (object), a description or nothing"
    if not name:
        raise RowError(field, "a name of the tool", name)
    content = parsed(value)
    if content is None or isinstance(content, str):
        return Tool(name=name, description=content or "")
    spec = as_object(content)
    if spec is None:
        raise RowError(field, expected, value)
    if spec and not _describes(spec):
        if name in _WRAPPERS or not all(map(_is_parameter, spec.values())):
            raise RowError(field, expected, value)
        return read_tool({"name": name, "parameters": spec}, field)
    if is_schema(spec) and _parameters(spec) is not None and not _names_of(spec):
        description = spec.get("description", "")
        return read_tool({"name": name, "description": description, "parameters": spec}, field)
    tool = read_tool(spec if _names(_body(spec), spec)[0] else {**spec, "name": name}, field)
    if tool.name == name:
        return tool
    return tool.model_copy(update={"other_names": (*tool.other_names, name)})


def _is_parameter(value: object) -> bool:
    """True if an object describes a parameter, and can't be a tool of a group."""
    spec = as_object(value) or {}
    kind = spec.get("type")
    return isinstance(kind, str) and kind != "function" and not is_schema(spec)


@lru_cache(maxsize=128)
def toolset_from_text(text: str, names_text: str | None, field: str) -> Toolset:
    """Reads ``tools_json``; cached, since neighbouring rows often repeat their tools."""
    names: Any = read_json(names_text, "tool_names_json") if names_text else None
    return build_toolset(read_json(text, field), names, field)


def build_toolset(value: object, names: object, field: str) -> Toolset:
    """Builds a toolset from parsed JSON.

    Raises:
        RowError: If ``read_tools`` does not know the structure.
    """
    value = parsed(value)
    try:
        tools = read_tools(value, field)
    except RecursionError:
        raise RowError(field, "tools that are not nested in each other", "deep nesting") from None
    return Toolset(tools=tools, text=tool_lines(value), listed_names=frozenset(read_names(names)))


def read_names(value: object, field: str = "tool_names") -> tuple[str, ...]:
    """Reads a list of names; None and missing mean an empty list."""
    if value is None:
        return ()
    if (listed := as_list(value)) is None:
        raise RowError(field, "a list of strings", value)
    for i, name in enumerate(listed):
        if not isinstance(name, str):
            raise RowError(f"{field}[{i}]", "a string", name)
    return tuple(listed)


def read_json(text: str, field: str) -> Any:
    """Parses a ``*_json`` string field."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise RowError(field, f"a string that holds JSON ({error})", text) from None


def tool_lines(value: object) -> str:
    """Tools as JSON, one per line: a third to half of the tokens of indented JSON.

    Raises:
        RowError: As ``pretty`` does.
    """
    listed, by_name = as_list(value), as_object(value)
    if listed is not None:
        return "\n".join(("[", ",\n".join(map(_compact, listed)), "]")) if listed else "[]"
    if by_name is None:
        return _compact(value)
    lines = (f"{_compact(name)}:{_compact(tool)}" for name, tool in by_name.items())
    return "\n".join(("{", ",\n".join(lines), "}"))


def pretty(value: object) -> str:
    """Indented JSON, or a RowError when the value is nested too deeply to be written."""
    return _compact(value, orjson.OPT_INDENT_2)


def _compact(value: object, option: int = 0) -> str:
    try:
        return orjson.dumps(value, option=option).decode()
    except orjson.JSONEncodeError:
        raise RowError("line", "JSON nested at most 250 levels deep", "deeper nesting") from None


def _cost(value: object, field: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COST:
        raise RowError(f"{field}.cost", f"a number from 0 to {MAX_COST:.0e}", value)
    return float(value)
