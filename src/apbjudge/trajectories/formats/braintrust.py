"""Spans of Braintrust: rows of its API or of an export, which lacks the ids of spans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...records.loose_json import as_list, as_object
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import id_field, object_in
from .messages import derived_id
from .spans import Span, run_of
from .traces import span_in

_TIMES = ("start", "end")


def _score(record: Mapping[str, Any]) -> float:
    is_span = "span_attributes" in record and {"root_span_id", "metrics"} & {*record}
    return float(bool(is_span) or {"input", "metrics", "scores"} <= {*record})


def _read(parts: list[dict[str, Any]], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    spans = [_span(of, entry) for entry, of in enumerate(parts)]
    trace_id = id_field(parts[0], "root_span_id") or derived_id("", None, place)
    return run_of(spans, trajectory_id=trace_id, place=place)


def _span(of: Mapping[str, Any], entry: int) -> Span:
    about, metadata = object_in(of, "span_attributes"), as_object(of.get("metadata")) or {}
    metrics = as_object(of.get("metrics")) or {}
    parents = as_list(of.get("span_parents")) or [None]
    span = span_in(
        {**of, "parent_id": parents[0], "start_time": metrics.get("start")},
        entry,
        about.get("type"),
        of.get("input"),
        of.get("output"),
        name=str(about.get("name") or ""),
        model=metadata.get("model"),
        tools=metadata.get("tools"),
        error=of.get("error"),
        usage={name: value for name, value in metrics.items() if name not in _TIMES},
        scores=as_object(of.get("scores")),
    )
    if (expected := of.get("expected")) is not None:
        span.extra["expected"] = expected
    return span


BRAINTRUST = LogFormat(
    name="braintrust",
    title="Braintrust spans",
    score=_score,
    read=_read,
    member="events",
    parts=lambda record: [(id_field(record, "root_span_id"), record)],
)
