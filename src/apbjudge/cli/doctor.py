"""``apbjudge doctor``: checks a model's endpoints, and if a run would work."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from ..judge.config import JudgeSpec, WaitConfig
from .grade import OF_RUNS, GradeOptions
from .options import Values, argument, command
from .tested import function_of, settings_of


@command(
    argument(
        "predictions",
        "Predictions, or cases for --model, to check whether the longest prompt fits.",
        Path | None,
        metavar="ROWS",
    ),
    WaitConfig,
    JudgeSpec,
    GradeOptions,
    *settings_of("doctor"),
    omit=["by", "out", "work", "upload_every"],
    hide=[*OF_RUNS, "overwrite"],
)
def doctor(values: Values) -> int:
    """Checks a model's endpoint: key, model, reply formats, logprobs, pictures, length.

    Exit code 0: a run would work; 1: an endpoint did not answer within --wait; 2: a run would not
    work.
    """
    models = function_of("doctor")(values.get("predictions"), values)
    if not models.all_answer(WaitConfig.of(values).wait, partial(typer.echo, err=True)):
        return 1
    works = True
    for checkup in map(models.check, models.specs):
        works = works and checkup.works
        typer.echo(checkup.text, nl=False)
    typer.echo("a run would work" if works else "a run would not work")
    return 0 if works else 2
