"""``apbjudge init``: rows, a project file and a CI job to begin with."""

from __future__ import annotations

import typer

from ..judge.config import InitConfig
from .options import Values, command


@command(InitConfig)
def init(values: Values) -> int:
    """Writes example rows, a project file and a CI job.

    No file that is there is changed.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..judge.project import init as write

    typer.echo(write(InitConfig.of(values)).text, nl=False)
    return 0
