"""All minimal sets of tools that lead from held datatypes to a target, and their legal orders.

A state is a set of datatypes; a tool applies if its inputs are held and its output is not. A path
is a set of tools that reaches the target while no proper subset does (arXiv:2606.22388, app. B.4).

In a path, every datatype has one producer: of two, only the first in a legal order is needed. So a
path is a choice, without cycles, of one producer for the target and for every datatype that chosen
tools need and that is not held. Conversely, each such choice is a path: without one of its tools,
that tool's output has no producer. The choices are made backward from the target. For each
datatype, the search stores the goals that it serves, and never chooses a producer that needs one
of them. So it yields no set twice, and never has to compare sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ....document.display import Shown
from ....errors import OptionError
from ....options import takes
from ....trajectories.planbench.data import PlanBenchData, PlanbenchTask, PlanbenchTool, load_data
from .config import PathsConfig, Scope


def minimal_paths(
    tools: Iterable[PlanbenchTool],
    held: Collection[str],
    target: str,
    *,
    longest: int | None = None,
) -> Iterator[frozenset[str]]:
    """Every path once, as the names of its tools.

    Args:
        tools: Tools that may be used.
        held: Datatypes held at the start.
        target: Datatype to be reached; if it is held, the empty set is the only path.
        longest: Largest number of tools in a path; None for any number.
    """
    usable = _usable(tools, held)
    if target in held:
        yield frozenset()
    elif any(tool.output_datatype == target for tool in usable):
        names = [tool.name for tool in usable]
        choices = _Choices(usable, held, len(usable) if longest is None else longest)
        for used in choices.tool_sets(choices.bit(target), 0, 0, [0] * len(usable)):
            yield frozenset(name for i, name in enumerate(names) if used >> i & 1)


class _Choices:
    """Backward search for producers; sets of tools and of datatypes are bits of integers."""

    def __init__(self, tools: Sequence[PlanbenchTool], held: Collection[str], longest: int) -> None:
        self._numbers = {
            d: i for i, d in enumerate(dict.fromkeys(t.output_datatype for t in tools))
        }
        self._producers: list[list[tuple[int, int]]] = [[] for _ in self._numbers]
        for i, tool in enumerate(tools):
            needs = sum(self.bit(datatype) for datatype in tool.input_datatypes - {*held})
            self._producers[self._numbers[tool.output_datatype]].append((1 << i, needs))
        self._needs = [0] * len(self._numbers)  # by datatype: inputs of its chosen producer
        self._longest = longest

    def bit(self, datatype: str) -> int:
        """The bit of a datatype that some tool produces."""
        return 1 << self._numbers[datatype]

    def tool_sets(self, goals: int, done: int, used: int, serves: list[int]) -> Iterator[int]:
        """Yields the sets of tools of all complete choices.

        Args:
            goals: Datatypes that still need a producer.
            done: Datatypes that have a producer.
            used: The tools chosen so far.
            serves: For each datatype by number, the goals that it leads to.
        """
        if not goals:
            yield used
            return
        if used.bit_count() + goals.bit_count() > self._longest:
            return
        goal = goals & -goals
        number = goal.bit_length() - 1
        above = serves[number] | goal
        for tool, needs in self._producers[number]:
            if needs & above:
                continue
            self._needs[number] = needs
            served = self._serving(serves, above, needs, done) if needs else serves
            rest = (goals ^ goal) | (needs & ~done)
            yield from self.tool_sets(rest, done | goal, used | tool, served)

    def _serving(self, serves: list[int], above: int, needs: int, done: int) -> list[int]:
        """A copy of ``serves`` in which ``needs``, and their producers' inputs, serve ``above``."""
        served = serves.copy()
        while needs:
            need = needs & -needs
            needs ^= need
            number = need.bit_length() - 1
            if served[number] | above != served[number]:
                served[number] |= above
                if done & need:
                    needs |= self._needs[number]
        return served


def _usable(tools: Iterable[PlanbenchTool], held: Collection[str]) -> list[PlanbenchTool]:
    """The tools that can ever apply and whose output is not held, in order."""
    tools, reached, n = [*tools], {*held}, -1
    while n != len(reached):
        n = len(reached)
        reached.update(tool.output_datatype for tool in tools if tool.input_datatypes <= reached)
    return [t for t in tools if t.input_datatypes <= reached and t.output_datatype not in held]


def catalogued_paths(
    tools: Iterable[PlanbenchTool], held: Collection[str], target: str
) -> frozenset[frozenset[str]]:
    """The paths that the authors' catalogue has, by the same recursion.

    It solves each datatype once, in the order of the tools, and stops at goals that are open at
    that moment. The stored paths of a datatype lack those through such goals, also when the goals
    are open no more, so the catalogue is incomplete. On the released data this function returns
    exactly the catalogue, 4,313 sets; ``minimal_paths`` returns 6,408.
    """
    producers: dict[str, list[PlanbenchTool]] = {}
    for tool in tools:
        producers.setdefault(tool.output_datatype, []).append(tool)
    solved: dict[str, list[frozenset[str]]] = {key: [frozenset[str]()] for key in held}

    def solve(goal: str, goals: frozenset[str]) -> list[frozenset[str]]:
        if goal in solved or goal in goals:
            return solved.get(goal, [])
        paths: list[frozenset[str]] = []
        for tool in producers.get(goal, ()):
            parts = [frozenset({tool.name})]
            for datatype in tool.surface_argument_to_datatype.values() or tool.input_datatypes:
                more = solve(datatype, goals | {goal})
                parts = _smallest(part | path for part in parts for path in more)
            paths += parts
        solved[goal] = _smallest(paths)
        return solved[goal]

    return frozenset(solve(target, frozenset()))


def _smallest(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The sets that have no other set as subset, without duplicates."""
    minimal: list[frozenset[str]] = []
    for candidate in sorted(dict.fromkeys(sets), key=len):
        if not any(smaller <= candidate for smaller in minimal):
            minimal.append(candidate)
    return minimal


def count_orders(tools: Collection[PlanbenchTool], held: Collection[str]) -> int:
    """Number of orders in which all tools apply, counted over sets of used tools, not listed."""
    bits = {d: 1 << i for i, d in enumerate({*held}.union(*(t.datatypes for t in tools)))}
    signatures = [
        (1 << i, sum(bits[d] for d in tool.input_datatypes), bits[tool.output_datatype])
        for i, tool in enumerate(tools)
    ]
    orders = {(0, sum(bits[d] for d in {*held})): 1}
    for _ in signatures:
        longer: Counter[tuple[int, int]] = Counter()
        for (used, state), count in orders.items():
            for tool, needs, output in signatures:
                if not used & tool and not needs & ~state and not output & state:
                    longer[used | tool, state | output] += count
        orders = longer
    return sum(orders.values())


@dataclass(frozen=True)
class TaskPaths:
    """The paths of a task.

    Attributes:
        task_id: The task.
        input_datatypes: Held at the start.
        target_datatype: To be reached.
        paths: Each as sorted names of tools; the shortest first.
        orders: Number of legal orders of each path.
        catalogued: Paths of the catalogue, likewise.
    """

    task_id: str
    input_datatypes: tuple[str, ...]
    target_datatype: str
    paths: tuple[tuple[str, ...], ...]
    orders: tuple[int, ...]
    catalogued: tuple[tuple[str, ...], ...]

    @property
    def shortest(self) -> int | None:
        """Tools in the shortest path; None if there is none."""
        return len(self.paths[0]) if self.paths else None

    @property
    def longest(self) -> int | None:
        """Tools in the longest path."""
        return len(self.paths[-1]) if self.paths else None

    @cached_property
    def not_catalogued(self) -> tuple[tuple[str, ...], ...]:
        """Paths that the catalogue lacks."""
        known = {*self.catalogued}
        return tuple(path for path in self.paths if path not in known)

    @cached_property
    def only_catalogued(self) -> tuple[tuple[str, ...], ...]:
        """Entries of the catalogue that are not in ``paths``."""
        known = {*self.paths}
        return tuple(path for path in self.catalogued if path not in known)

    @property
    def is_shorter(self) -> bool:
        """True if a path is shorter than every path of the catalogue."""
        best = min(map(len, self.catalogued), default=0)
        return self.shortest is not None and self.shortest < best

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            **asdict(self),
            "shortest": self.shortest,
            "not_catalogued": self.not_catalogued,
            "only_catalogued": self.only_catalogued,
            "is_shorter": self.is_shorter,
        }


@dataclass(frozen=True, repr=False)
class PathReport(Shown):
    """The paths of some tasks.

    Attributes:
        scope: Scope of the paths.
        longest: Largest number of tools in a path; None for the default of the scope.
        tools: Number of tools that paths could use.
        tasks: In the order of the data.
    """

    scope: Scope
    longest: int | None
    tools: int
    tasks: tuple[TaskPaths, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "scope": self.scope,
            "longest": self.longest,
            "tools": self.tools,
            "tasks": [task.to_json() for task in self.tasks],
        }

    def _printed(self) -> str:
        from .results_text import paths_text

        return paths_text(self)


@takes(config=PathsConfig)
def planbench_paths(config: PathsConfig) -> PathReport:
    """Enumerates the paths of tasks and compares them with the catalogue.

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If the data is unusable.
        OptionError: If a setting is, or there is no such task or query.
    """
    data = load_data(config.data)
    tools = tools_of(data, config.scope)
    tasks = [_task_paths(data, task, tools, config) for task in _chosen(data, config)]
    return PathReport(config.scope, config.longest, len(tools), tuple(tasks))


def tools_of(data: PlanBenchData, scope: Scope) -> Sequence[PlanbenchTool]:
    """The tools that paths of a scope may use, in the order of the data."""
    tools = data.baseline.values()
    return [*tools] if scope == "exhaustive" else catalogue_tools(tools)


def catalogue_tools(tools: Iterable[PlanbenchTool]) -> list[PlanbenchTool]:
    """The tools of catalogued paths: no composites; at most two inputs, as in searches."""
    return [t for t in tools if len(t.input_datatypes) <= 2 and not t.tool_sequence]


def _chosen(data: PlanBenchData, config: PathsConfig) -> Iterator[PlanbenchTask]:
    known: Mapping[str, Collection[str]] = {"task": data.tasks, "query": data.queries}
    for name, ids in known.items():
        for unknown in (stated for stated in getattr(config, name) if stated not in ids):
            raise OptionError(f"--{name}: expected the id of a {name} of the data, got {unknown!r}")
    wanted = {*config.task, *(data.queries[query].task_id for query in config.query)}
    return (task for id_, task in data.tasks.items() if id_ in wanted or not wanted)


def _task_paths(
    data: PlanBenchData, task: PlanbenchTask, tools: Sequence[PlanbenchTool], config: PathsConfig
) -> TaskPaths:
    held, target, longest = task.input_datatypes, task.target_datatype, config.longest
    catalogued = [path.tools for path in data.paths.get(task.task_id, ())]
    tool_sets: Iterable[frozenset[str]]
    if config.scope == "catalogue":
        tool_sets = catalogued_paths(tools, held, target)
        tool_sets = [path for path in tool_sets if longest is None or len(path) <= longest]
    else:
        if config.scope == "exhaustive" and longest is None:
            longest = max(map(len, catalogued), default=None)
        tool_sets = minimal_paths(tools, held, target, longest=longest)
    paths = sorted((tuple(sorted(path)) for path in tool_sets), key=lambda path: (len(path), path))
    return TaskPaths(
        task.task_id,
        tuple(sorted(held)),
        target,
        tuple(paths),
        tuple(count_orders([data.baseline[name] for name in path], held) for path in paths),
        tuple(sorted(tuple(sorted(path)) for path in catalogued)),
    )
