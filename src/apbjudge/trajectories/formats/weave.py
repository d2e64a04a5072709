"""Calls of Weave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...records.loose_json import as_list, as_object
from ...records.messages.envelope import LISTS
from .fields import object_in, text_field
from .spans import Span
from .traces import span_in, trace_format


def _score(record: Mapping[str, Any]) -> float:
    return float({"op_name", "inputs"} <= record.keys() and bool({"id", "trace_id"} & {*record}))


def _span(of: Mapping[str, Any], entry: int) -> Span:
    """A call; without a stated kind it is a model's if it has messages on both sides."""
    sent, answered = of.get("inputs"), of.get("output")
    kind = (as_object(object_in(of, "attributes").get("weave")) or {}).get("kind")
    is_asked = any(as_list(object_in(of, "inputs").get(name)) for name in LISTS)
    span = span_in(
        of,
        entry,
        "llm" if kind is None and is_asked and as_object(answered) else kind,
        sent,
        answered,
        name=text_field(of, "op_name").rpartition("/")[2].partition(":")[0],
        error=of.get("exception"),
        usage=object_in(of, "summary").get("usage"),
    )
    span.remarks["cut content"] = _n_references([sent, answered])
    return span


def _n_references(value: Any) -> int:
    """Number of objects that the log only refers to, without those whose methods were called."""
    of = as_object(value) or {}
    inner = as_list(value) or [of[name] for name in of if name != "self"]
    is_reference = isinstance(value, str) and value.startswith("weave:///")
    return sum(map(_n_references, inner)) + is_reference


WEAVE = trace_format(
    "weave", "Weave calls", member="calls", trace=("trace_id", "id"), score=_score, span=_span
)
