"""``apbjudge merge``: the shards of one run, or its error codes, become one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
from pydantic import Field

from ..config import Config, Option
from .options import Values, command, shown, take


class MergeOptions(Config):
    """The parts and where the whole run goes."""

    parts: Annotated[tuple[Path, ...], Option(is_argument=True)] = Field(
        description="Folders of all shards of one run, or of runs for all codes of a rubric."
    )
    rubric: str | None = Field(
        default=None,
        description="The rubric whose codes were judged apart, such as apb-holistic@1.",
    )
    out: Path = Field(description="Folder for the whole run.")


@command(MergeOptions)
def merge(values: Values) -> int:
    """Puts the runs of all shards, or of all codes of a rubric, together into one run."""
    from ..judge.merge import merge_runs
    from ..reports.summary import summary_text

    options = take(MergeOptions, values)
    run = merge_runs(options.parts, options.out, rubric=options.rubric)
    click.echo(summary_text(run.summary), nl=False)
    click.echo(f"\n{shown(options.out)}/: judgements.jsonl summary.json summary.csv manifest.json")
    return 0
