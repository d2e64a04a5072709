"""Gold actions of τ² tasks carried out in the environment of the package ``tau2``, in the sandbox.

The package is imported in the sandbox's process alone (``environments/execution``).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import PluginError, UsageError

if TYPE_CHECKING:
    from ...environments.execution.host import Host

BATCH = 16
"""Tasks of one process."""
_LONGEST = 1 << 16
"""Characters of a result; more are cut off in the process."""


@dataclass(frozen=True, slots=True)
class ReplayedWorld:
    """What a domain offers an agent.

    Attributes:
        policy: Its instructions.
        tools: Definitions of its tools.
    """

    policy: str
    tools: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a task.

    Attributes:
        results: Text of each action's result, and whether it is an error.
        fault: Why there are none; empty where there are.
    """

    results: tuple[tuple[str, bool], ...] = ()
    fault: str = ""


def is_installed() -> bool:
    """Whether the package is there, and not another one of its name; it is not imported."""
    try:
        spec = importlib.util.find_spec("tau2")
    except (ImportError, ValueError):
        return False
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return any(Path(folder, "domains").is_dir() for folder in folders)


def replay(
    domain: str, tasks: Sequence[Mapping[str, Any]]
) -> tuple[ReplayedWorld | None, list[Replay]]:
    """Carries out the gold actions of tasks, each in an environment of its own.

    Args:
        domain: Name of the domain.
        tasks: Each with ``initial_state`` and ``actions``, as the source has them.

    Returns:
        The world; what came of each task. None and nothing where there is no such world.
    """
    from ...environments.execution.host import Host  # which most sources don't need
    from ...environments.execution.sandbox import HOSTED, Isolation

    isolation = Isolation(call_seconds=60)
    try:
        host = Host(HOSTED / "tau2.py", {"replay": domain}, isolation, lambda warning: None)
    except UsageError:
        return None, []
    with closing(host):
        (offered,) = host.tasks
        world = ReplayedWorld(offered["system_prompt"], tuple(offered["tools"]))
        return world, [_replayed(host, task) for task in tasks]


def _replayed(host: Host, task: Mapping[str, Any]) -> Replay:
    results: list[tuple[str, bool]] = []
    try:
        with closing(host.episode()) as episode:
            episode.ask("begin", task["initial_state"])
            for action in task["actions"]:
                call = action["name"], action["arguments"], action["requestor"]
                text, is_error, _ = episode.ask("call", *call)
                if len(text) > _LONGEST:
                    return Replay(fault=f"a result of more than {_LONGEST} characters")
                results.append((text, is_error))
    except PluginError as error:
        return Replay(fault=str(error))
    return Replay(tuple(results))
