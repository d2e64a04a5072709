"""``apbjudge planbench``: paths and blocked tools of its tasks; generated benchmarks, checks."""

from __future__ import annotations

import sys

import typer

from ..agents.environments.planbench.config import (
    BlockPlanConfig,
    DataCheckConfig,
    GenerateConfig,
    PathsConfig,
    TextsConfig,
)
from ..agents.prediction.config import OF_FILES, TestedModelSpec
from ..errors import path_text
from .asking import failed_code
from .options import Output, Values, command, json_text, print_result, print_written
from .stopping import Stopping, stoppable


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


@command(TestedModelSpec, TextsConfig, GenerateConfig, Stopping, Output, omit=OF_FILES)
def generate(values: Values) -> int:
    """Generates tools, records, tasks and queries in the layout of PlanBench-XL.

    Exit code 0: done; 1: done, but requested texts are missing (the same command
    tries them again); 2: unusable input or options.
    """
    from ..agents.environments.planbench.generation.generate import planbench_generate
    from ..agents.environments.planbench.generation.results_text import generated_document
    from ..agents.prediction.results_text import failed_lines
    from .progress import Reporter

    config, texts = GenerateConfig.of(values), TextsConfig.of(values)
    reporter = Reporter(sys.stderr)
    with stoppable(values, config.out), reporter:
        result = planbench_generate(config=config, texts=texts, events=reporter.events())
    print_result(result, generated_document, Output.of(values).format)
    typer.echo(f"{path_text(config.out)}/: {' '.join(result.files)}", err=True)
    counts = {kind: count for run in result.writing.values() for kind, count in run.counts.items()}
    for line in failed_lines(counts):
        typer.echo(line, err=True)
    return failed_code(counts.values(), "the text asked for")


@command(DataCheckConfig, Output)
def check(values: Values) -> int:
    """Checks data of PlanBench-XL against the rules that generate it.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..agents.environments.planbench.generation.checks import planbench_check
    from ..agents.environments.planbench.generation.results_text import check_document

    result = planbench_check(DataCheckConfig.of(values))
    print_result(result, check_document, Output.of(values).format)
    return 0
