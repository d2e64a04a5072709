"""``apbjudge plan-labels``: number and sample of the rows to label next."""

from __future__ import annotations

from ..calibration.config import LabelPlanConfig
from .options import Output, Values, command, print_problems, print_result


@command(LabelPlanConfig, Output)
def plan_labels(values: Values) -> int:
    """Prints how many labels are needed and samples the rows to label next.

    Exit code 0: done; 1: done, but some rows of the files were unusable; 2: unusable input.
    """
    from ..calibration.label_plan import plan_labels as plan
    from ..calibration.label_plan_text import label_plan_document

    result = plan(LabelPlanConfig.of(values))
    print_result(result, label_plan_document, Output.of(values).format)
    return print_problems(result.problems)
