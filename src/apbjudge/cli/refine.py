"""``apbjudge refine``: turns drafts into final answers."""

from __future__ import annotations

from ..agents.prediction.config import RefineConfig, TestedModelSpec
from .asking import asking_command
from .options import Values, argument, command
from .predict import print_grade
from .stopping import Stopping

DRAFTS = argument(
    "drafts",
    "Folder of a run of predict, or a JSONL file of predictions.",
)


@command(DRAFTS, TestedModelSpec, RefineConfig, Stopping)
def refine(values: Values) -> int:
    """Reviews drafts, and has the tested models that wrote them rewrite them.

    Settings of models are those of the critic, and of tested models that are named with --model;
    the others are asked as the run asked them.

    Exit code 0: done; 1: done, but some drafts have no final answer (failures.jsonl; the same
    command tries them again); 2: unusable input or options.
    """
    from ..agents.prediction.asking import carry_out_alone, resources_of
    from ..agents.prediction.refine import refine_session

    drafts, config = values["drafts"], RefineConfig.of(values)
    return asking_command(
        values,
        lambda events: refine_session(drafts, config, resources_of(config, None, events), events),
        carry_out=carry_out_alone,
        lacking="a prediction",
        then=print_grade,
    )
