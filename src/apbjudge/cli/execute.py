"""``apbjudge execute``: tasks of a suite, carried out by tested models."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from pydantic import Field

from ..config import Config, Option
from ..environments.execution.config import ExecuteConfig
from ..errors import path_text
from ..prediction.config import PlannerSpec
from .asking import FAILURES, failed_code, resources_of
from .options import Values, command
from .stopping import Stopping, stoppable


class SuiteArgument(Config):
    """What is carried out."""

    env: Annotated[str, Option(is_argument=True, metavar="ENV")] = Field(
        description="tau2-airline, tau2-retail, tau2-telecom, bfcl, toolsandbox, an installed "
        "package's suite, or the program of one's own (.py)."
    )


@command(SuiteArgument, PlannerSpec, ExecuteConfig, Stopping)
def execute(values: Values) -> int:
    """Carries out the tasks of a suite: directly, after planning, after refining.

    Exit code 0: done; 1: done, but some plans or episodes have no end (failures.jsonl; the same
    command goes on with them); 2: unusable input or options.
    """
    from ..environments.execution.execute import default_folder, execute_in
    from ..environments.execution.suites import open_suite
    from ..environments.results_text import execution_text
    from .progress import Reporter

    name = SuiteArgument.of(values).env
    config = ExecuteConfig.of(values)
    reporter = Reporter(sys.stderr)
    events = reporter.events()
    resources = resources_of(config, events)
    out = config.out or default_folder(name, config)
    with (
        stoppable(values, out),
        open_suite(name, config.named_options, config, reporter.note) as suite,
        reporter,
    ):
        run = execute_in(suite, config, out, resources, events)
    typer.echo(execution_text(run), nl=False)
    typer.echo(f"\n{path_text(out)}/: {' '.join(sorted(each.name for each in out.iterdir()))}")
    return failed_code(run.counts, f"an end, see {FAILURES} in the folders of {path_text(out)}")
