"""The Python API: one call from rows to results. The command line does nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, cast
from warnings import warn

from ..errors import OptionError, shorten
from ..llm import Client
from ..llm.limits import Limits
from ..llm.resources import shared_resources
from ..options import takes
from ..protocols import Protocol
from ..records.files import log_path, name_of
from ..records.run_folder import cases_of, predictions_of
from ..remote import place_of
from ..runs.event_loops import in_thread
from ..runs.loop import QUIET, Events
from ..runs.session import carry_out, default_folder, folder_of
from ..runs.shards import in_identity
from ..trajectories import TrajectoryProtocol
from .config import GradeConfig, JudgeSpec
from .function import FunctionJudge, JudgeFunction
from .session import Run, RunConfig, run_identity, run_in, run_judges
from .source import ItemSource, Rows, source_of
from .summary import check_by
from .trajectory_judge import grade_log
from .trajectory_source import TrajectorySource, input_of, is_log, trajectories_of

C = TypeVar("C", bound=GradeConfig)


@takes(config=GradeConfig)
def grade(
    rows: Rows | PathLike[str],
    config: GradeConfig,
    *,
    judge: JudgeFunction | JudgeSpec | str | Sequence[JudgeSpec | str] | None = None,
    protocol: Protocol | TrajectoryProtocol | str | None = None,
    client: Client | None = None,
    events: Events = QUIET,
) -> Run:
    """Grades predictions.

    Without ``out`` everything stays in memory. Rows that could not be judged are in the run as
    unscored judgements; where nothing could be judged and ``events`` does not watch, a warning
    says why.

    Args:
        rows: A JSONL file, a run of ``predict`` or ``refine`` or its folder, or rows as dicts: the
            published prediction format or plain JSON; for protocols of whole trajectories a log
            (also a list of its files, each a ``Path``) or rows of ``trajectory_row``.
        config: The settings; options take precedence.
        judge: ``static``, litellm models, or a judge of your own (see ``judge.function``).
        protocol: Its name, or a protocol of your own.
        client: Answers requests in place of the network; its replies are cached only if ``cache``
            is set.
        events: Called back while the run goes on.

    Raises:
        OptionError: If a setting, the rubric or the judge's access is unusable, or ``out`` holds
            another run.
        InputError: If an input file as a whole is unusable.
    """
    rows = _opened(rows)
    own_judge = None if judge is None else FunctionJudge.of(_function(judge))
    if protocol is not None and not isinstance(protocol, Protocol | TrajectoryProtocol):
        raise OptionError(f"--protocol: expected a name or a Protocol, got {shorten(protocol)}")
    config = with_cases(rows, config)
    check_settings(config)
    if own_judge is not None:
        _check_own(config)
    if (len(config.judge) > 1 or config.escalate is not None) and not isinstance(rows, str | Path):
        rows = list(rows)  # each judge reads them
    source = input_of(rows, config, protocol, events)
    if source.reading.text:
        events.note(f"{source.name}: {source.reading.text}")
    with folder_of(config.out) as folder:
        run = run_config(source, config, folder, client=client, events=events)
        finished = _carried_out(run, config, own_judge)
    if isinstance(source, ItemSource):
        for line in source.gaps.lines():
            events.note(f"{source.name}: {line}")
    if (missing := finished.summary.missing) is not None:
        for line in missing.lines:
            events.note(line)
    nothing = finished.summary.totals.unscored and not finished.summary.scored
    if nothing and events is QUIET and config.shard is None:
        warn(f"no row has a verdict: {finished.summary.totals.why_unscored}", stacklevel=3)
    return finished


def run_config(
    source: ItemSource | TrajectorySource,
    config: GradeConfig,
    folder: Path,
    *,
    client: Client | None,
    events: Events,
) -> RunConfig:
    """The run of the first judge in a folder."""
    resources = shared_resources(client=client, limits=config, cache=config.cache, warn=events.note)
    # what a kill must not lose and no record holds: all of a run in memory, votes of an item
    is_durable = config.out is None or any(spec.samples > 1 for spec in config.judge)
    return RunConfig(
        folder=folder,
        source=source,
        spec=config.judge[0],
        resources=replace(resources, is_durable=is_durable),
        events=events,
        by=config.by,
        intervals=config.settings,
        in_memory=config.out is None,
        overwrite=config.overwrite,
    )


def _carried_out(run: RunConfig, config: GradeConfig, own_judge: FunctionJudge | None) -> Run:
    """The run of one judge or of several, whatever it judges."""
    if isinstance(run.source, TrajectorySource):
        return grade_log(run, run.source)
    if own_judge is not None:
        run = replace(run, judge=own_judge.named)
        return run_in(run, lambda logs: run_judges([own_judge], [run], logs))
    if config.batch:
        from ..runs.batching import run_batched

        return run_batched(run, run.spec, "--judge")
    if len(config.judge) == 1 and config.escalate is None:
        return carry_out([run])[0]
    from .ensembles import run_cascade, run_panel

    if config.escalate is None:
        return run_panel(run, config.judge, config.panel)
    return run_cascade(run, config.escalate, config.when)


def _opened(rows: Rows | PathLike[str]) -> Rows:
    """The rows, or their file, also of a run of ``predict`` or its folder."""
    rows = getattr(rows, "logs", rows)  # of a run of execute
    if isinstance(rows, list | tuple) and rows and all(isinstance(of, PathLike) for of in rows):
        rows = log_path(cast("Any", rows))
    return predictions_of(Path(rows)) if isinstance(rows, str | PathLike) else rows


def with_cases(rows: Rows, config: C) -> C:
    """The settings, with the cases of the run that made the predictions if none are stated.

    Raises:
        InputError: If the run's cases are not there.
    """
    if config.cases is not None or not isinstance(rows, str | Path):
        return config
    cases = cases_of(Path(rows))
    return config if cases is None else config.model_copy(update={"cases": cases})


def default_out(rows: Path, config: GradeConfig) -> Path:
    """The folder of the same judges with the same settings on the same files.

    Args:
        rows: A file of rows or a log, or the folder of a run of predictions.
        config: The settings.
    """
    rows = predictions_of(rows)
    config = with_cases(rows, config)
    first = config.judge[0]
    trajectories = trajectories_of(rows, config)
    source = trajectories or source_of(() if is_log(rows, config) else rows, config)
    identity = {**in_identity(source.shard), **run_identity(first, source)}
    slug = first.slug if trajectories is None else "code"
    if len(config.judge) > 1:
        identity["judge"] = [spec.scoring for spec in config.judge]
        slug = f"panel-of-{len(config.judge)}"
    elif config.escalate is not None:
        identity["judge"] = [first.scoring, config.escalate.model]
        slug = f"{slug}-cascade"
    files = (path for path in (rows, config.cases) if path is not None)
    paths = [place_of(path) for path in files]
    return default_folder(name_of(rows), f"{identity['protocol']}-{slug}", identity, paths)


def _function(judge: object) -> JudgeFunction:
    if not callable(judge):
        expected = "a model's name, a JudgeSpec, several of them, or one function"
        raise OptionError(f"--judge: expected {expected}, got {shorten(judge)}")
    return cast("JudgeFunction", judge)


def check_settings(config: GradeConfig) -> None:
    """Refuses settings that don't go together."""
    check_by(config.by)
    several = len(config.judge) > 1 or config.escalate is not None
    if config.shard is not None and several:
        specs = [*config.judge, *([config.escalate] if config.escalate else [])]
        folders = ", ".join(f"OUT/judges/{spec.slug}" for spec in specs)
        raise OptionError(
            "--shard: expected one judge, got several: grade with each of them in parts, merge the "
            f"parts into {folders}, then grade with all of them and --out OUT, which asks nobody"
        )
    if len(config.judge) > 1 and config.escalate is not None:
        raise OptionError("--escalate: expected one first judge, got several")
    if config.batch and (several or any(spec.is_static for spec in config.judge)):
        raise OptionError("--batch: expected one judge that is a model")


def _check_own(config: GradeConfig) -> None:
    """Refuses settings that have no effect on a function."""
    if config.escalate is not None:
        raise OptionError("--escalate: expected a model as first judge, got a function")
    if limits := [name for name in Limits.model_fields if getattr(config, name) is not None]:
        option = limits[0].replace("_", "-")
        raise OptionError(f"--{option}: it limits a model's calls, got a function as judge")


async def agrade(*rows_and_config: Any, **options: Any) -> Run:
    """Grades predictions while the event loop goes on; see ``grade``.

    Cancelled, it stops: calls in flight are cancelled, what has finished is kept, and the same call
    continues from ``out``. ``grade`` too can be called where a loop runs, as in a notebook, but
    blocks it until it ends, or until a KeyboardInterrupt stops it in the same way.
    """
    return await in_thread(lambda: grade(*rows_and_config, **options))


agrade.__signature__ = signature(grade)  # type: ignore[attr-defined]
