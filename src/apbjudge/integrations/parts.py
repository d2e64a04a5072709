"""A part of a run, as an engine gets it: it can be sent to another process or machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, NamedTuple

from ..errors import ApbJudgeError, PausedError, visible
from ..judge.session import Run
from ..llm.failures import may_pass
from ..runs.event_loops import current_stop, signals_pause
from ..runs.loop import Events, Progress

DONE, LEFT, UNUSABLE, PAUSED = 0, 1, 2, 75
"""How a part ended, as the exit codes of commands say it."""
GRACE_S = 60.0
"""Seconds that calls in flight have to finish after SIGTERM."""


class Part(NamedTuple):
    """A part of a run.

    Attributes:
        command: The command; its function has the same name.
        rows: What it takes.
        options: Its options, by their names in Python.
        shard: The part, for ``shard``.
        folder: Folder of its run.
    """

    command: str
    rows: str
    options: Mapping[str, Any]
    shard: str
    folder: Path


class Ended(NamedTuple):
    """How a part ended, and what there is to say of it."""

    code: int
    text: str = ""


def run_part(part: Part) -> Ended:
    """Runs a part in this process; what it reports goes to standard error."""
    name = part.folder.name

    def say(text: str) -> None:
        sys.stderr.write(f"{name}: {visible(text)}\n")

    function = getattr(import_module("apbjudge"), part.command)
    events = Events(progress=_ignore, bad_row=say, note=say)
    stop = current_stop()
    is_main = current_thread() is main_thread()  # only there are signals taken
    try:
        with stop.applied(), signals_pause(stop, GRACE_S) if is_main else nullcontext():
            run = function(
                part.rows, shard=part.shard, out=part.folder, events=events, **part.options
            )
    except PausedError:
        return Ended(PAUSED, "paused")
    except ApbJudgeError as error:
        return Ended(UNUSABLE, str(error))
    if isinstance(run, Run):
        failed = [(run.summary.totals.unscored, dict[str, str]())]
    else:
        failed = [(counts.failed, counts.last_errors) for counts in run.counts.values()]
    n = sum(
        n
        for of, texts in failed
        for reason, n in of.items()
        if may_pass(reason, texts.get(reason, ""))
    )
    return Ended(LEFT, f"{n} rows have no result yet") if n else Ended(DONE)


def _ignore(progress: Progress) -> None:
    """Nobody looks at the progress of a part among many."""
