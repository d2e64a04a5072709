"""``apbjudge plan-labels``: which rows to label next."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ..calibration.config import LabelPlanConfig
from ..config import Config
from .options import Output, Values, command, print_result, take


class PlanFile(Config):
    """Where the plan goes."""

    out: Path | None = Field(default=None, description="File for the plan.")


@command(LabelPlanConfig, PlanFile, Output)
def plan_labels(values: Values) -> int:
    """Prints how many labels are needed and samples the rows to label next.

    Exit code 0: done; 1: done, but some rows of the files were unusable; 2: unusable input.
    """
    from ..calibration.label_plan import plan_labels as plan
    from ..reports.label_plan import label_plan_document

    config, output = take(LabelPlanConfig, values), take(Output, values)
    return print_result(plan(config, out=take(PlanFile, values).out), label_plan_document, output)
