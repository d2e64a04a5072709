"""``apbjudge doctor``: what a judge's endpoints can do, and whether a run would work."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..agents.prediction.config import CasesConfig, WaitConfig
from ..config import Config, Option
from ..judge.config import JudgeSpec
from .grade import GradeOptions
from .options import Values, command


class DoctorRows(Config):
    """Input of ``doctor``."""

    predictions: Annotated[Path | None, Option(is_argument=True, metavar="ROWS")] = Field(
        default=None,
        description="Predictions, or cases for --model, to check whether the longest prompt fits.",
    )


class CheckedModel(CasesConfig):
    """Whom to check in place of a judge."""

    model: Annotated[tuple[str, ...], Option(metavar="MODEL")] = Field(
        default=(), description="Check this tested model, as predict would ask it, and no judge."
    )


_OF_RUNS = (
    "panel escalate when max_cost max_calls max_tokens max_seconds overwrite batch max_unscored "
    "dry_run fail_under gate junit ci_summary grace allow_unfinished interval n_resamples "
    "bootstrap_seed"
)


@command(
    DoctorRows,
    WaitConfig,
    JudgeSpec,
    GradeOptions,
    CheckedModel,
    omit=["by", "out"],
    hide=_OF_RUNS.split(),
)
def doctor(values: Values) -> int:
    """Checks a model's endpoint: key, model, reply formats, logprobs, pictures, length.

    Exit code 0: a run would work; 1: an endpoint did not answer within --wait; 2: a run would not
    work.
    """
    from ..agents.prediction.doctor import check_ups, wait_for_all

    if not wait_for_all(values, partial(typer.echo, err=True)):
        return 1
    works = True
    for checkup in check_ups(DoctorRows.of(values).predictions, values):
        works = works and checkup.works
        typer.echo(checkup.text, nl=False)
    typer.echo("a run would work" if works else "a run would not work")
    return 0 if works else 2
