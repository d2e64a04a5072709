"""``apbjudge paths``: the smallest sets of tools that solve a task of PlanBench-XL."""

from __future__ import annotations

import click

from ..environments.planbench.config import PathsConfig
from .options import Output, Values, command, json_text, take


@command(PathsConfig, Output)
def paths(values: Values) -> int:
    """Enumerates the smallest sets of tools that solve tasks of PlanBench-XL.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..environments.planbench.paths import paths as enumerate_paths
    from ..reports.planbench import paths_text

    report = enumerate_paths(take(PathsConfig, values))
    if take(Output, values).format == "json":
        click.echo(json_text(report.to_json()))
    else:
        click.echo(paths_text(report), nl=False)
    return 0
