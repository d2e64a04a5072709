"""The commands that come in groups: ``batch``, ``cache`` and ``rubric``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import visible
from .options import (
    Addresses,
    Blind,
    Cases,
    Config,
    Judges,
    NoEvidence,
    NoImages,
    Predictions,
    ProtocolOption,
    RubricOption,
)
from .settings import SettingsCommand

rubric_app = typer.Typer(help="Lists and shows rubrics.", no_args_is_help=True)
batch_app = typer.Typer(
    help="Writes requests to a file, for vllm run-batch, and reads its answers.",
    no_args_is_help=True,
)
cache_app = typer.Typer(
    help="Shows or clears the replies kept of earlier runs.", no_args_is_help=True
)


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
    from ..llm.resources import open_cache

    found = open_cache(warn=_warn).stats()
    size = f"{found.bytes / 2**20:.1f} MiB"
    typer.echo(f"{visible(str(found.folder))}: {found.entries} replies, {size}")


@cache_app.command("clear")
def cache_clear() -> None:
    """Removes all replies kept of earlier runs, and what is known of endpoints."""
    from ..llm.resources import clear_caches

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
