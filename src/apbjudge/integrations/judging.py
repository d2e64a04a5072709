"""The judge as a part of another tool, which hands over one row at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import OptionError

OF_RUNS = ("batch", "max_calls", "max_cost", "max_seconds", "max_tokens", "shard")
"""Options that are about a run as a whole, which rows one at a time can't hold."""


def check_options(options: Mapping[str, Any], of: str) -> None:
    """Refuses options of ``grade`` that mean nothing for one row at a time.

    Args:
        options: The options by name.
        of: Name of the tool, for messages.

    Raises:
        OptionError: If one of them is stated.
    """
    if stated := [name for name in OF_RUNS if name in options]:
        raise OptionError(
            f"{of}: {stated[0]}: expected no limit of a whole run, since rows are judged one at a "
            "time: set it at the provider, or grade a file with apbjudge grade"
        )
