"""The run loop: every row leaves exactly one record, in whatever order they finish."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Generic, Protocol, TypeVar

from ..errors import (
    AccessError,
    ApbJudgeError,
    OptionError,
    PausedError,
    PendingError,
    RowError,
)
from .attempts import Attempt
from .event_loops import Stop, current_stop
from .folder import RecordLog
from .ordering import Leaders, adjacent
from .rows import BadRow, FinishedRow, FinishedRows

ROWS_BETWEEN_PAUSES = 256
"""Rows between two moments at which an interrupt is noticed, when nothing else waits."""
BEAT_S = 1.0
"""Seconds between two reports of progress while no row ends."""

_USAGE = ("calls", "lost", "reused", "prompt_tokens", "cached_tokens")
_SUMS = (*_USAGE, "cost_usd", "unpriced", "silent")


@dataclass(slots=True)
class Progress:
    """Progress of a run; all counts are of this session.

    Attributes:
        done: Rows that got a record, bad ones included.
        skipped: Rows that an earlier session had finished.
        unscored: Records that are failures, by reason.
        cost_usd: Known costs.
        unpriced: Calls of unknown price: those of records without a price, and lost ones.
        calls: Calls made.
        lost: Calls of these that ended without an answer.
        reused: Replies taken from the reply cache.
        prompt_tokens: Tokens sent.
        cached_tokens: Those of them that the endpoint had in its prefix cache.
        pending: Rows that wait for a reply (batches).
        unseen: Items by what of their files the judge was not shown, see ``unseen_of``.
        silent: Replies without the token probabilities that were asked for.
        read: Rows read, those in flight included.
        read_share: Share of the input that is read, 0 to 1; None when its size is unknown.
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
    unseen: Counter[str] = field(default_factory=Counter[str])
    silent: int = 0
    read: int = 0
    read_share: float | None = None

    @property
    def fraction(self) -> float | None:
        """Share of the input that is finished, 0 to 1: exact once all is read, else estimated."""
        share = self.read_share
        return None if share is None else share * (self.done + self.skipped) / max(1, self.read)

    def add_costs(self, other: Progress) -> None:
        """Adds the calls, tokens and prices of another session."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count(self, row: Mapping[str, Any]) -> None:
        """Takes a record, as JSON values, into account."""
        self.done += 1
        if (reason := row.get("reason")) is not None:
            self.unscored[reason] = self.unscored.get(reason, 0) + 1
        if usage := row["usage"]:
            for name in _USAGE:
                setattr(self, name, getattr(self, name) + usage[name])
            self.unpriced += usage["lost" if row["cost_usd"] is not None else "calls"]
        self.cost_usd += row["cost_usd"] or 0.0


@dataclass(frozen=True, slots=True)
class Events:
    """Receivers of a run's reports: progress, unusable rows, and remarks."""

    progress: Callable[[Progress], None]
    bad_row: Callable[[str], None]
    note: Callable[[str], None] = lambda message: None


QUIET = Events(progress=lambda progress: None, bad_row=lambda message: None)


class SourceRow(Protocol):
    """A row that can be worked on."""

    @property
    def case_id(self) -> str:
        """The case: rows of one follow each other."""
        ...

    @property
    def offset(self) -> int:
        """Bytes of the input read so far."""
        ...

    def rejected(self, error: RowError) -> BadRow:
        """The same row as an unusable one."""
        ...


R = TypeVar("R", bound=SourceRow)
R_co = TypeVar("R_co", bound=SourceRow, covariant=True)
R_contra = TypeVar("R_contra", bound=SourceRow, contravariant=True)
T = TypeVar("T")


class Source(Protocol[R_co]):
    """Rows in the order of the input; see ``rows.RowSource``."""

    only: Sequence[int] | None

    @property
    def name(self) -> str:
        """Name of the input, for messages."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the input; 0 when not known."""
        ...

    def entries(self, finished: FinishedRows) -> Iterator[R_co | BadRow | FinishedRow]:
        """Yields an entry for every row; a finished one may be unread."""
        ...


@dataclass(frozen=True, slots=True)
class Job(Generic[T]):
    """The work to be done for a row.

    Attributes:
        fields: Those fields of the record to come that its key and place are made of.
        work: Makes the record. What it raises ends the run; PendingError leaves the row without
            a record.
        prefix: Jobs with the same one share the beginning of a prompt: the first is finished
            before the others start. None for those that wait for no other.
        attempt: The row, where nothing else but the settings moves the record.
    """

    fields: Mapping[str, Any]
    work: Callable[[], Awaitable[T]]
    prefix: Hashable | None = None
    attempt: Attempt | None = None


class Worker(Protocol[R_contra, T]):
    """Makes a record of a row.

    Attributes:
        waits: True if jobs wait for something, so that several are worked on at once.
    """

    waits: bool

    def job(self, row: R_contra) -> Job[T] | Awaitable[Job[T]]:
        """The job of a row; raises RowError if the row can't be used."""
        ...

    def reject(self, row: BadRow, detail: str) -> T:
        """The record of a row that can't be used."""
        ...


@dataclass(frozen=True, slots=True)
class LoopRun(Generic[R, T]):
    """One of the runs that are carried out together.

    Attributes:
        source: The rows.
        worker: Makes their records.
        log: Receives the records.
    """

    source: Source[R]
    worker: Worker[R, T]
    log: RecordLog[T]


class Closable(Protocol):
    """An object that holds connections."""

    async def close(self) -> None:
        """Releases them."""
        ...


async def run_loop(
    loop_runs: Sequence[LoopRun[R, T]],
    clients: Iterable[Closable],
    *,
    turns: Sequence[int] | None = None,
    concurrency: Callable[[], int],
    events: Events,
) -> Progress:
    """Makes a record of every row that has none in its log, all runs as one stream.

    Args:
        loop_runs: The runs.
        clients: Clients of the workers; closed at the end.
        turns: For each row of the stream, the index of the run whose next row it is; every run
            comes as often as its source has rows. None for a single run, or several that take
            turns on the same rows, in an order in which rows of one case follow each other.
        concurrency: Returns the rows in flight at most, all runs together; they may change.
        events: Receives reports.

    Returns:
        The final progress of all runs together.

    Raises:
        InputError: If an input can't be read.
        OptionError: If no job of the run can succeed; finished rows stay.
        PausedError: If a pause was asked for; finished rows stay.
    """
    stop = current_stop()
    loop: _Loop[R, T] = _Loop(events, concurrency, stop)
    stream = _in_turn(loop_runs) if turns is None else _interleaved(loop_runs, turns)
    beat = asyncio.ensure_future(_beat(loop.progress, events))
    with stop.watched(loop.wake):
        try:
            for n, (loop_run, entry, share) in enumerate(stream):
                stop.check()
                loop.progress.read += 1
                if share:
                    loop.progress.read_share = min(1.0, share)
                await loop.take(loop_run, entry)
                if n % ROWS_BETWEEN_PAUSES == 0:
                    events.progress(loop.progress)
                    await asyncio.sleep(0)
            loop.progress.read_share = 1.0
            await loop.finish()
        except PausedError:
            await loop.land()
            raise
        except AccessError as error:
            raise OptionError(str(error)) from None
        finally:
            beat.cancel()
            try:
                await loop.abandon()
            finally:
                for client in clients:
                    await client.close()
    if not loop.progress.pending:
        for loop_run in loop_runs:
            loop_run.log.supersede()
    events.progress(loop.progress)
    return loop.progress


async def _beat(progress: Progress, events: Events) -> None:
    """Reports progress even while no job ends."""
    while True:
        await asyncio.sleep(BEAT_S)
        events.progress(progress)


_Entry = R | BadRow | FinishedRow
_Turn = tuple[LoopRun[R, T], _Entry[R], float]
"""A row with its run, and the share of the input that is read with it (0 where not known)."""


def _in_turn(loop_runs: Sequence[LoopRun[R, T]]) -> Iterator[_Turn[R, T]]:
    size = loop_runs[0].source.size
    for entries in zip_longest(*map(_ordered, loop_runs)):  # so that each source is read to its end
        for loop_run, entry in zip(loop_runs, entries, strict=True):
            if entry is not None:
                yield loop_run, entry, entry.offset / size if size else 0.0


def _entries(loop_run: LoopRun[R, T]) -> Iterator[_Entry[R]]:
    return loop_run.source.entries(loop_run.log.finished_row)


def _ordered(loop_run: LoopRun[R, T]) -> Iterator[_Entry[R]]:
    in_order = not loop_run.worker.waits or loop_run.source.only is not None
    return _entries(loop_run) if in_order else adjacent(_entries(loop_run))


def _interleaved(loop_runs: Sequence[LoopRun[R, T]], turns: Sequence[int]) -> Iterator[_Turn[R, T]]:
    readers = [_entries(loop_run) for loop_run in loop_runs]
    for n, at in enumerate(turns, start=1):
        yield loop_runs[at], next(readers[at]), n / len(turns)
    for reader in readers:
        next(reader, None)  # so that each source is read to its end


class _Loop(Generic[R, T]):
    """Jobs in flight, and the hand-over of their records."""

    def __init__(self, events: Events, concurrency: Callable[[], int], stop: Stop) -> None:
        self.progress = Progress()
        self._stop = stop
        self._events = events
        self._concurrency = concurrency
        self._flying: dict[asyncio.Task[T], tuple[LoopRun[R, T], Job[T]]] = {}
        self._landed: deque[asyncio.Task[T]] = deque()
        self._landing = asyncio.Event()
        self._leaders: Leaders[tuple[LoopRun[R, T], Job[T]]] = Leaders()

    async def take(self, loop_run: LoopRun[R, T], entry: _Entry[R]) -> None:
        """Works on a row, now or once the leader of its prefix has landed."""
        if isinstance(entry, FinishedRow):
            loop_run.log.carry(entry.known, entry.line)
            self.progress.skipped += 1
            return
        if isinstance(entry, BadRow):
            self._reject(loop_run, entry)
            return
        try:
            job = loop_run.worker.job(entry)
            if not isinstance(job, Job):
                job = await job
        except RowError as error:
            self._reject(loop_run, entry.rejected(error))
            return
        if not loop_run.log.is_fresh and loop_run.log.is_finished(job.fields, job.attempt):
            self.progress.skipped += 1
            return
        if not loop_run.worker.waits:
            self._add(loop_run, await job.work(), job.attempt)
            return
        if job.prefix is None or self._leaders.may_start(job.prefix, (loop_run, job)):
            await self._launch(loop_run, job)
        while self._leaders.ready or self._leaders.waiting > 4 * self._concurrency():
            await self._go_on()

    def _reject(self, loop_run: LoopRun[R, T], row: BadRow) -> None:
        place = row.place or f"{loop_run.source.name}:{row.line}"
        detail = f"{place}: {row.error}"
        record = loop_run.worker.reject(row, detail)
        if not loop_run.log.is_fresh and loop_run.log.is_finished(
            loop_run.log.kind.to_json(record)
        ):
            self.progress.skipped += 1
        else:
            self._add(loop_run, record)
        self._events.bad_row(detail)

    def _add(self, loop_run: LoopRun[R, T], record: T, attempt: Attempt | None = None) -> None:
        self.progress.count(loop_run.log.add(record, attempt))

    async def _launch(self, loop_run: LoopRun[R, T], job: Job[T]) -> None:
        while len(self._flying) >= self._concurrency():
            await self._collect()
        self._stop.check()
        flight = asyncio.ensure_future(job.work())
        self._flying[flight] = loop_run, job
        flight.add_done_callback(self._land)

    def _land(self, flight: asyncio.Task[T]) -> None:
        self._landed.append(flight)
        self._landing.set()

    async def finish(self) -> None:
        """Waits for all jobs that were taken."""
        while self._flying or self._leaders.ready:
            await self._go_on()

    async def _go_on(self) -> None:
        """Starts a follower that may go, or waits for something to land."""
        if self._leaders.ready:
            await self._launch(*self._leaders.ready.popleft())
        else:
            await self._collect()

    async def _collect(self) -> None:
        """Waits until at least one job has landed and adds the records of all that have."""
        await self._landing.wait()
        self._take_in()
        self._stop.check()

    def wake(self) -> None:
        """Lets whoever waits for jobs look whether the run is to be stopped."""
        self._landing.set()

    async def land(self) -> None:
        """Waits for the jobs in flight as long as the pause lets them; starts none."""
        if self._flying:
            self._events.note(f"pausing: {len(self._flying)} rows in flight, no others are begun")
        while self._flying and (left := self._stop.ends_at - time.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._landing.wait()
            self._take_in()

    def _take_in(self) -> None:
        """Adds the records of all jobs that have landed."""
        self._landing.clear()
        failure: BaseException | None = None
        while self._landed:
            flight = self._landed.popleft()
            loop_run, job = self._flying.pop(flight)
            try:
                self._add(loop_run, flight.result(), job.attempt)
            except PendingError:
                self.progress.pending += 1
            except ApbJudgeError as error:  # the others that landed are kept all the same
                failure = failure or error
            if job.prefix is not None:
                self._leaders.landed(job.prefix)
        self._events.progress(self.progress)
        if failure is not None:
            raise failure

    async def abandon(self) -> None:
        """Cancels jobs in flight; those that ended meanwhile still leave their records."""
        for flight in self._flying:
            flight.cancel()
        records = await asyncio.gather(*self._flying, return_exceptions=True)
        for (loop_run, job), record in zip(self._flying.values(), records, strict=True):
            if not isinstance(record, BaseException):
                self._add(loop_run, record, job.attempt)
        self._flying = {}
