"""Grading through a provider's batch interface, and batch files that are answered elsewhere.

``run_batched`` does everything itself. The other two are for ``vllm run-batch`` and any service
that takes OpenAI's batch files: export, have the file answered, import; the same ``grade`` then
finds every reply. What needs a second question is in the next export.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ..errors import InputError, OptionError, PendingError, RowError
from ..jsonl import read_lines
from ..llm.base import cache_key
from ..llm.batch_requests import BatchFiles, BatchWriter, body_maker, read_answers
from ..llm.budget import Limits
from ..llm.cache import ReplyCache, default_cache_folder
from ..llm.engine import dump_completion, place_of
from ..llm.resources import REPLIES, known_format
from ..protocols import AUTO
from ..runs.loops import beside_any_loop
from . import JudgeSpec, Source, Task
from .batch_journal import locked
from .batch_rounds import FOLDER, Rounds, judge_with
from .llm_judge import LLMJudge
from .session import Rows, Run, RunConfig, claim, source_of


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


def run_batched(folder: Path, config: RunConfig, *, keep: bool = True, poll_s: float = 30.0) -> Run:
    """Carries out what is ordered through the provider's batch interface.

    May take a day. A run that was stopped anywhere goes on when it is ordered again: no batch is
    ordered twice, no answer is lost. Requests that fail in a way that may pass, and those that a
    batch left unanswered, are ordered again in the next round, at most ``retries`` times.

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
    _check(config)
    claim(folder, config)
    with locked(folder / FOLDER):
        return beside_any_loop(lambda: Rounds(folder, config, keep=keep, poll_s=poll_s).run())


def _check(config: RunConfig) -> None:
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
            raise OptionError(f"--{shown}: not possible with --batch, which orders all at once")


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

    Args:
        rows: As for ``grade``.
        out: The file; an older batch file is replaced. Its size is not limited, as services
            limit it.
        judge: The judge, with the very settings and address that ``grade`` will get.
        protocol: As for ``grade``.
        cases: As for ``grade``.
        rubric: As for ``grade``.
        data_root: As for ``grade``.
        overwrite: Whether a file that is no batch file is replaced too.
        cache: Folder of the caches, None for the usual one.

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
    book = BatchWriter(
        parts=BatchFiles(part, max_lines=None, max_bytes=None),
        place=place_of(judge.api_base or (None,)),
        body=body_maker(judge.model),
        cache=ReplyCache(folder / REPLIES, warn=_fail),
        form=known_format(judge, judge.addresses[0], folder),
    )
    known, bad = beside_any_loop(lambda: asyncio.run(_write(source, judge, book)))
    size = sum(written.size for written in book.parts.written)
    try:
        part.touch()
        part.replace(out)
    except OSError as error:
        raise InputError(f"{out}: can't be written: {error.strerror}") from None
    return Export(book.count, size, known, bad)


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


async def _write(source: Source, spec: JudgeSpec, book: BatchWriter) -> tuple[int, int]:
    """Writes the requests of all rows; returns how many rows are known and how many bad."""
    judge = judge_with(book, spec, source.roots)
    known = bad = 0
    try:
        for entry in source:
            try:
                known += isinstance(entry, Task) and await _is_known(judge, entry)
                bad += not isinstance(entry, Task)
            except RowError:
                bad += 1
    finally:
        await judge.close()
    return known, bad


async def _is_known(judge: LLMJudge, task: Task) -> bool:
    """Whether a row can be judged without a call; if not, its requests are written."""
    prompt = judge.prompt(task)
    try:
        await judge.judge(task, prompt, "")
    except PendingError:
        return False
    return True


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
