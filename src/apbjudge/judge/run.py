"""The run: every row becomes exactly one judgement, in whatever order they finish."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import ApbJudgeError, RowError
from ..records import Unscored, Verdict, judgement_row
from .llm_judge import LLMJudge
from .source import Source
from .static import StaticJudge
from .store import PLACE, Store, judgement_key
from .task import BadRow, Task

BREATH = 256
"""Rows between two moments at which an interrupt is noticed, when nothing else waits."""


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
        withheld: Items with pictures that the judge was not shown, though it should have been.
        fraction: Share of the input that is finished, 0 to 1; None when its size is unknown.
        read: Rows read in this session, those in flight included.
    """

    done: int = 0
    skipped: int = 0
    unscored: dict[str, int] = field(default_factory=dict[str, int])
    cost_usd: float = 0.0
    unpriced: int = 0
    calls: int = 0
    withheld: int = 0
    fraction: float | None = None
    read: int = 0

    def advance(self, read_share: float) -> None:
        """Estimates the finished share from the share of bytes read and the rows in flight."""
        self.fraction = min(1.0, read_share) * (self.done + self.skipped) / max(1, self.read)

    def count(self, judgement: Verdict | Unscored) -> None:
        """Takes a judgement into account."""
        self.done += 1
        if isinstance(judgement, Unscored):
            self.unscored[judgement.reason] = self.unscored.get(judgement.reason, 0) + 1
        if judgement.usage:
            self.calls += judgement.usage.calls
            if judgement.cost_usd is None:
                self.unpriced += 1
        self.cost_usd += judgement.cost_usd or 0.0


@dataclass(frozen=True, slots=True)
class Events:
    """What a run tells whoever watches it."""

    progress: Callable[[Progress], None]
    bad_row: Callable[[str], None]


async def run(
    source: Source, judge: StaticJudge | LLMJudge, store: Store, *, concurrency: int, events: Events
) -> Progress:
    """Judges every row of the source that the store has no judgement of.

    Args:
        source: The rows.
        judge: Who judges.
        store: Where judgements go.
        concurrency: Calls in flight at most.
        events: Who watches.

    Returns:
        The final progress.

    Raises:
        InputError: If the input can't be read.
        AccessError: If the endpoint refuses every call; finished rows stay.
    """
    work = _Work(judge, store, events)
    size = source.size
    try:
        for n, entry in enumerate(source):
            work.progress.read += 1
            if size:
                work.progress.advance(entry.offset / size)
            if isinstance(entry, BadRow):
                work.reject(entry, source.name, entry.error)
            elif isinstance(judge, StaticJudge):
                work.judge_now(entry, judge)
            else:
                await work.start(entry, judge, concurrency, source.name)
            if n % BREATH == 0:
                events.progress(work.progress)
                await asyncio.sleep(0)
        await work.finish()
    finally:
        await work.abandon()
    store.settle()
    if isinstance(judge, LLMJudge):
        work.progress.withheld = judge.withheld
    work.progress.fraction = 1.0
    events.progress(work.progress)
    return work.progress


class _Work:
    """Calls in flight, and the hand-over of what they yield."""

    def __init__(self, judge: StaticJudge | LLMJudge, store: Store, events: Events) -> None:
        self.progress = Progress()
        self._judge = judge
        self._store = store
        self._events = events
        self._flying: set[asyncio.Task[Verdict | Unscored]] = set()

    def _skips(self, row: dict[str, Any]) -> bool:
        if self._store.is_fresh:
            return False
        place = {name: row[name] for name in PLACE}
        if not self._store.is_finished(judgement_key(row), place):
            return False
        self.progress.skipped += 1
        return True

    def _keep(self, judgement: Verdict | Unscored) -> None:
        self._store.add(judgement)
        self.progress.count(judgement)

    def judge_now(self, task: Task, judge: StaticJudge) -> None:
        fingerprint = judge.fingerprint(task)
        if not self._skips(_answer(task, fingerprint)):
            self._keep(judge.judge(task, fingerprint))

    async def start(self, task: Task, judge: LLMJudge, concurrency: int, name: str) -> None:
        try:
            prompt = judge.prompt(task)
        except RowError as error:
            item = task.item
            bad = BadRow(item.line, error, task.digest, 0, item.item_id, item.tested_model)
            self.reject(bad, name, error)
            return
        fingerprint = judge.fingerprint(task, prompt)
        if self._skips(_answer(task, fingerprint)):
            return
        while len(self._flying) >= concurrency:
            await self._collect(asyncio.FIRST_COMPLETED)
        self._flying.add(asyncio.create_task(judge.judge(task, prompt, fingerprint)))

    def reject(self, row: BadRow, name: str, error: RowError) -> None:
        detail = f"{name}:{row.line}: {error}"
        judgement = Unscored(
            item_id=row.item_id,
            case_id=row.item_id,
            tested_model=row.tested_model,
            protocol=None,
            rubric=None,
            judge=self._judge.name,
            fingerprint=row.digest.hex()[:32],
            line=row.line,
            reason="bad_input",
            detail=detail,
        )
        if not self._skips(judgement_row(judgement)):
            self._keep(judgement)
        self._events.bad_row(detail)

    async def finish(self) -> None:
        while self._flying:
            await self._collect(asyncio.FIRST_COMPLETED)

    async def _collect(self, when: str) -> None:
        landed, self._flying = await asyncio.wait(self._flying, return_when=when)
        failure: BaseException | None = None
        for task in landed:
            try:
                self._keep(task.result())
            except ApbJudgeError as error:  # the others that landed are kept all the same
                failure = failure or error
        self._events.progress(self.progress)
        if failure is not None:
            raise failure

    async def abandon(self) -> None:
        """Cancels what is in flight, keeping what has landed meanwhile."""
        for task in self._flying:
            task.cancel()
        for outcome in await asyncio.gather(*self._flying, return_exceptions=True):
            if isinstance(outcome, Verdict | Unscored):
                self._keep(outcome)
        self._flying = set()


def _answer(task: Task, fingerprint: str) -> dict[str, Any]:
    item = task.item
    return {
        "item_id": item.item_id,
        "tested_model": item.tested_model,
        "fingerprint": fingerprint,
        "line": item.line,
        "case_id": item.case_id,
        "groups": item.groups,
    }
