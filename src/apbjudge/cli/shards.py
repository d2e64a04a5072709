"""``apbjudge shards``: a run in parts, and the parts, or those of error codes, as one run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..config import Config, Option
from .options import Values, command, shown, take


class SplitOptions(Config):
    """What is graded in parts."""

    predictions: Annotated[Path, Option(is_argument=True)] = Field(
        description="What is graded, as grade takes it."
    )
    options: Annotated[tuple[str, ...], Option(is_argument=True)] = Field(
        default=(), description="Options of grade, after --."
    )
    out: Path = Field(description="Folder for the runs of the parts, and for the whole.")
    parts: int = Field(ge=1, le=999_999, description="Number of parts.")


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


@command(SplitOptions)
def split(values: Values) -> int:
    """Prints the commands that grade rows in parts, and the one that merges them.

    Each is a line for a shell, and all but the last one may run at the same time.
    """
    options = take(SplitOptions, values)
    folders = [str(options.out / f"part-{n + 1}") for n in range(options.parts)]
    for n, folder in enumerate(folders):
        shard = ["--shard", f"{n + 1}/{options.parts}", "--out", folder]
        words = ["grade", *shard, *options.options, "--", str(options.predictions)]
        typer.echo(f"apbjudge {shlex.join(words)}")
    whole = ["shards", "merge", "--out", str(options.out / "whole"), "--", *folders]
    typer.echo(f"apbjudge {shlex.join(whole)}")
    return 0


@command(MergeOptions)
def merge(values: Values) -> int:
    """Puts the runs of all shards, or of all codes of a rubric, together into one run."""
    from ..judge.merge import merge_runs
    from ..reports.summary import summary_text

    options = take(MergeOptions, values)
    run = merge_runs(options.parts, options.out, rubric=options.rubric)
    typer.echo(summary_text(run.summary), nl=False)
    typer.echo(f"\n{shown(options.out)}/: judgements.jsonl summary.json summary.csv manifest.json")
    return 0
