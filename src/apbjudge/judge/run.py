"""The run: every row becomes exactly one judgement, in whatever order they finish."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import ApbJudgeError, PendingError, RowError
from ..protocols.prompts import Prompt
from ..records import Unscored, Verdict, judgement_row
from .llm_judge import LLMJudge
from .order import Leaders, adjacent
from .source import Source
from .static import StaticJudge
from .store import PLACE, Store, judgement_key
from .task import BadRow, Entry, Task

BREATH = 256
"""Rows between two moments at which an interrupt is noticed, when nothing else waits."""


_USED = ("calls", "lost", "reused", "prompt_tokens", "cached_tokens")
_TAKEN = (*_USED, "cost_usd", "unpriced", "silent")


@dataclass(slots=True)
class Progress:
    """Where a run stands.

    Attributes:
        done: Rows judged or found bad in this session.
        skipped: Rows that an earlier session had finished.
        unscored: Rows without a verdict in this session, by reason.
        cost_usd: Known costs of this session.
        unpriced: Judgements of this session whose price is unknown.
        calls: Calls made in this session.
        lost: Calls of these that ended without an answer.
        reused: Replies taken from the reply cache in this session.
        prompt_tokens: Tokens sent in this session.
        cached_tokens: Those of them that the endpoint had in its prefix cache.
        pending: Rows whose reply is still to come (batches).
        withheld: Items with pictures that the judge was not shown, though it should have been.
        silent: Verdicts without the token probabilities that were asked for.
        fraction: Share of the input that is finished, 0 to 1; None when its size is unknown.
        read: Rows read in this session, those in flight included.
    """

    done: int = 0
    skipped: int = 0
    unscored: dict[str, int] = field(default_factory=dict[str, int])
    cost_usd: float = 0.0
    unpriced: int = 0
    calls: int = 0
    lost: int = 0
    reused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    pending: int = 0
    withheld: int = 0
    silent: int = 0
    fraction: float | None = None
    read: int = 0

    def advance(self, read_share: float) -> None:
        """Estimates the finished share from the share of bytes read and the rows in flight."""
        self.fraction = min(1.0, read_share) * (self.done + self.skipped) / max(1, self.read)

    def take_in(self, other: Progress) -> None:
        """Adds what another session took: calls, tokens, prices."""
        for name in _TAKEN:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count(self, judgement: Verdict | Unscored) -> None:
        """Takes a judgement into account."""
        self.done += 1
        if isinstance(judgement, Unscored):
            self.unscored[judgement.reason] = self.unscored.get(judgement.reason, 0) + 1
        if usage := judgement.usage:
            for name in _USED:
                setattr(self, name, getattr(self, name) + getattr(usage, name))
            self.unpriced += judgement.cost_usd is None
        self.cost_usd += judgement.cost_usd or 0.0


@dataclass(frozen=True, slots=True)
class Events:
    """What a run tells whoever watches it: where it stands, rows it can't use, and all else."""

    progress: Callable[[Progress], None]
    bad_row: Callable[[str], None]
    note: Callable[[str], None] = lambda message: None


@dataclass(frozen=True, slots=True)
class Lane:
    """One of the runs that are carried out together.

    Attributes:
        source: The rows.
        judge: Who judges them.
        store: Where the judgements go.
    """

    source: Source
    judge: StaticJudge | LLMJudge
    store: Store


_Turn = tuple[Lane, Entry, float]
"""A row with its run, and the share of the input that is read with it (0 where not known)."""


async def run(
    source: Source, judge: StaticJudge | LLMJudge, store: Store, *, concurrency: int, events: Events
) -> Progress:
    """Judges every row of the source that the store has no judgement of.

    Args:
        source: The rows.
        judge: Who judges.
        store: Where judgements go.
        concurrency: Items in flight at most.
        events: Who watches.

    Returns:
        The final progress.

    Raises:
        InputError: If the input can't be read.
        AccessError: If the endpoint refuses every call; finished rows stay.
    """
    lane = Lane(source, judge, store)

    def turns() -> Iterator[_Turn]:
        size = source.size
        in_order = isinstance(judge, StaticJudge) or source.only is not None
        for entry in source if in_order else adjacent(source):
            yield lane, entry, entry.offset / size if size else 0.0

    return await _run_lanes([lane], turns(), concurrency, events)


async def run_interleaved(
    lanes: Sequence[Lane], order: Sequence[int], *, concurrency: int, events: Events
) -> Progress:
    """Judges the rows of several runs as one stream.

    Args:
        lanes: The runs.
        order: For each row of the stream, the index of the run whose next row it is; every run
            comes as often as its source has rows.
        concurrency: Items in flight at most, all runs together.
        events: Who watches.

    Returns:
        The final progress of all runs together.

    Raises:
        InputError: If an input can't be read.
        AccessError: If the endpoint refuses every call; finished rows stay.
    """

    def turns() -> Iterator[_Turn]:
        readers = [iter(lane.source) for lane in lanes]
        for n, at in enumerate(order, start=1):
            yield lanes[at], next(readers[at]), n / len(order)
        for reader in readers:
            next(reader, None)  # so that each source is read to its end

    return await _run_lanes(lanes, turns(), concurrency, events)


async def _run_lanes(
    lanes: Sequence[Lane], turns: Iterable[_Turn], concurrency: int, events: Events
) -> Progress:
    work = _Work(events, concurrency)
    try:
        for n, (lane, entry, share) in enumerate(turns):
            work.progress.read += 1
            if share:
                work.progress.advance(share)
            if isinstance(entry, BadRow):
                work.reject(lane, entry, entry.error)
            elif isinstance(lane.judge, StaticJudge):
                work.judge_now(lane, entry, lane.judge)
            else:
                await work.start(lane, entry, lane.judge)
            if n % BREATH == 0:
                events.progress(work.progress)
                await asyncio.sleep(0)
        await work.finish()
    finally:
        await work.abandon()
    if not work.progress.pending:
        for lane in lanes:
            lane.store.settle()
    judges = [lane.judge for lane in lanes if isinstance(lane.judge, LLMJudge)]
    work.progress.withheld = sum(judge.withheld for judge in judges)
    work.progress.silent = sum(judge.silent for judge in judges)
    work.progress.fraction = 1.0
    events.progress(work.progress)
    return work.progress


class _Job(NamedTuple):
    """An item on its way to the judge."""

    lane: Lane
    judge: LLMJudge
    task: Task
    prompt: Prompt
    fingerprint: str

    @property
    def prefix(self) -> Hashable:
        """What prompts have in common that begin alike: the case, with its reference or not."""
        return self.judge.is_blind, self.task.item.case_id


_Flight = asyncio.Task[Verdict | Unscored]


class _Work:
    """Items in flight, and the hand-over of what they yield."""

    def __init__(self, events: Events, concurrency: int) -> None:
        self.progress = Progress()
        self._events = events
        self._most = concurrency
        self._flying: dict[_Flight, _Job] = {}
        self._landed: deque[_Flight] = deque()
        self._landing = asyncio.Event()
        self._leaders: Leaders[_Job] = Leaders()

    def _skips(self, lane: Lane, row: dict[str, Any]) -> bool:
        if lane.store.is_fresh:
            return False
        place = {name: row[name] for name in PLACE}
        if not lane.store.is_finished(judgement_key(row), place):
            return False
        self.progress.skipped += 1
        return True

    def _keep(self, lane: Lane, judgement: Verdict | Unscored) -> None:
        lane.store.add(judgement)
        self.progress.count(judgement)

    def judge_now(self, lane: Lane, task: Task, judge: StaticJudge) -> None:
        fingerprint = judge.fingerprint(task)
        if not self._skips(lane, _answer(task, fingerprint)):
            self._keep(lane, judge.judge(task, fingerprint))

    async def start(self, lane: Lane, task: Task, judge: LLMJudge) -> None:
        """Sends an item to the judge, now or once the leader of its case has landed."""
        try:
            prompt = judge.prompt(task)
        except RowError as error:
            item = task.item
            bad = BadRow(item.line, error, task.digest, 0, item.item_id, item.tested_model)
            self.reject(lane, bad, error)
            return
        fingerprint = judge.fingerprint(task, prompt)
        if self._skips(lane, _answer(task, fingerprint)):
            return
        job = _Job(lane, judge, task, prompt, fingerprint)
        if not judge.leads or self._leaders.may_start(job.prefix, job):
            await self._launch(job)
        while self._leaders.ready or self._leaders.waiting > 4 * self._most:
            await self._go_on()

    async def _launch(self, job: _Job) -> None:
        while len(self._flying) >= self._most:
            await self._collect()
        flight = asyncio.create_task(job.judge.judge(job.task, job.prompt, job.fingerprint))
        self._flying[flight] = job
        flight.add_done_callback(self._land)

    def _land(self, flight: _Flight) -> None:
        self._landed.append(flight)
        self._landing.set()

    async def _go_on(self) -> None:
        """Starts a follower that may go, or waits for something to land."""
        if self._leaders.ready:
            await self._launch(self._leaders.ready.popleft())
        else:
            await self._collect()

    def reject(self, lane: Lane, row: BadRow, error: RowError) -> None:
        detail = f"{lane.source.name}:{row.line}: {error}"
        judgement = Unscored(
            item_id=row.item_id,
            case_id=row.item_id,
            tested_model=row.tested_model,
            protocol=None,
            rubric=None,
            judge=lane.judge.name,
            fingerprint=row.digest.hex()[:32],
            line=row.line,
            reason="bad_input",
            detail=detail,
        )
        if not self._skips(lane, judgement_row(judgement)):
            self._keep(lane, judgement)
        self._events.bad_row(detail)

    async def finish(self) -> None:
        while self._flying or self._leaders.ready:
            await self._go_on()

    async def _collect(self) -> None:
        """Waits until at least one item has landed and keeps all that have."""
        await self._landing.wait()
        self._landing.clear()
        failure: BaseException | None = None
        while self._landed:
            flight = self._landed.popleft()
            job = self._flying.pop(flight)
            try:
                self._keep(job.lane, flight.result())
            except PendingError:
                self.progress.pending += 1
            except ApbJudgeError as error:  # the others that landed are kept all the same
                failure = failure or error
            self._leaders.landed(job.prefix)
        self._events.progress(self.progress)
        if failure is not None:
            raise failure

    async def abandon(self) -> None:
        """Cancels what is in flight, keeping what has landed meanwhile."""
        for flight in self._flying:
            flight.cancel()
        outcomes = await asyncio.gather(*self._flying, return_exceptions=True)
        for job, outcome in zip(self._flying.values(), outcomes, strict=True):
            if isinstance(outcome, Verdict | Unscored):
                self._keep(job.lane, outcome)
        self._flying = {}


def _answer(task: Task, fingerprint: str) -> dict[str, Any]:
    item = task.item
    return {
        "item_id": item.item_id,
        "tested_model": item.tested_model,
        "fingerprint": fingerprint,
        "line": item.line,
        "case_id": item.case_id,
        "content_id": item.content_id,
        "groups": item.groups,
    }
