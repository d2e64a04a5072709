"""``apbjudge batch``: a file of requests out, a file of answers in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..agents.prediction.config import PredictConfig
from ..config import Config, Option
from ..errors import visible
from ..judge.config import JudgeSpec
from .grade import GradeOptions
from .options import Values, command


class BatchRows(Config):
    """Input of ``batch``."""

    rows: Annotated[Path, Option(is_argument=True)] = Field(
        description="Predictions for a judge, or cases for a tested model."
    )


class Requests(Config):
    """Files for the requests."""

    out: Path = Field(description="File for the requests.")
    model: Annotated[tuple[str, ...], Option(metavar="MODEL")] = Field(
        default=(),
        description="The tested model whose requests for predictions are written, MODEL or "
        "MODEL@ADDRESS; without it those of --judge.",
    )


class Answers(Config):
    """Files of the answers."""

    answers: Annotated[Path, Option(is_argument=True)] = Field(
        description="File of answers, as vllm run-batch writes it."
    )


_OF_RUNS = (
    "panel escalate when max_cost max_calls max_tokens max_seconds batch max_unscored dry_run "
    "fail_under gate junit ci_summary full grace allow_unfinished interval n_resamples "
    "bootstrap_seed"
)


@command(
    BatchRows, JudgeSpec, GradeOptions, PredictConfig, Requests, omit=["by"], hide=_OF_RUNS.split()
)
def export(values: Values) -> int:
    """Writes the unanswered requests, one a line, in the OpenAI batch format."""
    from ..agents.prediction.batching import export as write
    from ..judge.summary import unseen_lines

    out = Requests.of(values).out
    done = write(BatchRows.of(values).rows, values)
    typer.echo(
        f"{visible(str(out))}: {done.lines} requests, {done.bytes} bytes; {done.known} rows are "
        f"answered already, {done.bad_rows} rows are unusable"
    )
    for line in unseen_lines(done.unseen):
        typer.echo(line)
    return 0


@command(Answers)
def import_(values: Values) -> int:
    """Adds answers to the reply cache, where grade or predict finds them.

    Exit code 0: done; 1: done, but some answers failed or are unreadable; 2: unusable input.
    """
    from ..runs.batching import batch_import

    done = batch_import(Answers.of(values).answers)
    for complaint in done.unreadable:
        typer.echo(complaint, err=True)
    bad = len(done.unreadable)
    typer.echo(f"{done.taken} replies taken, {done.failed} failed, {bad} lines unreadable")
    return 1 if done.failed or bad else 0
