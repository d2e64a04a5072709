"""``apbjudge rubric``: lists and shows rubrics."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import Field

from ..config import Config, Option
from .options import Values, command


class Named(Config):
    """Name of the rubric."""

    rubric: Annotated[str, Option(is_argument=True, metavar="NAME")] = Field(
        description="name@version, a name alone, or a TOML file; with #E4 that code alone."
    )


@command()
def list_(_: Values) -> int:
    """Lists the shipped rubrics."""
    from ..rubrics import load_rubric, rubric_names

    names = rubric_names()
    width = max(map(len, names))
    for name in names:
        typer.echo(f"{name.ljust(width)}  {load_rubric(name).title}")
    return 0


@command(Named)
def show(values: Values) -> int:
    """Shows a rubric as a judge gets it."""
    from ..protocols.prompts import rubric_text
    from ..rubrics import load_rubric

    typer.echo(rubric_text(load_rubric(Named.of(values).rubric)), nl=False)
    return 0
