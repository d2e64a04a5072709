"""Traces of the OpenAI Agents SDK: the items that it exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...records.loose_json import as_object, rest_of
from .fields import object_in
from .spans import Span
from .traces import score_span, span_in, trace_format

_OBJECTS = ("trace", "trace.span")
_KNOWN = frozenset("object id group_id".split())


def _score(record: Mapping[str, Any]) -> float:
    return float(record.get("object") in _OBJECTS and "id" in record)


def _span(of: Mapping[str, Any], entry: int) -> Span:
    """A span; one of the Responses API has only an id and usage, without its text."""
    if of.get("object") == "trace":
        return score_span([], rest_of(of, _KNOWN), entry)
    data, error = object_in(of, "span_data"), as_object(of.get("error")) or {}
    kind = data.get("type")
    span = span_in(
        of,
        entry,
        "tool" if kind == "function" else kind,
        data.get("input"),
        data.get("output"),
        name=str(data.get("name") or ""),
        model=data.get("model"),
        tools=data.get("tools"),
        error=(as_object(error.get("data")) or {}).get("error") or error.get("message"),
        usage=data.get("usage"),
    )
    span.remarks["cut content"] = int(kind == "response" and "input" not in data)
    return span


OPENAI_AGENTS = trace_format(
    "openai-agents",
    "OpenAI Agents SDK traces",
    member="data",
    trace=("trace_id", "id"),
    score=_score,
    span=_span,
)
