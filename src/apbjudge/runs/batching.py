"""Runs through a provider's batch interface, in rounds.

It is the run loop with a client that takes replies from the results of batches and writes the
other requests to files. The files are sent as batches and, when they are answered, the loop runs
again, until no row is pending. ``batch_list`` records each step.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ..errors import (
    ApbJudgeError,
    FormatUnsupportedError,
    InputError,
    JudgeError,
    OptionError,
    RateLimitedError,
    TransportError,
)
from ..llm.base import FORMATS
from ..llm.batch_requests import (
    Answer,
    BatchFiles,
    BatchResults,
    BatchWriter,
    keys_of,
    provider_of,
    read_answers,
)
from ..llm.batches import BatchApi, BatchState, Order, check_terms
from ..llm.cache import ReplyCache
from ..llm.http_batches import AnthropicBatches, TogetherBatches
from ..llm.limits import Limits
from ..llm.litellm_batches import BedrockBatches, GeminiBatches, LitellmBatches
from ..llm.model_spec import ModelSpec
from ..llm.resources import Resources, known_format, prices_of
from .batch_files import place_of_replies, put_reply
from .batch_list import LIST, Batch, BatchList, digest_of
from .clearing import take_folder_lock
from .event_loops import beside_any_loop, block_on, current_stop
from .folder import RecordLog, state_of_work_below
from .loop import Progress
from .session import Session, carry_out

FOLDER = "batch"
"""Folder of the batches within a run's folder."""


class PendingRowsError(ApbJudgeError):
    """Rows are pending; leaves a run before figures are made of the others."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(f"{progress.pending} rows wait for a batch")
        self.progress = progress


class _Finished(Protocol):
    """A finished run, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def progress(self) -> Progress:
        """The calls and costs of its session."""
        ...


Out = TypeVar("Out", bound=_Finished)


def run_batched(session: Session[Any, Out], spec: ModelSpec, option: str) -> Out:
    """Carries out a session through the provider's batch interface, below the run's folder.

    May take a day. A run that was stopped anywhere continues with the same call: no batch is
    made twice, no answer is lost. Requests that fail in a way that may pass, and those that a
    batch left unanswered, are in a batch of the next round, at most ``retries`` times.

    Args:
        session: The session, carried out again and again until no row is pending.
        spec: The only model that it asks.
        option: The option that names the model, for messages.

    Returns:
        The run, with the progress of all rounds together.
    """
    api = batch_api(spec, session.resources)  # refuses before anything is written
    session.source.keep_rows()  # each round reads them
    session.claim()
    lock = take_folder_lock(session.folder / FOLDER, session.resources.claiming)
    try:
        with state_of_work_below(session.folder):
            name = f"{option} {spec.model}"
            return beside_any_loop(lambda: _Rounds(session, spec, name, api).run())
    finally:
        lock.close()


def batch_api(spec: ModelSpec, resources: Resources) -> BatchApi:
    """The batch interface of a model's provider.

    Raises:
        OptionError: If it has none, something that it needs is missing, or a setting does not go
            with it.
    """
    if resources.client is not None:
        raise OptionError("--batch: expected a provider, got a client in its place")
    if spec.api_base_file is not None:
        raise OptionError("--batch: expected --api-base, got --api-base-file")
    if len(spec.api_base) > 1:
        raise OptionError(f"--batch: expected one --api-base, got {len(spec.api_base)}")
    for name in Limits.model_fields:
        if getattr(resources.limits, name) is not None:
            shown = name.replace("_", "-")
            raise OptionError(f"--{shown}: not possible with --batch, which sends all at once")
    prices_of(spec, batched=True)
    check_terms(spec.model, spec.params)
    return _KINDS.get(provider_of(spec.model)[0], LitellmBatches)(
        model=spec.model,
        address=spec.addresses[0],
        params=spec.params,
        retries=spec.retries,
        deadline_s=spec.deadline_s,
        clock=resources.clock,
        rng=resources.rng,
    )


_KINDS: Mapping[str, type[BatchApi]] = {
    "gemini": GeminiBatches,
    "bedrock": BedrockBatches,
    "anthropic": AnthropicBatches,
    "together_ai": TogetherBatches,
}


class _Rounds(Generic[Out]):
    """A run in rounds: each uses the answers so far and sends the other requests."""

    def __init__(
        self, session: Session[Any, Out], spec: ModelSpec, name: str, api: BatchApi
    ) -> None:
        self.session = session
        self.spec = spec
        self.name = name  # for messages
        self.notes: dict[str, str] = {}  # the last one about each batch, by its tag
        self.api = api
        endpoint = f"{spec.model} {self.api.address or ''}".strip()
        cache = session.resources.cache
        form = known_format(spec, spec.addresses[0], cache)
        place = partial(place_of_replies, spec, cache)
        self.batches = BatchList.open(session.folder / FOLDER, endpoint, form, place)
        turns = (batch.turn for batch in self.batches.pending)
        self.results = BatchResults(
            price=prices_of(spec, batched=True).cost_usd,
            retries=spec.retries,
            since=min(turns, default=self.batches.turn + 1),
        )
        for batch in self.batches.batches:
            if batch.step == "fetched":
                self._read(batch)

    def run(self) -> Out:
        """Carries everything out; see ``run_batched``."""
        passes: list[Progress] = []
        while True:
            self._finish_batches()
            name = f"requests-{self.batches.turn + 1}.jsonl"
            terms = self.api.terms
            client = BatchWriter(
                files=BatchFiles(
                    self.batches.folder / name, max_lines=terms.lines, max_bytes=terms.bytes
                ),
                place=self.batches.place,
                body=self.api.body,
                cache=self.session.resources.open_cache(),
                form=self.batches.form,
                results=self.results,
            )
            session = replace(self.session, writer=client)
            try:
                run = carry_out([session], partial(_ask_all, session))[0]
            except PendingRowsError as pending:
                passes.append(pending.progress)
            else:
                return replace(run, progress=_together([*passes, run.progress]))
            if 0 < client.count < terms.least:
                raise OptionError(
                    f"--batch: {self.api.provider} takes batches of {terms.least} requests at "
                    f"least, and {client.count} are left: the same command without --batch asks "
                    "them one by one"
                )
            if client.count:
                self.batches.add(client.files.written)
            else:
                self.results.is_last = True  # nothing but requests that failed for good is left

    def _finish_batches(self) -> None:
        """Brings every batch of the list to its end."""
        if not self.batches.pending:
            return
        try:
            while self.batches.pending:
                block_on(self._create_all())
                block_on(self._wait(), is_idle=True)
        except JudgeError as error:
            raise OptionError(
                f"{self.name}: {error}; the same command continues from here"
            ) from None
        last = (batch for batch in self.batches.batches if batch.turn == self.batches.turn)
        if any(batch.state == "cancelled" for batch in last):
            raise OptionError("--batch: a batch was cancelled; the same command sends the rest")

    async def _create_all(self) -> None:
        """Creates the pending batches, or as many as the provider takes before others end."""
        for batch in self.batches.pending:
            current_stop().check()
            try:
                await self._create(batch)
            except RateLimitedError as error:
                if not self.batches.ordered:
                    raise
                self.session.events.note(f"{batch.requests} waits for other batches: {error}")
                return

    async def _wait(self) -> None:
        while waiting := self.batches.ordered:
            for batch in waiting:
                await self._look_after(batch)
            is_full = any(b.state == "failed" and b.results is None for b in waiting)
            if is_full or self.batches.ordered:
                await self.session.resources.clock.sleep(self.api.terms.poll_s)

    async def _create(self, batch: Batch) -> None:
        """Creates a batch at the provider, unless it has been created."""
        if batch.step == "ordered":
            return
        path = self.batches.folder / batch.requests
        if digest_of(path) != batch.digest:
            raise InputError(f"{path}: it was changed after it was written")
        if batch.step == "written":
            batch.file = await self.api.upload(path)
            batch.step, batch.since = "ordering", time.time()
            self.batches.save()
        else:  # an earlier session was stopped here
            batch.id = await self._created_before(batch)
        try:
            batch.id = batch.id or await self.api.create(self._order(batch), path)
        except JudgeError as error:
            if not isinstance(error, TransportError) or error.answered:
                batch.step = "written"  # it was turned away, so there is none
                self.batches.save()
            raise
        batch.step = "ordered"
        self.batches.save()

    def _order(self, batch: Batch) -> Order:
        known = frozenset(each.id for each in self.batches.batches if each.id is not None)
        return Order(batch.tag, batch.lines, batch.since, batch.file, known)

    async def _created_before(self, batch: Batch) -> str | None:
        """The batch that an earlier session may have created.

        Raises:
            OptionError: If only the user can tell.
        """
        candidates: list[str] = []
        if not self.api.terms.lists:
            why = f"litellm can't list the batches of {self.api.provider}"
        elif len(candidates := await self.api.find(self._order(batch))) <= 1:
            return candidates[0] if candidates else None
        else:
            why = f"these batches of {self.api.provider} may be it: {', '.join(candidates)}"
        raise OptionError(
            f"--batch: an earlier session was stopped while it sent {batch.requests}, and {why}. "
            f"Look there for one of {batch.lines} requests with the tag {batch.tag}, and in "
            f'{self.batches.folder}/{LIST} give its id and the step "ordered", or the step '
            '"written" if there is none'
        )

    async def _look_after(self, batch: Batch) -> None:
        """Asks how far a batch is; fetches the answers of one that has ended."""
        state = await self.api.status(batch.id or "")
        self._note(batch, state)
        if not state.has_ended:
            return
        batch.state = state.state
        if state.files:
            batch.results = batch.requests.replace("requests", "answers")
            await self.api.fetch(state, self.batches.folder / batch.results)
        elif (
            state.state == "failed"
            and state.complaint  # if too much is sent at once, there is room again later
            and ("limit" not in state.complaint or "billing" in state.complaint)
        ):
            batch.step = "dropped"
            self.batches.save()
            raise OptionError(f"{self.name}: batch {batch.id} failed: {state.complaint}")
        cache = self.session.resources.open_cache()
        try:
            self._read(batch, cache, is_new=True)
        finally:
            if cache is not None:
                cache.close()
        batch.step = "fetched"
        self.batches.save()

    def _note(self, batch: Batch, state: BatchState) -> None:
        done = state.done + state.failed
        text = f"{done} of {state.total or batch.lines} done" if done else state.state
        if state.has_ended and state.state != "completed":
            text = f"{state.state}, {done} of {batch.lines} done"
        if self.notes.get(batch.tag) != text:
            self.notes[batch.tag] = text
            self.session.events.note(f"batch {batch.id}: {text}")

    def _read(self, batch: Batch, cache: ReplyCache | None = None, *, is_new: bool = False) -> None:
        """Reads the answers of a batch; new cacheable replies go into the cache."""
        path = self.batches.folder / batch.results if batch.results is not None else None
        waited_for = set(keys_of(self.batches.folder / batch.requests))
        ignored = 0
        for answer in read_answers(path) if path is not None else ():
            if isinstance(answer, InputError):
                if is_new:
                    self.session.events.note(str(answer))
            elif answer.key not in waited_for:
                ignored += 1
            else:
                self.results.add(answer, path, turn=batch.turn, form=batch.form)
                if answer.error is None:
                    waited_for.discard(answer.key)
                if is_new:
                    self._learn(answer, batch, cache)
        if ignored and is_new:
            why = "to requests that are not in it, or have one"
            self.session.events.note(f"batch {batch.id}: {ignored} answers {why}, are ignored")
        missing = TransportError(f"batch {batch.id} ({batch.state}) gave no answer to it")
        for key in waited_for:
            unanswered = Answer(key, error=missing)
            self.results.add(unanswered, None, turn=batch.turn, form=batch.form)

    def _learn(self, answer: Answer, batch: Batch, cache: ReplyCache | None) -> None:
        """Takes from a new answer the reply format of the next round and the reply to cache."""
        if isinstance(answer.error, FormatUnsupportedError):
            after = min(FORMATS.index(batch.form) + 1, len(FORMATS) - 1)
            self.batches.form = FORMATS[max(after, FORMATS.index(self.batches.form))]
        elif cache is not None:
            # ids without a format are of the round's, or of the strictest
            put_reply(cache, answer, batch.form if answer.form == FORMATS[0] else answer.form)


async def _ask_all(session: Session[Any, Any], logs: Sequence[RecordLog[Any]]) -> Progress:
    """Asks about every row; no figures are made while rows are pending."""
    progress = await session.ask(logs)
    if progress.pending:
        raise PendingRowsError(progress)
    return progress


def _together(passes: Sequence[Progress]) -> Progress:
    """Sum of the passes; a row that one judged is skipped by the next."""
    total = replace(passes[-1], skipped=passes[0].skipped)
    for earlier in passes[:-1]:
        total.add_costs(earlier)
        total.done += earlier.done
        for reason, count in earlier.unscored.items():
            total.unscored = total.unscored | {reason: total.unscored.get(reason, 0) + count}
    return total
