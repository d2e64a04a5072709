"""Traces: trajectories logged as a tree of spans, each of which repeats earlier messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from ...errors import RowError

SpanKind = Literal["model", "tool", "agent", "other"]


@dataclass(slots=True, kw_only=True)
class Span:
    """A span of a trace, from any instrumentation.

    Attributes:
        span_id: Unique in its trace.
        parent_id: The span that it ran in; empty for a root.
        kind: ``model`` for a request to a model, ``tool`` for the execution of a call, ``agent``
            for an agent's turn or trajectory, ``other`` for a container of spans.
        name: Name of the tool or the agent; empty without.
        start: Start from ``time_of``, which orders the spans; equal ones keep the order of the log,
            and so do all spans if one has none.
        input: Raw messages sent to a model, in any dialect; None if not captured. For another span,
            the request to the agent.
        output: Raw messages of the answer; None if not captured.
        is_whole: True if both are all messages of an agent's trajectory, which take precedence over
            those of the model spans in it.
        is_cut: True if the log truncated the input, so that it may lack its last messages.
        system: Instructions besides the messages; empty without.
        tools: Definitions of the tools offered; None if not stated.
        model: The model as stated, preferably the one that answered; empty without.
        call_id: Id of a tool span's call; empty without.
        arguments: Arguments of a tool span: an object if they could be parsed, else as logged; None
            without.
        result: Result of a tool span; None without.
        is_error: True if the span is marked as failed; None if not stated.
        error: Text of its error; empty without.
        usage: Counts of tokens and costs.
        scores: Scores of the span, by name.
        remarks: Facts that a reader of the trajectory has to know, by the names of ``REMARKS``.
        entry: Its position among the parts of the trajectory, from 0.
        extra: Content of the log that has no place here.
    """

    span_id: str
    parent_id: str = ""
    kind: SpanKind = "other"
    name: str = ""
    start: int | None = None
    input: list[Any] | None = None
    output: list[Any] | None = None
    is_whole: bool = False
    is_cut: bool = False
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
    remarks: dict[str, int] = field(default_factory=dict[str, int])
    entry: int = 0
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def stated_id(self) -> str:
        """Its id as the log states it; empty if it states none."""
        return "" if self.span_id == no_id(self.entry) else self.span_id


def no_id(entry: int) -> str:
    """An id for a span whose log states none."""
    return f"entry {entry}"


_MOST_SECONDS = 1e12
"""Limit of a time in seconds; other numbers are not times."""


def time_of(value: object) -> int | None:
    """A time as nanoseconds: a whole number of them, also as text, seconds, or an ISO date."""
    if isinstance(value, str) and not value.strip().isdecimal():
        try:
            date = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return round(date.timestamp() * 10**6) * 1000
    if isinstance(value, float):
        return int(value * 10**9) if abs(value) < _MOST_SECONDS else None
    return int(value) if isinstance(value, int | str) else None


def opened(value: Any) -> Any:
    """The JSON value in a text; any other value as it is."""
    try:
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return value


def key_of(*values: Any) -> bytes:
    """Returns a key that is the same for equal values, independent of the order of fields."""
    try:
        return orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # for deeply nested values
        return repr(values).encode()


def call_key(name: str, arguments: Any) -> bytes:
    """Returns a key that is the same for equal calls."""
    return key_of("call", name, opened(arguments) or {})


class SpanTree:
    """The spans of a trace in order of time.

    Attributes:
        rank: Place of each span in that order, by its entry.
        up: The spans that each span ran in, the nearest first.
        models: Entries of model spans, without those that repeat one inside or around them.
    """

    def __init__(self, spans: Sequence[Span]) -> None:
        times = [of.start for of in spans if of.start is not None]
        is_timed = len(times) == len(spans)
        self.spans = sorted(spans, key=lambda of: of.start or 0) if is_timed else list(spans)
        self.rank = {of.entry: at for at, of in enumerate(self.spans)}
        by_id = {of.span_id: of for of in self.spans if of.span_id}
        self.up = {of.entry: list(_above(of, by_id)) for of in self.spans}
        self._inner = {
            of.span_id for of in self.spans if any(up.kind in _ACTORS for up in self.up[of.entry])
        }
        models = [of for of in self.spans if of.kind == "model"]
        nearest = (
            (of, next((up for up in self.up[of.entry] if up.kind != "other"), of)) for of in models
        )
        pairs = [(of, up) for of, up in nearest if up is not of and up.kind == "model"]
        twice = {min(up, of, key=lambda of: len(of.input or ())).entry for of, up in pairs}
        self.models = {of.entry for of in models} - twice

    def agent(self, span: Span) -> str:
        """The id of the agent span that it is or ran in; empty without."""
        chain = (span, *self.up[span.entry])
        return next((of.span_id for of in chain if of.kind == "agent"), "")

    def is_root(self, agent: str) -> bool:
        """True if an agent ran neither in another agent's span nor in a tool's."""
        return agent not in self._inner

    def speakers(self) -> list[Span]:
        """The spans that messages are taken from; none if only tools have content.

        Raises:
            RowError: If no span has content.
        """
        spoken = {
            of.entry: of for of in self.spans if (of.input or of.output) and of.kind != "tool"
        }
        whole = {of.span_id for of in spoken.values() if of.is_whole}
        speakers = [
            of
            for of in spoken.values()
            if of.is_whole or (of.entry in self.models and self.agent(of) not in whole)
        ]
        if not self.models and not speakers:
            ups = {at: {up.entry for up in self.up[at]} for at in spoken}
            speakers = [of for at, of in spoken.items() if ups[at].isdisjoint(spoken)]
        tools = [of for of in self.spans if of.kind == "tool" and (of.arguments or of.result)]
        if not speakers and not (self.models and tools):
            n, error = len(self.models), RowError("spans", "messages", None)
            why = "content capture is off" if n else "none of them is a model's"
            error.args = (f"no message in {n or len(self.spans)} {'model ' * bool(n)}spans: {why}",)
            raise error
        return speakers

    def tools(self, remarks: Counter[str]) -> Iterator[Span]:
        """Yields the spans of tools, without those that repeat the span that they ran in."""
        for span in (of for of in self.spans if of.kind == "tool"):
            ups = [up for up in self.up[span.entry] if up.kind == "tool"]
            key = call_key(span.name, span.arguments)
            if span.name == _MERGED or key in [call_key(up.name, up.arguments) for up in ups]:
                remarks["duplicate carriers"] += 1
            else:
                yield span


_ACTORS = ("agent", "tool")
_MERGED = "(merged tools)"
"""The tool of a span in which Google's ADK repeats the results of parallel calls."""


def _above(span: Span, by_id: Mapping[str, Span]) -> Iterator[Span]:
    seen = {span.span_id}
    while (above := by_id.get(span.parent_id)) is not None and above.span_id not in seen:
        seen.add(above.span_id)
        yield (span := above)
