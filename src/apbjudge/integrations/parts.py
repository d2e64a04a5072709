"""A part of a run, as an engine gets it: it can be sent to another process or machine."""

from __future__ import annotations

import sys
from asyncio import Runner
from atexit import register
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache
from gc import freeze
from importlib import import_module
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, NamedTuple, cast

import orjson

from ..errors import ApbJudgeError, BusyError, OptionError, PausedError, path_text, visible
from ..judge.session import Run
from ..llm.failures import may_pass
from ..llm.pool import Pool
from ..records.run_folder import MANIFEST
from ..runs.event_loops import current_stop, one_loop, signals_pause
from ..runs.loop import Events, Progress
from ..runs.resume import changed_settings

DONE, LEFT, UNUSABLE, PAUSED = 0, 1, 2, 75
"""The ending of a part, as exit codes of commands."""


class Part(NamedTuple):
    """A part of a run.

    Attributes:
        command: The command; its function has the same name.
        rows: What it takes.
        options: Its options, by their names in Python.
        shard: The part, for ``shard``.
        folder: Folder of its run.
        grace_s: Seconds that calls in flight have to finish after SIGTERM.
        like: Folder of another part whose run is of the same settings; None where there is none.
    """

    command: str
    rows: str
    options: Mapping[str, Any]
    shard: str
    folder: Path
    grace_s: float = 60.0
    like: Path | None = None


class Ended(NamedTuple):
    """The ending of a part, with a message."""

    code: int
    text: str = ""


def run_part(part: Part) -> Ended:
    """Runs a part in this process; its reports go to standard error."""
    name = part.folder.name

    def say(text: str) -> None:
        sys.stderr.write(f"{name}: {visible(text)}\n")

    is_checked = False

    def check(progress: Progress) -> None:
        """Refuses a plan whose settings changed, before more than a few calls are made."""
        nonlocal is_checked
        if part.like is not None and not is_checked:
            check_alike(part.like, part.folder)
        is_checked = True

    function = getattr(import_module("apbjudge"), part.command)
    events = Events(progress=check, bad_row=say, note=say)
    stop = current_stop()
    is_main = current_thread() is main_thread()  # only there are signals taken
    try:
        with stop.applied(), signals_pause(stop, part.grace_s) if is_main else nullcontext():
            run = function(
                part.rows, shard=part.shard, out=part.folder, events=events, **part.options
            )
    except PausedError:
        return Ended(PAUSED, "paused")
    except BusyError as error:  # left by an engine that was killed, or another one is at it
        return Ended(PAUSED, str(error))
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


def run_in_worker(part: Part) -> Ended:
    """Runs a part in a process that runs others: connections and caches stay open in between."""
    runner, pool = _of_worker()
    with one_loop(runner), pool.shared():
        return run_part(part)


@cache
def _of_worker() -> tuple[Runner, Pool]:
    """The event loop of this process, and what its parts share."""
    freeze()  # all that is imported stays: no collection of garbage need look at it again
    runner, pool = Runner(), Pool()

    @register
    def close() -> None:  # pyright: ignore[reportUnusedFunction]
        runner.run(pool.close())
        runner.close()

    return runner, pool


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a part's run; empty where there is none."""
    try:
        manifest: object = orjson.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", manifest) if isinstance(manifest, dict) else {}


def check_alike(one: Path, other: Path) -> None:
    """Refuses two parts of different settings, which could never be merged.

    Raises:
        OptionError: If they are.
    """
    identities = [
        {
            name: value
            for name, value in manifest_of(of).get("identity", {}).items()
            if name != "shard"
        }
        for of in (one, other)
    ]
    if changed := changed_settings(*identities):
        names = f"{path_text(one)} and {path_text(other)}"
        raise OptionError(
            f"{names} have different settings ({visible(', '.join(changed))}): choose another out "
            "for another plan"
        )
