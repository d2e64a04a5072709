"""``apbjudge export``: verdicts as scores of the traces that were judged."""

from __future__ import annotations

import typer

from ..integrations.config import ExportConfig
from .options import Values, command, print_problems


@command(ExportConfig)
def export(values: Values) -> int:
    """Writes verdicts as scores for OpenTelemetry, Langfuse, Phoenix or LangSmith.

    Nothing is sent without --url. Exit code 0: done; 1: done, but some rows were no judgements; 2:
    unusable input or options, or the server did not accept everything.
    """
    from ..integrations.scores import export as write

    done = write(ExportConfig.of(values))
    typer.echo(done.text, nl=False, err=True)
    return print_problems(done.problems)
