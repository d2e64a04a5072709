"""The protocols for whole runs, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import entry_points

from ..errors import OptionError
from .base import TrajectoryProtocol
from .outcome import OUTCOME
from .planbench.protocol import PLANBENCH
from .slate.protocol import SLATE

RUN_PROTOCOLS: Mapping[str, TrajectoryProtocol] = {
    protocol.name: protocol for protocol in (OUTCOME, PLANBENCH, SLATE)
}
ENTRY_POINT_GROUP = "apbjudge.trajectory_protocols"


@lru_cache(maxsize=32)
def run_protocol(name: str) -> TrajectoryProtocol | None:
    """A protocol for whole runs, shipped or added by an installed package; None if it is none.

    Raises:
        OptionError: If what a package adds under the name is no TrajectoryProtocol.
    """
    if name in RUN_PROTOCOLS:
        return RUN_PROTOCOLS[name]
    entries = [entry for entry in entry_points(group=ENTRY_POINT_GROUP) if entry.name == name]
    if not entries:
        return None
    protocol = entries[0].load()
    if not isinstance(protocol, TrajectoryProtocol):
        raise OptionError(f"--protocol: {name!r} is not an apbjudge TrajectoryProtocol")
    return protocol
