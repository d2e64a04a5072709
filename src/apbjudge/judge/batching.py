"""Grading through a provider's batch interface, and batch files that are answered elsewhere.

All of it is the run loop with a client that takes replies from the results of batches and writes
the other requests to files. ``run_batched`` sends the files away as batches and, when they are
answered, runs the loop again, until no row is pending. The other two functions are for
``vllm run-batch`` and any service that takes OpenAI's batch files: export, have the file answered,
import; the same ``grade`` then has every reply in its cache.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from ..errors import (
    ApbJudgeError,
    FormatUnsupportedError,
    InputError,
    JudgeError,
    OptionError,
    TransportError,
)
from ..jsonl import read_lines
from ..llm.base import FORMATS, cache_key
from ..llm.batch_requests import (
    Answer,
    BatchFiles,
    BatchResults,
    BatchWriter,
    body_maker,
    read_answers,
)
from ..llm.batches import BatchApi, BatchState
from ..llm.budget import Limits
from ..llm.cache import ReplyCache, default_cache_folder
from ..llm.engine import dump_completion, place_of
from ..llm.resources import REPLIES, Resources, is_shown_images, known_format, prices_of
from ..protocols import AUTO
from ..runs.event_loops import beside_any_loop
from ..runs.folder import take_folder_lock
from ..runs.loop import QUIET, Progress
from ..runs.resume import BAD_INPUT
from . import JudgeSpec
from .batch_list import LIST, Batch, BatchList, open_list
from .llm_judge import LLMJudge
from .session import (
    Log,
    Rows,
    Run,
    RunConfig,
    Work,
    claim,
    run_identity,
    run_in,
    run_judges,
    source_of,
)

FOLDER = "batch"
"""Folder of the batches within a run's folder."""

# Grading in batches -------------------------------------------------------------------------------


def run_batched(folder: Path, config: RunConfig, *, keep: bool = True, poll_s: float = 30.0) -> Run:
    """Carries out a run through the provider's batch interface.

    May take a day. A run that was stopped anywhere continues with the same call: no batch is
    made twice, no answer is lost. Requests that fail in a way that may pass, and those that a
    batch left unanswered, are in a batch of the next round, at most ``retries`` times.

    Args:
        folder: The run's folder; the batches are kept below it.
        config: The run.
        keep: As for ``run_in``.
        poll_s: Seconds between two questions how far the batches are.

    Raises:
        OptionError: If the judge or a setting does not go with batches, the folder holds another
            run, or the provider refuses.
        InputError: If the input can't be read or the folder not be written.
    """
    spec, resources = config.spec, config.resources
    if spec.is_static:
        raise OptionError("--batch: expected a judge that is a model, got static")
    if resources.client is not None:
        raise OptionError("--batch: expected a provider, got a client in its place")
    if len(spec.api_base) > 1:
        raise OptionError(f"--batch: expected one --api-base, got {len(spec.api_base)}")
    for name in Limits.model_fields:
        if getattr(resources.limits, name) is not None:
            shown = name.replace("_", "-")
            raise OptionError(f"--{shown}: not possible with --batch, which sends all at once")
    claim(folder, config)
    lock = take_folder_lock(folder / FOLDER)
    try:
        return beside_any_loop(lambda: _BatchRun(folder, config, keep=keep, poll_s=poll_s).run())
    finally:
        os.close(lock)


class _PendingRowsError(ApbJudgeError):
    """Rows are pending; leaves ``run_in`` before figures are made of the others."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(f"{progress.pending} rows wait for a batch")
        self.progress = progress


@dataclass(slots=True)
class _BatchRun:
    """A run in rounds: judge what there are answers for, and send the other requests away."""

    folder: Path
    config: RunConfig
    keep: bool
    poll_s: float
    batches: BatchList = field(init=False)
    api: BatchApi = field(init=False)
    results: BatchResults = field(init=False)
    shown: dict[str, str] = field(default_factory=dict[str, str])
    """The last note about each batch, by its tag."""

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
        form = known_format(spec, spec.addresses[0], resources.cache)
        self.batches = open_list(self.folder / FOLDER, endpoint, form)
        self.results = BatchResults(prices_of(spec, batched=True).cost_usd)
        for batch in self.batches.batches:
            if batch.step in ("fetched", "entered"):
                self._read(batch)
        rows = self.config.source.rows
        if not isinstance(rows, Path | Sequence):
            source = replace(self.config.source, rows=list(rows))
            self.config = replace(self.config, source=source)

    def run(self) -> Run:
        """Carries everything out; see ``run_batched``."""
        since = min((batch.turn for batch in self.batches.open), default=self.batches.turn + 1)
        passes: list[Progress] = []
        is_last = False
        while True:
            self._finish_batches()
            client = self._client(since, is_last=is_last)
            try:
                run = run_in(self.folder, self.config, keep=self.keep, work=self._work(client))
            except _PendingRowsError as pending:
                passes.append(pending.progress)
            else:
                return replace(run, progress=_together([*passes, run.progress]))
            if client.count:
                self.batches.add(client.files.written)
            else:
                is_last = True  # nothing but requests that failed too often is left

    def _client(self, since: int, *, is_last: bool) -> BatchWriter:
        spec = self.config.spec
        return BatchWriter(
            files=BatchFiles(self.batches.folder / f"requests-{self.batches.turn + 1}.jsonl"),
            place=place_of(spec.api_base or (None,)),
            body=body_maker(spec.model),
            results=self.results,
            cache=self.config.resources.open_cache(),
            form=self.batches.form,
            retries=spec.retries,
            since=since,
            is_last=is_last,
        )

    def _work(self, client: BatchWriter) -> Work:
        async def work(logs: Sequence[Log]) -> Progress:
            judge = _judge_with(client, self.config.spec, self.config.source.roots)
            progress = await run_judges([judge], [self.config], logs)
            if progress.pending:
                raise _PendingRowsError(progress)
            return progress

        return work

    def _finish_batches(self) -> None:
        """Brings every batch of the list to its end.

        Raises:
            OptionError: If the provider refuses or can't be reached.
        """
        if not self.batches.open:
            return
        try:
            asyncio.run(self._create_and_wait())
        except JudgeError as error:
            raise OptionError(
                f"--judge {self.config.spec.model}: {error}; the same command continues from here"
            ) from None
        last = (batch for batch in self.batches.batches if batch.turn == self.batches.turn)
        if any(batch.state == "cancelled" for batch in last):
            raise OptionError("--batch: a batch was cancelled; the same command sends the rest")

    async def _create_and_wait(self) -> None:
        for batch in self.batches.open:
            await self._create(batch)
        while waiting := self.batches.open:
            for batch in waiting:
                await self._look_after(batch)
            is_full = any(b.state == "failed" and b.results is None for b in waiting)
            if is_full or any(batch.is_open for batch in waiting):
                await self.config.resources.clock.sleep(self.poll_s)

    async def _create(self, batch: Batch) -> None:
        """Creates a batch at the provider, unless it has been created."""
        if batch.step == "written":
            batch.file = await self.api.upload(self.batches.folder / batch.requests)
            batch.step = "ordering"
            self.batches.save()
        elif batch.step == "ordering":  # an earlier session was stopped here
            if not self.api.lists:
                raise OptionError(
                    f"--batch: an earlier session was stopped while it sent {batch.requests}, and "
                    f"litellm can't list the batches of {self.api.provider}: look there for one "
                    f"with the tag {batch.tag}, and in {self.batches.folder}/{LIST} give its id "
                    'and the step "ordered", or the step "written" if there is none'
                )
            batch.id = await self.api.find(batch.tag, batch.file)
        if batch.step != "ordering":
            return
        try:
            batch.id = batch.id or await self.api.create(batch.file or "", batch.tag)
        except JudgeError as error:
            if not isinstance(error, TransportError) or error.answered:
                batch.step = "written"  # it was turned away, so there is none
                self.batches.save()
            raise
        batch.step = "ordered"
        self.batches.save()

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
        elif state.state == "failed" and state.complaint and not _may_pass(state):
            batch.step = "dropped"
            self.batches.save()
            raise OptionError(
                f"--judge {self.config.spec.model}: batch {batch.id} failed: {state.complaint}"
            )
        self._take(batch)
        batch.step = "fetched"
        self.batches.save()

    def _note(self, batch: Batch, state: BatchState) -> None:
        done = state.done + state.failed
        text = f"{done} of {state.total or batch.lines} done" if done else state.state
        if state.has_ended and state.state != "completed":
            text = f"{state.state}, {done} of {batch.lines} done"
        if self.shown.get(batch.tag) != text:
            self.shown[batch.tag] = text
            self.config.events.note(f"batch {batch.id}: {text}")

    def _take(self, batch: Batch) -> None:
        """Takes the answers of a batch: for this run, and for others those worth keeping."""
        cache = self.config.resources.open_cache()

        def each(answer: Answer | InputError) -> None:
            if isinstance(answer, InputError):
                self.config.events.note(str(answer))
            elif isinstance(answer.error, FormatUnsupportedError):
                after = min(FORMATS.index(batch.form) + 1, len(FORMATS) - 1)
                self.batches.form = FORMATS[max(after, FORMATS.index(self.batches.form))]
            elif cache is not None and answer.completion is not None and answer.is_good:
                # ids without a format are of the round's, or of the strictest
                form = batch.form if answer.form == FORMATS[0] else answer.form
                key = cache_key(answer.key, form)
                cache.put(key, dump_completion(answer.completion))

        try:
            self._read(batch, each)
        finally:
            if cache is not None:
                cache.close()

    def _read(
        self, batch: Batch, each: Callable[[Answer | InputError], None] = lambda answer: None
    ) -> None:
        folder = self.batches.folder
        self.results.add_batch(
            folder / batch.requests,
            folder / batch.results if batch.results is not None else None,
            turn=batch.turn,
            form=batch.form,
            missing=TransportError(f"batch {batch.id} ({batch.state}) gave no answer to it"),
            each=each,
        )


def _may_pass(state: BatchState) -> bool:
    """Whether a batch failed since too much is sent at once; later there is room again."""
    return "limit" in state.complaint and "billing" not in state.complaint


def _together(passes: Sequence[Progress]) -> Progress:
    """What the passes did in all; a row that one judged is skipped by the next."""
    total = replace(passes[-1], skipped=passes[0].skipped)
    for earlier in passes[:-1]:
        total.add_costs(earlier)
        total.done += earlier.done
        for reason, count in earlier.unscored.items():
            total.unscored = total.unscored | {reason: total.unscored.get(reason, 0) + count}
    return total


def _judge_with(client: BatchWriter, spec: JudgeSpec, roots: Sequence[Path]) -> LLMJudge:
    """The model judge that asks a batch client, seeing what it would see over the network."""
    return LLMJudge(spec, client, roots=roots, sees=is_shown_images(spec))


# Files that are answered elsewhere ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Export:
    """What was written.

    Attributes:
        lines: Requests.
        bytes: Size of the file.
        known: Rows whose replies are all in the cache.
        bad_rows: Rows that can't be judged; ``grade`` says why.
    """

    lines: int
    bytes: int
    known: int
    bad_rows: int


def export_requests(
    rows: Rows,
    out: Path,
    *,
    judge: JudgeSpec,
    protocol: str = AUTO,
    cases: str | Path | None = None,
    rubric: str | None = None,
    data_root: str | Path | None = None,
    overwrite: bool = False,
    cache: Path | None = None,
) -> Export:
    """Writes a batch file of every request that the reply cache has no reply to.

    The options are those of ``grade``, and the judge must have the settings and the address that
    it will get. An older batch file in the place of ``out`` is replaced, another file only with
    ``overwrite``. ``cache`` is the folder of the caches, None for the usual one. The size of the
    file is not limited to what a service takes.

    Raises:
        OptionError: If an option or the rubric is unusable, or ``out`` is another file.
        InputError: If the input can't be read or the file not be written.
    """
    if judge.is_static:
        raise OptionError("--judge: expected a model, got static")
    source = source_of(rows, protocol=protocol, rubric=rubric, cases=cases, data_root=data_root)
    if not overwrite:
        _check_replaceable(out)
    part = out.with_name(f"{out.name}.part")
    folder = cache or default_cache_folder()
    client = BatchWriter(
        files=BatchFiles(part, max_lines=None, max_bytes=None),
        place=place_of(judge.api_base or (None,)),
        body=body_maker(judge.model),
        cache=ReplyCache(folder / REPLIES, warn=_fail),
        form=known_format(judge, judge.addresses[0], folder),
    )
    identity = run_identity(judge, protocol, source.rubric)
    config = RunConfig(source, judge, identity, (), QUIET, Resources(cache=folder))

    async def write(logs: Sequence[Log]) -> Progress:
        return await run_judges([_judge_with(client, judge, source.roots)], [config], logs)

    with TemporaryDirectory(prefix="apbjudge-") as scratch:
        progress = run_in(Path(scratch), config, keep=False, work=write).progress
    size = sum(written.size for written in client.files.written)
    try:
        part.touch()
        part.replace(out)
    except OSError as error:
        raise InputError(f"{out}: can't be written: {error.strerror}") from None
    bad_rows = progress.unscored.get(BAD_INPUT, 0)
    return Export(client.count, size, progress.done - bad_rows, bad_rows)


def _check_replaceable(out: Path) -> None:
    """Refuses to replace a file that holds anything else than requests."""
    if not out.is_file() or not out.stat().st_size:
        return
    first = next(read_lines(out, any_format=True), None)
    values = first.values if first is not None else None
    if not isinstance(values, dict) or not {"custom_id", "method", "url", "body"} <= values.keys():
        raise OptionError(
            f"--out: {out} is no batch file of requests; choose another name, or --overwrite to "
            "replace it"
        )


@dataclass(frozen=True, slots=True)
class Import:
    """What was read.

    Attributes:
        taken: Replies put into the cache.
        failed: Requests that failed, or whose reply is not worth keeping.
        unreadable: Places and complaints of lines that are no answer.
    """

    taken: int
    failed: int
    unreadable: tuple[str, ...]


def import_answers(path: Path, *, cache: Path | None = None) -> Import:
    """Puts the replies of an answered batch file into the reply cache.

    Args:
        path: The file as ``vllm run-batch`` or the service wrote it.
        cache: Folder of the caches, None for the usual one.

    Returns:
        What became of the lines. Failed requests are in the next export, or asked by ``grade``.

    Raises:
        InputError: If the file can't be read or the cache not be written.
    """
    replies = ReplyCache((cache or default_cache_folder()) / REPLIES, warn=_fail)
    taken = failed = 0
    unreadable: list[str] = []
    try:
        for answer in read_answers(path):
            if isinstance(answer, InputError):
                unreadable.append(str(answer))
            elif answer.completion is not None and answer.is_good:
                key = cache_key(answer.key, answer.form)
                replies.put(key, dump_completion(answer.completion))
                taken += 1
            else:
                failed += 1
    finally:
        replies.close()
    return Import(taken, failed, tuple(unreadable))


def _fail(message: str) -> NoReturn:
    raise InputError(message)
