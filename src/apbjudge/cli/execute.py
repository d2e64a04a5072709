"""``apbjudge execute``: tasks of a benchmark, carried out by tested models."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from pydantic import Field

from ..agents.environments.execution.config import ExecuteConfig
from ..agents.prediction.config import TestedModelSpec
from ..config import Config, Option
from ..errors import path_text
from .asking import FAILURES, failed_code
from .options import Values, command
from .stopping import Stopping, stoppable


class BenchmarkArgument(Config):
    """Input of ``execute``."""

    benchmark: Annotated[str, Option(is_argument=True, metavar="BENCHMARK")] = Field(
        description="tau2-airline, tau2-retail, tau2-telecom, bfcl, toolsandbox, slate, an "
        "installed package's benchmark, or the program of one's own (.py)."
    )


@command(BenchmarkArgument, TestedModelSpec, ExecuteConfig, Stopping)
def execute(values: Values) -> int:
    """Carries out tasks of a benchmark: directly, after planning, after refining.

    Exit code 0: done; 1: done, but some plans or episodes have no end (failures.jsonl; the same
    command goes on with them); 2: unusable input or options.
    """
    from ..agents.environments.benchmarks import open_hosted
    from ..agents.environments.execution.execute import execute_in, execution_folder
    from ..agents.environments.results_text import execution_text
    from ..agents.prediction.asking import resources_of
    from .progress import Reporter

    name = BenchmarkArgument.of(values).benchmark
    config = ExecuteConfig.of(values)
    reporter = Reporter(sys.stderr)
    events = reporter.events()
    resources = resources_of(config, None, events)
    out = config.out or execution_folder(name, config)
    with (
        stoppable(values, out),
        open_hosted(name, config.named_options, config, reporter.note) as benchmark,
        reporter,
    ):
        run = execute_in(benchmark, config, out, resources, events)
    typer.echo(execution_text(run), nl=False)
    typer.echo(f"\n{path_text(out)}/: {' '.join(sorted(each.name for each in out.iterdir()))}")
    return failed_code(run.counts, f"an end, see {FAILURES} in the folders of {path_text(out)}")
