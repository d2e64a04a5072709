"""Gold actions of τ² tasks carried out in the environment of the package ``tau2``, in the sandbox.

The package is imported in the sandbox's process alone (``environments/execution``).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import PluginError, UsageError

if TYPE_CHECKING:
    from ...environments.execution.host import Host

_LONGEST = 1 << 16
"""Characters of a result; more are cut off in the process."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of replaying the gold actions of a task.

    Attributes:
        policy: The instructions that its domain has for an agent.
        tools: Definitions of the domain's tools.
        results: Text of each action's result, and whether it is an error.
        fault: Reason for missing ones; empty if there are some.
    """

    policy: str
    tools: tuple[Any, ...]
    results: tuple[tuple[str, bool], ...] = ()
    fault: str = ""


def is_installed() -> bool:
    """True if the package is there, and not another one of its name; it is not imported."""
    try:
        spec = importlib.util.find_spec("tau2")
    except (ImportError, ValueError):
        return False
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return any(Path(folder, "domains").is_dir() for folder in folders)


class ReplayedDomain:
    """A domain of the package, in a process of its own from the first replay on; close it.

    Args:
        name: Of the domain.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _host(self) -> Host | None:
        from ...environments.execution.host import Host  # most sources don't need it
        from ...environments.execution.sandbox import HOSTED, Isolation

        isolation = Isolation(call_seconds=60)
        try:
            return Host(HOSTED / "tau2.py", {"replay": self._name}, isolation, lambda warning: None)
        except UsageError:
            return None

    def replay(self, start: Any, actions: Sequence[Mapping[str, Any]]) -> Replay | None:
        """Carries out the gold actions of a task; None if there is no such domain.

        Args:
            start: The ``initial_state`` of the task, as its source has it.
            actions: Each with ``name``, ``arguments`` and ``requestor``.
        """
        if self._host is None:
            return None
        (offered,) = self._host.tasks
        policy, tools = offered["system_prompt"], tuple(offered["tools"])
        results: list[tuple[str, bool]] = []
        try:
            with closing(self._host.episode()) as episode:
                episode.ask("begin", start)
                for action in actions:
                    call = action["name"], action["arguments"], action["requestor"]
                    text, is_error, _ = episode.ask("call", *call)
                    if len(text) > _LONGEST:
                        fault = f"a result of more than {_LONGEST} characters"
                        return Replay(policy, tools, fault=fault)
                    results.append((text, is_error))
        except PluginError as error:
            return Replay(policy, tools, fault=str(error))
        return Replay(policy, tools, tuple(results))

    def close(self) -> None:
        """Ends the process."""
        if (host := self.__dict__.get("_host")) is not None:
            host.close()
