"""Tasks of typed tools: starts and targets, by the number of tools in the shortest path."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, zip_longest
from random import Random
from typing import Any

from .....errors import InputError
from .....trajectories.planbench.data import PlanbenchTool
from ..config import GenerateConfig
from ..paths import minimal_paths
from .domain import Domain
from .tools import Funnel, Records, listed

MAX_PATHS = 80
"""Largest number of paths of a task: with more, blocking a few tools can't leave just one."""
_LONGER = 3
"""Listed paths have at most this many tools more than the shortest."""


@dataclass(frozen=True, slots=True)
class Start:
    """A start and a target, with the number of tools in the shortest path."""

    inputs: tuple[str, ...]
    target: str
    shortest: int


class Reach:
    """Datatypes that some tools reach from held ones, and their distances."""

    def __init__(self, tools: Iterable[PlanbenchTool]) -> None:
        self._tools = [*tools]

    def of(self, held: Collection[str]) -> Mapping[str, int]:
        """Every reachable datatype with its round; a round applies all tools that can apply."""
        reached = dict.fromkeys(held, 0)
        rounds, before = 0, -1
        while before != len(reached):
            before, rounds = len(reached), rounds + 1
            known = {*reached}
            for tool in self._tools:
                if tool.input_datatypes <= known:
                    reached.setdefault(tool.output_datatype, rounds)
        return reached

    def shortest(self, held: Collection[str], target: str, rounds: int) -> int:
        """Number of tools in the shortest path to a target; ``rounds``, its round, is a minimum."""
        length = rounds
        while next(minimal_paths(self._tools, held, target, longest=length), None) is None:
            length += 1
        return length

    def is_below(self, least: int, held: Collection[str], target: str) -> bool:
        """True if a path has fewer than ``least`` tools."""
        return next(minimal_paths(self._tools, held, target, longest=least - 1), None) is not None

    def is_partial(self, inputs: Collection[str], target: str) -> bool:
        """True if a target is reached from a part of the inputs."""
        parts = combinations(sorted(inputs), len(inputs) - 1)
        return len(inputs) > 1 and any(target in self.of(part) for part in parts)


def starts(reach: Reach, datatypes: Sequence[str], n_inputs: int) -> Iterator[Start]:
    """All starts with a number of inputs, with each target that needs all inputs."""
    for inputs in combinations(datatypes, n_inputs):
        reached = reach.of(inputs)
        known = {
            *chain.from_iterable(reach.of(part) for part in combinations(inputs, n_inputs - 1))
        }
        for target in datatypes:
            if target in reached and target not in known and target not in inputs:
                yield Start(inputs, target, reach.shortest(inputs, target, reached[target]))


def choose_tasks(
    candidates: Iterable[Start],
    config: GenerateConfig,
    *,
    tools: Sequence[PlanbenchTool],
    every: Reach,
    rng: Random,
) -> tuple[list[tuple[Start, list[frozenset[str]]]], Funnel]:
    """Chooses tasks in turn from each number of inputs and length; returns them with their paths.

    Args:
        candidates: All starts.
        config: The number of tasks, and limits of their shortest paths.
        tools: Tools of catalogued paths.
        every: Reach of all executable tools.
        rng: Shuffles the candidates of each kind.

    Raises:
        InputError: If there are too few tasks.
    """
    funnel = Funnel()
    kinds: dict[tuple[int, int], list[Start]] = {}
    for start in candidates:
        if start.shortest < config.shortest:
            funnel.take(_shown(start), f"its shortest path has fewer than {config.shortest} tools")
        elif start.shortest > config.longest:
            funnel.take(_shown(start), f"its shortest path has more than {config.longest} tools")
        else:
            kinds.setdefault((len(start.inputs), start.shortest), []).append(start)
    for same in kinds.values():
        rng.shuffle(same)
    queue = [*chain.from_iterable(zip_longest(*(kinds[kind] for kind in sorted(kinds))))]
    chosen: list[tuple[Start, list[frozenset[str]]]] = []
    for start in filter(None, queue):
        if len(chosen) == config.tasks:
            funnel.take(_shown(start), "not drawn")
            continue
        paths = _paths(start, tools)
        if funnel.take(_shown(start), _fault(start, len(paths), every, config.shortest)):
            chosen.append((start, paths))
    if len(chosen) < config.tasks:
        raise InputError(
            f"--tasks {config.tasks}: these tools allow {len(chosen)} tasks whose shortest path "
            f"has {config.shortest} to {config.longest} tools; more --tools allow more"
        )
    return chosen, funnel


def _fault(start: Start, n_paths: int, every: Reach, least: int) -> str:
    if n_paths > MAX_PATHS:
        return f"it has more than {MAX_PATHS} paths"
    if every.is_below(least, start.inputs, start.target):
        return "a composite, or a tool with many inputs, makes a shorter path"
    if every.is_partial(start.inputs, start.target):
        return "such a tool reaches the target from a part of the inputs"
    return ""


def _shown(start: Start) -> str:
    return f"{', '.join(start.inputs)} → {start.target}, {start.shortest} tools"


def _paths(start: Start, tools: Sequence[PlanbenchTool]) -> list[frozenset[str]]:
    """The paths, at most ``MAX_PATHS`` + 1 of them, the shortest first."""
    paths: list[frozenset[str]] = []
    longest = start.shortest + _LONGER
    for path in minimal_paths(tools, start.inputs, start.target, longest=longest):
        paths.append(path)
        if len(paths) > MAX_PATHS:
            break
    return sorted(paths, key=lambda path: (len(path), sorted(path)))


def ordered(
    path: Collection[str], tools: Mapping[str, PlanbenchTool], held: Iterable[str]
) -> list[str]:
    """The tools of a path in a legal order."""
    known, rest, order = {*held}, sorted(path), list[str]()
    while rest:
        name = next(name for name in rest if tools[name].input_datatypes <= known)
        rest.remove(name)
        order.append(name)
        known.add(tools[name].output_datatype)
    return order


def query_text(
    start: Start, record: Mapping[str, Any], domain: Domain, wordings: Sequence[str], rng: Random
) -> str:
    """A question that contains the value of every input literally."""
    inputs = [
        f"the {rng.choice(domain.datatypes[name].aliases)} `{record[name]}`"
        for name in start.inputs
    ]
    output = rng.choice(domain.datatypes[start.target].aliases)
    wording = rng.choice(wordings)
    return wording.format(context=domain.context, inputs=listed(inputs), output=output)


def query_of(
    start: Start, records: Records, domain: Domain, wordings: Sequence[str], rng: Random
) -> tuple[str, Mapping[str, Any], Funnel]:
    """A question that does not contain its answer, with its record and the tried candidates.

    Raises:
        InputError: If no record allows such a question.
    """
    funnel = Funnel()
    for name in rng.sample([*records], len(records)):
        record = records[name]
        text = query_text(start, record, domain, wordings, rng)
        reason = "the answer is in the question" if str(record[start.target]) in text else ""
        if funnel.take(text, reason):
            return text, record, funnel
    raise InputError(f"{_shown(start)}: in every record the answer is part of the question")
