"""``apbjudge scale``: a command in parts, on the processors of a machine or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from pydantic import Field

from ..config import Config
from ..errors import PausedError
from ..integrations.config import ScaleConfig
from .options import Values, argument, command, print_result
from .stopping import Stopping, stoppable

if TYPE_CHECKING:
    from ..agents.cases.check import CaseReport
    from ..agents.environments.execution.execute import ExecutionRun
    from ..audits.session import Audit
    from ..judge.session import Run
    from ..runs.results import ModelRun

PLAN = argument("plan", "TOML file with rows, out, parts, optionally command, and a table options.")


class OnePart(Config):
    """A part that is run alone."""

    part: int | None = Field(
        default=None, ge=1, description="Run only this part, here, as an array of jobs does."
    )


@command(PLAN, ScaleConfig, OnePart, Stopping)
def scale(values: Values) -> int:
    """Runs a command in parts on an engine and merges the parts.

    The same command, after whatever happened, goes on with the parts that are not done. Exit code
    0: done; 1: done, with rows without a result; 2: unusable input or options; 75: paused, or
    parts are not done after all starts.
    """
    from ..integrations.scale import scale as scale_in_parts
    from ..integrations.scale import scale_part

    def tell(line: str) -> None:
        typer.echo(line, err=True)

    plan, number = values["plan"], OnePart.of(values).part
    with stoppable(values, None):
        if number is not None:
            ended = scale_part(plan, number, tell)
            if ended.text:
                tell(f"part {number}: {ended.text}")
            return ended.code
        grace_s = Stopping.of(values).grace
        try:
            run = scale_in_parts(plan, ScaleConfig.of(values), tell=tell, grace_s=grace_s)
        except PausedError as error:
            tell(str(error))
            raise
    return 0 if run is None else _print_whole(run)


def _print_whole(run: Run | ModelRun[Any] | ExecutionRun | Audit | CaseReport) -> int:
    """Prints the merged result; returns 1 if rows are without a result, else 0."""
    from ..agents.cases.check import CaseReport
    from ..agents.cases.results_text import check_document
    from ..audits.session import Audit
    from .audit import code_of, show_card
    from .check import unanswered_code
    from .shards import print_merged

    if isinstance(run, CaseReport):
        print_result(run, check_document, "text")
        return unanswered_code(run)
    if isinstance(run, Audit):
        if run.folder is not None:
            show_card(run.card, run.folder)
        return code_of(run.card)
    return print_merged(run)
