"""``apbjudge rubric``: lists and shows rubrics."""

from __future__ import annotations

import typer

from .options import Values, argument, command


@command()
def list_(_: Values) -> int:
    """Lists the shipped rubrics."""
    from ..rubrics import load_rubric, rubric_names

    names = rubric_names()
    width = max(map(len, names))
    for name in names:
        typer.echo(f"{name.ljust(width)}  {load_rubric(name).title}")
    return 0


@command(
    argument(
        "rubric",
        "name@version, a name, or a TOML file; with #E4 only that code.",
        str,
        metavar="NAME",
    )
)
def show(values: Values) -> int:
    """Shows a rubric as a judge gets it."""
    from ..protocols.prompts import rubric_text
    from ..rubrics import load_rubric

    typer.echo(rubric_text(load_rubric(values["rubric"])), nl=False)
    return 0
