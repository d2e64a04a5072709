"""Files of requests that are answered elsewhere, such as by ``vllm run-batch``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from ..errors import AccessError, InputError, OptionError
from ..jsonl import read_lines
from ..llm.base import Format, cache_key
from ..llm.batch_requests import (
    Answer,
    BatchFiles,
    BatchWriter,
    body_maker,
    provider_of,
    read_answers,
)
from ..llm.batches import TERMS
from ..llm.cache import ReplyCache, default_cache_folder
from ..llm.endpoint_cache import EndpointCache
from ..llm.engine import dump_completion
from ..llm.model_spec import ModelSpec
from ..llm.resources import REPLIES, Resources, known_format
from ..llm.served import learn_served, place_of
from .event_loops import block_on
from .resume import BAD_INPUT
from .session import Session, carry_out, folder_of


def place_of_replies(spec: ModelSpec, cache: Path | None) -> str:
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
    session: Session[Any, Any],
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
        place=place_of_replies(spec, folder),
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
