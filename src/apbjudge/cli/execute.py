"""``apbjudge execute``: tasks of a suite, carried out by tested models."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from pydantic import Field

from ..agents.environments.execution.config import ExecuteConfig
from ..agents.prediction.config import PlannerSpec
from ..config import Config, Option
from ..errors import path_text
from .options import Values, command
from .predict import FAILURES, failed_code
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
    from ..agents.environments.execution.execute import default_folder, execute_in
    from ..agents.environments.execution.suites import open_suite
    from ..agents.environments.results_text import execution_text
    from ..llm.resources import shared_resources
    from .progress import Reporter

    name = SuiteArgument.of(values).env
    config = ExecuteConfig.of(values)
    reporter = Reporter(sys.stderr)
    resources = shared_resources(client=None, limits=config, cache=config.cache, warn=reporter.note)
    out = config.out or default_folder(name, config)
    with (
        stoppable(values, out),
        open_suite(name, config.named_options, config, reporter.note) as suite,
        reporter,
    ):
        run = execute_in(suite, config, out, resources, reporter.events())
    typer.echo(execution_text(run), nl=False)
    typer.echo(f"\n{path_text(out)}/: {' '.join(sorted(each.name for each in out.iterdir()))}")
    return failed_code(run.counts, f"an end, see {FAILURES} in the folders of {path_text(out)}")
