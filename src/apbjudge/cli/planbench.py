"""``apbjudge planbench``: paths and blocked tools of its tasks; generated benchmarks, checks."""

from __future__ import annotations

import typer

from ..agents.environments.planbench.config import (
    BlockPlanConfig,
    DataCheckConfig,
    GenerateConfig,
    PathsConfig,
)
from ..errors import path_text
from .options import Output, Values, command, json_text, print_result, print_written


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


@command(GenerateConfig, Output)
def generate(values: Values) -> int:
    """Generates tools, records, tasks and queries in the layout of PlanBench-XL.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..agents.environments.planbench.generation.generate import FILES, planbench_generate
    from ..agents.environments.planbench.generation.results_text import generated_document

    result = planbench_generate(config := GenerateConfig.of(values))
    print_result(result, generated_document, Output.of(values).format)
    typer.echo(f"{path_text(config.out)}/: {' '.join(FILES)}", err=True)
    return 0


@command(DataCheckConfig, Output)
def check(values: Values) -> int:
    """Holds data of PlanBench-XL against the rules by which it is made.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..agents.environments.planbench.generation.checks import planbench_check
    from ..agents.environments.planbench.generation.results_text import check_document

    result = planbench_check(DataCheckConfig.of(values))
    print_result(result, check_document, Output.of(values).format)
    return 0
