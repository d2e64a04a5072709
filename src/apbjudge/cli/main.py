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
from .settings import SettingsCommand

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
batch_app = typer.Typer(
    help="Writes requests to a file, for vllm run-batch, and reads its answers.",
    no_args_is_help=True,
)
app.add_typer(batch_app, name="batch")
cache_app = typer.Typer(
    help="Shows or clears the replies kept of earlier runs.", no_args_is_help=True
)
app.add_typer(cache_app, name="cache")

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
Judges = Annotated[
    list[str] | None,
    typer.Option(
        help="static (no network; the default), or a litellm model such as openai/gpt-5, with its "
        "address after @; several make a panel."
    ),
]
Addresses = Annotated[
    list[str] | None,
    typer.Option(help="Address of an OpenAI-compatible server; several for its replicas."),
]
Config = Annotated[
    list[str] | None, typer.Option(help="KEY=VALUE or a TOML file of the settings below.")
]


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
        Path | None, typer.Option(help="JSONL of human labels to compare with instead.")
    ] = None,
    when: Annotated[
        str, typer.Option(help="Whose entropy counts: entropy>0, entropy.max>0, entropy.E4>0.")
    ] = "entropy>0",
) -> None:
    """Prints cost against agreement for every threshold of a cascade, as CSV."""
    from ..api.ensembles import compare_runs

    typer.echo(compare_runs(cheap, strong, labels, when), nl=False)


@batch_app.command("export", cls=SettingsCommand)
def batch_export(
    predictions: Predictions,
    out: Annotated[Path, typer.Option(help="File for the requests.")],
    judge: Judges = None,
    api_base: Addresses = None,
    protocol: ProtocolOption = "auto",
    cases: Cases = None,
    rubric: RubricOption = None,
    blind: Blind = False,
    no_evidence: NoEvidence = False,
    no_images: NoImages = False,
    config: Config = None,
) -> None:
    """Writes the requests that are not answered yet, one a line, in the OpenAI batch format."""
    from .batch import run_export
    from .grading import GradeOptions

    options = GradeOptions(
        predictions=predictions,
        protocol=protocol,
        judges=judge or [],
        addresses=api_base or [],
        cases=cases,
        rubric=rubric,
        out=out,
        by="",
        blind=blind,
        no_evidence=no_evidence,
        no_images=no_images,
        config=config or [],
    )
    run_export(options, out)


@batch_app.command("import")
def batch_import(
    answers: Annotated[Path, typer.Argument(help="File of answers, as vllm run-batch writes it.")],
) -> None:
    """Takes answers into the reply cache; the grade command then finds them."""
    from .batch import run_import

    raise typer.Exit(run_import(answers))


@cache_app.command("stats")
def cache_stats() -> None:
    """Shows where the reply cache is and how much it holds."""
    from ..api.engines import open_cache

    found = open_cache(warn=_warn).stats()
    size = f"{found.bytes / 2**20:.1f} MiB"
    typer.echo(f"{visible(str(found.folder))}: {found.entries} replies, {size}")


@cache_app.command("clear")
def cache_clear() -> None:
    """Removes all replies kept of earlier runs, and what is known of endpoints."""
    from ..api.engines import clear_caches

    typer.echo(f"{clear_caches(warn=_warn)} replies removed")


def _warn(message: str) -> None:
    typer.echo(message, err=True)


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
