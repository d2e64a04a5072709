"""Batch files that are answered elsewhere: by ``vllm run-batch``, or a service that takes OpenAI's.

Export, have the file answered, import; the same ``grade`` then has every reply in its cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from ..errors import InputError, OptionError
from ..jsonl import read_lines
from ..llm.base import Format, cache_key
from ..llm.batch_requests import Answer, BatchFiles, BatchWriter, body_maker, read_answers
from ..llm.cache import ReplyCache, default_cache_folder
from ..llm.engine import dump_completion, place_of
from ..llm.resources import REPLIES, Resources, can_see, known_format
from ..runs.loop import Progress
from ..runs.resume import BAD_INPUT
from .config import GradeConfig
from .llm_judge import LLMJudge
from .session import Log, RunConfig, Work, run_in, run_judges
from .source import Rows, source_of


def batch_writer(config: RunConfig, files: BatchFiles, form: Format, **more: Any) -> BatchWriter:
    """The client of a run that takes replies from the cache and writes the other requests."""
    return BatchWriter(
        files=files,
        place=place_of(config.spec.api_base or (None,)),
        body=body_maker(config.spec.model),
        cache=config.resources.open_cache(),
        form=form,
        **more,
    )


def work_with(client: BatchWriter, config: RunConfig) -> Work:
    """Lets a run's judge ask a batch client, seeing what it would see over the network."""

    async def work(logs: Sequence[Log]) -> Progress:
        sees = can_see(config.spec)
        judge = LLMJudge(config.spec, client, roots=config.source.roots, sees=sees)
        return await run_judges([judge], [config], logs)

    return work


def put_reply(cache: ReplyCache, answer: Answer, form: Format) -> bool:
    """Puts a reply that is worth keeping into the cache."""
    if answer.completion is None or not answer.is_good:
        return False
    cache.put(cache_key(answer.key, form), dump_completion(answer.completion))
    return True


@dataclass(frozen=True, slots=True)
class Export:
    """What was written: requests, bytes, and rows not in it: answered in the cache, or unusable."""

    lines: int
    bytes: int
    known: int
    bad_rows: int


def export_requests(
    rows: Rows, out: Path, config: GradeConfig | None = None, **settings: Any
) -> Export:
    """Writes a batch file of every request that the reply cache has no reply to.

    The judge must have the settings and the address that it will get from ``grade``. An older
    batch file in the place of ``out`` is replaced, another file only with ``overwrite``. ``cache``
    may name the folder of the caches. The size of the file is not limited to what a service takes.
    """
    config = config or GradeConfig(**settings)
    judge, *others = config.judge
    if config.cache is False or others:
        raise OptionError("batch export: expected one judge, and its reply cache on")
    if judge.is_static:
        raise OptionError("--judge: expected a model, got static")
    source = source_of(rows, config)
    if not config.overwrite:
        _check_replaceable(out)
    part = out.with_name(f"{out.name}.part")
    folder = config.cache if isinstance(config.cache, Path) else default_cache_folder()
    with TemporaryDirectory(prefix="apbjudge-") as scratch:
        run = RunConfig(
            folder=Path(scratch),
            source=source,
            spec=judge,
            resources=Resources(cache=folder, warn=_fail),
            in_memory=True,
        )
        files = BatchFiles(part, max_lines=None, max_bytes=None)
        client = batch_writer(run, files, known_format(judge, judge.addresses[0], folder))
        progress = run_in(run, work_with(client, run)).progress
    size = sum(written.size for written in files.written)
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

    Failed requests are in the next export, or asked by ``grade``.
    """
    replies = ReplyCache((cache or default_cache_folder()) / REPLIES, warn=_fail)
    taken: list[bool] = []
    unreadable: list[str] = []
    try:
        for answer in read_answers(path):
            if isinstance(answer, InputError):
                unreadable.append(str(answer))
            else:
                taken.append(put_reply(replies, answer, answer.form))
    finally:
        replies.close()
    return Import(sum(taken), len(taken) - sum(taken), tuple(unreadable))


def _fail(message: str) -> NoReturn:
    raise InputError(message)
