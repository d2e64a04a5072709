"""``apbjudge build``: cases from one's own data."""

from __future__ import annotations

import sys

import typer

from ..agents.cases.config import BuildConfig
from ..agents.cases.writing.config import WriteConfig
from ..agents.prediction.config import OF_FILES, TestedModelSpec
from .asking import failed_code
from .options import Values, command, print_files, print_next, print_problems
from .stopping import Stopping, stoppable


@command(
    BuildConfig,
    TestedModelSpec,
    WriteConfig,
    Stopping,
    omit=["data_split", *OF_FILES],
)
def build(values: Values) -> int:
    """Builds cases from logs of trajectories, or rows of queries, tools and calls.

    Exit code 0: done; 1: done, but some entries of the source could not be read, or requested
    texts are missing (the same command tries them again); 2: unusable input or options.
    """
    from ..agents.cases.build import FILES
    from ..agents.cases.build import build as build_cases
    from ..agents.cases.results_text import build_document
    from ..agents.prediction.results_text import failed_lines
    from ..document.text import WIDTH, render_text
    from .progress import Reporter

    config = BuildConfig.of(values)
    writing = WriteConfig.of(values)
    reporter = Reporter(sys.stderr)
    with stoppable(values, config.out), reporter:
        result = build_cases(config=config, writing=writing, events=reporter.events())
    typer.echo(render_text(build_document(result), width=WIDTH), nl=False)
    print_files(result.out, *FILES)
    root = [] if config.data_root is None else ["--data-root", str(config.data_root)]
    print_next("check", result.out, *root)
    code = print_problems(result.problems)
    if result.writing is None:
        return code
    for line in failed_lines(result.writing.counts):
        typer.echo(line, err=True)
    return failed_code(result.writing.counts.values(), "the text asked for") or code
