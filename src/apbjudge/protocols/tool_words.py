"""The words of a tool's name, and its parameters."""

from __future__ import annotations

import re
from typing import Any

from ..records import Tool
from ..records.loose_json import as_object


def name_words(name: str) -> list[str]:
    """The words of a tool's name, in lower case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.\s]+", " ", name).lower().split()


def squashed(text: str) -> str:
    """A text in lower case without spaces and punctuation."""
    return re.sub(r"[\W_]+", "", text).casefold()


def properties(tool: Tool) -> dict[str, dict[str, Any]]:
    """A tool's parameters with their schemas, in order; empty without a JSON Schema."""
    if tool.parameter_kind != "json_schema":
        return {}
    described = as_object(tool.parameters["properties"]) or {}
    return {name: as_object(spec) or {} for name, spec in described.items()}
