"""``apbjudge init``: rows, a project file and a CI job to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..config import Config, Option
from ..errors import OptionError
from .options import Values, command, shown, take
from .settings import PROJECT

STARTER = Path(__file__).parent / "starter"
"""The files as they are written without rows of the user's own."""
ROWS = "plans.jsonl"
JOB = Path(".github", "workflows", "plans.yml")


class InitOptions(Config):
    """Where the files go."""

    folder: Annotated[Path, Option(is_argument=True)] = Field(
        default=Path(), description="Folder to write to, by itself the working directory."
    )


@command(InitOptions)
def init(values: Values) -> int:
    """Writes example rows, a project file and a CI job; no file that is there is changed.

    Exit code 0: done; 2: unusable input or options.
    """
    folder = take(InitOptions, values).folder
    rows = ROWS
    texts = {
        Path(ROWS): (STARTER / ROWS).read_text(encoding="utf-8"),
        Path(PROJECT): (STARTER / PROJECT).read_text(encoding="utf-8"),
        JOB: (STARTER / JOB.name).read_text(encoding="utf-8").replace("PREDICTIONS", rows),
    }
    for path, text in texts.items():
        typer.echo(f"{_write(folder / path, text)}: {shown(folder / path)}")
    is_here = folder.resolve() == Path.cwd()
    there = "" if is_here else f"cd {shlex.quote(shown(folder))} && "
    typer.echo(f"next: {there}apbjudge grade {shlex.quote(rows)}")
    return 0


def _write(path: Path, text: str) -> str:
    """Writes a file unless there is one, and returns which of both in words."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if not path.is_file():  # a folder, or a file where a folder of its path is due
            raise OptionError(f"{shown(path)}: expected no file or folder of this name") from None
        return "left as it is"
    return "written"
