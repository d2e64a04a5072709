"""Runs in parts on an engine, which places the parts, starts them again, and has no state.

The manifests of the parts record which are done. The same call, after any failure, starts those
that are not done and merges them all.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from ..agents.cases.check import CaseReport
from ..agents.environments.execution.execute import ExecutionRun
from ..agents.merging import shards_merge
from ..audits.session import Audit
from ..config import Config, PartCommand
from ..errors import InputError, OptionError, PausedError, path_text, shorten
from ..jsonl import file_size
from ..judge.session import Run
from ..judge.split import COMMANDS, ROWS, divided
from ..options import takes
from ..remote import address_in, shown
from ..runs.loop import QUIET
from ..runs.results import ModelRun
from ..runs.shards import INDEX, read_index
from .config import ScaleConfig
from .parts import DONE, UNUSABLE, Ended, Part, check_alike, manifest_of, run_part

Tell = Callable[[str], None]


class Plan(Config):
    """The file that describes a run in parts.

    Attributes:
        rows: Input of the command.
        out: Folder of the parts and the whole.
        parts: Number of parts.
        command: The command.
        options: Its options, by their names in Python.
    """

    rows: str
    out: str
    parts: int = Field(ge=1, le=999_999)
    command: PartCommand = "grade"
    options: Mapping[str, Any] = {}


class Engine(Protocol):
    """Runs parts; gets only the ending of each part."""

    def __call__(self, parts: Sequence[Part], at_once: int) -> Generator[tuple[Part, Ended]]:
        """Yields each part as it ends; one that was killed as paused."""
        ...


@takes(config=ScaleConfig)
def scale(
    plan: str | Path,
    config: ScaleConfig,
    *,
    tell: Tell = lambda line: None,
    grace_s: float = 60.0,
) -> Run | ModelRun[Any] | ExecutionRun | Audit | CaseReport | None:
    """Runs a command in parts on an engine and merges the parts.

    Behind the merge of ``check`` and ``audit`` the command itself follows, on all rows and with the
    merged replies. Limits of cost, calls and tokens in the plan's options are divided among the
    parts, each of which is then started once, and that last command.

    Args:
        plan: A TOML file with ``rows``, ``out``, ``parts``, perhaps ``command`` (``grade``), and a
            table ``options``.
        config: The engine.
        tell: Called with a line for each event.
        grace_s: Seconds that calls in flight have to finish when it is stopped.

    Returns:
        The merged run, in ``whole`` below ``out``, or what the last command makes of it; None where
        there is no such command and the run is there already, or Slurm makes it later.

    Raises:
        InputError: If a file can't be read.
        OptionError: If the plan, an option or the input of a part is unusable.
        PausedError: If parts are not done after all starts.
        ModuleNotFoundError: If the engine is not installed.
    """
    stated = _read(Path(plan))
    if address := address_in(stated.out):
        raise OptionError(f"{plan}: out: expected a folder on this machine, got {address!r}")
    options, has_last = _of_part(stated, tell), COMMANDS[stated.command].has_last
    whole = Part(stated.command, stated.rows, options, None, Path(stated.out, "whole"))
    merged = None
    if _is_merged(whole):
        name = path_text(whole.folder)
        tell(f"{name} holds the whole run already; another plan needs another out")
    else:
        parts = [part._replace(grace_s=grace_s) for part in _parts(stated, options, tell)]
        if limits := _LIMITS & options.keys():  # each start of a part has them anew
            tell(f"parts are started once, because of {', '.join(sorted(limits))}")
            config = config.model_copy(update={"starts": 1})
        if config.engine == "slurm":
            from .slurm import submit

            tell(submit(Path(plan), stated.parts, Path(stated.out), config))
            return None
        if config.engine == "ray":
            from . import ray

            run_parts = partial(ray.run_parts, retries=0 if limits else ray.RETRIES)
        else:
            from .local import run_parts
        _complete(parts, run_parts, config, tell)
        folders, claim = [part.folder for part in parts], options.get("claim", "lock")
        merged = shards_merge(folders, whole.folder, claim=claim)
    return whole.call(replace(QUIET, bad_row=tell, note=tell)) if has_last else merged


def scale_part(plan: str | Path, number: int, tell: Tell) -> Ended:
    """Runs one part in this process, as a job of an array does.

    Args:
        plan: The file, as ``scale`` takes it.
        number: Number of the part, from 1.
        tell: Called with a line for each event.

    Raises:
        InputError: If a file can't be read.
        OptionError: If the plan is unusable, or there is no such part.
    """
    stated = _read(Path(plan))
    parts = _parts(stated, _of_part(stated, tell), tell)
    if not 1 <= number <= len(parts):
        raise OptionError(f"--part: expected 1 to {len(parts)}, got {number}")
    part = parts[number - 1]
    return Ended(DONE) if part.is_done else run_part(part)


def _parts(plan: Plan, options: Mapping[str, Any], tell: Tell) -> list[Part]:
    out, of_last = Path(plan.out), COMMANDS[plan.command].of_last
    if (out / INDEX).exists():  # other parts read it now
        rows = _rows_of_index(out / INDEX, plan)
        numbers = range(1, plan.parts + 1)
        shards = [(f"{out / INDEX}#{i}", out / f"part-{i}") for i in numbers]
    else:
        rows, shards, remarks = divided(
            plan.rows, options, out=out, parts=plan.parts, command=plan.command
        )
        for remark in remarks:
            tell(remark.removeprefix("# "))
    own = {name: value for name, value in options.items() if name != of_last}
    return [Part(plan.command, rows, own, *shard) for shard in shards]


def _rows_of_index(path: Path, plan: Plan) -> str:
    """The rows that the parts of an index read.

    Raises:
        InputError: If it is of other rows than the plan's: some may be done already.
        OptionError: If it is of another number of parts.
    """
    index, address = read_index(path), address_in(plan.rows)
    origin = index.origin
    if origin is not None and origin.path != (shown(address) or path_text(Path(plan.rows))):
        raise InputError(
            f"{plan.rows}: expected {origin.path}, the file that {path_text(path)} divides; choose "
            "another out for other rows"
        )
    of = index if origin is None else origin
    is_file = not address and of.bytes is not None
    if is_file and of.bytes != (size := file_size(Path(plan.rows))):
        raise InputError(
            f"{plan.rows}: expected the file that {path_text(path)} divides, of {of.bytes} "
            f"bytes, got one of {size}; choose another out for other rows"
        )
    if (n := len(index.parts)) != plan.parts:
        raise OptionError(
            f"parts: expected {n}, into which {path_text(path)} divides the rows, got "
            f"{plan.parts}; choose another out for another number"
        )
    return plan.rows if origin is None else str(path.with_name(ROWS))


def _read(path: Path) -> Plan:
    try:
        return Plan(**tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected TOML: {error}") from None
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None


_DIVIDED = ("max_cost", "max_calls", "max_tokens")
_LIMITS = {*_DIVIDED, "max_seconds"}
_OF_PARTS = ("out", "shard", "client", "events")
"""Parameters of the commands that a plan can't state."""


def _of_part(plan: Plan, tell: Tell) -> dict[str, Any]:
    """The options of a part, with its share of the limits of the whole."""
    options = {name.replace("-", "_"): value for name, value in plan.options.items()}
    of = COMMANDS[plan.command]
    if of.asks and not isinstance(judge := options.get(of.asks), str):
        raise OptionError(
            f"options: expected {of.asks}, the judge whose replies are merged, got {shorten(judge)}"
        )
    for name in (of.rows, of.out, *_OF_PARTS):
        if name in options:
            raise OptionError(f"options: expected no {name}, which each part has of its own")
    n = plan.parts + of.has_last  # which may try again what has no result
    for name in _DIVIDED:
        if name in options:
            limit: Any = options[name]
            if isinstance(limit, bool) or not isinstance(limit, int | float):
                raise OptionError(f"options: {name}: expected a number, got {shorten(limit)}")
            share = limit / n if name == "max_cost" else int(limit // n)
            if not share:
                raise OptionError(
                    f"options: {name}: expected at least 1 for each of {n} parts, got {limit}"
                )
            options[name] = share
            tell(f"{name} of a part: {share:g}, {share * n:g} in all")
    return options


def _is_merged(whole: Part) -> bool:
    """True if the parts were merged into it; the last command may have begun since."""
    manifests = [manifest_of(run) for run in whole.runs]
    return bool(manifests) and all(
        of and (of.get("state") == "done" or "parts" not in of) for of in manifests
    )


def _check_division(part: Part, count: int) -> None:
    """Refuses a part of another number of parts; for parts of an index see ``_check_index``."""
    shard = manifest_of(part.runs[0]).get("identity", {}).get("shard", "")
    if (n := str(shard).partition("@")[0].partition("/")[2]) != str(count):
        raise OptionError(
            f"parts: expected {n}, of which {path_text(part.folder)} is one, got {count}; choose "
            "another out for another number"
        )


def _complete(parts: Sequence[Part], run_parts: Engine, config: ScaleConfig, tell: Tell) -> None:
    """Starts unfinished parts again until they are done or the limit of starts is reached."""
    done, waiting = list[Part](), list[Part]()
    for part in parts:
        (done if part.is_done else waiting).append(part)
    if done:
        tell(f"{len(done)} of {len(parts)} parts are done already")
        _check_division(done[0], len(parts))
        for part in done[1:]:
            check_alike(done[0].folder, part.folder)
        waiting = [part._replace(like=done[0].folder) for part in waiting]
    for start in range(1, config.starts + 1):
        if not waiting:
            return
        left = set[Path]()
        with closing(run_parts(waiting, config.at_once)) as running:
            for part, ended in running:
                if ended.code == UNUSABLE:
                    raise OptionError(f"{path_text(part.folder)}: {ended.text}")
                if ended.code != DONE:
                    tell(
                        f"{path_text(part.folder)}: {ended.text} (start {start} of {config.starts})"
                    )
                    left.add(part.folder)
        waiting = [part for part in waiting if part.folder in left]  # parts end in any order
    if open_parts := [path_text(part.folder) for part in waiting if not part.is_done]:
        names, times = ", ".join(open_parts), f"{config.starts} start{'s' * (config.starts > 1)}"
        raise PausedError(f"not done after {times}: {names}; the same call continues")
