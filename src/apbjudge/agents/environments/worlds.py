"""The kinds of worlds, by name and by what a path holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import OptionError, guarded, load_plugin
from .base import World
from .own_file import open_file
from .planbench.config import EpisodeConfig
from .planbench.tasks import PlanBenchTasks, holds_data, open_data

ENTRY_POINT_GROUP = "apbjudge.worlds"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldKind:
    """A kind of world; installed packages add theirs as entry points of ``apbjudge.worlds``.

    Attributes:
        name: As on the command line.
        holds: Whether a path is a world of this kind, by its content.
        open: Opens it with its settings by name; raises InputError or OptionError.
        settings: What each setting is, by name.
    """

    name: str
    holds: Callable[[Path], bool]
    open: Callable[[Path, Mapping[str, str]], World]
    settings: Mapping[str, str]


WORLD_KINDS: tuple[WorldKind, ...] = (
    WorldKind(
        name=PlanBenchTasks.name,
        holds=holds_data,
        open=open_data,
        settings={n: of.description or "" for n, of in EpisodeConfig.model_fields.items()},
    ),
)
"""The shipped ones."""


def open_world(path: Path, name: str | None = None, options: Mapping[str, str] = {}) -> World:
    """Opens a world.

    Args:
        path: A file or folder; of a Python file the class may follow, as in ``lamp.py:Lamp``.
        name: Its kind; None finds out by content, among the shipped ones.
        options: Its settings by name.

    Raises:
        OptionError: If there is no such kind, none fits, or a setting is unknown or unusable.
        InputError: If its files are missing or contradict each other.
        PluginError: If the code of an installed kind fails.
    """
    known = ", ".join(kind.name for kind in WORLD_KINDS)
    if name is None and (program := re.fullmatch(r"(.+\.py)(?::(\w*))?", str(path))):
        return open_file(Path(program[1]), program[2] or "", options)
    if name is None:
        kind = next((each for each in WORLD_KINDS if each.holds(path)), None)
        if kind is None:
            raise OptionError(
                f"WORLD: expected {known} (--kind names others) or a .py file, got {path}"
            )
    else:
        kind = next((each for each in WORLD_KINDS if each.name == name), None)
        kind = kind or load_plugin(ENTRY_POINT_GROUP, name, WorldKind, "--kind")
        if kind is None:
            raise OptionError(f"--kind: expected {known} or an installed one, got {name!r}")
    if unknown := sorted(options.keys() - kind.settings.keys()):
        settings = ", ".join(kind.settings) or "no settings"
        raise OptionError(f"--with: expected {settings}, got {unknown[0]!r}")
    return guarded(f"environment {kind.name}", kind.open)(path, options)
