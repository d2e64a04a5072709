"""Runs in parts on an engine: it places the parts and starts them again, and keeps no state.

What is done stands in the manifests of the parts. The same call, after whatever happened, starts
those that are not done and merges them all.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson
from pydantic import Field

from ..agents.merging import shards_merge
from ..config import Config
from ..errors import InputError, OptionError, PausedError, path_text
from ..judge.merge import divided
from ..judge.session import Run
from ..options import takes
from ..records.run_folder import MANIFEST
from ..runs.results import ModelRun
from ..runs.shards import INDEX
from .config import ScaleConfig
from .parts import DONE, UNUSABLE, Ended, Part, run_part

Tell = Callable[[str], None]


class Plan(Config):
    """The file that describes a run in parts.

    Attributes:
        rows: What the command takes.
        out: Folder of the parts and the whole.
        parts: Number of parts.
        command: The command.
        options: Its options, by their names in Python.
    """

    rows: str
    out: str
    parts: int = Field(ge=1, le=999_999)
    command: Literal["grade", "predict", "refine", "simulate", "branch"] = "grade"
    options: Mapping[str, Any] = {}


class Engine(Protocol):
    """Runs parts; knows nothing of a part but that it ended, and how."""

    def __call__(self, parts: Sequence[Part], at_once: int) -> Iterator[tuple[Part, Ended]]:
        """Yields each part as it ends; one that was killed as paused."""
        ...


@takes(config=ScaleConfig)
def scale(
    plan: str | Path, config: ScaleConfig, *, tell: Tell = lambda line: None
) -> Run | ModelRun[Any] | None:
    """Runs a command in parts on an engine and merges the parts.

    Limits of cost, calls and tokens in the plan's options are divided by the number of parts.

    Args:
        plan: A TOML file with ``rows``, ``out``, ``parts``, perhaps ``command`` (``grade``), and a
            table ``options``.
        config: The engine.
        tell: Called with a line for each event.

    Returns:
        The merged run, in ``whole`` below ``out``; None where it is there already, or Slurm makes
        it later.

    Raises:
        InputError: If a file can't be read.
        OptionError: If the plan, an option or the input of a part is unusable.
        PausedError: If parts are not done after all starts.
        ModuleNotFoundError: If the engine is not installed.
    """
    stated = _read(Path(plan))
    out, whole = Path(stated.out), Path(stated.out, "whole")
    if _is_done(whole):
        tell(f"{path_text(whole)} holds the whole run already")
        return None
    parts = _parts(stated, tell)
    if config.engine == "slurm":
        from .slurm import submit

        tell(submit(Path(plan), stated.parts, out, config))
        return None
    if config.engine == "ray":
        from .ray import run_parts
    else:
        from .local import run_parts
    _complete(parts, run_parts, config, tell)
    folders, claim = [part.folder for part in parts], stated.options.get("claim", "lock")
    return shards_merge(folders, whole, claim=claim)


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
    parts = _parts(_read(Path(plan)), tell)
    if not 1 <= number <= len(parts):
        raise OptionError(f"--part: expected 1 to {len(parts)}, got {number}")
    part = parts[number - 1]
    return Ended(DONE) if _is_done(part.folder) else run_part(part)


def _parts(plan: Plan, tell: Tell) -> list[Part]:
    options, out = _of_part(plan, tell), Path(plan.out)
    if (out / INDEX).exists():  # other parts read it now
        numbers = range(1, plan.parts + 1)
        shards = [(f"{out / INDEX}#{i}", out / f"part-{i}") for i in numbers]
    else:
        words = [f"--{name.replace('_', '-')}" for name in options]
        shards, remarks = divided(plan.rows, words, out=out, parts=plan.parts, command=plan.command)
        for remark in remarks:
            tell(remark.removeprefix("# "))
    return [Part(plan.command, plan.rows, options, *shard) for shard in shards]


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


def _of_part(plan: Plan, tell: Tell) -> dict[str, Any]:
    """The options of a part: its share of what limits the whole."""
    options = {name.replace("-", "_"): value for name, value in plan.options.items()}
    for name in sorted({"out", "shard"} & options.keys()):
        raise OptionError(f"options: expected no {name}, which each part has of its own")
    for name in _DIVIDED:
        if name in options:
            share = options[name] / plan.parts
            options[name] = share if name == "max_cost" else max(1, int(share))
            tell(f"{name} of a part: {options[name]:g}, {options[name] * plan.parts:g} in all")
    return options


def _is_done(folder: Path) -> bool:
    try:
        return orjson.loads((folder / MANIFEST).read_bytes()).get("state") == "done"
    except (OSError, ValueError, AttributeError):
        return False


def _complete(parts: Sequence[Part], run_parts: Engine, config: ScaleConfig, tell: Tell) -> None:
    """Starts parts that are not done until they are, or were started often enough."""
    waiting = [part for part in parts if not _is_done(part.folder)]
    if n := len(parts) - len(waiting):
        tell(f"{n} of {len(parts)} parts are done already")
    for start in range(1, config.starts + 1):
        left: list[Part] = []
        for part, ended in run_parts(waiting, config.at_once):
            if ended.code == UNUSABLE:
                raise OptionError(f"{path_text(part.folder)}: {ended.text}")
            if ended.code != DONE:
                tell(f"{path_text(part.folder)}: {ended.text} (start {start} of {config.starts})")
                left.append(part)
        waiting = left
        if not waiting:
            return
    if open_parts := [path_text(part.folder) for part in waiting if not _is_done(part.folder)]:
        names = ", ".join(open_parts)
        raise PausedError(f"not done after {config.starts} starts: {names}; the same call goes on")
