"""Traces: runs whose log is a tree of spans, each of which repeats what came before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from ...errors import RowError
from ...records.loose_json import as_list, check_depth
from ...records.messages import (
    Message,
    Messages,
    ToolCall,
    ToolResult,
    read_messages,
)
from ...records.trajectories import LogPlace, Trajectory
from .derived import steps_of

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
        start: Orders the spans, as ``time_of`` makes it; equal ones keep the order of the log, and
            so do all where one has none.
        input: Raw messages that a model is sent, in any dialect; None where not captured. Of
            another span, what the agent is asked.
        output: Raw messages that it answers; None where not captured.
        is_whole: Whether both are all messages of an agent's run, which is better than those of the
            model spans in it.
        is_cut: Whether the log cut the input off, so that it may lack its last messages.
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
        remarks: What a reader of the run has to know of it, by the names of ``REMARKS``.
        entry: Its position among the parts of the run, from 0.
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


_MOST_SECONDS = 1e12
"""Beyond is no time, but a number that is none or too large for one."""


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
    """The JSON value that a text holds; any other value as it is."""
    try:
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return value


def run_of(spans: Sequence[Span], *, trajectory_id: str, place: LogPlace) -> Trajectory:
    """The run that a trace holds.

    Model spans in order of time make threads of messages. A span whose input begins with a thread
    goes on with it, and so does one that is sent only what is new. The main thread is that of the
    root agent; the others are kept in ``extra``. Spans of tools say which results failed, add
    results that no message has, and are calls themselves where no message makes them.

    Args:
        spans: All spans of the trace, in the order of the log.
        trajectory_id: Id of the run, and of its case.
        place: Where it was read.

    Raises:
        RowError: If no span has messages, or one that can't be read.
    """
    tree = _Tree(spans)
    threads = _Threads(tree)
    for span in tree.speakers():
        threads.add(span)
    if not threads.threads:
        silent = [of for of in tree.spans if of.entry in tree.models]
        threads.threads = [
            _Thread({tree.agent(of) for of in silent}, n_asked=0, is_fork=False, spans=silent)
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
    offered = tuple({_key(of): of for several in stated for of in several}.values())
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
        steps=steps_of(conversation.messages),
        final_answer=conversation.final_answer,
        infrastructure_error=last.error if last.kind == "model" and not last.output else "",
        scores=scores,
        usage=dict(usage),
        place=place,
        remarks=dict(+remarks),
        extra=extra,
    )


def _speaks(span: Span) -> bool:
    return bool(span.input or span.output)


class _Tree:
    """The spans of a trace in order of time.

    Attributes:
        rank: Place of each span in that order, by its entry.
        up: The spans that each ran in, the nearest first.
        models: Entries of models' spans, without those that say what one in or around them says.
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
        """The id of the agent's span that it is or ran in; empty without."""
        chain = (span, *self.up[span.entry])
        return next((of.span_id for of in chain if of.kind == "agent"), "")

    def is_root(self, agent: str) -> bool:
        """Whether an agent ran neither in another one's span nor in a tool's."""
        return agent not in self._inner

    def speakers(self) -> list[Span]:
        """The spans that messages are taken of; none where only tools say something.

        Raises:
            RowError: If nothing is said.
        """
        spoken = {of.entry: of for of in self.spans if _speaks(of) and of.kind != "tool"}
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
        """Yields the spans of tools, without those that say again what they ran in."""
        for span in (of for of in self.spans if of.kind == "tool"):
            ups = [up for up in self.up[span.entry] if up.kind == "tool"]
            key = _call_key(span.name, span.arguments)
            if key in [_call_key(up.name, up.arguments) for up in ups]:
                remarks["duplicate carriers"] += 1
            else:
                yield span


_ACTORS = ("agent", "tool")


def _above(span: Span, by_id: Mapping[str, Span]) -> Iterator[Span]:
    seen = {span.span_id}
    while (above := by_id.get(span.parent_id)) is not None and above.span_id not in seen:
        seen.add(above.span_id)
        yield (span := above)


# Threads ------------------------------------------------------------------------------------------


def _key(*values: Any) -> bytes:
    """What makes values equal, whatever form they are written in."""
    try:
        return orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # of values that are nested deeply
        return repr(values).encode()


def _call_key(name: str, arguments: Any) -> bytes:
    return _key("call", name, opened(arguments) or {})


_TEXT, _USER = b'["text"', b'["text","user"'
"""How keys of texts begin, and those of a user's."""


@dataclass(slots=True, frozen=True)
class _SpanLine:
    """A raw message of a thread, and the entry that it came with first.

    Attributes:
        system: Text of a system message.
        atoms: Whatever else it says, a key for each text, call and result.
    """

    raw: Any
    entry: int
    system: str
    atoms: tuple[bytes, ...]


def _parsed(raw: Any, where: str) -> tuple[str, tuple[bytes, ...]]:
    read = read_messages([raw], where)
    atoms = [_key("unread", of) for of in read.unknown]
    for of in read.messages:
        atoms += [_key("text", of.role, text) for text in (of.text.strip(),) if text]
        atoms += [_key("file", name) for name in of.attachments]
        atoms += [_call_key(call.name, call.arguments) for call in of.calls]
        atoms += [_key("result", opened(result.content)) for result in of.results]
    return read.system_prompt, tuple(atoms)


@dataclass(slots=True, eq=False)
class _Thread:
    """Messages that follow each other.

    Attributes:
        n_asked: Lines that it began with, before anything was answered.
        is_fork: Whether it began as another one does.
    """

    agents: set[str]
    n_asked: int
    is_fork: bool
    spans: list[Span] = field(default_factory=list[Span])
    lines: list[_SpanLine] = field(default_factory=list[_SpanLine])
    atoms: list[bytes] = field(default_factory=list[bytes])
    systems: set[str] = field(default_factory=set[str])

    def grow(self, lines: Iterable[_SpanLine], spans: Iterable[Span]) -> None:
        """Adds lines at its end."""
        self.spans += spans
        for line in lines:
            self.lines.append(line)
            self.atoms += line.atoms
            self.systems |= {line.system} - {""}

    @property
    def is_open(self) -> bool:
        """Whether it ends in the midst of work: with a call or a result."""
        return bool(self.atoms) and not self.atoms[-1].startswith(_TEXT)

    def takes(self, systems: set[str]) -> bool:
        """Whether a request with these instructions can belong to it."""
        return systems <= self.systems or self.is_open

    def lacks(self, lines: Iterable[_SpanLine]) -> list[_SpanLine]:
        """Those of the lines that say what it does not."""
        known, systems = set(self.atoms), self.systems | {""}
        return [of for of in lines if of.system not in systems or not known.issuperset(of.atoms)]


class _Threads:
    """The threads of a trace, that which was spoken in last at the end."""

    def __init__(self, tree: _Tree) -> None:
        self._tree = tree
        self._seen: dict[bytes, tuple[str, tuple[bytes, ...]]] = {}
        self._context: list[Any] = []
        self.threads: list[_Thread] = []
        self.remarks: Counter[str] = Counter()

    def _lines(self, raws: Iterable[Any] | None, span: Span) -> list[_SpanLine]:
        lines: list[_SpanLine] = []
        for raw in raws or ():
            key = _key(raw)
            if key not in self._seen:
                self._seen[key] = _parsed(raw, f"spans.{span.entry}")
            lines.append(_SpanLine(raw, span.entry, *self._seen[key]))
        return lines

    def add(self, span: Span) -> None:
        """Takes in a request to a model and its answer."""
        asked, answered = self._lines(span.input, span), self._lines(span.output, span)
        if span.system and span.system not in {line.system for line in asked}:
            asked[:0] = self._lines([{"role": "system", "content": span.system}], span)
        agent = self._tree.agent(span)
        if (place := self._place(span, agent, asked, answered)) is None:
            self.remarks["duplicate carriers"] += 1
            return
        thread, n = place
        first = at = 0
        while first < len(asked) and (at := at + len(asked[first].atoms)) <= n:
            first += 1
        first *= n > 0
        if old := thread.lacks(asked[:first]):
            self.remarks["rewritten context"] += 1  # a summary, or other instructions
            self._context += [line.raw for line in old]
        thread.grow([*asked[first:], *answered], [span])
        thread.agents.add(agent)
        self.threads = [of for of in self.threads if of is not thread] + [thread]

    def _place(
        self, span: Span, agent: str, asked: list[_SpanLine], answered: list[_SpanLine]
    ) -> tuple[_Thread, int] | None:
        """The thread that a request belongs to, and how many of its atoms are no news there.

        None where it says what a thread has already.
        """
        atoms = [atom for line in asked for atom in line.atoms]
        whole = atoms + [atom for line in answered for atom in line.atoms]
        systems = {line.system for line in asked} - {""}
        longest = sorted(self.threads, key=lambda of: (-len(of.atoms), agent not in of.agents))
        for of in longest:
            n = len(of.atoms)
            if n and of.atoms == atoms[:n] and of.takes(systems):
                return of, n
        own = [of for of in reversed(self.threads) if agent in of.agents]
        forks = [of for of in own if atoms and of.atoms[: len(atoms)] == atoms]
        forks = [of for of in forks if of.takes(systems)]
        if any(of.atoms[: len(whole)] == whole for of in forks if answered):
            return None
        if span.is_cut and forks:
            return forks[0], len(atoms)
        is_delta = not systems and not any(of.startswith(_USER) for of in atoms[:1])
        for of in own:
            ends = [at for at, atom in enumerate(atoms, 1) if atom in of.atoms[-1:]]
            if is_delta or (ends and of.takes(systems)):
                return of, max(ends, default=0)
        self.threads.append(_Thread({agent}, len(asked), bool(forks)))
        return self.threads[-1], 0

    def finished(self) -> _Thread:
        """The main thread, once what agents went on with after they cut their history is joined.

        Threads of root agents come first, and of these one whose last words are what the trace
        returns, then the longest.
        """
        tree, joined = self._tree, list[_Thread]()
        for later in sorted(self.threads, key=lambda of: tree.rank[of.spans[0].entry]):
            before = next((of for of in reversed(joined) if self._continues(later, of)), None)
            if before is None:
                joined.append(later)
                continue
            self.remarks["rewritten context"] += 1
            new = before.lacks(later.lines[: later.n_asked])
            before.grow([*new, *later.lines[later.n_asked :]], later.spans)
        self.threads = joined
        tops = [
            of for of in tree.spans if of.kind in ("agent", "other") and tree.is_root(of.span_id)
        ]
        ends = {atom for of in tops for line in self._lines(of.output, of) for atom in line.atoms}

        def order(of: _Thread) -> tuple[bool, bool, int, bool]:
            is_root = any(map(tree.is_root, of.agents))
            return is_root, not ends.isdisjoint(of.atoms[-1:]), len(of.spans), of.is_fork

        return max(joined, key=order)

    def _continues(self, later: _Thread, before: _Thread) -> bool:
        """Whether a thread goes on with another one after its history was cut."""
        rank = self._tree.rank
        is_after = rank[before.spans[-1].entry] < rank[later.spans[0].entry]
        is_own = later.agents == before.agents and later.systems == before.systems
        is_same = before.is_open or not set(before.atoms).isdisjoint(later.atoms)
        return is_after and is_own and is_same and not later.is_fork

    def call(self, span: Span, main: _Thread) -> None:
        """Adds a call that no message makes to the thread of the agent that it ran in."""
        agents = [of.span_id for of in self._tree.up[span.entry] if of.kind == "agent"]
        threads = (of for agent in agents for of in (main, *self.threads) if agent in of.agents)
        thread, rank = next(threads, main), self._tree.rank
        function = {"name": span.name, "arguments": span.arguments}
        call = {"id": span.call_id or None, "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        earlier = (at for at, of in enumerate(thread.lines, 1) if rank[of.entry] < rank[span.entry])
        at = min(max(earlier, default=0), len(thread.lines) - (thread.spans[-1].kind != "model"))
        thread.lines[at:at] = self._lines([message], span)

    def left_out(self, main: _Thread) -> dict[str, Any]:
        """What is not in the run, by the names of the remarks that count it."""
        extra: dict[str, Any] = {"rewritten context": self._context} if self._context else {}
        for of in (of for of in self.threads if of is not main):
            is_branch = (of.is_fork or main.is_fork) and of.atoms[:1] == main.atoms[:1]
            remark = "abandoned branches" if is_branch else "sub-agents"
            self.remarks[remark] += 1
            names = [up.name for up in self._tree.spans if up.span_id in of.agents and up.name]
            thread = {"name": " ".join(names), "messages": [line.raw for line in of.lines]}
            tools = [tool for span in of.spans for tool in span.tools or ()]
            extra.setdefault(remark, []).append(thread | ({"tools": tools} if tools else {}))
        return extra


# Tools --------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Slot:
    """A call of a thread, its result, and the span of its execution."""

    call: ToolCall
    result: ToolResult | None = None
    span: Span | None = None


class _Read:
    """A thread, read."""

    def __init__(self, thread: _Thread) -> None:
        self.thread = thread
        self.of: Messages = read_messages([line.raw for line in thread.lines])
        self.slots = [[_Slot(call) for call in message.calls] for message in self.of.messages]
        for message, slots in zip(self.of.messages, self.slots, strict=True):
            for result in message.results:
                name = result.call_id or result.name
                named = (of for of in slots if name == (of.call.call_id or of.call.name))
                if slot := next((of for of in named if of.result is None), None):
                    slot.result = result

    def answered(self, remarks: Counter[str]) -> Iterator[Message]:
        """Yields the messages with what the spans of tools say of their calls."""
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


def _matched(spans: Sequence[Span], reads: Sequence[_Read], tree: _Tree) -> list[Span]:
    """Ties spans of tools to the calls that they executed; returns those of no call.

    By id, by name and equal arguments, or by name and equal result; of several calls the first, in
    a thread of the span's own agent before others.
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
    """What a call and its execution have in common, the surest first; None where unknown."""
    call, answer = _call_key(name, arguments), _key(opened(result))
    is_answered = result is not None
    by_id = ((call_id, call), call_id) if call_id else (None, None)
    by_result = ((call, answer), (name, answer)) if is_answered else (None, None)
    return *by_id, *by_result, call, name
