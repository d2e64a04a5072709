"""Rounds of orders until nothing is pending.

A round judges what there are answers for and writes down the requests that there are none for;
these are ordered as batches, and when the answers are there the next round begins. Replies that
are unusable, contradict themselves or are cut off are asked about in the next round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from ..errors import ApbJudgeError, InputError, JudgeError, OptionError, TransportError
from ..llm.batch_requests import BatchFiles, BatchResults, BatchWriter, body_maker, read_answers
from ..llm.batches import BatchApi, BatchState
from ..llm.cache import ReplyCache
from ..llm.engine import place_of
from ..llm.resources import is_shown_images, known_format, prices_of
from . import JudgeSpec, Progress, Store
from .batch_journal import Batch, Journal, open_journal
from .llm_judge import LLMJudge
from .session import Run, RunConfig, judge_with_model, run_in

FOLDER = "batch"
"""Folder of the batches within a run's folder."""

ANSWERS = "answers"
_GOES_ON = "the same command goes on from here"


class _WaitingError(ApbJudgeError):
    """Rows are pending; leaves ``run_in`` before figures are made of the others."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(f"{progress.pending} rows wait for a batch")
        self.progress = progress


@dataclass(slots=True)
class Rounds:
    """A run through the batch interface.

    Attributes:
        folder: The run's folder.
        config: The run.
        keep: As for ``run_in``.
        poll_s: Seconds between two questions how far the batches are.
        journal: The batches.
        api: The provider.
        told: What was last said of each batch.
    """

    folder: Path
    config: RunConfig
    keep: bool
    poll_s: float
    journal: Journal = field(init=False)
    api: BatchApi = field(init=False)
    told: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        spec, resources = self.config.spec, self.config.resources
        self.api = BatchApi(
            spec.model,
            spec.api_base[0] if spec.api_base else None,
            retries=spec.retries,
            deadline_s=spec.deadline_s,
            clock=resources.clock,
            rng=resources.rng,
        )
        endpoint = f"{spec.model} {self.api.api_base or ''}".strip()
        self.journal = open_journal(
            self.folder / FOLDER, endpoint, known_format(spec, spec.addresses[0], resources.cache)
        )
        predictions = self.config.source.predictions
        if not isinstance(predictions, Path | Sequence):
            source = replace(self.config.source, predictions=list(predictions))
            self.config = replace(self.config, source=source)

    def run(self) -> Run:
        """Carries everything out; see ``run_batched``."""
        since = min((batch.turn for batch in self.journal.open), default=self.journal.turn + 1)
        passes: list[Progress] = []
        patient = True
        while True:
            self._work_off()
            book = self._book(since, patient=patient)
            try:
                run = self._judge(book)
            except _WaitingError as waiting:
                passes.append(waiting.progress)
            else:
                return replace(run, progress=_together([*passes, run.progress]))
            if book.count:
                self.journal.add(book.parts.written, self.journal.turn + 1)
            else:
                patient = False  # nothing but requests that failed too often is left

    def _judge(self, book: BatchWriter) -> Run:
        """Judges what there are answers for, and writes down the other requests.

        Raises:
            _WaitingError: If rows are pending.
        """

        async def work(config: RunConfig, store: Store) -> Progress:
            judge = judge_with(book, config.spec, config.source.roots)
            progress = await judge_with_model(judge, config, store)
            if progress.pending:
                raise _WaitingError(progress)
            return progress

        return run_in(self.folder, self.config, keep=self.keep, work=work)

    def _book(self, since: int, *, patient: bool) -> BatchWriter:
        spec = self.config.spec
        return BatchWriter(
            parts=BatchFiles(self.journal.folder / f"requests-{self.journal.turn + 1}.jsonl"),
            place=place_of(spec.api_base or (None,)),
            body=body_maker(spec.model),
            answers=self._answers(),
            cache=self._cache(),
            form=self.journal.form,
            retries=spec.retries,
            since=since,
            patient=patient,
        )

    def _answers(self) -> ReplyCache:
        return ReplyCache(self.journal.folder / ANSWERS, warn=_fail)

    def _cache(self) -> ReplyCache | None:
        return self.config.resources.open_cache()

    def _work_off(self) -> None:
        """Brings every batch of the journal to its end.

        Raises:
            OptionError: If the provider refuses or can't be reached.
        """
        if not self.journal.open:
            return
        try:
            asyncio.run(self._order_and_wait())
        except JudgeError as error:
            raise OptionError(f"--judge {self.config.spec.model}: {error}; {_GOES_ON}") from None
        for batch in self.journal.open:
            self._enter(batch)
        if any(batch.state == "cancelled" for batch in self._last()):
            raise OptionError("--batch: a batch was cancelled; the same command orders the rest")

    def _last(self) -> list[Batch]:
        return [batch for batch in self.journal.batches if batch.turn == self.journal.turn]

    async def _order_and_wait(self) -> None:
        for batch in self.journal.open:
            await self._place(batch)
        while waiting := [batch for batch in self.journal.open if batch.step == "ordered"]:
            for batch in waiting:
                await self._look_after(batch)
            if any(batch.step == "ordered" or _is_full_up(batch) for batch in waiting):
                await self.config.resources.clock.sleep(self.poll_s)

    async def _place(self, batch: Batch) -> None:
        """Orders a batch, unless it has been."""
        if batch.step == "written":
            batch.file = await self.api.upload(self.journal.folder / batch.requests)
            batch.step = "ordering"
            self.journal.save()
        elif batch.step == "ordering":
            batch.id = await self._lost(batch)
        if batch.step == "ordering":
            batch.id = batch.id or await self._ordered(batch)
            batch.step = "ordered"
            self.journal.save()

    async def _lost(self, batch: Batch) -> str | None:
        """The id of a batch that was being ordered when the last session was stopped."""
        if not self.api.lists:
            raise OptionError(
                f"--batch: an earlier session was stopped while it ordered {batch.requests}, and "
                f"litellm can't list the batches of {self.api.provider}: look there for one with "
                f"the tag {batch.tag}, and in {self.journal.folder}/batches.json give its id and "
                'the step "ordered", or the step "written" if there is none'
            )
        return await self.api.find(batch.tag, batch.file)

    async def _ordered(self, batch: Batch) -> str:
        try:
            return await self.api.create(batch.file or "", batch.tag)
        except JudgeError as error:
            if not isinstance(error, TransportError) or error.answered:
                batch.step = "written"  # it was turned away, so nothing was ordered
                self.journal.save()
            raise

    async def _look_after(self, batch: Batch) -> None:
        """Asks how far a batch is; fetches the answers of one that has ended."""
        state = await self.api.status(batch.id or "")
        self._tell(batch, state)
        if not state.has_ended:
            return
        batch.state = state.state
        if state.files:
            batch.results = batch.requests.replace("requests", "answers")
            await self.api.fetch(state, self.journal.folder / batch.results)
        elif state.state == "failed" and state.complaint and not _may_pass(state):
            batch.step = "dropped"
            self.journal.save()
            raise OptionError(
                f"--judge {self.config.spec.model}: batch {batch.id} failed: {state.complaint}"
            )
        batch.step = "fetched"
        self.journal.save()

    def _tell(self, batch: Batch, state: BatchState) -> None:
        done = state.done + state.failed
        text = f"{done} of {state.total or batch.lines} done" if done else state.state
        if state.has_ended and state.state != "completed":
            text = f"{state.state}, {done} of {batch.lines} done"
        if self.told.get(batch.tag) != text:
            self.told[batch.tag] = text
            self.config.events.note(f"batch {batch.id}: {text}")

    def _enter(self, batch: Batch) -> None:
        """Enters a batch's answers, and a failure for each request that has none."""
        prices = prices_of(self.config.spec, batched=True)
        ledger = BatchResults(
            answers=self._answers(),
            cache=self._cache(),
            price=prices.cost_usd,
            turn=batch.turn,
            form=batch.form,
        )
        try:
            if batch.results is not None:
                self._read(self.journal.folder / batch.results, batch, ledger)
            error = TransportError(f"batch {batch.id} ({batch.state}) gave no answer to it")
            ledger.enter_missing(self.journal.folder / batch.requests, error)
        finally:
            ledger.close()
        batch.step = "entered"
        self.journal.save()

    def _read(self, results: Path, batch: Batch, ledger: BatchResults) -> None:
        for answer in read_answers(results):
            if isinstance(answer, InputError):
                self.config.events.note(str(answer))
            elif ledger.enter(answer):
                self.journal.loosen(batch.form)


def _fail(message: str) -> NoReturn:
    """Answers that were paid for must be kept, whatever a mere cache may do."""
    raise InputError(message.replace("the reply cache", "the answers"))


def _may_pass(state: BatchState) -> bool:
    """Whether a batch failed since too much is ordered at once; later there is room again."""
    return "limit" in state.complaint and "billing" not in state.complaint


def _is_full_up(batch: Batch) -> bool:
    return batch.state == "failed" and batch.results is None


def _together(passes: Sequence[Progress]) -> Progress:
    """What the passes did in all; a row that one judged is skipped by the next."""
    total = replace(passes[-1], skipped=passes[0].skipped, read=passes[-1].read)
    for earlier in passes[:-1]:
        total.take_in(earlier)
        total.done += earlier.done
        for reason, count in earlier.unscored.items():
            total.unscored = total.unscored | {reason: total.unscored.get(reason, 0) + count}
    return total


def judge_with(book: BatchWriter, spec: JudgeSpec, roots: Sequence[Path]) -> LLMJudge:
    """The model judge that asks an order book, seeing what it would see over the network."""
    return LLMJudge(spec, book, roots=roots, sees=is_shown_images(spec))
