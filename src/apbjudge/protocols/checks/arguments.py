"""E5: parameters against the tool's JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...errors import shorten
from ...records import Call, Finding, Item, Tool
from ...records.loose_json import as_object
from ...rubrics import Rubric
from .rules import finding

if TYPE_CHECKING:
    from .schema import Steps


def parameter_names(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """Holistic: names of parameters only, since their values are descriptions."""
    checkable: Mapping[str, Tool] = item.tools.checkable if item.tools else {}
    for call in item.prediction.calls:
        if (tool := checkable.get(call.name)) is None:
            continue
        if call.arguments is None:
            if tool.required:
                message = f"the call of {tool.name} does not say which parameters it uses"
                yield finding("parameters-not-given", "E5", "suspected", call.where, message)
            continue
        yield from _names(call, tool)


def concrete_arguments(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """Step-wise: names, types and values.

    From the second predicted step on, a value that may be a placeholder for a result still to come
    is not checked against the schema; a list or an object around it is.
    """
    from .schema import Steps  # it loads jsonschema, which plans don't need

    checkable: Mapping[str, Tool] = item.tools.checkable if item.tools else {}
    steps = Steps(STEPS_PER_REPLY, "one reply")
    for position, step in enumerate(item.prediction.steps):
        for call in step.calls:
            if (tool := checkable.get(call.name)) is None:
                continue
            if call.is_unread:
                yield _unchecked(call, tool, "they are no readable JSON object")
                continue
            if call.arguments is None:
                if tool.required:
                    message = f"no arguments where {', '.join(tool.required)} must be given"
                    yield finding("missing-parameter", "E5", "proven", call.where, message)
                continue
            yield from _names(call, tool)
            yield from _values(call, tool, steps, placeholders=position > 0)


STEPS_PER_REPLY = 200_000
"""Steps for all calls of a reply together: a few seconds."""


def _unchecked(call: Call, tool: Tool, reason: str) -> Finding:
    message = f"arguments not held against the schema of {shorten(tool.name)}: {reason}"
    return finding("unchecked-arguments", "E5", "suspected", call.where, message)


def _names(call: Call, tool: Tool) -> Iterator[Finding]:
    """Missing and unknown parameters at the top level."""
    arguments = call.arguments or {}
    schema = as_object(tool.parameters) or {}
    for name in tool.required:
        if name not in arguments:
            message = f"{tool.name} needs {shorten(name)}"
            yield finding("missing-parameter", "E5", "proven", call.where, message)
    if schema.get("additionalProperties", False) is not False or not _OPEN.isdisjoint(schema):
        return
    for name in arguments:
        if name not in schema["properties"] and name not in tool.required:
            message = f"{tool.name} has no parameter {shorten(name)}"
            where = f"{call.where}.{name}"
            yield finding("unknown-parameter", "E5", "proven", where, message)


_OPEN = frozenset(
    "patternProperties allOf anyOf oneOf $ref $dynamicRef if dependentSchemas dependencies".split()
)
"""Keywords that can add parameters: with them, no name is provably unknown."""


def _values(call: Call, tool: Tool, steps: Steps, *, placeholders: bool) -> Iterator[Finding]:
    from .schema import UncheckedError, violations

    arguments, required = call.arguments or {}, tool.required
    try:
        breaches = violations(tool.parameters, arguments, placeholders=placeholders, steps=steps)
    except UncheckedError as error:
        yield _unchecked(call, tool, str(error))
        return
    for broken in breaches:
        if not broken.path and broken.rule in ("missing-parameter", "unknown-parameter"):
            continue  # top-level names are reported one by one
        where = f"{call.where}.arguments{broken.path}"
        name = broken.path.removeprefix(".")
        if broken.value is None and name in tool.parameters["properties"] and name not in required:
            message = f"null for the optional {shorten(name)}"
            yield finding("null-optional", "E5", "suspected", where, message)
            continue
        yield finding(broken.rule, "E5", "proven", where, broken.message)
