"""Tools from an OpenAPI 3 description of an API: each operation is a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import RowError
from .loose_json import as_list, as_object

_METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
_LONGEST_NAME = 64
"""Limit of characters that providers accept in the name of a tool."""
_MOST_HOPS = 32
"""Limit of consecutive references that are followed to an object."""
_MOST_NODES = 20_000
"""Limit of values in the schemas of one operation: no model could be shown more."""
_NOT_INPUTS = {(name, "header") for name in ("accept", "content-type", "authorization")}
"""Headers that OpenAPI does not count as parameters."""
_COMPONENTS = re.compile("#/(?:components/schemas/)?")


def is_openapi(document: object) -> bool:
    """True if a JSON value is a description of an API."""
    return {"openapi", "swagger"} & {*(as_object(document) or {})} != set()


def tools_of(document: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The operations of an API as definitions of tools, and a reason for each one left out.

    A tool has the operation's id as its name (without one, its method and path), its description
    or summary, and as parameters those of path, query, headers and cookies and the fields of a
    JSON or form body, which are below ``body`` unless all of them are named. Referenced schemas are
    copied once to ``$defs``, so circular references work. Credentials are left to the program that
    makes the calls: the header ``Authorization``, and the keys of security schemes.

    Raises:
        RowError: If it has another version or no operations.
    """
    if not str(document.get("openapi", "")).startswith("3."):
        got = document.get("openapi") or document.get("swagger")
        raise RowError("openapi", "version 3 of OpenAPI (converters make it of Swagger 2)", got)
    tools: dict[str, dict[str, Any]] = {}
    left_out: list[str] = []
    operations = (
        (f"{method.upper()} {path}", item, item[method])
        for path, item in (as_object(document.get("paths")) or {}).items()
        for method in _METHODS
        if as_object(item) and as_object(item.get(method)) is not None
    )
    for place, item, operation in operations:
        try:
            tool = _Operation(document).tool(place, item, operation)
            if tool["name"] in tools:
                raise RowError("operationId", "an id that occurs once", tool["name"])  # noqa: TRY301
            tools[tool["name"]] = tool
        except RowError as error:
            left_out.append(f"{place}: {error}")
        except RecursionError:
            left_out.append(f"{place}: schemas are nested too deeply")
    if not tools:
        raise RowError("paths", "operations that are tools", "; ".join(left_out) or None)
    return list(tools.values()), left_out


class _Operation:
    """Reads an operation, and collects the schemas that it refers to."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._defs: dict[str, Any] = {}
        self._waiting: list[str] = []
        self._nodes = 0

    def tool(
        self, place: str, item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The definition; raises RowError if the operation can't be one."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        stated = [p for of in (item, operation) for p in as_list(of.get("parameters")) or ()]
        by_place = {(p.get("name"), p.get("in")): p for p in map(self._resolved, stated)}
        not_inputs = _NOT_INPUTS | self._credentials()
        for (name, where), parameter in by_place.items():
            if where not in ("path", "query", "header", "cookie"):
                raise RowError("in", "path, query, header or cookie", where)
            if _place(name, where) in not_inputs:
                continue
            if str(name) in properties:
                raise RowError("parameters", "names that occur once", name)
            described = {"description": text} if (text := parameter.get("description")) else {}
            kinds = as_object(parameter.get("content")) or {"": parameter}  # one of the two
            schema = as_object((as_object(next(iter(kinds.values()))) or {}).get("schema")) or {}
            properties[str(name)] = self._schema({**schema, **described})
            required += [str(name)] * (where == "path" or parameter.get("required") is True)
        if operation.get("requestBody") is not None:
            fields, needed = self._body(self._resolved(operation["requestBody"]), properties)
            if fields.keys() & properties.keys():
                raise RowError("parameters", "names other than that of the body", "body")
            properties |= fields
            required += needed
        parameters = {"type": "object", "properties": properties, "required": required}
        while self._waiting:
            pointer = self._waiting.pop()
            self._defs[_key(pointer)] = self._schema(self._at(pointer))
        name = re.sub(r"\W+", "_", str(operation.get("operationId") or place), flags=re.ASCII)
        return {
            "name": name.strip("_")[:_LONGEST_NAME],
            "description": str(operation.get("description") or operation.get("summary") or ""),
            "parameters": parameters | ({"$defs": self._defs} if self._defs else {}),
        }

    def _body(
        self, body: Mapping[str, Any], taken: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """The fields that a body adds to the parameters, and those of them that are required."""
        content, is_required = as_object(body.get("content")) or {}, body.get("required") is True
        kinds = (kind for kind in content if "json" in kind or "x-www-form-urlencoded" in kind)
        if (kind := next(kinds, None)) is None:
            if is_required:
                raise RowError("requestBody", "JSON or a form", ", ".join(map(str, content)))
            return {}, ()
        schema = (as_object(content[kind]) or {}).get("schema", {})
        resolved = self._resolved(schema)
        own = as_object(resolved.get("properties")) or {}
        if not own or own.keys() & taken.keys() or {"allOf", "anyOf", "oneOf"} & resolved.keys():
            return {"body": self._schema(schema)}, ("body",) * is_required
        needed = as_list(resolved.get("required")) or []
        return self._schema(own), needed if is_required else ()

    def _credentials(self) -> set[tuple[str, str]]:
        """Name and place of the key of each security scheme with one."""
        components = as_object(self._document.get("components")) or {}
        schemes = (as_object(components.get("securitySchemes")) or {}).values()
        each = (scheme for scheme in map(as_object, schemes) if scheme)
        return {_place(of.get("name"), of.get("in")) for of in each if of.get("type") == "apiKey"}

    def _at(self, pointer: str) -> Any:
        value: Any = self._document
        for part in pointer.removeprefix("#/").split("/") if pointer.startswith("#/") else [None]:
            key = str(part).replace("~1", "/").replace("~0", "~")
            if key not in (known := as_object(value) or {}):
                raise RowError("$ref", "a reference to a part of the file", pointer)
            value = known[key]
        return value

    def _resolved(self, value: object) -> dict[str, Any]:
        """The object itself, or the one that a reference leads to."""
        for _ in range(_MOST_HOPS):
            known = as_object(value) or {}
            if not isinstance(pointer := known.get("$ref"), str):
                return known
            value = self._at(pointer)
        raise RowError("$ref", f"at most {_MOST_HOPS} references in a row", value)

    def _schema(self, node: Any) -> Any:
        """A schema in JSON Schema's own words, whose references are to ``$defs``."""
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise RowError("schema", f"at most {_MOST_NODES:,} values", "more")
        if (several := as_list(node)) is not None:
            return [self._schema(each) for each in several]
        if (known := as_object(node)) is None:
            return node
        schema = {str(name): self._schema(value) for name, value in known.items()}
        if isinstance(pointer := schema.get("$ref"), str):
            if _key(pointer) not in self._defs:
                self._defs[_key(pointer)] = {}
                self._waiting.append(pointer)
            schema["$ref"] = f"#/$defs/{_key(pointer)}"
        if schema.get("nullable") is True and isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "null"]
        for name, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(schema.get(name), bool) and schema.pop(name) and bound in schema:
                schema[name] = schema.pop(bound)
        return schema


def _place(name: object, where: object) -> tuple[str, str]:
    """Name and place of a parameter; names of headers are case-insensitive."""
    return str(name).lower() if where == "header" else str(name), str(where)


def _key(pointer: str) -> str:
    """The name in ``$defs`` of a pointer's target."""
    return _COMPONENTS.sub("", pointer, count=1).replace("/", ".")
