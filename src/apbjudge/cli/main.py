"""``apbjudge``: the commands. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated

os.environ.setdefault("TYPER_USE_RICH", "0")  # plain help starts in less than half the time

import typer

from ..errors import ApbJudgeError, visible
from ..version import VERSION
from .options import (
    Addresses,
    Blind,
    Cases,
    Config,
    DataRoot,
    Judges,
    NoEvidence,
    NoImages,
    Predictions,
    ProtocolOption,
    RubricOption,
)
from .parts import batch_app, cache_app, rubric_app
from .settings import AuditCommand, SettingsCommand
from .showing import label, report
from .trust import audit, calibrate, compare, plan_labels

app = typer.Typer(
    name="apbjudge",
    help="Grades the plans of LLM agents and says why a plan fails.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(rubric_app, name="rubric")
app.add_typer(batch_app, name="batch")
app.add_typer(cache_app, name="cache")


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Grades the plans of LLM agents and says why a plan fails."""
    if version:
        typer.echo(f"apbjudge {VERSION}")
        raise typer.Exit


@app.command(cls=SettingsCommand)
def grade(
    predictions: Predictions,
    protocol: ProtocolOption = "auto",
    judge: Judges = None,
    api_base: Addresses = None,
    cases: Cases = None,
    rubric: RubricOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; the same command goes on in it.")
    ] = None,
    by: Annotated[
        str, typer.Option(help="Break down by category,modality,stage,steps,horizon,dataset.")
    ] = "",
    shard: Annotated[
        str | None, typer.Option(help="Part I/N of the rows only; see apbjudge merge.")
    ] = None,
    blind: Blind = False,
    no_evidence: NoEvidence = False,
    no_images: NoImages = False,
    config: Config = None,
) -> None:
    """Grades predictions and prints the figures.

    Exit code 0: done; 1: done, with more unscored rows than allowed (max_unscored, default 0);
    2: unusable input or options.
    """
    from .grading import GradeOptions, run_grade

    options = GradeOptions(
        predictions=predictions,
        protocol=protocol,
        judges=judge or [],
        addresses=api_base or [],
        cases=cases,
        rubric=rubric,
        out=out,
        by=by,
        shard=shard,
        blind=blind,
        no_evidence=no_evidence,
        no_images=no_images,
        config=config or [],
    )
    raise typer.Exit(run_grade(options))


@app.command()
def prompt(
    predictions: Predictions,
    id: Annotated[str, typer.Option("--id", help="Id of the item.")],
    tested_model: Annotated[
        str | None, typer.Option(help="Only this tested model's prediction.")
    ] = None,
    protocol: ProtocolOption = "auto",
    cases: Cases = None,
    rubric: RubricOption = None,
    blind: Blind = False,
    no_evidence: NoEvidence = False,
    no_images: NoImages = False,
    data_root: DataRoot = None,
) -> None:
    """Prints what a judge would be sent for an item."""
    from ..judge import JudgeSpec
    from ..judge.prompts import prompts_for

    spec = JudgeSpec(
        model="prompt",
        blind=blind,
        evidence=not no_evidence,
        images=not no_images,
        vision="no" if no_images else "yes",
    )
    found = prompts_for(
        predictions,
        item_id=id,
        tested_model=tested_model,
        protocol=protocol,
        spec=spec,
        cases=cases,
        rubric=rubric,
        data_root=data_root,
    )
    for task, sent in found:
        name = visible(f"{task.item.item_id} / {task.item.tested_model}")
        typer.echo(f"===== {name}: system =====")
        typer.echo(sent.system)
        typer.echo("===== user =====")
        typer.echo(sent.case)
        for image in sent.images:
            typer.echo(f"[picture {visible(image.path)}, {len(image.url)} characters as data URL]")
        typer.echo(f"\n{sent.prediction}")


@app.command()
def merge(
    parts: Annotated[list[Path], typer.Argument(help="Folders of all shards of one run.")],
    out: Annotated[Path, typer.Option(help="Folder for the whole run.")],
) -> None:
    """Puts the runs of all shards together into one run."""
    from ..judge.merge import merge_runs
    from ..reports.terminal import summary_text

    typer.echo(summary_text(merge_runs(parts, out).summary), nl=False)
    typer.echo(f"\n{visible(str(out))}/: judgements.jsonl summary.json summary.csv manifest.json")


@app.command(cls=SettingsCommand)
def doctor(
    predictions: Annotated[
        Path | None, typer.Argument(help="What is to be graded, to see whether it fits.")
    ] = None,
    judge: Judges = None,
    api_base: Addresses = None,
    protocol: ProtocolOption = "auto",
    cases: Cases = None,
    rubric: RubricOption = None,
    config: Config = None,
) -> None:
    """Tries what a judge's endpoint can do: key, model, reply formats, logprobs, pictures, length.

    Exit code 0: a run would work; 2: it would not.
    """
    from .doctor import DoctorOptions, run_doctor

    options = DoctorOptions(
        predictions=predictions,
        judges=judge or [],
        addresses=api_base or [],
        protocol=protocol,
        cases=cases,
        rubric=rubric,
        config=config or [],
    )
    raise typer.Exit(run_doctor(options))


@app.command()
def cascade(
    cheap: Annotated[Path, typer.Argument(help="Folder of the cheap judge's run.")],
    strong: Annotated[Path, typer.Argument(help="Folder of the strong judge's run.")],
    labels: Annotated[
        Path | None, typer.Option(help="Human labels, JSONL or CSV, to compare with instead.")
    ] = None,
    when: Annotated[
        str, typer.Option(help="Whose entropy counts: entropy>0, entropy.max>0, entropy.E4>0.")
    ] = "entropy>0",
) -> None:
    """Prints cost against agreement for every threshold of a cascade, as CSV."""
    from ..judge.ensembles import compare_runs

    typer.echo(compare_runs(cheap, strong, labels, when), nl=False)


app.command(cls=AuditCommand)(audit)
app.command()(calibrate)
app.command()(compare)
app.command("plan-labels")(plan_labels)
app.command()(report)
app.command()(label)


@cache
def command() -> Callable[[], object]:
    """All commands with their options: read from the functions above once, not at every call."""
    return typer.main.get_command(app)


def main() -> None:
    """Entry point: no traceback ever reaches a user who gave bad input."""
    try:
        command()()
    except ApbJudgeError as error:
        typer.echo(f"apbjudge: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # the disk is full, or what standard output is sent to
        where = error.filename or "standard output: can't be written"
        typer.echo(f"apbjudge: {where}: {error.strerror}", err=True)
        _give_up_output()
        sys.exit(2)


def _give_up_output() -> None:
    """What could not be written is dropped: else the interpreter complains of it at its end."""
    with suppress(OSError, ValueError):  # it may be no file at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
