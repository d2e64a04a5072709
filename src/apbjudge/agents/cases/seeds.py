"""Seeds of cases: a task with the tools offered and a solution that worked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from random import Random
from typing import Any, cast

import orjson

from ...records import FileRef, Tool, Toolset
from ...records.tools import build_toolset
from ...records.trajectories import Trajectory


@dataclass(frozen=True, slots=True)
class SeedCall:
    """A call of the solution.

    Attributes:
        name: The tool.
        arguments: As passed.
        step: Index of its step among all steps of the trajectory.
        result: Result as text; None if the source does not state it.
        needs: Parameter to the index, among the solution's calls, of the earlier call that its
            value comes from. The values of others are known from the task.
    """

    name: str
    arguments: Mapping[str, Any]
    step: int
    result: str | None = None
    needs: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def own_values(self) -> list[Leaf]:
        """The texts and numbers in its arguments that come from no result."""
        return leaves([value for name, value in self.arguments.items() if name not in self.needs])


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A task with its solution, whatever source it comes from.

    Attributes:
        trajectory: Query, system prompt, tools and steps of the solution. Its ``trajectory_id``
            names the seed, its ``place`` where it was read. A source without a solution has no
            steps.
        calls: The solution's calls in order, failed ones left out.
        files: Files of the task.
        source: Name of the data set.
        licence: Its licence; empty if it is not stated.
        plan: Prose of the solution; empty without.
        category: Category of the task; empty without.
        ends: Names of the tools that end the task; None if the source does not say.
        repairs: Repairs made while reading it, as short clauses.
        invented: Tools that a model made up, which can't serve the task.
        private: The query with a reference to private knowledge in place of a value, and that
            value; None without.
        requirements: Kind of contradiction, or ``tool_removal``, to the sentences that a model
            wrote for it, in place of a template.
        model: The model that wrote ``invented``, ``private``, ``requirements`` and the texts in
            ``written``; None if none did.
        written: Texts of the seed that it wrote: the query, the plan.
    """

    trajectory: Trajectory
    calls: tuple[SeedCall, ...] = ()
    files: tuple[FileRef, ...] = ()
    source: str = ""
    licence: str = ""
    plan: str = ""
    category: str = ""
    ends: frozenset[str] | None = None
    repairs: tuple[str, ...] = ()
    invented: tuple[Tool, ...] = ()
    private: tuple[str, str] | None = None
    requirements: Mapping[str, str] = field(default_factory=dict[str, str])
    model: str | None = None
    written: tuple[str, ...] = ()

    @property
    def seed_id(self) -> str:
        """Its name, unique in its source."""
        return self.trajectory.trajectory_id

    @cached_property
    def toolset(self) -> Toolset:
        """The tools offered, read.

        Raises:
            RowError: If they can't be read.
        """
        return build_toolset(list(self.trajectory.tools or ()), None, "tools")

    def tool(self, name: str) -> Tool | None:
        """A tool by name; None if it is not offered."""
        return self.toolset.by_name.get(name)

    @property
    def place(self) -> str:
        """The file that it was read from, with the line where it has one."""
        place = self.trajectory.place
        return f"{place.file}:{place.line}" if place.line else place.file

    @property
    def turns(self) -> list[int]:
        """Indices of the steps in which the user says something; the first is the query."""
        steps = enumerate(self.trajectory.steps)
        return [at for at, step in steps if step.source == "user" and step.text]

    @property
    def used(self) -> frozenset[str]:
        """Names of the tools that the solution calls."""
        return frozenset(call.name for call in self.calls)

    @property
    def has_results(self) -> bool:
        """True if the result of every call is known."""
        return all(call.result is not None for call in self.calls)


def is_visual(file: FileRef) -> bool:
    """True if a file is a picture or a video, by its type or the end of its path."""
    return bool(_VISUAL_TYPE.search(file.type) or _VISUAL_END.search(file.path))


_VISUAL_TYPE = re.compile("image|video|photo|picture|screen|frame|gif", re.IGNORECASE)
_VISUAL_END = re.compile(r"\.(?:avif|bmp|gif|jpe?g|mkv|mov|mp4|png|tiff?|web[mp])$", re.IGNORECASE)


def draw(seed: int, *names: str) -> Random:
    """A generator for one purpose: its numbers follow from the seed and the names alone.

    So a draw for a case does not depend on the other cases, or on their order.
    """
    text = orjson.dumps([seed, *names])
    return Random(int.from_bytes(blake2b(text, digest_size=16).digest()))  # noqa: S311


Leaf = str | int | float


def leaves(value: object, *, names: bool = False) -> list[Leaf]:
    """Every text and number in a JSON value, in order; truth values and nulls left out.

    Args:
        value: The value.
        names: Include the names of fields.
    """
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, str | int | float):
        return [value]
    parts: Iterable[object] = ()
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        parts = chain.from_iterable(fields.items()) if names else fields.values()
    elif isinstance(value, list | tuple):
        parts = cast("Sequence[object]", value)
    return [leaf for part in parts for leaf in leaves(part, names=names)]
