"""``apbjudge doctor``: what a judge's endpoints can do, and whether a run would work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
from pydantic import Field

from ..config import Config, Option
from ..judge.config import JudgeSpec
from .grade import GradeOptions, judges_of
from .options import Values, command, take


class Rows(Config):
    """What is to be graded."""

    predictions: Annotated[Path | None, Option(is_argument=True)] = Field(
        default=None, description="Predictions, to check whether the longest prompt fits."
    )


_OF_RUNS = (
    "panel escalate when max_cost max_calls max_tokens max_seconds overwrite batch max_unscored "
    "dry_run fail_under gate junit ci_summary"
)


@command(Rows, GradeOptions, JudgeSpec, omit=["model", "by", "out"], hide=_OF_RUNS.split())
def doctor(values: Values) -> int:
    """Checks a judge's endpoint: key, model, reply formats, logprobs, pictures, length.

    Exit code 0: a run would work; 2: it would not.
    """
    from ..judge.doctor import check_up, checkup_text
    from ..judge.dry_run import forecast_text
    from ..protocols import AUTO, get_protocol

    config = take(GradeOptions, values, judge=judges_of(values), escalate=None)
    if config.protocol != AUTO:
        get_protocol(config.protocol)
    works = True
    for spec in config.judge:
        checkup = check_up(spec, take(Rows, values).predictions, config)
        works = works and checkup.works
        click.echo(checkup_text(checkup), nl=False)
        if checkup.plan is not None:
            click.echo(forecast_text(checkup.plan), nl=False)
    click.echo("a run would work" if works else "a run would not work")
    return 0 if works else 2
