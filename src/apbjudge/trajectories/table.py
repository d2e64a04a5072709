"""The protocols for whole trajectories, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ..errors import load_plugin
from .base import TrajectoryProtocol
from .outcome import OUTCOME
from .planbench.protocol import PLANBENCH
from .slate.protocol import SLATE

TRAJECTORY_PROTOCOLS: Mapping[str, TrajectoryProtocol] = {
    protocol.name: protocol for protocol in (OUTCOME, PLANBENCH, SLATE)
}
ENTRY_POINT_GROUP = "apbjudge.trajectory_protocols"


@lru_cache(maxsize=32)
def trajectory_protocol(name: str) -> TrajectoryProtocol | None:
    """A protocol for whole trajectories, shipped or from an installed package; None if unknown.

    Raises:
        OptionError: If a package adds something other than a TrajectoryProtocol under the name.
        PluginError: If the package can't be imported.
    """
    if name in TRAJECTORY_PROTOCOLS:
        return TRAJECTORY_PROTOCOLS[name]
    return load_plugin(ENTRY_POINT_GROUP, name, TrajectoryProtocol, "--protocol")
