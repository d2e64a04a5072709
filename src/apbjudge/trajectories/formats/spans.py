"""Traces: runs whose log is a tree of spans, each of which repeats what came before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...records.trajectories import LogPlace, Trajectory

SpanKind = Literal["model", "tool", "agent", "other"]


@dataclass(slots=True, kw_only=True)
class Span:
    """A span of a trace, whatever instrumentation wrote it.

    Attributes:
        span_id: Unique in its trace.
        parent_id: The span that it ran in; empty for a root.
        kind: ``model`` for a request to a model, ``tool`` for the execution of a call, ``agent``
            for an agent's turn or run, ``other`` for what only holds spans.
        name: Of the tool or the agent; empty without.
        start: Orders the spans, of whatever type all of a trace share; equal ones keep the order
            of the log. None where the log has no times.
        input: Raw messages that a model is sent, in any dialect; None where not captured.
        output: Raw messages that it answers; None where not captured.
        system: Instructions beside the messages; empty without.
        tools: Definitions of the tools offered; None where nothing is said of them.
        model: As stated, the answering one before the one asked for; empty without.
        call_id: Of a tool's span: id of the call; empty without.
        arguments: Likewise: an object where it could be read; else what came; None without.
        result: Likewise: what the tool returned; None without.
        is_error: Whether the span is marked as failed; None where it says nothing.
        error: The words of its error; empty without.
        usage: Counts of tokens and costs.
        scores: Scores that stand on it, by name.
        entry: Its position among the parts of the run, from 0.
        extra: Content of the log that has no place here.
    """

    span_id: str
    parent_id: str = ""
    kind: SpanKind = "other"
    name: str = ""
    start: Any = None
    input: list[Any] | None = None
    output: list[Any] | None = None
    system: str = ""
    tools: tuple[Any, ...] | None = None
    model: str = ""
    call_id: str = ""
    arguments: Any = None
    result: Any = None
    is_error: bool | None = None
    error: str = ""
    usage: dict[str, float] = field(default_factory=dict[str, float])
    scores: dict[str, bool | float | str] = field(default_factory=dict[str, bool | float | str])
    entry: int = 0
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


def run_of(spans: Sequence[Span], *, trajectory_id: str, place: LogPlace) -> Trajectory:
    """The run that a trace holds.

    Model spans in order of time make threads of messages: a span whose input begins with a thread
    goes on with it. The main thread is that of the root agent; others are sub-agents.

    Raises:
        RowError: If no span has messages.
    """
    raise NotImplementedError
