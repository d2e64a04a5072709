"""``apbjudge prompt``: what a judge, or a tested model, would get for an item."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..agents.prediction.config import NOT_IN_PROMPTS, PromptConfig
from ..config import Config, Option
from ..judge.config import JudgeSpec
from .options import Values, command


class PromptRows(Config):
    """Source of the item."""

    rows: Annotated[Path, Option(is_argument=True, is_log=True)] = Field(
        description="Predictions, as for grade, or a log, of whose steps one is meant; with "
        "--predict, cases."
    )


@command(PromptRows, PromptConfig, JudgeSpec, omit=NOT_IN_PROMPTS)
def prompt(values: Values) -> int:
    """Prints what a judge would get for an item, or a tested model for a case."""
    from ..agents.prediction.prompt import prompt as prompts_of
    from ..runs.loop import QUIET

    events = replace(QUIET, note=partial(typer.echo, err=True))
    judge = JudgeSpec.of({name: values[name] for name in values if name not in NOT_IN_PROMPTS})
    config = PromptConfig.of(values)
    for sent in prompts_of(PromptRows.of(values).rows, config, judge=judge, events=events):
        typer.echo(sent.text, nl=False)
    return 0
