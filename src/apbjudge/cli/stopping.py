"""Commands that can be stopped: Ctrl-C ends them, SIGTERM and SIGHUP pause them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import typer
from pydantic import Field

from ..config import Config
from ..errors import PausedError, path_text
from .options import Values

PAUSED, INTERRUPTED = 75, 130
"""Exit codes: EX_TEMPFAIL of sysexits.h, and what shells expect after Ctrl-C."""


class Stopping(Config):
    """Options to pause a command that asks models."""

    groups: ClassVar[Mapping[str, str]] = {"Run": "grace"}

    grace: float = Field(
        default=60.0,
        ge=0,
        description="Seconds that calls in flight have to finish after SIGTERM or SIGHUP; the exit "
        "code is then 75.",
    )


@contextmanager
def stoppable(values: Values, out: Path | None) -> Generator[None]:
    """Ends a stopped command with its exit code, and says how to continue.

    Args:
        values: Values set by the user.
        out: The run's folder; None if there is none to continue from.
    """
    from ..runs.event_loops import Stop, signals_pause

    stop = Stop()
    try:
        with stop.applied(), signals_pause(stop, Stopping.of(values).grace):
            yield
    except (KeyboardInterrupt, PausedError) as error:
        is_paused = isinstance(error, PausedError)
        how, code = ("paused", PAUSED) if is_paused else ("stopped", INTERRUPTED)
        if out is not None:
            typer.echo(f"{how}; the same command continues from {path_text(out)}", err=True)
        raise typer.Exit(code) from None
