"""``apbjudge label``: a local page on which humans label items."""

from __future__ import annotations

import typer
from pydantic import Field

from ..config import Config
from ..errors import visible
from ..labelling.config import LabelConfig
from .options import Values, command, print_next


class Browser(Config):
    """Options for the finished page."""

    open: bool = Field(default=False, description="Open the page in the browser.")


@command(LabelConfig, Browser)
def label(values: Values) -> int:
    """Serves a local page on which humans label items, until Ctrl-C.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..labelling.label import label as serve

    config, opens = LabelConfig.of(values), Browser.of(values).open

    def started(url: str) -> None:
        typer.echo(f"open {url}\nstop with Ctrl-C; every click is saved at once")
        if opens:
            import webbrowser

            webbrowser.open(url)

    def problem(text: str) -> None:
        typer.echo(visible(text), err=True)

    done = serve(config, problem=problem, started=started)
    out = visible(str(done.out))
    for file in done.files:
        typer.echo(f"wrote {visible(str(file))}")
    if config.export_label_studio is not None:
        return 0
    if done.total and not done.by_rater:
        typer.echo(f"no item is labelled completely yet; the same command continues from {out}")
        return 0
    for rater, n in done.by_rater.items():
        typer.echo(f"{visible(rater)}: {n} of {done.total} labelled")
    if config.adjudicate and (n_open := done.total - max(done.by_rater.values(), default=0)):
        typer.echo(f"{n_open} undecided: {out} lacks them, and items with agreement are easier")
        return 0
    design = ["--design", done.design] if done.design else []
    typer.echo(f"labels: {out}")
    print_next("calibrate", config.run or "RUN", done.out, *design, err=False)
    return 0
