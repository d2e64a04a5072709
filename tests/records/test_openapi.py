"""Operations of an OpenAPI description as tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from apbjudge.errors import InputError
from apbjudge.records.openapi import tools_of
from apbjudge.records.tools import build_toolset
from apbjudge.trajectories.convert import read_tool_list

NODE = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "nullable": True},
        "price": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
    },
}
ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
JSON = "application/json"


def body(schema: Any, kind: str = JSON, *, required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": {kind: {"schema": schema}}}


def api(**paths: Any) -> dict[str, Any]:
    parts = {"parameters": {"Id": ID}, "schemas": {"Node": NODE, "Loop": {"$ref": "#/nowhere"}}}
    named = {f"/{name}": item for name, item in paths.items()}
    return {"openapi": "3.0.3", "paths": named, "components": parts}


def test_an_operation_is_a_tool_with_its_parameters_and_the_fields_of_its_body() -> None:
    query = {"name": "lang", "in": "query", "description": "Language.", "schema": {"enum": ["en"]}}
    header = {"name": "If-Match", "in": "header", "required": True, "schema": {"type": "string"}}
    put = {
        "operationId": "things.put it",
        "summary": "Puts it.",
        "parameters": [query, header],
        "requestBody": body({"$ref": "#/components/schemas/Node"}),
    }
    item = {"parameters": [{"$ref": "#/components/parameters/Id"}], "put": put, "get": {}}
    ((get, tool), _) = tools_of(api(things=item))
    assert (get["name"], tool["name"]) == ("GET_things", "things_put_it")
    assert tool["description"] == "Puts it."
    made = tool["parameters"]
    assert made["required"] == ["id", "If-Match", "name"]
    assert made["properties"]["lang"] == {"enum": ["en"], "description": "Language."}
    assert [*made["properties"]] == ["id", "lang", "If-Match", "name", "price", "parts"]
    validator = Draft202012Validator(made)
    leaf, own = {"name": None, "price": 1}, {"id": 1, "If-Match": "v1", "name": "tree"}
    assert validator.is_valid({**own, "parts": [{**leaf, "parts": [leaf]}]})
    for wrong in ({"price": 0}, {"name": 1}):
        parts = [{**leaf, "parts": [{**leaf, **wrong}]}]
        assert not validator.is_valid({**own, "parts": parts})
    assert build_toolset([get, tool], None, "tools").checkable.keys() == {get["name"], tool["name"]}


def test_headers_and_cookies_are_inputs_unless_they_are_credentials() -> None:
    names = {
        "header": ("accept", "Content-Type", "Authorization", "X-KEY", "X-Trace", "key"),
        "cookie": ("lang", "Accept"),
    }
    stated = [{"name": n, "in": where} for where, each in names.items() for n in each]
    document = api(things={"get": {"parameters": stated}})
    document["components"]["securitySchemes"] = {
        "key": {"type": "apiKey", "name": "X-Key", "in": "header"},
        "other": {"type": "apiKey", "name": "key", "in": "query"},
        "elsewhere": {"$ref": "other.yaml#/Key"},
    }
    ((tool,), left_out) = tools_of(document)
    assert ([*tool["parameters"]["properties"]], left_out) == (
        ["X-Trace", "key", "lang", "Accept"],
        [],
    )


def test_a_parameter_has_the_schema_of_its_content() -> None:
    filters: Any = {"type": "object", "properties": {"city": {"type": "string"}}}
    stated = [
        {"name": "filter", "in": "query", "content": {"application/json": {"schema": filters}}},
        {"name": "any", "in": "query", "schema": True},
        {"name": "bare", "in": "query", "content": {"text/plain": None}},
    ]
    ((tool,), left_out) = tools_of(api(things={"get": {"parameters": stated}}))
    assert tool["parameters"]["properties"] == {"filter": filters, "any": {}, "bare": {}}
    assert left_out == []


def test_a_body_that_is_not_all_named_fields_stays_one() -> None:
    fields = {"properties": {"a": {}}, "required": ["a"]}
    for schema, required, expected in (
        ({"type": "array"}, True, (["body"], ["body"])),
        ({"allOf": [NODE], "properties": {"more": {}}}, True, (["body"], ["body"])),
        (fields, False, (["a"], [])),
    ):
        operation = {"requestBody": body(schema, required=required)}
        ((tool,), left_out) = tools_of(api(things={"put": operation}))
        made = tool["parameters"]
        assert ([*made["properties"]], made["required"], left_out) == (*expected, [])


def test_what_is_no_tool_is_counted_and_named(tmp_path: Path) -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"items": deep}
    wide = {"properties": {f"p{n}": {"enum": [*range(1000)]} for n in range(30)}}
    described = api(
        good={"get": {"operationId": "good"}},
        again={"get": {"operationId": "good"}},
        file={"post": {"requestBody": body({}, "multipart/form-data")}},
        elsewhere={"get": {"parameters": [{"$ref": "other.yaml#/Id"}]}},
        lost={"put": {"requestBody": body({"$ref": "#/components/schemas/Loop"})}},
        wide={"put": {"requestBody": body(wide)}},
        twice={"get": {"parameters": [ID, {**ID, "in": "header"}]}},
        whole={"get": {"parameters": [{"name": "all", "in": "querystring"}]}},
        body={
            "put": {"parameters": [{**ID, "name": "body"}], "requestBody": body({"type": "array"})}
        },
    )
    described["components"]["schemas"]["Loop"] = {"$ref": "#/components/schemas/Loop"}
    path, notes = tmp_path / "api.json", list[str]()
    path.write_bytes(orjson.dumps(described))
    (tool,) = read_tool_list(path, notes.append)
    assert tool["name"] == "good"
    (note,) = notes
    assert note.startswith(f"{path}: 8 of 9 operations are no tools: ")
    for name in ("GET /again", "POST /file", "GET /elsewhere", "PUT /lost", "PUT /wide"):
        assert f"{name}: field " in note
    for name in ("GET /twice: field parameters", "GET /whole: field in", "PUT /body: field param"):
        assert name in note
    _, (line,) = tools_of(api(good={"get": {}}, deep={"put": {"requestBody": body(deep)}}))
    assert line == "PUT /deep: schemas are nested too deeply"


def test_a_file_without_usable_operations_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "api.json"
    for text in ("{", '{"swagger": "2.0"}', '{"openapi": "3.1.0", "paths": {}}', "3"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"api\.json: expected a JSON list of tools"):
            read_tool_list(path, pytest.fail)


def test_yaml_says_the_same_as_json(tmp_path: Path) -> None:
    text = "openapi: 3.1.0\npaths:\n  /a:\n    get: {operationId: a, description: Reads.}\n"
    path = tmp_path / "api.yaml"
    path.write_text(text)
    (tool,) = read_tool_list(path, pytest.fail)
    assert (tool["name"], tool["description"]) == ("a", "Reads.")
    path.write_text("a: [")
    with pytest.raises(InputError, match=r"api\.yaml: expected YAML: .*line 1"):
        read_tool_list(path, pytest.fail)
    path.write_text("openapi: 3.1.0\npaths: &p {/a: {get: *p}}\n")  # refers to itself
    assert read_tool_list(path, pytest.fail)
