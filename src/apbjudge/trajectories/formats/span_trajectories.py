"""The trajectory of a trace's spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...records.loose_json import as_list, check_depth
from ...records.messages import Message, Messages, ToolCall, ToolResult, read_messages
from ...records.trajectories import LogPlace, Trajectory
from .derived import steps_of
from .spans import Span, SpanTree, call_key, key_of, opened
from .threads import Thread, Threads


def trajectory_of_spans(
    spans: Sequence[Span], *, trajectory_id: str, place: LogPlace
) -> Trajectory:
    """The trajectory in a trace.

    Model spans in order of time make threads of messages. A span whose input begins with a thread
    continues it, and so does one whose input has only new messages. The main thread is that of the
    root agent; the others go to ``extra``. Spans of tools state failed results, add results that no
    message has, and are calls themselves if no message makes them.

    Args:
        spans: All spans of the trace, in the order of the log.
        trajectory_id: Id of the trajectory, and of its case.
        place: Its place.

    Raises:
        RowError: If no span has messages, or a message can't be read.
    """
    tree = SpanTree(spans)
    threads = Threads(tree)
    for span in tree.speakers():
        threads.add(span)
    if not threads.threads:
        silent = [of for of in tree.spans if of.entry in tree.models]
        threads.threads = [
            Thread({tree.agent(of) for of in silent}, n_asked=0, is_fork=False, spans=silent)
        ]
    main = threads.finished()
    tools = list(tree.tools(threads.remarks))
    reads = [_Read(of) for of in threads.threads]
    if left := _matched(tools, reads, tree):
        for span in left:
            threads.call(span, main)
        reads = [_Read(of) for of in threads.threads]
        _matched(tools, reads, tree)
    read = next(of for of in reads if of.thread is main)
    extra = threads.left_out(main) | ({"unknown_steps": read.of.unknown} if read.of.unknown else {})
    remarks = threads.remarks + Counter(read.of.remarks)
    conversation = replace(read.of, messages=tuple(read.answered(remarks)))
    steps = zip(steps_of(conversation.messages), read.span_ids(), strict=True)
    usage: Counter[str] = Counter()
    scores: dict[str, Any] = {}
    for span in sorted(tree.spans, key=lambda of: len(tree.up[of.entry])):
        remarks.update(span.remarks)
        usage.update(span.usage if span.entry in tree.models else {})
        others = {k: v for k, v in span.scores.items() if scores.setdefault(k, v) != v}
        if more := span.extra | ({"scores": others} if others else {}):
            extra.setdefault("spans", []).append({"name": span.name, **more})
    about = [*main.spans, *(of for of in tree.spans if tree.agent(of) in main.agents)]
    stated = [of.tools for of in about if of.tools is not None]
    offered = tuple({key_of(of): of for several in stated for of in several}.values())
    last = main.spans[-1]
    check_depth("entry", (offered, extra))
    return Trajectory(
        trajectory_id=trajectory_id,
        case_id=trajectory_id,
        tested_model=next((of.model for of in about if of.model), "") or conversation.model,
        query=conversation.query,
        system_prompt=conversation.system_prompt
        or next((of.system for of in tree.up[main.spans[0].entry] if of.system), ""),
        tools=offered if stated else None,
        steps=tuple(replace(step, span_id=span_id) for step, span_id in steps),
        final_answer=conversation.final_answer,
        infrastructure_error=last.error if last.kind == "model" and not last.output else "",
        scores=scores,
        usage=dict(usage),
        place=place,
        remarks=dict(+remarks),
        extra=extra,
    )


# Tools -------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Slot:
    """A call of a thread, its result, and the span of its execution."""

    call: ToolCall
    result: ToolResult | None = None
    span: Span | None = None


class _Read:
    """A parsed thread."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.of: Messages = read_messages([line.raw for line in thread.lines])
        self.slots = [[_Slot(call) for call in message.calls] for message in self.of.messages]
        for message, slots in zip(self.of.messages, self.slots, strict=True):
            for result in message.results:
                name = result.call_id or result.name
                named = (of for of in slots if name == (of.call.call_id or of.call.name))
                if slot := next((of for of in named if of.result is None), None):
                    slot.result = result

    def span_ids(self) -> Iterator[str]:
        """Yields the id of the first span with each message; empty if none has it."""
        for message in self.of.messages:
            ids = (self.thread.lines[at].span_id for at in message.entries)
            yield next(filter(None, ids), "")

    def answered(self, remarks: Counter[str]) -> Iterator[Message]:
        """Yields the messages with the tool spans' facts on their calls."""
        for message, slots in zip(self.of.messages, self.slots, strict=True):
            entries = {self.thread.lines[at].entry for at in message.entries}
            results, extra = list(message.results), dict(message.extra)
            for slot in slots:
                call, span, before = slot.call, slot.span, slot.result
                if span is None:
                    continue
                entries.add(span.entry)
                content = span.error if span.result is None else span.result
                if before is None and content not in (None, ""):
                    remarks["calls without results"] -= 1
                    before = ToolResult(content, call.call_id, "" if call.call_id else call.name)
                    results.append(before)
                if before is None:
                    continue
                if span.result is not None and opened(span.result) != opened(before.content):
                    other = {"call_id": call.call_id, "result": span.result}
                    extra["results"] = [*(as_list(extra.get("results")) or ()), other]
                marks = span.is_error, before.is_error
                mark = next((mark for mark in (True, False) if mark in marks), None)
                error = "" if span.error == before.content else span.error
                answer = replace(before, is_error=mark, error=error)
                results = [answer if of is before else of for of in results]
            ordered = tuple(sorted(entries))
            yield replace(message, results=tuple(results), extra=extra, entries=ordered)


def _matched(spans: Sequence[Span], reads: Sequence[_Read], tree: SpanTree) -> list[Span]:
    """Matches spans of tools with the calls that they executed; returns the others.

    By id, by name and equal arguments, or by name and equal result; of several calls the first,
    preferably in a thread of the span's own agent.
    """
    results = (span.error or None if span.result is None else span.result for span in spans)
    left = [
        (of, _grounds(of.name, of.arguments, of.call_id, result))
        for of, result in zip(spans, results, strict=True)
    ]
    slots = [(read, of) for read in reads for several in read.slots for of in several]
    keys = [
        _grounds(of.call.name, of.call.arguments, of.call.call_id, of.result and of.result.content)
        for _, of in slots
    ]
    for level in range(6):
        waiting: dict[Any, list[tuple[_Read, _Slot]]] = {}
        for pair, key in zip(slots, keys, strict=True):
            if pair[1].span is None:
                waiting.setdefault(key[level], []).append(pair)
        rest = left[:0]
        for span, key in left:
            is_known = level == 5 and span.arguments is not None
            pairs = waiting.get(key[level]) if key[level] and not is_known else None
            if not pairs:
                rest.append((span, key))
                continue
            agent = tree.agent(span)
            at = next((i for i, of in enumerate(pairs) if agent in of[0].thread.agents), 0)
            pairs.pop(at)[1].span = span
        left = rest
    return [span for span, _ in left]


def _grounds(name: str, arguments: Any, call_id: str, result: Any) -> tuple[Any, ...]:
    """Keys that match a call with its execution, the surest first; None if unknown."""
    call, answer = call_key(name, arguments), key_of(opened(result))
    is_answered = result is not None
    by_id = ((call_id, call), call_id) if call_id else (None, None)
    by_result = ((call, answer), (name, answer)) if is_answered else (None, None)
    return *by_id, *by_result, call, name
