"""Traces of agents: OTLP in JSON, spans as Phoenix exports them, rows of Logfire.

They differ in how a span is written. What its attributes say is read by ``attributes``, and the run
that the spans make by ``spans``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...records.loose_json import as_list, as_object
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .attributes import Attributes, nested, span_of_attributes
from .messages import derived_id
from .spans import Span, opened, run_of, time_of

_TRACE = ("traceId", "trace_id", "context.trace_id")
_SPAN = ("spanId", "span_id", "context.span_id")
_PARENT = ("parentSpanId", "parent_span_id", "parent_id")
_NAME = ("span_name", "name", "eventName")
_START = ("startTimeUnixNano", "start_time_unix_nano", "start_timestamp", "start_time")
_STATUS = ("status.code", "status_code", "otel_status_code")
_MESSAGE = ("status.message", "status_message", "otel_status_message", "exception_message")
_EVENTS = ("events", "otel_events", "span_events")
_RESOURCES = {"resourceSpans": ("scopeSpans", "spans"), "resourceLogs": ("scopeLogs", "logRecords")}
_FAILED = {"2": True, "ERROR": True, "1": False, "OK": False}


def _plain(value: Any) -> Any:
    """A value of OTLP as a JSON value; attributes as an object."""
    if (pairs := as_list(value)) is not None:
        objects = list(filter(None, map(as_object, pairs)))
        return {str(of.get("key")): _plain(of.get("value")) for of in objects}
    holder = as_object(value) or {}
    kind, inner = next(iter(holder.items()), ("", None))
    values = as_list((as_object(inner) or {}).get("values")) or []
    if kind == "arrayValue":
        return [_plain(of) for of in values]
    if kind == "kvlistValue":
        return _plain(values)
    return int(inner) if kind == "intValue" and isinstance(inner, str) else inner


def _attributes(of: Attributes, name: str) -> dict[str, Any]:
    """Attributes as an object, whether pairs, an object or its JSON text."""
    value = opened(of.of(name))
    return _plain(value) if isinstance(value, list) else as_object(value) or {}


def _otlp_parts(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The spans and log records in a record of OTLP, by their traces."""
    for name, (scopes, inner) in _RESOURCES.items():
        for resource in filter(None, map(as_object, as_list(record.get(name)) or ())):
            for scope in filter(None, map(as_object, as_list(resource.get(scopes)) or ())):
                for of in filter(None, map(as_object, as_list(scope.get(inner)) or ())):
                    yield str(of.get("traceId") or ""), of


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield Attributes(record).text(*_TRACE), record


def _read(parts: list[Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    spans: list[Span] = []
    logs: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    rows = [Attributes(part) for part in parts]
    for of in rows:
        if of.of(*_START) is None:
            title = of.text(*_NAME, "attributes.event.name")
            body = _plain(of.of("body"))
            about = as_object(body) or {"content": body}
            logs.setdefault(of.text(*_SPAN), []).append(
                (title, _attributes(of, "attributes") | about)
            )
    for entry, of in enumerate(rows):
        if of.of(*_START) is None:
            continue
        events = [
            Attributes(each) for each in map(as_object, as_list(of.of(*_EVENTS)) or ()) if each
        ]
        told = [
            (each.text("name", "event_name"), _attributes(each, "attributes")) for each in events
        ]
        errors = [about.get("exception.message") for title, about in told if title == "exception"]
        status = of.text(*_STATUS).upper().removeprefix("STATUS_CODE_")
        is_error = True if of.of("is_exception") is True else _FAILED.get(status)
        spans.append(
            span_of_attributes(
                _attributes(of, "attributes"),
                span_id=of.text(*_SPAN),
                parent_id=of.text(*_PARENT),
                kind=of.text("span_kind"),
                name=of.text(*_NAME),
                start=time_of(of.of(*_START)),
                events=[*told, *logs.get(of.text(*_SPAN), ())],
                is_error=is_error,
                error=of.text(*_MESSAGE) or next((str(each) for each in errors if each), ""),
                entry=entry,
            )
        )
    trace_id = next((name for of in rows if (name := of.text(*_TRACE))), "")
    return run_of(spans, trajectory_id=trace_id or derived_id("", None, place), place=place)


def _score_otlp(record: Mapping[str, Any]) -> float:
    parts = [of for name, of in _otlp_parts(record) if name]
    return 1.0 if parts else 0.5 * any(name in record for name in _RESOURCES)


def _score_phoenix(record: Mapping[str, Any]) -> float:
    of = nested(record)
    context, attributes = as_object(of.get("context")) or {}, as_object(of.get("attributes"))
    is_span = {"trace_id", "span_id"} <= context.keys() and attributes is not None
    return is_span * (
        0.8 + 0.2 * ("span_kind" in of or "openinference" in nested(attributes or {}))
    )


def _score_logfire(record: Mapping[str, Any]) -> float:
    has_ids = {"trace_id", "span_id", "span_name"} <= record.keys()
    return has_ids * (0.8 + 0.2 * ("start_timestamp" in record))


OTLP = LogFormat(
    name="otlp", title="OpenTelemetry", score=_score_otlp, read=_read, parts=_otlp_parts
)
OPENINFERENCE = LogFormat(
    name="openinference", title="OpenInference", score=_score_phoenix, read=_read, parts=_rows
)
LOGFIRE = LogFormat(
    name="logfire", title="Logfire", score=_score_logfire, read=_read, parts=_rows, member="rows"
)
