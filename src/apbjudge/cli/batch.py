"""``apbjudge batch``: a file of requests out, a file of answers in."""

from __future__ import annotations

from pathlib import Path

import typer
from pydantic import Field

from ..config import Config
from ..errors import visible
from ..judge.config import JudgeSpec
from .grade import OF_RUNS, GradeOptions
from .options import Values, argument, command
from .tested import function_of, settings_of


class Requests(Config):
    """Files for the requests."""

    out: Path = Field(description="File for the requests.")


@command(
    argument("rows", "Predictions for a judge, or cases for a tested model."),
    JudgeSpec,
    GradeOptions,
    *settings_of("batch export"),
    Requests,
    omit=["by", "work", "upload_every"],
    hide=OF_RUNS,
)
def export(values: Values) -> int:
    """Writes the unanswered requests, one a line, in the OpenAI batch format."""
    from ..judge.summary import unseen_lines

    out = Requests.of(values).out
    done = function_of("batch export")(values["rows"], values)
    typer.echo(
        f"{visible(str(out))}: {done.lines} requests, {done.bytes} bytes; {done.known} rows are "
        f"answered already, {done.bad_rows} rows are unusable"
    )
    for line in unseen_lines(done.unseen):
        typer.echo(line)
    return 0


@command(argument("answers", "File of answers that vllm run-batch wrote."))
def import_(values: Values) -> int:
    """Adds answers to the reply cache, from which grade or predict takes them.

    Exit code 0: done; 1: done, but some answers failed or are unreadable; 2: unusable input.
    """
    from ..runs.batch_files import batch_import

    done = batch_import(values["answers"])
    for complaint in done.unreadable:
        typer.echo(complaint, err=True)
    bad = len(done.unreadable)
    typer.echo(f"{done.taken} replies taken, {done.failed} failed, {bad} lines unreadable")
    return 1 if done.failed or bad else 0
