"""The body of the commands that ask tested models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ..errors import path_text
from .options import Values, print_files
from .stopping import stoppable

if TYPE_CHECKING:
    from ..agents.prediction.asking import AskingSession
    from ..runs.loop import Events
    from ..runs.results import FailureCounts

R = TypeVar("R", bound=Any)

FAILURES = "failures.jsonl"


def asking_command(
    values: Values,
    session_of: Callable[[Events], AskingSession[R]],
    *,
    lacking: str,
    then: Callable[[R], None],
    carry_out: Callable[[AskingSession[R]], R] | None = None,
) -> int:
    """Carries out a session, prints its counts and files, and returns the exit code.

    Args:
        values: Values set by the user.
        session_of: Makes the session; gets the callbacks that report its progress.
        lacking: Name of the part that a failed row lacks.
        then: Prints the command that usually follows.
        carry_out: Carries the session out; ``carry_out_alone`` by default.
    """
    from ..agents.prediction.asking import carry_out_alone
    from .progress import Reporter

    reporter = Reporter(sys.stderr)
    session = replace(session_of(reporter.events()), in_memory=False)
    out = session.folder
    with stoppable(values, out), reporter:
        run = (carry_out or carry_out_alone)(session)
    typer.echo(run.text, nl=False)
    own = f"{run.file} {session.kind.file} {FAILURES}".split()
    print_files(out, *own, "manifest.json", "superseded.jsonl", "damaged.txt")
    then(run)
    return failed_code(run.counts.values(), f"{lacking}, see {path_text(out / FAILURES)}")


def failed_code(counts: Iterable[FailureCounts], lacking: str) -> int:
    """Returns 1 if rows failed, else 0; names on stderr what they lack and what may help."""
    failed = [each for each in counts if each.failed]
    if not failed:
        return 0
    n = sum(sum(each.failed.values()) for each in failed)
    helps = "the same command tries them again"
    if not any(each.may_pass for each in failed):
        helps = "the same command helps once the cause is removed"
    typer.echo(f"apbjudge: {n} without {lacking}; {helps}", err=True)
    return 1
