"""``apbjudge execute``: tasks of a benchmark, carried out by tested models."""

from __future__ import annotations

import sys

import typer

from ..agents.environments.execution.config import ExecuteConfig
from ..agents.prediction.config import TestedModelSpec
from ..errors import path_text
from .asking import FAILURES, failed_code
from .options import Values, argument, command, print_files
from .stopping import Stopping, stoppable

BENCHMARK = argument(
    "benchmark",
    "tau2-airline, tau2-retail, tau2-telecom, bfcl, toolsandbox, slate, an installed package's "
    "benchmark, or your own program (.py).",
    str,
    metavar="BENCHMARK",
)


@command(BENCHMARK, TestedModelSpec, ExecuteConfig, Stopping)
def execute(values: Values) -> int:
    """Executes tasks of a benchmark: directly, after planning, or after refining.

    Exit code 0: done; 1: done, but some plans or episodes have no end (failures.jsonl; the same
    command goes on with them); 2: unusable input or options.
    """
    from ..agents.environments.benchmarks import open_hosted
    from ..agents.environments.execution.execute import execute_in, execution_folder
    from ..agents.environments.results_text import execution_text
    from ..agents.prediction.asking import resources_of
    from .progress import Reporter

    name = values["benchmark"]
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
    print_files(out, *sorted(each.name for each in out.iterdir()))
    return failed_code(run.counts, f"an end, see {FAILURES} in the folders of {path_text(out)}")
