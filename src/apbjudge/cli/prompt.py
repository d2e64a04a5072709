"""``apbjudge prompt``: what a judge would get for an item."""

from __future__ import annotations

from typing import Annotated

import click
from pydantic import Field

from ..config import Option
from ..errors import visible
from ..judge.config import InputConfig, JudgeSpec
from .grade import Predictions
from .options import Values, command, take


class PromptOptions(InputConfig):
    """Which prompt."""

    item_id: Annotated[str, Option("--id")] = Field(description="Id of the item.")
    tested_model: str | None = Field(
        default=None, description="Only this tested model's prediction."
    )


_SHOWN = {"blind", "evidence", "images"}


@command(
    Predictions,
    PromptOptions,
    JudgeSpec,
    omit=[name for name in JudgeSpec.model_fields if name not in _SHOWN],
)
def prompt(values: Values) -> int:
    """Prints what a judge would get for an item."""
    from ..judge.prompts import prompts_for

    spec = take(
        JudgeSpec, values, model="prompt", vision="yes" if values.get("images", True) else "no"
    )
    options = take(PromptOptions, values)
    for task, sent in prompts_for(
        take(Predictions, values).predictions,
        options,
        item_id=options.item_id,
        tested_model=options.tested_model,
        spec=spec,
    ):
        name = visible(f"{task.item.item_id} / {task.item.tested_model}")
        click.echo(f"===== {name}: system =====\n{sent.system}")
        click.echo(f"===== user =====\n{sent.case}")
        for image in sent.images:
            click.echo(f"[picture {visible(image.path)}, {len(image.url)} characters as data URL]")
        click.echo(f"\n{sent.prediction}")
    return 0
