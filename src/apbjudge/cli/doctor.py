"""``apbjudge doctor``: what a judge's endpoints can do, and whether a run would work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field

from ..config import STATIC, Config, Option
from ..judge.config import JudgeSpec
from ..prediction.config import CasesConfig, PredictConfig
from .grade import GradeOptions, judges_of
from .options import Values, command, take
from .predict import planners_of

if TYPE_CHECKING:
    from ..judge.doctor import Checkup


class Rows(Config):
    """What is to be graded, or asked."""

    predictions: Annotated[Path | None, Option(is_argument=True, metavar="ROWS")] = Field(
        default=None,
        description="Predictions, or cases for --model, to check whether the longest prompt fits.",
    )


class Wait(Config):
    """How long to wait for a server."""

    wait: float | None = Field(
        default=None,
        gt=0,
        description="Seconds to wait for an endpoint that refuses connections or is loading, "
        "before it is checked.",
    )


class Asked(CasesConfig):
    """Whom to check in place of a judge."""

    model: Annotated[tuple[str, ...], Option(metavar="MODEL")] = Field(
        default=(), description="Check this tested model, as predict would ask it, and no judge."
    )


_OF_RUNS = (
    "panel escalate when max_cost max_calls max_tokens max_seconds overwrite batch max_unscored "
    "dry_run fail_under gate junit ci_summary grace allow_unfinished interval n_resamples "
    "bootstrap_seed"
)


@command(Rows, Wait, JudgeSpec, GradeOptions, Asked, omit=["by", "out"], hide=_OF_RUNS.split())
def doctor(values: Values) -> int:
    """Checks a model's endpoint: key, model, reply formats, logprobs, pictures, length.

    Exit code 0: a run would work; 1: an endpoint did not answer within --wait; 2: a run would not
    work.
    """
    from ..judge.doctor import checkup_text
    from ..judge.dry_run import forecast_text

    if not _answers(values, take(Wait, values).wait):
        return 1
    works = True
    for checkup in _tested_models(values) if values.get("model") else _judges(values):
        works = works and checkup.works
        typer.echo(checkup_text(checkup), nl=False)
        if checkup.plan is not None:
            typer.echo(forecast_text(checkup.plan), nl=False)
    typer.echo("a run would work" if works else "a run would not work")
    return 0 if works else 2


def _answers(values: Values, wait_s: float | None) -> bool:
    """Whether every model answers within a time, if there is one."""
    if wait_s is None:
        return True
    from ..judge.doctor import wait_for
    from ..llm.resources import check_access

    models = planners_of(values) if values.get("model") else judges_of(values)
    check_access(models)
    note = partial(typer.echo, err=True)
    return all(wait_for(spec, wait_s, note) for spec in models if spec.model != STATIC)


def _judges(values: Values) -> Iterator[Checkup]:
    from ..judge.doctor import check_up
    from ..llm.resources import check_access
    from ..protocols import AUTO, get_protocol

    config = take(GradeOptions, values, judge=judges_of(values), escalate=None)
    if config.protocol != AUTO:
        get_protocol(config.protocol)
    check_access(config.judge)
    for spec in config.judge:
        yield check_up(spec, take(Rows, values).predictions, config)


def _tested_models(values: Values) -> Iterator[Checkup]:
    from ..judge.doctor import check_model
    from ..llm.resources import Resources, cache_folder, check_access
    from ..prediction.dry_run import forecast_predictions
    from ..prediction.session import session_of
    from ..runs.loop import QUIET

    rows, folder = take(Rows, values).predictions, cache_folder(wanted=None, client=None)
    models = planners_of(values)
    check_access(models)
    for spec in models:
        plan = None
        if rows is not None:
            config = take(PredictConfig, values, model=spec)
            with TemporaryDirectory() as scratch:
                session = session_of(rows, config, Resources(cache=folder), QUIET)
                (plan,) = forecast_predictions(replace(session, folder=Path(scratch)))
        yield check_model(spec, plan, folder=folder)
