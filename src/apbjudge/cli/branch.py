"""``apbjudge branch``: cases with plans to runs that were branched where the model is uncertain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from ..agents.environments.branching.config import BranchRunConfig
from ..agents.prediction.config import TestedModelSpec
from ..config import Config, Option
from .asking import asking_command
from .options import Values, command, print_next
from .stopping import Stopping


class PlansArgument(Config):
    """Input of ``branch``."""

    cases: Annotated[Path, Option(is_argument=True)] = Field(
        description="JSONL file of SLATE cases: plans with tools and recorded outputs."
    )


@command(PlansArgument, TestedModelSpec, BranchRunConfig, Stopping)
def branch(values: Values) -> int:
    """Lets tested models carry out given plans, and branches where uncertain.

    Exit code 0: done; 1: done, but some cases have no result (failures.jsonl; the same command
    tries them again); 2: unusable input or options.
    """
    from ..agents.environments.branching.run import branch_session
    from ..agents.prediction.asking import carry_out_alone

    cases, config = PlansArgument.of(values).cases, BranchRunConfig.of(values)
    return asking_command(
        values,
        lambda events: branch_session(cases, config, events=events),
        carry_out=carry_out_alone,
        lacking="a result",
        then=lambda run: print_next("grade", Path(run), "--protocol", "slate", "--cases", cases),
    )
