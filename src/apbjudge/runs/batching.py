"""Runs through a provider's batch interface, or through files that are answered elsewhere.

It is the run loop with a client that takes replies from the results of batches and writes the
other requests to files. The files go away as batches and, when they are answered, the loop runs
again, until no row is pending.

The list of a run's batches is on disk. Every step is written down before the next is taken, so
that a run that is killed anywhere continues and no batch is made twice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, NoReturn, Protocol, TypeVar
from uuid import uuid4

from pydantic import BaseModel, Field, ValidationError

from ..errors import (
    AccessError,
    ApbJudgeError,
    FormatUnsupportedError,
    InputError,
    JudgeError,
    OptionError,
    RateLimitedError,
    TransportError,
)
from ..jsonl import read_lines, write_atomically
from ..llm.base import FORMATS, Format, cache_key
from ..llm.batch_requests import (
    Answer,
    BatchFile,
    BatchFiles,
    BatchResults,
    BatchWriter,
    body_maker,
    keys_of,
    provider_of,
    read_answers,
)
from ..llm.batches import TERMS, BatchApi, BatchState, Order, check_terms
from ..llm.cache import ReplyCache, default_cache_folder
from ..llm.endpoint_cache import EndpointCache
from ..llm.engine import dump_completion
from ..llm.http_batches import AnthropicBatches, TogetherBatches
from ..llm.limits import Limits
from ..llm.litellm_batches import BedrockBatches, GeminiBatches, LitellmBatches
from ..llm.model_spec import ModelSpec
from ..llm.resources import REPLIES, Resources, known_format, prices_of
from ..llm.served import learn_served, place_of
from ..records.own_runs import named_path
from .clearing import take_folder_lock
from .event_loops import beside_any_loop, block_on, current_stop
from .folder import RecordLog, state_of_work_below
from .loop import Progress
from .resume import BAD_INPUT
from .session import Session, carry_out, folder_of

FOLDER = "batch"
"""Folder of the batches within a run's folder."""
LIST = "batches.json"

# The list of batches ------------------------------------------------------------------------------

_FileName = Annotated[str, Field(pattern=r"^(?:requests|answers)-[0-9]+(?:-[0-9]+)?\.jsonl$")]
_Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]


class Batch(BaseModel):
    """One batch.

    Attributes:
        turn: Number of the round.
        requests: Name of the file of requests, in the folder of the list.
        lines: Requests in it.
        digest: SHA-256 of the file.
        tag: Identifies the batch at the provider.
        form: The reply format that the requests ask for.
        step: Its progress. ``ordering``: it is being created; after a kill there, the provider
            has to be asked whether it was. ``fetched``: its answers, if any, are on disk.
            ``dropped``: it is not waited for; its requests are written anew.
        file: The provider's id of the uploaded file.
        since: Seconds since 1970 when it was ordered.
        id: The provider's id of the batch.
        state: Its last state at the provider.
        results: Name of the file of answers, None when there are none.
    """

    turn: int
    requests: _FileName
    lines: int
    digest: str
    tag: str
    form: Format
    step: Literal["written", "ordering", "ordered", "fetched", "dropped"] = "written"
    file: str = ""
    since: float = 0.0
    id: str | None = None
    state: str | None = None
    results: _FileName | None = None


class BatchList(BaseModel):
    """The batches of a run.

    Attributes:
        folder: Where the list and the files of requests and answers lie.
        endpoint: Model and address of the endpoint.
        place: Identifies it in the keys of replies, as in a run without batches.
        form: The reply format that the endpoint is known to take.
        nonce: Sets the tags of this run apart from those of another with the same requests.
    """

    folder: Path = Field(default=Path(), exclude=True)
    endpoint: _Text
    place: str
    form: Format
    nonce: _Text = Field(default_factory=lambda: uuid4().hex)
    batches: list[Batch] = []

    @classmethod
    def open(cls, folder: Path, endpoint: str, form: Format, place: Callable[[], str]) -> BatchList:
        """Opens the list in a folder, or begins one and asks for its place."""
        path = folder / LIST
        if not path.exists():
            return cls(folder=folder, endpoint=endpoint, place=place(), form=form)
        try:
            batches = cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            raise InputError(f"{path}: no list of batches that apbjudge wrote") from None
        if batches.endpoint != endpoint:
            raise OptionError(
                f"--out: {folder.parent} has batches of {batches.endpoint}, not of {endpoint}; "
                "choose another folder"
            )
        batches.folder = folder
        for name in (n for b in batches.batches for n in (b.requests, b.results) if n):
            named_path(folder, {}, str(folder / name), "no option")
        return batches

    @property
    def pending(self) -> list[Batch]:
        """Batches with which something is still to be done."""
        steps = ("written", "ordering", "ordered")
        return [batch for batch in self.batches if batch.step in steps]

    @property
    def ordered(self) -> list[Batch]:
        """Batches that are at the provider."""
        return [batch for batch in self.batches if batch.step == "ordered"]

    @property
    def turn(self) -> int:
        """Number of the last round; 0 before the first."""
        return max((batch.turn for batch in self.batches), default=0)

    def add(self, files: Sequence[BatchFile]) -> None:
        """Notes the files of a new round."""
        turn = self.turn + 1
        for file in files:
            name = file.path.name
            tag = hashlib.sha256(f"{self.nonce} {turn} {name}".encode()).hexdigest()
            self.batches.append(
                Batch(
                    turn=turn,
                    requests=name,
                    lines=file.lines,
                    digest=_digest(file.path),
                    tag=tag,
                    form=self.form,
                )
            )
        self.save()

    def save(self) -> None:
        """Writes the list in one step; raises InputError if it can't be written."""
        write_atomically(self.folder / LIST, self.model_dump_json(indent=2).encode())


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


# Rounds -------------------------------------------------------------------------------------------


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
        place = partial(_place, spec, cache)
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
        if _digest(path) != batch.digest:
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


# Files of requests --------------------------------------------------------------------------------


def _place(spec: ModelSpec, cache: Path | None) -> str:
    """The keys of stored replies, as in a run without batches."""
    try:
        served = block_on(learn_served(spec.model, spec.addresses, EndpointCache(cache)))
    except AccessError as error:
        raise OptionError(str(error)) from None
    return place_of(spec.addresses, served)


def put_reply(cache: ReplyCache, answer: Answer, form: Format) -> bool:
    """Puts a cacheable reply into the cache."""
    if (reply := answer.cacheable) is None:
        return False
    cache.put(cache_key(answer.key, form), dump_completion(reply))
    return True


@dataclass(frozen=True, slots=True)
class Export:
    """Requests and bytes written, and rows left out: answered in the cache, or unusable.

    ``unseen`` has the rows by what of their files a judge is not shown.
    """

    lines: int
    bytes: int
    known: int
    bad_rows: int
    unseen: Mapping[str, int]


def write_requests(
    out: Path,
    session: Session[Any, Out],
    spec: ModelSpec,
    *,
    cache: bool | Path | None,
    overwrite: bool,
) -> Export:
    """Writes a batch file of every request of a session that the reply cache has no reply to.

    Args:
        out: The file; an older batch file there is replaced, another file only with ``overwrite``.
        session: The session; its folder and whether it is in memory do not count.
        spec: The only model that it asks.
        cache: Folder of the caches, or None for the default one.
        overwrite: True if any file may be replaced.

    Raises:
        OptionError: If the cache is off, ``out`` is another file, or the model's provider takes
            batch files of another form.
        InputError: If it can't be written.
    """
    if cache is False:
        raise OptionError("batch export: expected the reply cache on")
    provider, _ = provider_of(spec.model)
    if provider in TERMS and not TERMS[provider].takes_openai:
        raise OptionError(
            f"batch export: expected a model whose provider takes OpenAI's batch files, got "
            f"{spec.model}; --batch sends the form of {provider}"
        )
    if not overwrite:
        _check_replaceable(out)
    part = out.with_name(f"{out.name}.part")
    folder = cache if isinstance(cache, Path) else default_cache_folder()
    resources = Resources(cache=folder, warn=_fail)
    files = BatchFiles(part, max_lines=None, max_bytes=None)
    client = BatchWriter(
        files=files,
        place=_place(spec, folder),
        body=body_maker(spec.model),
        cache=resources.open_cache(),
        form=known_format(spec, spec.addresses[0], folder),
    )
    with folder_of(None) as scratch:
        alone = replace(session, folder=scratch, in_memory=True, writer=client)
        progress = carry_out([alone])[0].progress
    size = sum(written.size for written in files.written)
    try:
        part.touch()
        part.replace(out)
    except OSError as error:
        raise InputError(f"{out}: can't be written: {error.strerror}") from None
    bad_rows = progress.unscored.get(BAD_INPUT, 0)
    return Export(client.count, size, progress.done - bad_rows, bad_rows, progress.unseen)


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
    """Counts of the answers that were read.

    Attributes:
        taken: Replies put into the cache.
        failed: Requests that failed or have no cacheable reply.
        unreadable: Place and fault of each line that is not an answer.
    """

    taken: int
    failed: int
    unreadable: tuple[str, ...]


def batch_import(answers: str | Path, *, cache: Path | None = None) -> Import:
    """Puts the replies of an answered batch file into the reply cache.

    Failed requests are in the next export, or asked by ``grade``.

    Args:
        answers: The file, as ``vllm run-batch`` writes it.
        cache: Folder of the caches; without it that of all runs.

    Raises:
        InputError: If the file can't be read.
    """
    replies = ReplyCache((cache or default_cache_folder()) / REPLIES, warn=_fail)
    taken: list[bool] = []
    unreadable: list[str] = []
    try:
        for answer in read_answers(Path(answers)):
            if isinstance(answer, InputError):
                unreadable.append(str(answer))
            else:
                taken.append(put_reply(replies, answer, answer.form))
    finally:
        replies.close()
    return Import(sum(taken), len(taken) - sum(taken), tuple(unreadable))


def _fail(message: str) -> NoReturn:
    raise InputError(message)
