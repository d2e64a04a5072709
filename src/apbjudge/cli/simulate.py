"""``apbjudge simulate``: tested models act in an environment and leave trajectories."""

from __future__ import annotations

from pathlib import Path

from ..agents.environments.config import SimulateConfig
from ..agents.prediction.config import TestedModelSpec
from .asking import asking_command
from .options import Values, argument, command, print_next
from .stopping import Stopping

BENCHMARK = argument(
    "benchmark",
    "File or folder of the benchmark: the data folder of PlanBench-XL, a file of SLATE cases, or "
    "a Python file with your own class: FILE.py, or FILE.py:NAME of several.",
    metavar="BENCHMARK",
)


@command(BENCHMARK, TestedModelSpec, SimulateConfig, Stopping)
def simulate(values: Values) -> int:
    """Lets tested models act in an environment and writes their trajectories.

    Exit code 0: done; 1: done, but some episodes have no end (failures.jsonl; the same command
    goes on with them); 2: unusable input or options.
    """
    from ..agents.environments.simulate import Simulation, simulation_session

    path, config = values["benchmark"], SimulateConfig.of(values)

    def print_grade(run: Simulation) -> None:
        name = run.manifest["identity"]["benchmark"][0]
        is_known = name in ("planbench-xl", "slate")  # these have their own protocols
        how = [name, "--cases", path] if is_known else ["outcome"]
        if any(each.played for each in run.counts.values()):
            print_next("grade", Path(run), "--protocol", *how)

    return asking_command(
        values,
        lambda events: simulation_session(path, config, events=events),
        lacking="an end",
        then=print_grade,
    )
