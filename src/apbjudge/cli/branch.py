"""``apbjudge branch``: executes given plans, with branches where the model is uncertain."""

from __future__ import annotations

from pathlib import Path

from ..agents.environments.branching.config import BranchRunConfig
from ..agents.prediction.config import TestedModelSpec
from .asking import asking_command
from .options import Values, argument, command, print_next
from .stopping import Stopping

CASES = argument(
    "cases",
    "JSONL file of SLATE cases: plans with tools and recorded outputs.",
)


@command(CASES, TestedModelSpec, BranchRunConfig, Stopping)
def branch(values: Values) -> int:
    """Lets tested models execute given plans, and branches where they are uncertain.

    Exit code 0: done; 1: done, but some cases have no result (failures.jsonl; the same command
    tries them again); 2: unusable input or options.
    """
    from ..agents.environments.branching.run import branch_session

    cases = values["cases"]

    def run(config: BranchRunConfig) -> int:
        return asking_command(
            values,
            lambda events: branch_session(cases, config, events=events),
            lacking="a result",
            then=lambda run: print_next(
                "grade", Path(run), "--protocol", "slate", "--cases", cases
            ),
        )

    return max(map(run, BranchRunConfig.of(values).swept))
