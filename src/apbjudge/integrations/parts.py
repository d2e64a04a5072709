"""A part of a run, in the form that an engine can send to another process or machine."""

from __future__ import annotations

import sys
from asyncio import Runner
from atexit import register
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from functools import cache
from gc import freeze
from importlib import import_module
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, NamedTuple, cast

import orjson

from ..config import PartCommand
from ..errors import ApbJudgeError, BusyError, OptionError, PausedError, path_text, visible
from ..judge.split import COMMANDS
from ..llm.failures import may_pass
from ..llm.pool import Pool
from ..records.run_folder import MANIFEST
from ..runs.event_loops import current_stop, one_loop, signals_pause
from ..runs.loop import Events, Progress
from ..runs.results import FailureCounts
from ..runs.resume import changed_settings

DONE, LEFT, UNUSABLE, PAUSED = 0, 1, 2, 75
"""Outcomes of a part, as exit codes of commands."""


class Part(NamedTuple):
    """A part of a run, or the whole.

    Attributes:
        command: The command; its function has the same name.
        rows: Input of the command.
        options: The command's other options, by their names in Python.
        shard: Value of the option ``shard``; None for the whole run.
        folder: Folder of the part's run, or of its runs.
        grace_s: Seconds that calls in flight have to finish after SIGTERM.
        like: Folder of another part, whose settings must be the same; None if there is none.
    """

    command: PartCommand
    rows: str
    options: Mapping[str, Any]
    shard: str | None
    folder: Path
    grace_s: float = 60.0
    like: Path | None = None

    @property
    def runs(self) -> list[Path]:
        """Folders of its runs; empty for an audit without a manifest (an unfinished merge)."""
        match self.command:
            case "audit" if (self.folder / MANIFEST).exists():
                return [path.parent for path in sorted(self.folder.glob(f"*/*/{MANIFEST}"))]
            case "audit":
                return []
            case "execute":
                modes = self.options.get("mode", "direct")
                return [self.folder / of for of in ([modes] if isinstance(modes, str) else modes)]
            case _:
                return [self.folder]

    @property
    def is_done(self) -> bool:
        """True if all its runs are finished."""
        manifests = [manifest_of(run) for run in self.runs]
        return bool(manifests) and all(of.get("state") == "done" for of in manifests)

    def call(self, events: Events) -> Any:
        """Runs the command; returns its result."""
        of, function = COMMANDS[self.command], getattr(import_module("apbjudge"), self.command)
        own = {of.rows: self.rows, of.out: self.folder, "shard": self.shard}
        return function(**own, **self.options, events=events)


class Ended(NamedTuple):
    """Outcome of a part, with a message."""

    code: int
    text: str = ""


def run_part(part: Part) -> Ended:
    """Runs a part in this process; its notes go to stderr."""
    name = part.folder.name

    def say(text: str) -> None:
        sys.stderr.write(f"{name}: {visible(text)}\n")

    is_checked = False

    def check(progress: Progress) -> None:
        """Refuses a part with changed settings at the first report, after few calls at most."""
        nonlocal is_checked
        if part.like is not None and not is_checked:
            check_alike(part.like, part.folder)
        is_checked = True

    events = Events(progress=check, bad_row=say, note=say)
    stop = current_stop()
    is_main = current_thread() is main_thread()  # others can't set handlers
    try:
        with stop.applied(), signals_pause(stop, part.grace_s) if is_main else nullcontext():
            run = part.call(events)
    except PausedError:
        return Ended(PAUSED, "paused")
    except BusyError as error:  # a killed engine's process, or another engine, runs it
        return Ended(PAUSED, str(error))
    except ApbJudgeError as error:
        return Ended(UNUSABLE, str(error))
    n = sum(
        n
        for of in _failures(part.command, run)
        for reason, n in of.failed.items()
        if may_pass(reason, of.last_errors.get(reason, ""))
    )
    return Ended(LEFT, f"{n} rows have no result yet") if n else Ended(DONE)


def _failures(command: PartCommand, run: Any) -> Iterable[FailureCounts]:
    """Counts of rows without a result in a run of a command."""
    match command:
        case "grade":
            return [FailureCounts(failed=run.summary.totals.unscored)]
        case "audit":
            reasons = Counter(of.reason for of in run.responses.all if not of.is_scored)
            return [FailureCounts(failed=reasons)]
        case "check":
            reasons = Counter(of.reason for of in run.unanswered)
            texts = {of.reason: of.detail for of in run.unanswered}
            return [FailureCounts(failed=reasons, last_errors=texts)]
        case "execute":
            return run.counts
        case _:
            return run.counts.values()


def run_in_worker(part: Part) -> Ended:
    """Runs a part in a process that runs several: connections and caches stay open in between."""
    runner, pool = _of_worker()
    with one_loop(runner), pool.shared():
        return run_part(part)


@cache
def _of_worker() -> tuple[Runner, Pool]:
    """The event loop of this process, and the pool that its parts share."""
    freeze()  # imported objects stay, so no garbage collection needs to look at them again
    runner, pool = Runner(), Pool()

    @register
    def close() -> None:  # pyright: ignore[reportUnusedFunction]
        runner.run(pool.close())
        runner.close()

    return runner, pool


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a part's run; empty if there is none that can be read."""
    try:
        manifest: object = orjson.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", manifest) if isinstance(manifest, dict) else {}


def check_alike(one: Path, other: Path) -> None:
    """Refuses two parts whose runs of the same name differ in settings: they can't be merged.

    Raises:
        OptionError: If they do.
    """
    for path in sorted(other.glob(f"**/{MANIFEST}")):
        name = path.parent.relative_to(other)
        if not (before := _settings(one / name)):
            continue
        if changed := changed_settings(before, _settings(path.parent)):
            names = f"{path_text(one)} and {path_text(other)}"
            raise OptionError(
                f"{names} have different settings ({visible(', '.join(changed))}): choose another "
                "out for another plan"
            )


def _settings(run: Path) -> dict[str, Any]:
    """The settings of a run, without the number of its part."""
    identity = manifest_of(run).get("identity", {})
    return {name: value for name, value in identity.items() if name != "shard"}
