"""The plan-labels command: one library call and what is printed."""

from __future__ import annotations

from pathlib import Path

from ..calibration.label_plan import PlanOrder, plan_labels
from ..reports.label_plan import label_plan_text
from .compare import check_format, complain, show


def run_plan(
    order: PlanOrder,
    *,
    out: Path | None,
    format: str,  # noqa: A002 - it is the option's name
) -> int:
    """Prints the plan, writes it where it is asked for, and returns the exit code.

    Raises:
        UsageError: If options or input are unusable.
    """
    check_format(format)
    found = plan_labels(order, out=out)
    show(label_plan_text(found), found.to_json(), format)
    return complain(found.problems)
