"""A sample of the tools of all tasks of a source, from which distractors are drawn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import orjson

from ...records import Tool
from ...records.keys import short_key
from .likeness import definition_of, does_work, likeness
from .seeds import Seed

MOST_TOOLS = 4096
"""Size of a pool: the tools with the lowest hashes stay, in whatever order seeds come."""
_DRAWN = 64


class PooledTool(NamedTuple):
    """A tool, and the category of a task that offers it."""

    tool: Tool
    category: str


@dataclass(slots=True)
class ToolPool:
    """A sample of the tools that tasks offer; filled first, then drawn from."""

    _by_key: dict[int, PooledTool] = field(default_factory=dict[int, PooledTool])
    _listed: list[PooledTool] = field(default_factory=list[PooledTool])

    def add(self, seed: Seed) -> None:
        """Adds the tools of a seed, without those that end its task.

        Raises:
            RowError: If they can't be read.
        """
        for tool in seed.toolset.tools:
            if does_work(tool.name, seed.ends):
                key = short_key(orjson.dumps(definition_of(tool)).decode())
                self._by_key.setdefault(key, PooledTool(tool, seed.category))
        if len(self._by_key) > 2 * MOST_TOOLS:
            self.close()

    def close(self) -> None:
        """Ends the filling: from now on the order in which seeds were added does not matter."""
        self._by_key = {key: self._by_key[key] for key in sorted(self._by_key)[:MOST_TOOLS]}
        self._listed = list(self._by_key.values())

    def __len__(self) -> int:
        return len(self._listed)

    def draw(self, rng: Random, like: Collection[Tool], *, category: str) -> list[Tool]:
        """Some tools, those nearest to the given ones in subject first.

        Args:
            rng: Draws the tools that are compared.
            like: Tools of a task.
            category: Its category: of equally near tools, those in the same category come first.

        Returns:
            At most 64 tools, each name once.
        """
        n = min(_DRAWN, len(self._listed))
        drawn = [self._listed[i] for i in rng.sample(range(len(self._listed)), n)]

        def nearness(pooled: PooledTool) -> tuple[bool, float]:
            return pooled.category == category != "", likeness(pooled.tool, *like)

        drawn.sort(key=nearness, reverse=True)
        by_name: dict[str, Tool] = {}
        for pooled in drawn:
            by_name.setdefault(pooled.tool.name, pooled.tool)
        return list(by_name.values())
