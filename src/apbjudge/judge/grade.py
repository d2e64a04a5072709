"""The Python API: one call from rows to results. The command line does nothing else."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import OptionError
from ..llm import Client
from ..llm.resources import shared_resources
from ..runs.loop import QUIET, Events
from .config import GradeConfig
from .session import Run, RunConfig, run_in
from .source import Rows, source_of
from .summary import check_by


def grade(
    rows: Rows,
    config: GradeConfig | None = None,
    *,
    client: Client | None = None,
    events: Events = QUIET,
    **settings: Any,
) -> Run:
    """Grades predictions.

    Without ``out`` everything stays in memory. Rows that could not be judged are in the run as
    unscored judgements.

    Args:
        rows: A JSONL file, or rows as dicts: the published prediction format or plain JSON.
        config: The settings; else they are given one by one.
        client: Answers requests in place of the network; its replies are cached only if ``cache``
            is set.
        events: Called back while the run goes on.
        **settings: The fields of ``GradeConfig``, in place of ``config``.

    Raises:
        OptionError: If a setting, the rubric or the judge's access is unusable, or ``out`` holds
            another run.
        InputError: If an input file as a whole is unusable.
    """
    config = config or GradeConfig(**settings)
    specs, escalate = config.judge, config.escalate
    first = specs[0]
    check_by(config.by)
    several = len(specs) > 1 or escalate is not None
    if several and not isinstance(rows, str | Path):
        rows = list(rows)  # each judge reads them
    if config.shard is not None and several:
        raise OptionError("--shard: expected one judge, got several")
    if len(specs) > 1 and escalate is not None:
        raise OptionError("--escalate: expected one first judge, got several")
    if config.batch and (several or first.is_static):
        raise OptionError("--batch: expected one judge that is a model")
    source = source_of(rows, config)
    resources = shared_resources(client=client, limits=config, cache=config.cache, warn=events.note)
    out = nullcontext(config.out) if config.out is not None else TemporaryDirectory("", "apbjudge-")
    with out as folder:
        run = RunConfig(
            folder=Path(folder),
            source=source,
            spec=first,
            resources=resources,
            events=events,
            by=config.by,
            in_memory=config.out is None,
            overwrite=config.overwrite,
        )
        if config.batch:
            from .batching import run_batched

            return run_batched(run)
        if not several:
            return run_in(run)
        from .ensembles import run_cascade, run_panel

        if escalate is None:
            return run_panel(run, specs, config.panel)
        return run_cascade(run, escalate, config.when)
