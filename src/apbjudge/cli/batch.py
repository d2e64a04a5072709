"""The batch commands: a file of requests out, a file of answers in."""

from __future__ import annotations

from pathlib import Path

import typer

from ..errors import OptionError, visible
from ..judge.batching import export_requests, import_answers
from .grading import GradeOptions, read_settings


def run_export(options: GradeOptions, out: Path) -> None:
    """Writes the file and says what is in it.

    Raises:
        UsageError: If options or input are unusable.
    """
    settings, specs = read_settings(options)
    if settings.no_cache or len(specs) > 1:
        raise OptionError("batch export: expected one judge, and its reply cache on")
    done = export_requests(
        options.predictions,
        out,
        protocol=options.protocol,
        judge=specs[0],
        cases=options.cases,
        rubric=options.rubric,
        data_root=settings.data_root,
        overwrite=settings.overwrite,
    )
    typer.echo(
        f"{visible(str(out))}: {done.lines} requests, {done.bytes} bytes; {done.known} rows are "
        f"answered already, {done.bad_rows} rows are unusable"
    )


def run_import(answers: Path) -> int:
    """Reads the file, says what was in it, and returns the exit code.

    Raises:
        UsageError: If the file can't be read.
    """
    done = import_answers(answers)
    for complaint in done.unreadable:
        typer.echo(complaint, err=True)
    bad = len(done.unreadable)
    typer.echo(f"{done.taken} replies taken, {done.failed} failed, {bad} lines unreadable")
    return 1 if done.failed or bad else 0
