"""Traces of MLflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...records.loose_json import as_list, as_object, rest_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import HUMAN, id_field, object_in, objects_in
from .span_trajectories import trajectory_of_spans
from .spans import Span, opened
from .traces import score_span, span_in

_FAILED = {"STATUS_CODE_ERROR": True, "ERROR": True, "STATUS_CODE_OK": False, "OK": False}
_KNOWN = frozenset("trace_id request_id assessments request_preview response_preview".split())


def _score(record: Mapping[str, Any]) -> float:
    info, data = as_object(record.get("info")) or {}, as_object(record.get("data")) or {}
    is_trace = as_list(data.get("spans")) is not None
    return float(is_trace and not {"trace_id", "request_id"}.isdisjoint(info))


def _read(record: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    info, data = object_in(record, "info"), object_in(record, "data")
    spans = [_span(of, entry) for entry, of in objects_in(data, "spans", "data.")]
    scores = [
        (_name(of), (as_object(of.get("feedback")) or {}).get("value"), of)
        for _, of in objects_in(info, "assessments", "info.")
    ]
    spans.append(score_span(scores, rest_of(info, _KNOWN)))
    trace_id = id_field(info, "trace_id", "request_id")
    return trajectory_of_spans(spans, trajectory_id=trace_id, place=place)


def _name(of: Mapping[str, Any]) -> str:
    source = as_object(of.get("source")) or {}
    return f"{of.get('assessment_name')}{HUMAN * (source.get('source_type') == 'HUMAN')}"


def _span(of: Mapping[str, Any], entry: int) -> Span:
    status = object_in(of, "status")
    about = {name: opened(value) for name, value in object_in(of, "attributes").items()}
    return span_in(
        {**object_in(of, "context"), **of},
        entry,
        about.get("mlflow.spanType"),
        about.get("mlflow.spanInputs"),
        about.get("mlflow.spanOutputs"),
        tools=about.get("mlflow.chat.tools"),
        error=status.get("message") or of.get("status_message"),
        is_error=_FAILED.get(str(status.get("code") or of.get("status_code"))),
        usage=about.get("mlflow.chat.tokenUsage"),
        attributes=about,
    )


MLFLOW = LogFormat(name="mlflow", title="MLflow traces", score=_score, read=_read, member="traces")
