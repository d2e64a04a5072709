"""What needs the folder ``agents``: commands, and the tested models of those that serve judges.

Without that folder the judge's side has all other commands, and these serve judges alone.
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
"""Commands of tested models, where they are not installed."""


class _Names(NamedTuple):
    """Names below ``apbjudge`` that are imported when they are used.

    Attributes:
        settings: The settings that a command has for tested models.
        function: Serves both.
        of_judges: Serves judges alone, in the same way.
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
    """The settings that a command has for tested models; none without them."""
    return [_imported(_TABLE[command].settings)] if _HAS_AGENTS else []


def function_of(command: str) -> Any:
    """The function that serves a command."""
    names = _TABLE[command]
    return _imported(names.function if _HAS_AGENTS else names.of_judges)


def _imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"..{module}", __package__), name)
