"""Rows, a project file and a CI job to begin with."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from ..config import PROJECT
from ..document.display import Shown
from ..errors import OptionError, path_text, visible
from ..options import takes
from ..records.own_rows import own_rows
from .config import GradeConfig, InitConfig
from .trajectory_source import is_log

STARTER = Path(__file__).parent / "starter"
"""The files as they are written without rows of the user's own."""
ROWS, JOB = "plans.jsonl", Path(".github", "workflows", "plans.yml")
_GATE = "          fail-under: |\n            no-provable-fault>=0.5\n"


@dataclass(frozen=True, slots=True, repr=False)
class Project(Shown):
    """The files of a project to begin with.

    Attributes:
        rows: Rows that its settings grade.
        files: By file, true if it was written; an existing one is left as it is.
        reading: Reading of the user's own rows; empty for example rows and logs.
        settings: The lines that ``[grade]`` of the project file needs for them.
        next: The command for a shell that grades the rows.
    """

    rows: Path
    files: Mapping[Path, bool]
    reading: str
    settings: tuple[str, ...]
    next: str

    def _printed(self) -> str:
        return project_text(self)


def project_text(project: Project) -> str:
    """The files that were written, and the command that follows, as text."""
    lines = [f"{path_text(project.rows)}: {project.reading}"] if project.reading else []
    for file, is_new in project.files.items():
        path = path_text(file)
        lacks = [f"; [grade] needs {line}" for line in project.settings if file.name == PROJECT]
        lines.append(f"written: {path}" if is_new else f"left as it is: {path}{''.join(lacks)}")
    return "".join(f"{visible(line)}\n" for line in [*lines, f"next: {project.next}"])


@takes(config=InitConfig)
def init(config: InitConfig) -> Project:
    """Writes example rows, a project file and a CI job; no file that is there is changed.

    Args:
        config: The folder, and the rows.

    Raises:
        InputError: If the rows can't be read.
        OptionError: If they are outside of the folder, or a folder has the name of a file.
    """
    rows, settings, job = ROWS, _starter(PROJECT), _starter(JOB.name)
    reading, lines = "", list[str]()
    texts: dict[str | Path, str] = {}
    if config.from_ is None:
        texts[ROWS] = _starter(ROWS)
    else:
        rows = os.path.relpath(config.from_.resolve(), config.folder.resolve())
        if rows.startswith(os.pardir):
            got = f"{path_text(config.from_)}, which is not in {path_text(config.folder)}"
            raise OptionError(f"--from: expected rows in the folder that is written to, got {got}")
        if is_log(config.from_, GradeConfig(map=config.map)):
            job = job.replace(_GATE, "")
        else:
            reading, lines = _reading(config.from_, config)
        settings = settings.replace("[grade]\n", "\n".join(["[grade]", *lines, ""]))
    texts |= {PROJECT: settings, JOB: job.replace("PREDICTIONS", _quoted(rows))}
    is_here = config.folder.resolve() == Path.cwd()
    there = "" if is_here else f"cd {shlex.quote(path_text(config.folder))} && "
    return Project(
        rows=config.folder / rows,
        files={path: _write(path, texts[name]) for name in texts if (path := config.folder / name)},
        reading=reading,
        settings=tuple(lines),
        next=f"{there}apbjudge grade {shlex.quote(path_text(rows))}",
    )


def _starter(name: str) -> str:
    return (STARTER / name).read_text(encoding="utf-8")


def _reading(source: Path, config: InitConfig) -> tuple[str, list[str]]:
    """The mapping of the user's own rows, in words and as lines of the project file."""
    reading = own_rows(source, config.columns, split=config.data_split).reading
    columns = {**reading.columns, **config.columns}
    pairs = [f"{name}={column}" for name, column in columns.items()]
    lines = [f"map = [{', '.join(map(_quoted, pairs))}]"] if pairs else []
    split = [f"split = {_quoted(config.data_split)}"] if config.data_split else []
    return reading.text, [*lines, *split]


def _quoted(text: str) -> str:
    """A text as TOML and YAML both read it."""
    return orjson.dumps(text).decode()


def _write(path: Path, text: str) -> bool:
    """Writes a file unless there is one; true if it was written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if not path.is_file():  # a folder, or a file where a folder of its path is due
            raise OptionError(
                f"{path_text(path)}: expected no file or folder of this name"
            ) from None
        return False
    return True
