"""The label command: options to an order, one call, and what is printed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from ..errors import visible
from ..labelling.label import Labelled, LabelOrder, label


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """The options of the command, as given.

    Attributes:
        order: What is to be labelled.
        port: Port on 127.0.0.1; 0 for a free one.
        open_browser: Whether to open the page as well as to print its address.
    """

    order: LabelOrder
    port: int = 0
    open_browser: bool = False


def run_label(options: LabelOptions) -> int:
    """Serves the page until Ctrl-C, prints what came of it and returns the exit code.

    Raises:
        UsageError: If options or input are unusable.
    """

    def started(url: str) -> None:
        typer.echo(f"open {url}\nstop with Ctrl-C; every click is saved at once")
        if options.open_browser:
            import webbrowser

            webbrowser.open(url)

    def problem(text: str) -> None:
        typer.echo(visible(text), err=True)

    done = label(options.order, port=options.port, problem=problem, started=started)
    for line in _told(done, options.order.run):
        typer.echo(line)
    return 0


def _told(done: Labelled, run: Path | None) -> Iterator[str]:
    out = visible(str(done.out))
    if not done.by_rater:
        yield f"nothing is labelled completely yet; the same command goes on from {out}"
        return
    for rater, n in done.by_rater.items():
        yield f"{visible(rater)}: {n} of {done.total} labelled"
    design = ["--design", done.design] if done.design else []
    command = ["calibrate", str(run or "RUN"), str(done.out), *design]
    yield f"labels: {out}"
    yield f"next: apbjudge {visible(shlex.join(command))}"
