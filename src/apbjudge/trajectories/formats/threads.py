"""Threads: the messages of a trace's model spans, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...records.messages import read_messages
from .spans import Span, SpanTree, call_key, key_of, opened

_TEXT, _USER = b'["text"', b'["text","user"'
"""Prefixes of the keys of texts, and of a user's texts."""


@dataclass(slots=True, frozen=True)
class _SpanLine:
    """A raw message of a thread, with its first entry.

    Attributes:
        span_id: Id of its span; empty if the log states none, or if the message is part of a
            model's input, which may come from any earlier span.
        system: Text of a system message.
        atoms: Its other content, a key for each text, call and result.
    """

    raw: Any
    entry: int
    span_id: str
    system: str
    atoms: tuple[bytes, ...]


def _parsed(raw: Any, where: str) -> tuple[str, tuple[bytes, ...]]:
    read = read_messages([raw], where)
    atoms = [key_of("unread", of) for of in read.unknown]
    for of in read.messages:
        atoms += [key_of("text", of.role, text) for text in (of.text.strip(),) if text]
        atoms += [key_of("file", name) for name in of.attachments]
        atoms += [call_key(call.name, call.arguments) for call in of.calls]
        atoms += [key_of("result", opened(result.content)) for result in of.results]
    return read.system_prompt, tuple(atoms)


@dataclass(slots=True, eq=False)
class Thread:
    """Consecutive messages.

    Attributes:
        n_asked: Number of lines at its beginning, before the first answer.
        is_fork: True if it began like another one.
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
        """True if the thread ends in the middle of work: with a call or a result."""
        return bool(self.atoms) and not self.atoms[-1].startswith(_TEXT)

    def takes(self, systems: set[str]) -> bool:
        """True if a request with these instructions can belong to the thread."""
        return systems <= self.systems or self.is_open

    def lacks(self, lines: Iterable[_SpanLine]) -> list[_SpanLine]:
        """The lines with content that the thread lacks."""
        known, systems = set(self.atoms), self.systems | {""}
        return [of for of in lines if of.system not in systems or not known.issuperset(of.atoms)]


class Threads:
    """The threads of a trace, the most recent one last."""

    def __init__(self, tree: SpanTree) -> None:
        self._tree = tree
        self._seen: dict[bytes, tuple[str, tuple[bytes, ...]]] = {}
        self._context: list[Any] = []
        self.threads: list[Thread] = []
        self.remarks: Counter[str] = Counter()

    def _lines(self, raws: Iterable[Any] | None, span: Span, span_id: str = "") -> list[_SpanLine]:
        lines: list[_SpanLine] = []
        for raw in raws or ():
            key = key_of(raw)
            if key not in self._seen:
                self._seen[key] = _parsed(raw, f"spans.{span.entry}")
            lines.append(_SpanLine(raw, span.entry, span_id, *self._seen[key]))
        return lines

    def add(self, span: Span) -> None:
        """Adds a request to a model and its answer."""
        own = span.stated_id
        asked = self._lines(span.input, span, own if span.is_whole else "")
        answered = self._lines(span.output, span, own)
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
    ) -> tuple[Thread, int] | None:
        """The thread that a request belongs to, and the number of its atoms that are already there.

        None if it only repeats a thread.
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
        self.threads.append(Thread({agent}, len(asked), bool(forks)))
        return self.threads[-1], 0

    def finished(self) -> Thread:
        """The main thread, joined with its continuations after agents cut their history.

        Threads of root agents come first, among these one that ends with the trace's output, then
        the longest.
        """
        tree, joined = self._tree, list[Thread]()
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

        def order(of: Thread) -> tuple[bool, bool, int, bool]:
            is_root = any(map(tree.is_root, of.agents))
            return is_root, not ends.isdisjoint(of.atoms[-1:]), len(of.spans), of.is_fork

        return max(joined, key=order)

    def _continues(self, later: Thread, before: Thread) -> bool:
        """True if ``later`` continues the thread ``before`` after its history was cut."""
        rank = self._tree.rank
        is_after = rank[before.spans[-1].entry] < rank[later.spans[0].entry]
        is_own = later.agents == before.agents and later.systems == before.systems
        is_same = before.is_open or not set(before.atoms).isdisjoint(later.atoms)
        return is_after and is_own and is_same and not later.is_fork

    def call(self, span: Span, main: Thread) -> None:
        """Adds a call that no message makes to the thread of the agent that it ran in."""
        agents = [of.span_id for of in self._tree.up[span.entry] if of.kind == "agent"]
        threads = (of for agent in agents for of in (main, *self.threads) if agent in of.agents)
        thread, rank = next(threads, main), self._tree.rank
        function = {"name": span.name, "arguments": span.arguments}
        call = {"id": span.call_id or None, "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        earlier = (at for at, of in enumerate(thread.lines, 1) if rank[of.entry] < rank[span.entry])
        at = min(max(earlier, default=0), len(thread.lines) - (thread.spans[-1].kind != "model"))
        thread.lines[at:at] = self._lines([message], span, span.stated_id)

    def left_out(self, main: Thread) -> dict[str, Any]:
        """Parts left out of the trajectory, by the names of the remarks that count them."""
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
