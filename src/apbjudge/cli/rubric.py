"""``apbjudge rubric``: lists and shows rubrics."""

from __future__ import annotations

import click


@click.group()
def rubric() -> None:
    """Lists and shows rubrics."""


@rubric.command("list")
def list_rubrics() -> None:
    """Lists the shipped rubrics."""
    from ..rubrics import load_rubric, rubric_names

    names = rubric_names()
    width = max(map(len, names))
    for name in names:
        click.echo(f"{name.ljust(width)}  {load_rubric(name).title}")


@rubric.command("show")
@click.argument("name")
def show_rubric(name: str) -> None:
    """Shows a rubric as a judge gets it.

    NAME is name@version, a name alone, or a TOML file; with #E4 that code alone.
    """
    from ..protocols.prompts import PromptMaker
    from ..rubrics import load_rubric

    loaded = load_rubric(name)
    click.echo(f"{loaded.ref}: {loaded.title}\nsha256 {loaded.digest}\n")
    click.echo(PromptMaker().system(loaded, "judge@1"))
    for kind, rule in loaded.types.items():
        click.echo(f"\n{kind}: {rule.situation}")
        for text in rule.passes:
            click.echo(f"  passes: {text}")
        for text in rule.fails:
            click.echo(f"  fails: {text}")
