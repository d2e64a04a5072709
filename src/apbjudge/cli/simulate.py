"""``apbjudge simulate``: a world and tested models to trajectories."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..agents.environments.config import SimulateConfig
from ..agents.prediction.config import PlannerSpec
from ..config import Config, Option
from ..errors import path_text
from .options import Values, command, print_next
from .predict import FAILURES, failed_code
from .stopping import Stopping, stoppable

FILES = "trajectories.jsonl failures.jsonl manifest.json superseded.jsonl damaged.txt".split()


class WorldArgument(Config):
    """Where episodes take place."""

    world_path: Annotated[Path, Option(is_argument=True, metavar="WORLD")] = Field(
        description="File or folder of the world, such as the data folder of PlanBench-XL, or a "
        "Python file with a class of one's own: FILE.py, or FILE.py:NAME of several."
    )


@command(WorldArgument, PlannerSpec, SimulateConfig, Stopping)
def simulate(values: Values) -> int:
    """Lets tested models act in a world and writes their runs, as grade takes them.

    Exit code 0: done; 1: done, but some episodes have no end (failures.jsonl; the same command
    goes on with them); 2: unusable input or options.
    """
    from ..agents.environments.results_text import simulation_text
    from ..agents.environments.simulate import simulate_in, simulation_session
    from .progress import Reporter

    path = WorldArgument.of(values).world_path
    config = SimulateConfig.of(values)
    reporter = Reporter(sys.stderr)
    session = simulation_session(path, config, events=reporter.events())
    out = session.folder
    with stoppable(values, out), reporter:
        run = simulate_in(session)
    typer.echo(simulation_text(run.counts), nl=False)
    typer.echo(f"\n{path_text(out)}/: {' '.join(name for name in FILES if (out / name).exists())}")
    name = session.identity["world"][0]
    is_known = name == "planbench-xl"  # which has a protocol of its own
    how = [name, "--cases", path] if is_known else ["outcome"]
    if any(each.played for each in run.counts.values()):
        print_next("grade", out / FILES[0], "--protocol", *how)
    return failed_code(run.counts.values(), f"an end, see {path_text(out / FAILURES)}")
