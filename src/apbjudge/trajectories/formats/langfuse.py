"""Traces of Langfuse: a trace with its observations, or observations alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...records.loose_json import as_list, as_object, rest_of
from ...records.messages import is_message
from .fields import id_field, object_in, objects_in
from .spans import Span, opened
from .traces import Parts, score_span, span_in, trace_format

_OF_OBSERVATIONS = frozenset("parentObservationId startTime level statusMessage".split())
_KNOWN = frozenset("id name timestamp sessionId scores input output observations".split())


def _score(record: Mapping[str, Any]) -> float:
    if as_list(record.get("observations")) is None:
        return float(not _OF_OBSERVATIONS.isdisjoint(record) and {"traceId", "type"} <= {*record})
    trace = as_object(record.get("trace")) or record
    return float("id" in trace and len(_KNOWN.intersection(trace)) > 2)


def _parts(record: Mapping[str, Any]) -> Parts:
    """The trace and its observations, each of which may be in both places."""
    if "traceId" in record:
        return [(id_field(record, "traceId"), record)]
    trace = object_in(record, "trace") or record
    trace_id = id_field(trace, "id")
    listed = [of for holder in (trace, record) for of in as_list(holder.get("observations")) or ()]
    by_id = {id_field(of, "id"): of for each in listed if (of := as_object(each))}
    whole = {name: value for name, value in trace.items() if name != "observations"}
    inner = ({"traceId": trace_id, **of} for of in by_id.values())
    return [(trace_id, of) for of in (whole, *inner)]


def _value(score: Mapping[str, Any]) -> Any:
    kind, value = score.get("dataType"), score.get("value")
    value = score.get("stringValue") if kind == "CATEGORICAL" else value
    return bool(value) if kind == "BOOLEAN" else value


def _span(of: Mapping[str, Any], entry: int) -> Span:
    if "traceId" not in of:
        scores = [(each.get("name"), _value(each), each) for _, each in objects_in(of, "scores")]
        return score_span(scores, rest_of(of, _KNOWN), entry)
    about = as_object(opened(of.get("metadata"))) or {}
    span = span_in(
        of,
        entry,
        of.get("type"),
        of.get("input"),
        of.get("output"),
        model=of.get("model"),
        error=of.get("statusMessage"),
        is_error=of.get("level") == "ERROR" or None,
        usage=of.get("usageDetails"),
        attributes=as_object(opened(about.get("attributes"))),
    )
    messages = [_message(each) for each in span.input or ()]
    tools = [each["content"] for each in messages if _is_tool(each)]
    span.tools = tuple(tools) if tools and span.tools is None else span.tools
    span.input = [each for each in messages if not _is_tool(each)] or None
    return span


def _message(raw: Any) -> Any:
    """A message in the form of LangChain's callback, in which tools speak under their name."""
    message = as_object(raw) or {}
    if "additional_kwargs" not in message or is_message(message):
        return raw
    return {**message, "role": "tool", "name": message.get("role")}


def _is_tool(raw: Any) -> bool:
    """True if a message is a tool's definition, which that callback lists among messages."""
    content = as_object((as_object(raw) or {}).get("content")) or {}
    return "parameters" in (as_object(content.get("function")) or ())


LANGFUSE = trace_format(
    "langfuse",
    "Langfuse traces",
    member="data",
    trace=("traceId", "id"),
    score=_score,
    span=_span,
    parts=_parts,
)
