"""``apbjudge branch``: cases with plans to runs that were branched where the model doubts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..agents.environments.branching.config import BranchRunConfig
from ..agents.prediction.config import PlannerSpec
from ..config import Config, Option
from ..errors import path_text
from .options import Values, command, print_next
from .predict import FAILURES, failed_code
from .stopping import Stopping, stoppable

FILES = (
    "trajectories.jsonl branched.jsonl failures.jsonl manifest.json superseded.jsonl damaged.txt"
)


class PlansArgument(Config):
    """What is carried out."""

    cases: Annotated[Path, Option(is_argument=True)] = Field(
        description="JSONL file of SLATE cases: plans with tools and recorded outputs."
    )


@command(PlansArgument, PlannerSpec, BranchRunConfig, Stopping)
def branch(values: Values) -> int:
    """Lets tested models carry out given plans, and branches where they doubt.

    Exit code 0: done; 1: done, but some cases have no result (failures.jsonl; the same command
    tries them again); 2: unusable input or options.
    """
    from ..agents.environments.branching.run import branch_in, branch_session
    from ..agents.environments.results_text import branching_text
    from .progress import Reporter

    cases = PlansArgument.of(values).cases
    config = BranchRunConfig.of(values)
    reporter = Reporter(sys.stderr)
    session = branch_session(cases, config, events=reporter.events())
    out = session.folder
    with stoppable(values, out), reporter:
        run = branch_in(session)
    typer.echo(branching_text(run.counts), nl=False)
    files = [name for name in FILES.split() if (out / name).exists()]
    typer.echo(f"\n{path_text(out)}/: {' '.join(files)}")
    print_next("grade", out / "trajectories.jsonl", "--protocol", "slate", "--cases", cases)
    return failed_code(run.counts.values(), f"a result, see {path_text(out / FAILURES)}")
