"""Commands that can be stopped: Ctrl-C ends them, SIGTERM and SIGHUP pause them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer
from pydantic import Field

from ..config import Config
from ..errors import PausedError, path_text
from .options import Values

if TYPE_CHECKING:
    from ..runs.event_loops import Stop

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
    """Ends the command with its exit code where it is stopped, and says how to continue.

    Args:
        values: What the user set.
        out: The run's folder; None where nothing is kept.
    """
    from ..runs.event_loops import Stop

    stop = Stop()
    try:
        with stop.applied(), _signals_pause(stop, Stopping.of(values).grace):
            yield
    except (KeyboardInterrupt, PausedError) as error:
        is_paused = isinstance(error, PausedError)
        how, code = ("paused", PAUSED) if is_paused else ("stopped", INTERRUPTED)
        if out is not None:
            typer.echo(f"{how}; the same command continues from {path_text(out)}", err=True)
        raise typer.Exit(code) from None


@contextmanager
def _signals_pause(stop: Stop, grace_s: float) -> Generator[None]:
    """Within it, SIGTERM and SIGHUP ask for a pause.

    A second one cancels the calls in flight, a third one kills the process. A signal that is
    ignored, as SIGHUP by nohup, stays ignored.
    """
    terminals = [fd for fd in (1, 2) if os.isatty(fd)]
    signals = [s for s in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) == signal.SIG_DFL]

    def pause(sign: int, frame: object) -> None:
        for fd in terminals:
            if not os.isatty(fd):  # it was closed: writing to it would end the run
                os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
        if stop.is_paused:
            listen(signal.SIG_DFL)
        stop.pause(0.0 if stop.is_paused else grace_s)
        if not stop.watchers:  # nothing is in flight
            stop.check()

    def listen(handler: signal.Handlers | Callable[[int, object], None]) -> None:
        for sign in signals:
            signal.signal(sign, handler)

    listen(pause)
    try:
        yield
    finally:
        listen(signal.SIG_DFL)
