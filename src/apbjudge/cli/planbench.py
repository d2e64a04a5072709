"""``apbjudge planbench``: the paths of PlanBench-XL's tasks, and which tools are blocked."""

from __future__ import annotations

import typer

from ..agents.environments.planbench.config import BlockPlanConfig, PathsConfig
from .options import Output, Values, command, json_text, print_written


@command(PathsConfig, Output)
def paths(values: Values) -> int:
    """Enumerates the smallest sets of tools that solve tasks of PlanBench-XL.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..agents.environments.planbench.paths import planbench_paths
    from ..agents.environments.planbench.results_text import paths_text

    report = planbench_paths(PathsConfig.of(values))
    is_json = Output.of(values).format == "json"
    typer.echo(json_text(report.to_json()) + "\n" if is_json else paths_text(report), nl=False)
    return 0


@command(BlockPlanConfig, Output)
def block_plan(values: Values) -> int:
    """Chooses the tools that are blocked in each task of PlanBench-XL.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..agents.environments.planbench.blocking import planbench_block_plan
    from ..agents.environments.planbench.results_text import block_plan_text

    plan = planbench_block_plan(config := BlockPlanConfig.of(values))
    is_json = Output.of(values).format == "json"
    typer.echo(json_text(plan.to_json()) + "\n" if is_json else block_plan_text(plan), nl=False)
    if config.out is not None:
        print_written(config.out)
    return 0
