"""``apbjudge block-plan``: which tools are blocked in the tasks of PlanBench-XL."""

from __future__ import annotations

from pathlib import Path

import click
from pydantic import Field

from ..config import Config
from ..environments.planbench.config import BlockPlanConfig
from .options import Output, Values, command, json_text, shown, take


class PlanOutput(Config):
    """Where the plan goes."""

    out: Path | None = Field(default=None, description="File for the plan.")


@command(BlockPlanConfig, PlanOutput, Output)
def block_plan(values: Values) -> int:
    """Chooses the tools that are blocked in each task of PlanBench-XL.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..environments.planbench.blocking import block_plan as choose
    from ..reports.planbench import block_plan_text

    out = take(PlanOutput, values).out
    plan = choose(take(BlockPlanConfig, values), out=out)
    if take(Output, values).format == "json":
        click.echo(json_text(plan.to_json()))
    else:
        click.echo(block_plan_text(plan), nl=False)
    if out is not None:
        click.echo(f"written: {shown(out)}", err=True)
    return 0
