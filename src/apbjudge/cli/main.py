"""``apbjudge``: the commands. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

os.environ.setdefault("TYPER_USE_RICH", "0")  # plain help starts in less than half the time

import typer

from ..errors import ApbJudgeError, visible
from ..version import VERSION

PROTOCOL_HELP = (
    "holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency, or auto: each row "
    "by its split or its fields."
)

app = typer.Typer(
    name="apbjudge",
    help="Grades the plans of LLM agents and says why a plan fails.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
rubric_app = typer.Typer(help="Lists and shows rubrics.", no_args_is_help=True)
app.add_typer(rubric_app, name="rubric")

Predictions = Annotated[Path, typer.Argument(help="JSONL file, one prediction a line.")]
ProtocolOption = Annotated[str, typer.Option(help=PROTOCOL_HELP)]
Cases = Annotated[
    Path | None, typer.Option(help="JSONL file of cases, joined with the predictions on id.")
]
RubricOption = Annotated[
    str | None, typer.Option(help="name@version of a shipped rubric, or a TOML file.")
]
Blind = Annotated[bool, typer.Option("--blind", help="Judge without the reference.")]
NoEvidence = Annotated[
    bool,
    typer.Option("--no-evidence", help="Neither tell the judge what code proved nor enforce it."),
]
NoImages = Annotated[bool, typer.Option("--no-images", help="Show the judge no pictures.")]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Grades the plans of LLM agents and says why a plan fails."""
    if version:
        typer.echo(f"apbjudge {VERSION}")
        raise typer.Exit


@app.command()
def grade(
    predictions: Predictions,
    protocol: ProtocolOption = "auto",
    judge: Annotated[
        str, typer.Option(help="static (no network), or a litellm model such as openai/gpt-5.")
    ] = "static",
    api_base: Annotated[
        str | None, typer.Option(help="Address of an OpenAI-compatible server.")
    ] = None,
    cases: Cases = None,
    rubric: RubricOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; the same command goes on in it.")
    ] = None,
    by: Annotated[
        str, typer.Option(help="Break down by category,modality,stage,steps,horizon,dataset.")
    ] = "",
    blind: Blind = False,
    no_evidence: NoEvidence = False,
    no_images: NoImages = False,
    config: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE or a TOML file: temperature, concurrency, max_unscored, …"),
    ] = None,
) -> None:
    """Grades predictions and prints the figures.

    Exit code 0: done; 1: done, with more unscored rows than allowed (max_unscored, default 0);
    2: unusable input or options.
    """
    from .grading import GradeOptions, run_grade

    options = GradeOptions(
        predictions=predictions,
        protocol=protocol,
        judge=judge,
        api_base=api_base,
        cases=cases,
        rubric=rubric,
        out=out,
        by=by,
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
) -> None:
    """Prints what a judge would be sent for an item."""
    from ..api import prompts_for
    from ..judge import JudgeSpec

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


@rubric_app.command("list")
def rubric_list() -> None:
    """Lists the shipped rubrics."""
    from ..rubrics import load_rubric, rubric_names

    names = rubric_names()
    width = max(map(len, names))
    for name in names:
        typer.echo(f"{name.ljust(width)}  {load_rubric(name).title}")


@rubric_app.command("show")
def rubric_show(
    name: Annotated[str, typer.Argument(help="name@version, a name, or a TOML file.")],
) -> None:
    """Shows a rubric the way a judge is told it."""
    from ..protocols.prompts import PromptMaker
    from ..rubrics import load_rubric

    rubric = load_rubric(name)
    typer.echo(f"{rubric.ref}: {rubric.title}\nsha256 {rubric.digest}\n")
    typer.echo(PromptMaker().system(rubric, "judge@1"))
    for kind, rule in rubric.types.items():
        typer.echo(f"\n{kind}: {rule.situation}")
        for text in rule.passes:
            typer.echo(f"  passes: {text}")
        for text in rule.fails:
            typer.echo(f"  fails: {text}")


def main() -> None:
    """Entry point: no traceback ever reaches a user who gave bad input."""
    try:
        app()
    except ApbJudgeError as error:
        typer.echo(f"apbjudge: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
