"""Spans of Braintrust: rows of its API or of an export, which lacks the ids of spans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...records.loose_json import as_list, as_object
from .fields import object_in
from .spans import Span
from .traces import span_in, trace_format

_TIMES = ("start", "end")


def _score(record: Mapping[str, Any]) -> float:
    is_span = "span_attributes" in record and {"root_span_id", "metrics"} & {*record}
    return float(bool(is_span) or {"input", "metrics", "scores"} <= {*record})


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


BRAINTRUST = trace_format(
    "braintrust",
    "Braintrust spans",
    member="events",
    trace=("root_span_id",),
    score=_score,
    span=_span,
)
