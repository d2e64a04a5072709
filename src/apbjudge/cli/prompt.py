"""``apbjudge prompt``: what a judge, or a tested model, would get for an item."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..config import Config, Option
from ..judge.config import NOT_IN_PROMPTS, ItemConfig, JudgeSpec
from .options import Values, command
from .tested import function_of, settings_of


class PromptRows(Config):
    """Source of the item."""

    rows: Annotated[Path, Option(is_argument=True, is_log=True)] = Field(
        description="Predictions, as for grade, or a log, of whose steps one is meant; with "
        "--predict, cases."
    )


@command(PromptRows, ItemConfig, *settings_of("prompt"), JudgeSpec, omit=NOT_IN_PROMPTS)
def prompt(values: Values) -> int:
    """Prints what a judge would get for an item, or a tested model for a case."""
    from ..runs.loop import QUIET

    events = replace(QUIET, note=partial(typer.echo, err=True))
    rows = PromptRows.of(values).rows
    for sent in function_of("prompt")(**values | {"rows": rows}, events=events):
        typer.echo(sent.text, nl=False)
    return 0
