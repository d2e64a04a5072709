"""``apbjudge prompt``: what a judge, or a tested model, would get for an item."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import typer
from pydantic import Field

from ..config import Config, Option
from ..errors import visible
from ..judge.config import InputConfig, JudgeSpec
from ..prediction.config import CasesConfig
from .options import Values, command, take


class Rows(Config):
    """Where the item is."""

    rows: Annotated[Path, Option(is_argument=True, is_log=True)] = Field(
        description="Predictions, as for grade, or a log, of whose steps one is meant; with "
        "--predict, cases."
    )


class PromptOptions(InputConfig, CasesConfig):
    """Which prompt."""

    groups: ClassVar[Mapping[str, str]] = {"Rows": "map data_split tools"}

    item_id: Annotated[str, Option("--id")] = Field(description="Id of the item.")
    tested_model: str = Field(default="", description="Only this tested model's prediction.")
    predict: bool = Field(
        default=False, description="Print what a tested model would get for the case."
    )


_SHOWN = {"blind", "evidence", "images"}


@command(
    Rows,
    PromptOptions,
    JudgeSpec,
    omit=[name for name in JudgeSpec.model_fields if name not in _SHOWN],
)
def prompt(values: Values) -> int:
    """Prints what a judge would get for an item, or a tested model for a case."""
    options, rows = take(PromptOptions, values), take(Rows, values).rows
    if options.predict:
        return _of_tested_model(rows, options)
    from ..judge.llm_judge import prompts_for

    spec = take(
        JudgeSpec, values, model="prompt", vision="yes" if values.get("images", True) else "no"
    )
    for task, sent in prompts_for(
        rows,
        take(InputConfig, values),
        item_id=options.item_id,
        tested_model=options.tested_model or None,
        spec=spec,
    ):
        name = visible(f"{task.item.item_id} / {task.item.tested_model}")
        typer.echo(f"===== {name}: system =====\n{sent.system}")
        typer.echo("===== user =====")
        for part in sent.parts:
            if isinstance(part, str):
                typer.echo(part)
            else:
                size = len(part.url)
                typer.echo(f"[picture {visible(part.path)}, {size} characters as data URL]")
    return 0


def _of_tested_model(rows: Path, options: PromptOptions) -> int:
    from ..prediction.session import case_source
    from ..prediction.source import case_prompt

    source = case_source(rows, options, note=partial(typer.echo, err=True))
    sent = case_prompt(source, options.item_id, options.prompts)
    typer.echo(f"===== {visible(options.item_id)}: system =====\n{sent.system}")
    typer.echo("===== user =====")
    for part in sent.parts:
        is_text = isinstance(part, str)
        typer.echo(part if is_text else f"[picture {visible(part.path)}]", nl=not is_text)
    typer.echo()
    return 0
