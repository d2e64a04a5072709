"""``apbjudge schema``: the JSON Schemas of files."""

from __future__ import annotations

import typer

from .options import Values, argument, command, json_text

NAME = argument("name", "Name of the file's schema; without it all names are listed.", str | None)


@command(NAME)
def schema(values: Values) -> int:
    """Prints the JSON Schema of a file, or lists the files that have one."""
    from ..integrations.schemas import SCHEMAS
    from ..integrations.schemas import schema as schema_of

    name = values.get("name")
    if name is None:
        width = max(map(len, SCHEMAS)) + 2
        for each, title in SCHEMAS.items():
            typer.echo(f"{each:<{width}}{title}")
    else:
        typer.echo(json_text(schema_of(name)))
    return 0
