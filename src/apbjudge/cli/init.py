"""``apbjudge init``: rows, a project file and a CI job to begin with."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..config import Option, RowsConfig
from ..errors import OptionError
from .options import Values, command, shown, take
from .settings import PROJECT

STARTER = Path(__file__).parent / "starter"
"""The files as they are written without rows of the user's own."""
ROWS, JOB = "plans.jsonl", Path(".github", "workflows", "plans.yml")
_GATE = "          fail-under: |\n            no-provable-fault>=0.5\n"


class InitOptions(RowsConfig):
    """Where the files go, and for which rows."""

    folder: Annotated[Path, Option(is_argument=True)] = Field(
        default=Path(), description="Folder to write to, by itself the working directory."
    )
    from_: Annotated[Path | None, Option("--from")] = Field(
        default=None,
        description="Rows or a log of your own in that folder, in place of example rows.",
    )


@command(InitOptions)
def init(values: Values) -> int:
    """Writes example rows, a project file and a CI job.

    No file that is there is changed.

    Exit code 0: done; 2: unusable input or options.
    """
    options = take(InitOptions, values)
    rows, settings, job = ROWS, _starter(PROJECT), _starter(JOB.name)
    lines: list[str] = []
    texts: dict[str | Path, str] = {}
    if options.from_ is None:
        texts[ROWS] = _starter(ROWS)
    else:
        rows = os.path.relpath(options.from_.resolve(), options.folder.resolve())
        if rows.startswith(os.pardir):
            got = f"{shown(options.from_)}, which is not in {shown(options.folder)}"
            raise OptionError(f"--from: expected rows in the folder that is written to, got {got}")
        lines, is_log = _reading(options.from_, options)
        settings = settings.replace("[grade]\n", "\n".join(["[grade]", *lines, ""]))
        job = job.replace(_GATE, "") if is_log else job
    texts |= {PROJECT: settings, JOB: job.replace("PREDICTIONS", _quoted(rows))}
    for name, text in texts.items():
        path = options.folder / name
        is_new = _write(path, text)
        lacks = "".join(f"; [grade] needs {line}" for line in lines if name == PROJECT)
        typer.echo(f"written: {shown(path)}" if is_new else f"left as it is: {shown(path)}{lacks}")
    is_here = options.folder.resolve() == Path.cwd()
    there = "" if is_here else f"cd {shlex.quote(shown(options.folder))} && "
    typer.echo(f"next: {there}apbjudge grade {shlex.quote(shown(Path(rows)))}")
    return 0


def _starter(name: str) -> str:
    return (STARTER / name).read_text(encoding="utf-8")


def _reading(source: Path, options: InitOptions) -> tuple[list[str], bool]:
    """The settings by which rows of the user's own are read, and whether they are a log of runs.

    Raises:
        InputError: If they can't be read.
    """
    from ..judge.config import GradeConfig
    from ..judge.run_source import is_log
    from ..records.own_rows import own_rows

    if is_log(source, GradeConfig(map=options.map)):
        return [], True
    reading = own_rows(source, options.columns, split=options.data_split).reading
    if reading.text:
        typer.echo(f"{shown(source)}: {reading.text}")
    columns = {**reading.columns, **options.columns}
    pairs = [f"{name}={column}" for name, column in columns.items()]
    lines = [f"map = [{', '.join(map(_quoted, pairs))}]"] if pairs else []
    return [*lines, *([f"split = {_quoted(options.data_split)}"] * bool(options.data_split))], False


def _quoted(text: str) -> str:
    """A text as TOML and YAML both read it."""
    import orjson

    return orjson.dumps(text).decode()


def _write(path: Path, text: str) -> bool:
    """Writes a file unless there is one; true if it was written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if not path.is_file():  # a folder, or a file where a folder of its path is due
            raise OptionError(f"{shown(path)}: expected no file or folder of this name") from None
        return False
    return True
