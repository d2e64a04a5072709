"""Grading through batches of requests: a provider's batch interface, or files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import OptionError
from ..llm.batch_requests import BatchWriter
from ..llm.resources import can_see
from ..runs import batching
from ..runs.batching import BatchedRun, Export, PendingRowsError, write_requests
from ..runs.loop import Progress
from ..runs.session import Work
from .config import GradeConfig
from .llm_judge import LLMJudge
from .session import Log, Run, RunConfig, run_in, run_judges
from .source import Rows, source_of
from .worker import Judgement


def run_batched(config: RunConfig, *, poll_s: float = 30.0) -> Run:
    """Carries out a run through the provider's batch interface; see ``runs.batching``."""
    config.source.keep_rows()  # each round reads them

    def carry_out(client: BatchWriter) -> tuple[Run, Progress]:
        run = run_in(config, _work_with(client, config))
        return run, run.progress

    batched = BatchedRun(
        option="--judge",
        spec=config.spec,
        resources=config.resources,
        folder=config.folder,
        events=config.events,
        claim=config.claim,
        carry_out=carry_out,
    )
    run, progress = batching.run_batched(batched, poll_s=poll_s)
    return replace(run, progress=progress)


def _work_with(client: BatchWriter, config: RunConfig, *, all_rows: bool = True) -> Work[Judgement]:
    """Lets a run's judge ask a batch client, seeing what it would see over the network."""

    async def work(logs: Sequence[Log]) -> Progress:
        sees = can_see(config.spec)
        judge = LLMJudge(config.spec, client, roots=config.source.roots, sees=sees)
        progress = await run_judges([judge], [config], logs)
        if progress.pending and all_rows:
            raise PendingRowsError(progress)
        return progress

    return work


def export_requests(
    rows: Rows, out: Path, config: GradeConfig | None = None, **settings: Any
) -> Export:
    """Writes a batch file of every request that the reply cache has no reply to.

    Export, have the file answered, import; the same ``grade`` then has every reply in its cache.
    The judge must have the settings and the address that it will get from ``grade``. An older
    batch file in the place of ``out`` is replaced, another file only with ``overwrite``. ``cache``
    may name the folder of the caches. The size of the file is not limited to what a service takes.
    """
    config = config or GradeConfig(**settings)
    judge, *others = config.judge
    if others:
        raise OptionError("batch export: expected one judge")
    if judge.is_static:
        raise OptionError("--judge: expected a model, got static")
    source = source_of(rows, config)

    def run(client: BatchWriter) -> Progress:
        with TemporaryDirectory(prefix="apbjudge-") as scratch:
            run_config = RunConfig(folder=Path(scratch), source=source, spec=judge, in_memory=True)
            return run_in(run_config, _work_with(client, run_config, all_rows=False)).progress

    return write_requests(out, judge, run, cache=config.cache, overwrite=config.overwrite)


def export(rows: Rows, options: Mapping[str, Any]) -> Export:
    """Writes the requests of the judge among options; see ``export_requests``."""
    return export_requests(rows, out_of(options), GradeConfig.of(options, escalate=None))


def out_of(options: Mapping[str, Any]) -> Path:
    """The file for the requests that options name.

    Raises:
        OptionError: If they name none.
    """
    if options.get("out") is None:
        raise OptionError("--out: expected a path, got nothing")
    return Path(options["out"])
