"""Commands, and parts of commands, that need the folder ``agents``: those for tested models.

Without that folder, all other commands exist, and commands for both serve judges alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..config import Config

_HAS_AGENTS = find_spec("..agents", __package__) is not None
LEFT_OUT = (
    []
    if _HAS_AGENTS
    else (
        "branch build check entropy execute planbench predict refine scale simulate validate"
    ).split()
)
"""Commands that are absent because the folder ``agents`` is not installed."""


class _Names(NamedTuple):
    """Import paths below ``apbjudge``, imported when they are used.

    Attributes:
        settings: The command's settings for tested models.
        function: Function for judges and tested models.
        of_judges: Function for judges alone, with the same signature.
    """

    settings: str
    function: str
    of_judges: str


_TABLE: Mapping[str, _Names] = {
    "batch export": _Names(
        "agents.prediction.config.ExportedModel",
        "agents.prediction.batching.export",
        "judge.batching.export",
    ),
    "doctor": _Names(
        "agents.prediction.config.CheckedModel",
        "agents.prediction.doctor.models_of",
        "judge.doctor.judges_of",
    ),
    "prompt": _Names(
        "agents.prediction.config.PromptConfig",
        "agents.prediction.prompt.prompt",
        "judge.prompt.prompt",
    ),
    "shards merge": _Names("", "agents.merging.shards_merge", "audits.merging.shards_merge"),
}


def settings_of(command: str) -> list[type[Config]]:
    """The command's settings for tested models; empty without the folder ``agents``."""
    return [_imported(_TABLE[command].settings)] if _HAS_AGENTS else []


def function_of(command: str) -> Any:
    """The function that serves a command."""
    names = _TABLE[command]
    return _imported(names.function if _HAS_AGENTS else names.of_judges)


def _imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"..{module}", __package__), name)
