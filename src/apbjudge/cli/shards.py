"""``apbjudge shards``: a run in parts, and the parts, or those of error codes, as one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from pydantic import Field

from ..config import Config, Option, PartCommand
from ..errors import path_text
from ..llm.limits import Claim
from .options import Values, command, print_files
from .tested import function_of

if TYPE_CHECKING:
    from ..agents.environments.execution.execute import ExecutionRun
    from ..document.display import Shown
    from ..judge.session import Run
    from ..runs.results import ModelRun

_FILES = (
    "cases.jsonl drafts bound-drafts direct plan-first bound steps gold null "
    "judgements.jsonl predictions.jsonl trajectories.jsonl branched.jsonl failures.jsonl "
    "judgements.parquet summary.json summary.csv manifest.json"
).split()


class SplitOptions(Config):
    """Input of ``shards split``, and the command whose run is split."""

    rows: Annotated[Path, Option(is_argument=True)] = Field(
        description="Input of the command, such as predictions for grade."
    )
    options: Annotated[tuple[str, ...], Option(is_argument=True)] = Field(
        default=(), description="Options of the command, after --; of an audit with its judge."
    )
    out: Path = Field(description="Folder for the runs of the parts and for the merged run.")
    parts: int = Field(ge=1, le=999_999, description="Number of parts.")
    command: PartCommand = Field(default="grade", description="The command.")


class MergeOptions(Config):
    """Input of ``shards merge``, and the folder of the whole run."""

    parts: Annotated[tuple[Path, ...], Option(is_argument=True)] = Field(
        description="Folders of all parts of one run, or of runs for all codes of a rubric."
    )
    rubric: str | None = Field(
        default=None,
        description="The rubric whose codes were judged in separate runs, such as apb-holistic@1.",
    )
    partial: bool = Field(
        default=False,
        description="Merge some of the parts, into a run that is merged with the others later.",
    )
    out: Path = Field(description="Folder for the whole run.")
    as_: Annotated[Literal["jsonl", "parquet"], Option("--as")] = Field(
        default="jsonl",
        description="parquet: judgements also as judgements.parquet, with a column for each text, "
        "number or boolean field, and the whole row in the column json.",
    )
    claim: Claim = Field(
        default="lock", description="How other processes are kept out of --out, as for grade."
    )


@command(SplitOptions)
def split(values: Values) -> int:
    """Prints the commands that work on rows in parts, and the one that merges them.

    Each is a line for a shell, and those of the parts may run at the same time.
    """
    from ..judge.split import shards_split

    for line in shards_split(**SplitOptions.of(values).model_dump()):
        typer.echo(line)
    return 0


@command(MergeOptions)
def merge(values: Values) -> int:
    """Merges the runs of all parts, or of all codes of a rubric, into one run."""
    options = MergeOptions.of(values)
    print_merged(function_of("shards merge")(**options.model_dump()))
    return 0


def print_merged(run: Run | ModelRun[Any] | ExecutionRun) -> int:
    """Prints the merged result; returns 1 if rows are without a result, else 0."""
    from ..judge.session import Run

    if isinstance(run, Run):
        text, has_left = _text_of(run), run.unscored_fraction > 0
    else:
        text, has_left = cast("Shown", run).text, run.failed > 0
    typer.echo(text, nl=False)
    if run.folder is not None:
        print_files(run.folder, *_FILES)
    return int(has_left)


def _text_of(run: Run) -> str:
    """The results of a run; for an audit, the next step towards its card."""
    from ..judge.summary_text import summary_text

    identity = run.manifest["identity"]
    if "audit" not in identity or run.folder is None:
        return summary_text(run.summary)
    if "shard" in identity:
        return "more parts are to be merged\n"
    out = path_text(run.folder.parents[1])
    return f"next: the same audit with --out {out}, without --shard, makes the card\n"
