"""``apbjudge planbench``: the paths of PlanBench-XL's tasks, and which tools are blocked."""

from __future__ import annotations

from pathlib import Path

import typer
from pydantic import Field

from ..config import Config
from ..environments.planbench.config import BlockPlanConfig, PathsConfig
from .options import Output, Values, command, json_text, shown, take


@command(PathsConfig, Output)
def paths(values: Values) -> int:
    """Enumerates the smallest sets of tools that solve tasks of PlanBench-XL.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..environments.planbench.paths import paths as enumerate_paths
    from ..reports.planbench import paths_text

    report = enumerate_paths(take(PathsConfig, values))
    if take(Output, values).format == "json":
        typer.echo(json_text(report.to_json()))
    else:
        typer.echo(paths_text(report), nl=False)
    return 0


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
        typer.echo(json_text(plan.to_json()))
    else:
        typer.echo(block_plan_text(plan), nl=False)
    if out is not None:
        typer.echo(f"written: {shown(out)}", err=True)
    return 0
