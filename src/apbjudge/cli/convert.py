"""``apbjudge convert``: logs of trajectories in other formats, and their steps as predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import Field

from ..config import ACCEPT_LOSS, SUCCESS, Config, Option, Share
from .options import Values, command, flag, print_next, print_problems


class ConvertOptions(Config):
    """Input and format of ``convert``."""

    source: Annotated[Path, Option(is_argument=True, is_log=True, metavar="IN")] = Field(
        description="Log of trajectories: files, packed (.gz, .zst) or not, a folder, a quoted "
        "pattern ('logs/*.jsonl'), or - for standard input."
    )
    out: Annotated[Path, Option(is_argument=True)] = Field(
        description="File to write, one row per line; for atif also an empty folder, or a new "
        "name without a suffix: one file per trajectory."
    )
    to: Literal["messages", "atif", "jsonl", "cases", "answers"] = Field(
        description="Chat messages, ATIF trajectories, our own format, which loses nothing, each "
        "step of the agent as a prediction for grade --protocol step-wise, or the last message of "
        "each trajectory, to be labelled or judged by a rubric of your own."
    )
    from_: Annotated[str, Option("--from", metavar="FORMAT")] = Field(
        default="auto", description="Format of the log; auto: it follows from the content."
    )
    outcomes: Path | None = Field(
        default=None, description="File with rewards or successes of trajectories, joined on id."
    )
    success: Annotated[str, Option(metavar="SCORE")] = SUCCESS
    tools: Path | None = Field(
        default=None,
        description="For cases: file of tools, as for predict, for trajectories whose log has no "
        "tools.",
    )
    tested_model: str = Field(
        default="", description="Name of the tested model, for trajectories whose log names none."
    )
    steps: int = Field(
        default=1, ge=1, le=3, description="For cases: number of steps in a prediction."
    )
    at: Literal["all", "quartiles"] = Field(
        default="all",
        description="For cases: every step of the agent, or those after a quarter, a half and "
        "three quarters of them.",
    )
    accept_loss: Share = ACCEPT_LOSS
    overwrite: bool = Field(default=False, description="Replace an existing file.")


@command(ConvertOptions)
def convert(values: Values) -> int:
    """Converts logs of trajectories, or makes step-wise predictions of their steps.

    Exit code 0: done; 1: done, but some trajectories could not be read; 2: unusable input or
    options.
    """
    from ..trajectories.convert import convert as write

    options = ConvertOptions.of(values)
    done = write(**options.model_dump())
    typer.echo(done.text, nl=False, err=True)
    if options.to == "cases" and done.rows:
        print_next("grade", done.out, "--protocol", "step-wise")
    return print_problems(done.problems)


def _explain(value: bool) -> None:  # noqa: FBT001
    from ..trajectories.content_rules import explained

    if value:
        typer.echo("\n".join(explained()))
        raise typer.Exit


convert.more.append(
    flag(
        "explain",
        help="Print what is not counted as content of a log, and why, and exit.",
        callback=_explain,
        is_eager=True,
        expose_value=False,
    )
)
