"""``apbjudge scale``: a command in parts, on the processors of a machine or on a cluster."""

from __future__ import annotations

import typer
from pydantic import Field

from ..config import Config
from ..errors import PausedError
from ..integrations.config import ScaleConfig
from .options import Values, argument, command
from .shards import print_merged
from .stopping import Stopping, stoppable

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
    return 0 if run is None else print_merged(run)
