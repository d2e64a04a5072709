"""Labelling by hand: serves files on a local page, and summarises the result."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from ..errors import OptionError, visible
from ..jsonl import replacing
from ..judge.config import GradeConfig
from ..judge.source import source_of
from ..judge.trajectory_source import is_log, rows_of_log
from ..options import takes
from ..protocols import AUTO, CASE
from ..records import ERROR_CODES
from ..records.run_folder import cases_in, cases_of, predictions_of
from ..runs.loop import QUIET, Events
from ..trajectories.conservation import ACCEPTED, Conservation
from ..trajectories.steps import labelling_row
from .adjudication import ADJUDICATED, compared
from .config import LabelConfig
from .label_log import Clock, LabelLog
from .label_studio import export_tasks, read_annotations
from .queue import ItemReader, JudgeVerdicts, Problem, in_plan_order, shuffled
from .service import LabelService


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The result of labelling.

    Attributes:
        total: Number of items to label.
        by_rater: Number of items that each rater has labelled completely, in all sessions.
        out: The file of labels.
        design: The value for ``calibrate --design``; None if none fits.
        files: The files that were written for Label Studio.
    """

    total: int
    by_rater: dict[str, int]
    out: Path
    design: str | None
    files: tuple[Path, ...] = ()


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)


def _rows_of(log: Path, config: LabelConfig, problem: Problem) -> Path:
    """The file of rows; for a log, a new file next to the labels with a row a trajectory."""
    reading = GradeConfig(protocol=config.protocol, tested_model=config.tested_model)
    if not is_log(log, reading):
        return log
    path = config.out.with_name(f"{config.out.name}.trajectories.jsonl")
    events = Events(progress=QUIET.progress, bad_row=problem, note=problem)
    account = Conservation(None, ACCEPTED)
    rows = rows_of_log(
        log, reading, events, account, lambda trajectory: [labelling_row(trajectory)]
    )
    with replacing(path) as file:
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    return path


def open_service(config: LabelConfig, *, problem: Problem, clock: Clock = now) -> LabelService:
    """Reads the files and locks the file of labels.

    Args:
        config: The items to be labelled.
        problem: Called with a line about each row that can't be used.
        clock: Returns the current time, for the times in labels.

    Raises:
        OptionError: If an option is unusable, or another process writes the labels.
        InputError: If a file is unusable.
    """
    rows = predictions_of(config.predictions)
    if rows.is_dir() and (built := cases_in(rows)) != rows:
        protocol = CASE.name if config.protocol == AUTO else config.protocol
        rows, config = built, config.model_copy(update={"protocol": protocol})
    cases = config.cases or cases_of(rows)
    for path in (rows, cases, *config.adjudicate, config.import_label_studio):
        with suppress(OSError):
            if path is not None and path.samefile(config.out):
                raise OptionError(
                    f"--out: expected a file of labels, got an input: {str(config.out)!r}"
                )
    rows = _rows_of(rows, config, problem)
    source = source_of(rows, config.model_copy(update={"cases": cases}))
    if source.reading.text:
        problem(f"{source.name}: {source.reading.text}")
    reader = ItemReader(source)
    queue = reader.queue(problem)
    total = len(queue)
    if config.order == "random":
        queue, order = shuffled(queue, seed=config.seed), f"in random order (seed {config.seed})"
    elif config.order == "file":
        order = "in the order of the file"
    elif (plan := Path(config.order)).is_file():
        queue, order = in_plan_order(queue, plan, problem), "in the order of the plan"
    else:
        raise OptionError(
            f"--order: expected random, file, or the file of a plan, got {config.order!r}"
        )
    of_rubrics = (code for place in queue for code in place.rubric.codes)
    codes = tuple(dict.fromkeys((*ERROR_CODES, *of_rubrics)))
    rater, adjudication = config.rater, None
    if config.adjudicate:
        rater = rater or ADJUDICATED
        adjudication = compared(
            config.adjudicate, queue, adjudicator=rater, problem=problem, codes=codes
        )
        queue = [place for place in queue if place.key in adjudication.disputed]
    queue = queue[: config.n]
    items = f"{len(queue):,} of {total:,}" if len(queue) < total else f"all {total:,}"
    verdicts = JudgeVerdicts(config.run, [item.key for item in queue]) if config.run else None
    log = LabelLog(config.out, bad=problem, clock=clock, codes=codes)
    if adjudication is not None:
        log.take_over(adjudication.agreed)
        items = f"{len(queue):,} of {total:,}"
        order = f"those on which raters differ, {order}"
        problem(
            f"raters differ on {len(adjudication.disputed):,} items; those on which they agree, "
            f"{len(adjudication.agreed):,}, are copied to {config.out}; "
            f"{adjudication.n_single:,} with a label of one rater alone are left out"
        )
    return LabelService(
        queue=queue,
        reader=reader,
        verdicts=verdicts,
        log=log,
        order=f"{items} items, {order}",
        rater=rater,
        disputed={} if adjudication is None else adjudication.disputed,
    )


def _print_line(text: str) -> None:
    sys.stderr.write(f"{visible(text)}\n")


@takes(config=LabelConfig)
def label(
    config: LabelConfig,
    *,
    problem: Problem = _print_line,
    started: Callable[[str], None] = _print_line,
) -> Labelled:
    """Serves the page on 127.0.0.1 until Ctrl-C, or only imports or exports labels.

    Args:
        config: The settings; options take precedence.
        problem: Called with a line about each row that can't be used; by default it is written to
            standard error.
        started: Called with the address to open, token included; likewise.

    Raises:
        OptionError: If an option is unusable, or another process writes the labels.
        InputError: If a file is unusable.
    """
    service = open_service(config, problem=problem)
    files: tuple[Path, ...] = ()
    try:
        if config.import_label_studio is not None:
            labels = read_annotations(config.import_label_studio, service.queue, problem)
            service.log.take_over(labels)
        if config.export_label_studio is not None:
            folder = config.export_label_studio
            files = export_tasks(folder, service.queue, service.reader, service.log)
        is_conversion = config.import_label_studio or config.export_label_studio
        if service.queue and not is_conversion:
            from .server import serve

            asyncio.run(serve(service, port=config.port, started=started, problem=problem))
        n_complete = {r: service.statuses(r).count("2") for r in service.log.raters}
    finally:
        service.log.close()
    return Labelled(
        total=len(service.queue),
        by_rater={rater: n for rater, n in n_complete.items() if n},
        out=config.out,
        design=None if config.order == "file" else config.order,
        files=files,
    )
