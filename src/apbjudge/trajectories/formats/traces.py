"""Shared conversion of tracing tools' records to spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from ...records.loose_json import as_list, as_object, python_value
from ...records.messages import is_message, read_messages
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .attributes import span_of_attributes
from .derived import derived_id
from .fields import id_field, scores_in, text_field
from .span_trajectories import trajectory_of_spans
from .spans import Span, no_id, opened, time_of

Parts = list[tuple[str, Any]]

_PARENTS = ("parent_id", "parent_run_id", "parent_span_id", "parentObservationId")
_STARTS = ("start_time", "startTime", "started_at", "start_time_unix_nano")


def span_in(
    record: Mapping[str, Any],
    entry: int,
    kind: object,
    sent: Any,
    answered: Any,
    *,
    name: str = "",
    model: object = None,
    tools: object = None,
    error: object = None,
    is_error: bool | None = None,
    usage: object = None,
    scores: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Span:
    """The span of a record.

    Args:
        record: The record; its ids, name and start are read here.
        entry: Its position among the parts of the trajectory.
        kind: The tool's word for its kind.
        sent: Its input: messages in any form, or a tool's arguments.
        answered: Its output.
        name: Name of the tool or the agent, if the record has it elsewhere.
        model: Name of the model; ignored if it is not text.
        tools: Definitions or names of the tools; ignored if it is not a list.
        error: Text of its error.
        is_error: True if it failed; if not stated, it failed if there is an error.
        usage: Counts of tokens, in an object.
        scores: Scores by name; ignored if not a number, truth value or word.
        attributes: Further attributes of OpenTelemetry.

    Raises:
        RowError: If an id or a name is invalid, or messages are of an unknown form.
    """
    # As texts, so that no key in them is taken for a part of an attribute's name.
    stated = {
        "input.value": _json(sent),
        "output.value": _json(answered),
        "gen_ai.request.model": model,
        "gen_ai.tool.definitions": tools if as_list(tools) else None,
        "gen_ai.usage": usage,
    }
    span = span_of_attributes(
        {name: of for name, of in stated.items() if of is not None} | {**(attributes or {})},
        Span(
            span_id=id_field(record, "span_id", "id") or no_id(entry),
            parent_id=id_field(record, *_PARENTS),
            start=time_of(next((of for key in _STARTS if (of := record.get(key))), None)),
            is_error=True if error and is_error is None else is_error,
            error=_json(error) or "",
            entry=entry,
        ),
        kind=str(kind or ""),
    )
    span.name = span.name or name or text_field(record, "name")
    if span.kind == "agent" and (listed := as_list(tools)):
        span.tools = tuple(listed)
    span.scores |= scores_in(scores or {})
    if span.kind == "tool":
        inner = (as_object(span.arguments) or {}).get("input")
        if as_object(inner := python_value(opened(inner))) is not None and len(span.arguments) == 1:
            span.arguments = inner
        _take_message(span)
    return span


def _json(value: Any) -> str | None:
    return value if isinstance(value, str | None) else orjson.dumps(value).decode()


def _take_message(span: Span) -> None:
    """Extracts the result, and the call that it answers, from a result that is a message."""
    if is_message(span.result):
        for of in (of for each in read_messages([span.result]).messages for of in each.results):
            span.result, span.call_id = of.content, span.call_id or of.call_id
            span.is_error = of.is_error if span.is_error is None else span.is_error


def score_span(
    scores: Iterable[tuple[Any, Any, Mapping[str, Any]]], extra: dict[str, Any], entry: int = -1
) -> Span:
    """A span for the facts of a trace as a whole.

    Args:
        scores: Name, value and record of each score; the record is stored too if the value is not
            carried over, or is not its only content.
        extra: Content of the trace that has no place in a trajectory.
        entry: Its position among the parts of the trajectory, if it is one.
    """
    span = Span(span_id="(trace)", start=0, entry=entry, extra=extra)
    for name, value, record in scores:
        stated = scores_in({str(name): value}).get(str(name))
        known = None if stated is None else span.scores.setdefault(str(name), stated)
        if known != value or not {"comment", "rationale"}.isdisjoint(record):
            span.extra.setdefault("scores", []).append(record)
    return span


def trace_format(
    name: str,
    title: str,
    *,
    member: str,
    trace: tuple[str, ...],
    score: Callable[[Mapping[str, Any]], float],
    span: Callable[[Mapping[str, Any], int], Span],
    parts: Callable[[Mapping[str, Any]], Parts] | None = None,
) -> LogFormat:
    """A format whose records are the spans of traces.

    Args:
        name: See ``LogFormat``.
        title: See ``LogFormat``.
        member: See ``LogFormat``.
        score: See ``LogFormat``.
        trace: Fields of a part for the id of its trace; the first present one counts.
        span: Makes a span of a part and its position.
        parts: Makes several parts of a record; by default it is one.
    """

    def read(parts: list[Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
        spans = [span(of, entry) for entry, of in enumerate(parts)]
        trace_id = id_field(parts[0], *trace) or derived_id("", None, place)
        return trajectory_of_spans(spans, trajectory_id=trace_id, place=place)

    def one(record: Mapping[str, Any]) -> Parts:
        return [(id_field(record, *trace), record)]

    return LogFormat(
        name=name, title=title, member=member, score=score, read=read, parts=parts or one
    )
