"""Runs of LangSmith, one per row or nested, also as the two halves in which they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...records.loose_json import as_list, as_object
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .fields import id_field, object_in, text_field
from .span_trajectories import trajectory_of_spans
from .spans import Span
from .traces import span_in

_PLACES = frozenset("trace_id dotted_order parent_run_id child_runs session_id".split())
_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens", "total_cost")


def _halves(record: Mapping[str, Any]) -> list[Any]:
    """The runs of a record: the halves sent before and after each, or the record itself."""
    return [of for key in ("post", "patch") for of in as_list(record.get(key)) or ()] or [record]


def _score(record: Mapping[str, Any]) -> float:
    run = as_object(_halves(record)[0]) or {}
    return float(isinstance(run.get("run_type"), str) and not _PLACES.isdisjoint(run))


def _parts(record: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The runs with their traces; nested ones belong to their parent's."""
    parts: list[tuple[str, Any]] = []
    todo = [(of, "", "") for of in reversed(_halves(record))]
    while todo:
        spec, trace, parent = todo.pop()
        run = {"parent_run_id": parent or None, **(as_object(spec) or {})}
        run_id = id_field(run, "id")
        first = text_field(run, "dotted_order").partition(".")[0].partition("Z")[2]
        trace = trace or id_field(run, "trace_id") or first or run_id
        children = as_list(run.pop("child_runs", None)) or ()
        todo += [(of, trace, run_id) for of in reversed(children)]
        parts.append((trace, run))
    return parts


def _read(parts: list[dict[str, Any]], place: LogPlace, around: object) -> Trajectory:
    runs: dict[str, tuple[dict[str, Any], int]] = {}
    for entry, part in enumerate(parts):
        run, _ = runs.setdefault(id_field(part, "id"), ({}, entry))
        run |= {name: value for name, value in part.items() if value is not None}
    ordered = sorted(runs.values(), key=lambda of: text_field(of[0], "dotted_order"))
    trace_id = _parts(parts[0])[0][0]
    return trajectory_of_spans([_span(*of) for of in ordered], trajectory_id=trace_id, place=place)


def _span(run: Mapping[str, Any], entry: int) -> Span:
    extra, outputs = object_in(run, "extra"), as_object(run.get("outputs")) or {}
    params = as_object(extra.get("invocation_params")) or {}
    about = as_object(extra.get("metadata")) or {}
    kind = text_field(run, "run_type")
    is_wrapped = kind == "tool" and outputs.keys() == {"output"}
    span = span_in(
        run,
        entry,
        "agent" if kind == "chain" and not run.get("parent_run_id") else kind,
        run.get("inputs"),
        outputs["output"] if is_wrapped else outputs or None,
        model=about.get("ls_model_name") or params.get("model") or params.get("model_name"),
        tools=params.get("tools"),
        error=run.get("error"),
        usage={name: run.get(name) for name in _USAGE},
        scores={k: _average(of) for k, of in object_in(run, "feedback_stats").items()},
    )
    names = [f"{name}_s3_urls" for name in ("inputs", "outputs") if not run.get(name)]
    span.remarks["cut content"] = sum(bool(run.get(name)) for name in names)
    return span


def _average(stats: object) -> Any:
    """The mean of a score, or the word that all scores agree on."""
    spec = as_object(stats) or {}
    words = list(as_object(spec.get("values")) or ())
    return words[0] if spec.get("avg") is None and len(words) == 1 else spec.get("avg")


LANGSMITH = LogFormat(
    name="langsmith",
    title="LangSmith runs",
    score=_score,
    read=_read,
    member="runs",
    parts=_parts,
)
