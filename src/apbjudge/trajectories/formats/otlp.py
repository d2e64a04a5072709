"""Traces of agents: OTLP in JSON, spans as Phoenix exports them, rows of Logfire.

They differ in the form of a span. ``attributes`` reads its attributes, and ``span_trajectories``
makes the trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...records.loose_json import as_list, as_object, objects_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .attributes import Attributes, span_of_attributes
from .derived import derived_id
from .span_trajectories import trajectory_of_spans
from .spans import Span, opened, time_of

_TRACE = ("traceId", "trace_id", "context.trace_id")
_SPAN = ("spanId", "span_id", "context.span_id")
_PARENT = ("parentSpanId", "parent_span_id", "parent_id")
_NAME = ("span_name", "name", "event_name", "eventName", "attributes.event.name")
_START = ("startTimeUnixNano", "start_timestamp", "start_time")
_STATUS = ("status.code", "status_code", "otel_status_code")
_MESSAGE = ("status.message", "status_message", "otel_status_message", "exception_message")
_EVENTS = ("events", "otel_events")
_RESOURCES = {
    **dict.fromkeys(("resourceSpans", "batches"), ("scopeSpans", "spans")),
    "resourceLogs": ("scopeLogs", "logRecords"),
}
_SCALARS = ("stringValue", "boolValue", "doubleValue", "bytesValue")
_FAILED = {"2": True, "ERROR": True, "1": False, "OK": False}


def _plain(value: Any) -> Any:
    """A value of OTLP as a JSON value, attributes as an object; any other value as it is."""
    if as_list(value) is not None:
        return {str(of.get("key")): _plain(of.get("value")) for of in objects_of(value)}
    kind, inner = next(iter((as_object(value) or {}).items()), ("", None))
    values = as_list((as_object(inner) or {}).get("values")) or []
    if kind == "arrayValue":
        return [_plain(of) for of in values]
    if kind == "kvlistValue":
        return _plain(values)
    return opened(inner) if kind == "intValue" else inner if kind in _SCALARS else value


def _otlp_parts(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The spans and log records in a record of OTLP, by their traces."""
    for name, (scopes, inner) in _RESOURCES.items():
        for resource in objects_of(record.get(name)):
            for scope in objects_of(resource.get(scopes)):
                for of in objects_of(scope.get(inner)):
                    yield str(of.get("traceId") or ""), of


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield Attributes(record).text(*_TRACE), record


def _event(of: Attributes) -> tuple[str, dict[str, Any]]:
    """The name of an event or of a log record, and its attributes."""
    body, about = _plain(of.of("body")), as_object(_plain(opened(of.of("attributes")))) or {}
    return of.text(*_NAME), about | (as_object(body) or ({"content": body} if body else {}))


def _read(parts: list[Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    rows = [Attributes(part) for part in parts]
    logs: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for of in (row for row in rows if row.of(*_START) is None):
        logs.setdefault(of.text(*_SPAN), []).append(_event(of))
    read: list[Span] = []
    for entry, of in enumerate(rows):
        if of.of(*_START) is None or of.text("kind") == "pending_span":  # started, not ended
            continue
        status = of.text(*_STATUS).upper().removeprefix("STATUS_CODE_")
        span = Span(
            span_id=of.text(*_SPAN),
            parent_id=of.text(*_PARENT),
            start=time_of(of.of(*_START)),
            is_error=True if of.of("is_exception") is True else _FAILED.get(status),
            error=of.text(*_MESSAGE),
            entry=entry,
        )
        events = [_event(Attributes(each)) for each in objects_of(of.of(*_EVENTS))]
        events += logs.get(span.span_id, ())
        about = _event(of)[1]
        name, kind = of.text(*_NAME), of.text("span_kind")
        read.append(span_of_attributes(about, span, kind=kind, name=name, events=events))
    trace_id = next(filter(None, (of.text(*_TRACE) for of in rows)), "")
    return trajectory_of_spans(
        read, trajectory_id=trace_id or derived_id("", None, place), place=place
    )


def _score_otlp(record: Mapping[str, Any]) -> float:
    return 1.0 if any(name for name, _ in _otlp_parts(record)) else 0.0


def _score_row(record: Mapping[str, Any], *marks: str) -> float:
    """Score of rows of spans, higher if they also have one of the keys."""
    of = Attributes(record)
    has_ids = of.text(*_TRACE[1:]) and of.text(*_SPAN[1:]) and of.of("attributes") is not None
    return 0.0 if not has_ids else 1.0 if of.of(*marks) is not None else 0.5


def _score_phoenix(record: Mapping[str, Any]) -> float:
    marks = ("span_kind", "attributes.openinference.span.kind", "attributes.llm")
    return _score_row(record, *marks) * ("context.trace_id" in record or "context" in record)


def _score_logfire(record: Mapping[str, Any]) -> float:
    return _score_row(record, "start_timestamp") * ("span_name" in record)


OTLP = LogFormat(
    name="otlp", title="OpenTelemetry", score=_score_otlp, read=_read, parts=_otlp_parts
)
OPENINFERENCE = LogFormat(
    name="openinference",
    title="OpenInference",
    score=_score_phoenix,
    read=_read,
    parts=_rows,
    member="data",
)
LOGFIRE = LogFormat(
    name="logfire", title="Logfire", score=_score_logfire, read=_read, parts=_rows, member="rows"
)
