"""``apbjudge prompt``: the prompt that a judge or a tested model would get."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import typer

from ..judge.config import NOT_IN_PROMPTS, ItemConfig, JudgeSpec
from .options import Values, argument, command
from .tested import function_of, settings_of

ROWS = argument(
    "rows",
    "Predictions, as for grade, or a log, one of whose steps is shown; with --predict, cases.",
    is_log=True,
)


@command(ROWS, ItemConfig, *settings_of("prompt"), JudgeSpec, omit=NOT_IN_PROMPTS)
def prompt(values: Values) -> int:
    """Prints the prompt of a judge for an item, or of a tested model for a case."""
    from ..runs.loop import QUIET

    events = replace(QUIET, note=partial(typer.echo, err=True))
    for sent in function_of("prompt")(**values, events=events):
        typer.echo(sent.text, nl=False)
    return 0
