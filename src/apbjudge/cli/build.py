"""``apbjudge build``: cases from one's own data."""

from __future__ import annotations

import sys

import typer

from ..construction.config import BuildConfig
from ..construction.writing.config import UNSEEN, WriteConfig
from ..errors import path_text
from ..prediction.config import PlannerSpec
from .asking import failed_code
from .options import Values, command, print_next, print_problems
from .stopping import Stopping, stoppable


@command(
    BuildConfig,
    PlannerSpec,
    WriteConfig,
    Stopping,
    omit=["data_split", *UNSEEN],
)
def build(values: Values) -> int:
    """Builds cases from logs of runs, or rows of queries, tools and calls.

    Exit code 0: done; 1: done, but some entries of the source could not be read, or texts that the
    model was asked for never came (the same command tries them again); 2: unusable input or
    options.
    """
    from ..construction.build import FILES
    from ..construction.build import build as build_cases
    from ..construction.results_text import build_document
    from ..document.text import WIDTH, render_text
    from ..prediction.results_text import failed_lines
    from .progress import Reporter

    config = BuildConfig.of(values)
    write = WriteConfig.of(values)
    reporter = Reporter(sys.stderr)
    with stoppable(values, config.out), reporter:
        result = build_cases(config=config, write=write, events=reporter.events())
    typer.echo(render_text(build_document(result), width=WIDTH), nl=False)
    typer.echo(f"\n{path_text(result.out)}/: {' '.join(FILES)}")
    root = [] if config.data_root is None else ["--data-root", str(config.data_root)]
    print_next("check", result.out, *root)
    code = print_problems(result.problems)
    if result.writing is None:
        return code
    for line in failed_lines(result.writing.counts):
        typer.echo(line, err=True)
    return failed_code(result.writing.counts.values(), "the text asked for") or code
