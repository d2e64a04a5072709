"""The protocols, and which of them grades a row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import entry_points

from ..errors import OptionError
from ..records import SPLITS, Item
from .base import Protocol
from .efficiency import EFFICIENCY
from .holistic import HOLISTIC
from .step_wise import STEP_WISE
from .tool_broken import TOOL_BROKEN
from .tool_extraneous import TOOL_EXTRANEOUS
from .unsolvable import UNSOLVABLE

PROTOCOLS: Mapping[str, Protocol] = {
    "holistic": HOLISTIC,
    "step-wise": STEP_WISE,
    "tool-extraneous": TOOL_EXTRANEOUS,
    "tool-broken": TOOL_BROKEN,
    "unsolvable": UNSOLVABLE,
    "efficiency": EFFICIENCY,
}
"""The six protocols of the Agent Planning Benchmark (arXiv:2606.04874)."""

ENTRY_POINT_GROUP = "apbjudge.protocols"
AUTO = "auto"


@lru_cache(maxsize=32)
def get_protocol(name: str) -> Protocol:
    """A protocol by name: one of the six, or one that an installed package adds.

    Raises:
        OptionError: If there is none of that name.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    entries = [entry for entry in entry_points(group=ENTRY_POINT_GROUP) if entry.name == name]
    if not entries:
        known = ", ".join([*PROTOCOLS, AUTO])
        raise OptionError(f"--protocol: expected one of {known}, got {name!r}")
    protocol = entries[0].load()
    if not isinstance(protocol, Protocol):
        raise OptionError(f"--protocol: {name!r} is not an apbjudge Protocol")
    return protocol


def protocol_of(item: Item) -> Protocol:
    """The protocol of a row (``auto``): by its split, else by its fields."""
    if item.split is not None:
        return PROTOCOLS[SPLITS[item.split][1]]
    if item.condition.unsolvable_type is not None:
        return UNSOLVABLE
    if item.condition.broken_tool is not None:
        return TOOL_BROKEN
    if item.condition.extraneous:
        return TOOL_EXTRANEOUS
    if item.form == "steps":
        return STEP_WISE
    return EFFICIENCY if item.tools is not None and item.tools.has_costs else HOLISTIC
