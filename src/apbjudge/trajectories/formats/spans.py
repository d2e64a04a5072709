"""Traces: runs whose log is a tree of spans, each of which repeats what came before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from ...errors import RowError
from ...records.loose_json import as_list, check_depth
from ...records.messages import Message, ToolCall, ToolResult, UnreadError, read_messages
from ...records.messages.model import Messages
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


def time_of(value: object) -> int | None:
    """A time as nanoseconds: a number of any unit, also as text, or an ISO date; else None."""
    if isinstance(value, str) and not value.strip().isdecimal():
        try:
            date = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return int(date.timestamp() * 10**6) * 1000
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    number = int(value) if isinstance(value, int | str) else value
    unit = next((10**n for n in (9, 6, 3) if abs(number) < 10 ** (20 - n)), 1)
    return int(number * unit)


def opened(value: Any) -> Any:
    """The JSON value that a text holds; any other value as it is."""
    if isinstance(value, str):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            pass
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
    main = threads.finished()
    tools = list(tree.tools(threads.remarks))
    reads = [_Read(thread) for thread in threads.threads]
    if left := _matched(tools, reads, tree):
        for span in left:
            threads.call(span, main)
        reads = [_Read(thread) for thread in threads.threads]
        _matched(tools, reads, tree)
    read = next(of for of in reads if of.thread is main)
    extra = threads.left_out(main)
    remarks = threads.remarks + Counter(read.of.remarks)
    messages = tuple(read.answered(remarks))
    conversation = replace(read.of, messages=messages)
    if read.of.unknown:
        extra["unknown_steps"] = read.of.unknown
    about = [*main.spans, *(of for of in tree.spans if tree.agent(of) in main.agents)]
    usage: Counter[str] = Counter()
    scores: dict[str, Any] = {}
    for span in sorted(tree.spans, key=tree.depth):
        remarks.update(span.remarks)
        usage.update(span.usage if span.kind == "model" and not tree.is_outer(span) else {})
        others = {k: v for k, v in span.scores.items() if scores.setdefault(k, v) != v}
        more = span.extra | ({"scores": others} if others else {})
        if more:
            extra.setdefault("spans", []).append({"name": span.name, **more})
    held = (main.spans[0], *tree.above(main.spans[0]))
    tools_offered = _tools_of(about)
    check_depth("entry", (tools_offered, extra))
    return Trajectory(
        trajectory_id=trajectory_id,
        case_id=trajectory_id,
        tested_model=next((of.model for of in about if of.model), "") or conversation.model,
        query=conversation.query,
        system_prompt=conversation.system_prompt
        or next((of.system for of in held if of.system), ""),
        tools=tools_offered,
        steps=steps_of(messages),
        final_answer=conversation.final_answer,
        scores=scores,
        usage=dict(usage),
        place=place,
        remarks=dict(+remarks),
        extra=extra,
    )


def _tools_of(spans: Iterable[Span]) -> tuple[Any, ...] | None:
    """The definitions that the spans state, each once; None where none states any."""
    stated = [span.tools for span in spans if span.tools is not None]
    unique = {_key(tool): tool for tools in stated for tool in tools}
    return tuple(unique.values()) if stated else None


class _Tree:
    """The spans of a trace in order of time, and what each ran in."""

    def __init__(self, spans: Sequence[Span]) -> None:
        times = [span.start for span in spans if span.start is not None]
        is_timed = len(times) == len(spans)
        self.spans = sorted(spans, key=lambda of: of.start or 0) if is_timed else list(spans)
        self.rank = {span.entry: at for at, span in enumerate(self.spans)}
        self._by_id = {span.span_id: span for span in self.spans}
        self._outer: set[str] = set()
        for span in self.spans:
            above = next((of for of in self.above(span) if of.kind != "other"), None)
            if span.kind == "model" and above is not None and above.kind == "model":
                is_less = len(span.input or ()) < len(above.input or ())
                self._outer.add((span if is_less else above).span_id)

    def above(self, span: Span) -> Iterator[Span]:
        """Yields the spans that it ran in, the nearest first."""
        seen = {span.span_id}
        while (above := self._by_id.get(span.parent_id)) and above.span_id not in seen:
            seen.add(above.span_id)
            yield (span := above)

    def depth(self, span: Span) -> int:
        """How many spans it ran in."""
        return sum(1 for _ in self.above(span))

    def agent(self, span: Span) -> str:
        """The id of the agent's span that it is or ran in; empty without."""
        return next((of.span_id for of in (span, *self.above(span)) if of.kind == "agent"), "")

    def is_inner(self, agent: str) -> bool:
        """Whether an agent ran in another one's span or in a tool's."""
        span = self._by_id.get(agent)
        return span is not None and any(of.kind in ("agent", "tool") for of in self.above(span))

    def is_outer(self, span: Span) -> bool:
        """Whether another model's span in it says the same."""
        return span.span_id in self._outer

    def speakers(self) -> list[Span]:
        """The spans that messages are taken of.

        Raises:
            RowError: If there is none.
        """
        models = [of for of in self.spans if of.kind == "model" and not self.is_outer(of)]
        whole = {of.span_id for of in self.spans if of.is_whole and _speaks(of)}
        found = [of for of in models if _speaks(of) and self.agent(of) not in whole]
        found += [of for of in self.spans if of.span_id in whole]
        if not found and not models:
            found = [of for of in self.spans if of.kind != "tool" and _speaks(of)]
            ids = {of.span_id for of in found}
            found = [of for of in found if not any(up.span_id in ids for up in self.above(of))]
        if not found:
            many = f"{len(models)} model spans" if models else f"{len(self.spans)} spans"
            error = RowError("spans", "messages", f"none in {many}")
            error.args = (f"no message in {many}: content capture is off",)
            raise error
        return sorted(found, key=lambda of: self.rank[of.entry])

    def tools(self, remarks: Counter[str]) -> Iterator[Span]:
        """Yields the spans of tools, without those that say again what they ran in."""
        for span in self.spans:
            if span.kind == "tool":
                key = _call_key(span.name, span.arguments)
                ups = (of for of in self.above(span) if of.kind == "tool")
                if any(_call_key(up.name, up.arguments) == key for up in ups):
                    remarks["duplicate carriers"] += 1
                else:
                    yield span


def _speaks(span: Span) -> bool:
    return bool(span.input or span.output)


# Threads ------------------------------------------------------------------------------------------


def _key(*values: Any) -> bytes:
    """What makes values equal, whatever form they are written in."""
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS, default=str)


_TEXT, _USER = b'["text"', b'["text","user"'
"""How keys of texts begin, and those of a user's."""


def _call_key(name: str, arguments: Any) -> bytes:
    return _key("call", name, opened(arguments) or {})


@dataclass(slots=True, frozen=True)
class _Line:
    """A raw message of a thread, and the entry that it came with first.

    Attributes:
        atoms: What it says, a text, call or result each; nothing of a system message.
        system: Text of a system message.
    """

    raw: Any
    entry: int
    system: str
    atoms: tuple[bytes, ...]


def _parsed(raw: Any, where: str) -> tuple[str, tuple[bytes, ...]]:
    try:
        read = read_messages([raw], where)
    except UnreadError:
        return "", (_key("unread", raw),)
    atoms = [_key("unread", of) for of in read.unknown]
    for of in read.messages:
        if text := of.text.strip():
            atoms.append(_key("text", of.role, text))
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
    spans: list[Span]
    n_asked: int = 0
    is_fork: bool = False
    lines: list[_Line] = field(default_factory=list[_Line])
    atoms: list[bytes] = field(default_factory=list[bytes])
    systems: set[str] = field(default_factory=set[str])

    def grow(self, lines: Iterable[_Line]) -> None:
        """Adds lines at its end."""
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

    def lacks(self, line: _Line) -> bool:
        """Whether it has no message that says this."""
        return not set(line.atoms) <= set(self.atoms) or not {line.system} <= self.systems | {""}


def _split(lines: Sequence[_Line], n: int) -> tuple[int, int]:
    """How many lines the first ``n`` atoms fill wholly, and how many atoms these have."""
    at = 0
    for number, line in enumerate(lines):
        if at + len(line.atoms) > n:
            return number, at
        at += len(line.atoms)
    return len(lines), at


class _Threads:
    """The threads of a trace, that which was spoken in last at the end."""

    def __init__(self, tree: _Tree) -> None:
        self._tree = tree
        self._seen: dict[bytes, tuple[str, tuple[bytes, ...]]] = {}
        self._context: list[Any] = []
        self.threads: list[_Thread] = []
        self.remarks: Counter[str] = Counter()

    def _lines(self, raws: Iterable[Any], span: Span) -> list[_Line]:
        lines: list[_Line] = []
        for raw in raws:
            key = _key(raw)
            if key not in self._seen:
                self._seen[key] = _parsed(raw, f"spans.{span.entry}")
            lines.append(_Line(raw, span.entry, *self._seen[key]))
        return lines

    def add(self, span: Span) -> None:
        """Takes in a request to a model and its answer."""
        asked, said = self._lines(span.input or (), span), self._lines(span.output or (), span)
        stated = {line.system for line in asked}
        if span.system and span.system not in stated:
            system = {"role": "system", "content": span.system}
            asked = [*self._lines([system], span), *asked]
        agent = self._tree.agent(span)
        thread, new = self._place(span, agent, asked, said)
        if thread is None:
            return
        thread.grow([*new, *said])
        thread.agents.add(agent)
        thread.spans.append(span)
        self.threads = [of for of in self.threads if of is not thread] + [thread]

    def _place(
        self, span: Span, agent: str, asked: list[_Line], said: list[_Line]
    ) -> tuple[_Thread | None, list[_Line]]:
        """The thread that a request belongs to, and what is new to it; None where nothing is."""
        atoms = [atom for line in asked for atom in line.atoms]
        systems = {line.system for line in asked} - {""}
        own = [of for of in reversed(self.threads) if agent in of.agents]
        longest = sorted(self.threads, key=lambda of: (-len(of.atoms), agent not in of.agents))
        for of in longest:
            n = len(of.atoms)
            if n and of.atoms == atoms[:n] and of.takes(systems):
                return of, self._rest(of, asked, n)
        whole = [*atoms, *(atom for line in said for atom in line.atoms)]
        for of in own:
            if len(whole) > len(atoms) and of.atoms[: len(whole)] == whole and of.takes(systems):
                self.remarks["duplicate carriers"] += 1
                return None, []
        for of in own:
            if span.is_cut and of.atoms[: len(atoms)] == atoms:
                return of, []
        if own and not systems and not any(of.startswith(_USER) for of in atoms[:1]):
            return own[0], self._news(own[0], asked, atoms)
        for of in own:
            if of.atoms and of.atoms[-1] in atoms and of.takes(systems):
                self.remarks["rewritten context"] += 1
                return of, self._news(of, asked, atoms)
        is_fork = any(atoms and of.atoms[: len(atoms)] == atoms for of in own)
        self.threads.append(_Thread({agent}, [], len(asked), is_fork))
        return self.threads[-1], asked

    def _rest(self, thread: _Thread, asked: list[_Line], n: int) -> list[_Line]:
        """What follows in a request that begins with the ``n`` atoms of a thread.

        Where a message goes on that ends in the thread, the longer one replaces it.
        """
        first, at = _split(asked, n)
        kept, n = _split(thread.lines, at)
        while n < at:
            first, at = _split(asked, n)
            kept, n = _split(thread.lines, at)
        del thread.lines[kept:], thread.atoms[n:]
        self._leave(thread, asked[:first])
        return asked[first:]

    def _news(self, thread: _Thread, asked: list[_Line], atoms: list[bytes]) -> list[_Line]:
        """What follows in a request after that which the thread ends with."""
        found = (at for at, atom in enumerate(atoms, 1) if atom in thread.atoms[-1:])
        first, _ = _split(asked, max(found, default=0)) if atoms else (0, 0)
        self._leave(thread, asked[:first])
        return asked[first:]

    def _leave(self, thread: _Thread, lines: Iterable[_Line]) -> None:
        """Keeps what is said anew of the past, such as a summary or other instructions, apart."""
        if left := [line.raw for line in lines if thread.lacks(line)]:
            self.remarks["rewritten context"] += 1
            self._context += left

    def finished(self) -> _Thread:
        """The main thread, once what agents went on with after they cut their history is joined.

        Threads of the root agent come first, and of these one whose last words are what the trace
        returns, then the longest.
        """
        tree, joined = self._tree, list[_Thread]()
        rank = tree.rank
        for later in sorted(self.threads, key=lambda of: rank[of.spans[0].entry]):
            before = next((of for of in reversed(joined) if self._continues(later, of)), None)
            if before is None:
                joined.append(later)
                continue
            self.remarks["rewritten context"] += 1
            new = [of for of in later.lines[: later.n_asked] if before.lacks(of)]
            before.grow([*new, *later.lines[later.n_asked :]])
            before.spans += later.spans
        self.threads = joined
        tops = [of for of in tree.spans if of.kind in ("agent", "other") and of.output]
        tops = [of for of in tops if not tree.is_inner(of.span_id)]
        ends = {
            atom for of in tops for line in self._lines(of.output or (), of) for atom in line.atoms
        }

        def order(of: _Thread) -> tuple[bool, bool, int, bool]:
            is_root = not all(map(tree.is_inner, of.agents))
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
        agents = [of.span_id for of in self._tree.above(span) if of.kind == "agent"]
        found = (of for agent in agents for of in (main, *self.threads) if agent in of.agents)
        thread, rank = next(found, main), self._tree.rank
        function = {"name": span.name, "arguments": span.arguments}
        call = {"id": span.call_id or None, "type": "function", "function": function}
        (line,) = self._lines([{"role": "assistant", "content": None, "tool_calls": [call]}], span)
        earlier = (at for at, of in enumerate(thread.lines, 1) if rank[of.entry] < rank[span.entry])
        thread.lines.insert(max(earlier, default=0), line)

    def left_out(self, main: _Thread) -> dict[str, Any]:
        """What is left out of the run, by the names of the remarks that count it."""
        extra: dict[str, Any] = {"rewritten context": self._context} if self._context else {}
        for of in self.threads:
            if of is main:
                continue
            is_branch = (of.is_fork or main.is_fork) and of.atoms[:1] == main.atoms[:1]
            remark = "abandoned branches" if is_branch else "sub-agents"
            self.remarks[remark] += 1
            names = [up.name for up in self._tree.spans if up.span_id in of.agents and up.name]
            thread = {"name": " ".join(names), "messages": [line.raw for line in of.lines]}
            tools = _tools_of(of.spans)
            extra.setdefault(remark, []).append(thread | ({"tools": tools} if tools else {}))
        return extra


# Tools --------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Slot:
    """A call of a thread, the span of its execution, and the place of its result."""

    call: ToolCall
    key: bytes
    result: ToolResult | None = None
    span: Span | None = None


class _Read:
    """A thread, read."""

    def __init__(self, thread: _Thread) -> None:
        self.thread = thread
        self.of: Messages = read_messages([line.raw for line in thread.lines], "messages")
        self.slots: list[list[_Slot]] = []
        for message in self.of.messages:
            slots = [_Slot(of, _call_key(of.name, of.arguments)) for of in message.calls]
            self.slots.append(slots)
            for result in message.results:
                name = result.call_id or result.name
                waiting = (of for of in slots if of.result is None)
                fits = (of for of in waiting if (of.call.call_id or of.call.name) == name)
                if slot := next(fits, None):
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
                if before is None and (span.result is not None or span.error):
                    remarks["calls without results"] -= 1
                    before = ToolResult("", call.call_id, "" if call.call_id else call.name)
                    results.append(before)
                if before is None:
                    continue
                content = before.content
                if content == "":
                    content = span.error if span.result is None else span.result
                elif span.result is not None and opened(span.result) != opened(content):
                    kept = {"call_id": call.call_id, "result": span.result}
                    extra["results"] = [*(as_list(extra.get("results")) or ()), kept]
                mark = span.is_error if before.is_error is None else before.is_error
                error = "" if span.error == content else span.error
                answer = replace(before, content=content, is_error=mark, error=error)
                results = [answer if of is before else of for of in results]
            ordered = tuple(sorted(entries))
            yield replace(message, results=tuple(results), extra=extra, entries=ordered)


def _matched(spans: Sequence[Span], reads: Sequence[_Read], tree: _Tree) -> list[Span]:
    """Ties spans of tools to the calls that they executed; returns those of no call.

    By id, by name and equal arguments, or by name and equal result; of several calls the first, in
    a thread of the span's own agent before others.
    """
    left = list(spans)
    for level in range(4):
        for span in tuple(left):
            agent = tree.agent(span)
            ordered = sorted(reads, key=lambda of: agent not in of.thread.agents)
            slots = (of for read in ordered for slots in read.slots for of in slots)
            if slot := next((of for of in slots if not of.span and _fits(span, of, level)), None):
                slot.span = span
                left.remove(span)
    return left


def _fits(span: Span, slot: _Slot, level: int) -> bool:
    """Whether a call may be what a span executed, the higher the level on the weaker grounds."""
    call, result = slot.call, slot.result
    has_id = span.call_id != "" and span.call_id == call.call_id
    is_equal = _call_key(span.name, span.arguments) == slot.key
    is_silent = span.arguments is None or (
        result is not None and opened(span.result) == opened(result.content)
    )
    grounds = has_id and is_equal, has_id, is_equal, is_silent and span.name == call.name
    return grounds[level]
