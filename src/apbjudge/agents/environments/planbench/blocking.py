"""Tools blocked in each task, and their replacements (arXiv:2606.22388, app. B.5).

A blocked tool removes every catalogued path that contains it. Candidates are the empty set and all
sets of up to ``max_tools`` (4) catalogued tools, small sets first, each size in lexicographic
order, up to a limit. One is drawn from those that leave at least one path, and whose number of
remaining paths is nearest to the wanted number, at most one away. Seed, order and rounding are
those of the authors' code, so that the same data gives the same plan.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from hashlib import sha256
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import orjson

from ....document.display import Shown
from ....jsonl import write_atomically
from ....options import takes
from ....trajectories.planbench.data import BLOCKER_TYPES, DataFolder, PlanBenchData, load_data
from .config import BlockPlanConfig

FORMAT = "apbjudge-block-plan@1"
TOLERANCE = 1
"""Largest difference between the number of remaining paths and the wanted number."""
_BASE_RATIO = 0.6


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Blocked tools of a task.

    Attributes:
        blocked: By blocked tool, the noise types of the blockers that replace it, in the order in
            which searches return them.
        paths: Number of catalogued paths.
        remaining: Number of paths without a blocked tool.
        mean_length: Mean number of tools of the remaining paths.
        candidates: Number of sets of tools that were tried.
        is_cut: True if there were more candidates.
        is_resolved: True if a candidate fits; if not, nothing is blocked.
    """

    blocked: Mapping[str, tuple[str, ...]]
    paths: int
    remaining: int
    mean_length: float
    candidates: int
    is_cut: bool = False
    is_resolved: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class BlockPlan(Shown):
    """Blocked tools of each task.

    Attributes:
        setting: The condition in a few words, which names runs.
        tasks: By id, in the order of the catalogue.
        config: The settings of the plan.
    """

    setting: str
    tasks: Mapping[str, TaskPlan]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the tools blocked in each task, in hex."""
        tools = {task_id: [*task.blocked] for task_id, task in self.tasks.items()}
        return sha256(json.dumps(tools, sort_keys=True).encode()).hexdigest()

    @property
    def remaining(self) -> Mapping[int, int]:
        """Number of tasks by the number of paths they keep."""
        return dict(sorted(Counter(task.remaining for task in self.tasks.values()).items()))

    @property
    def blocked(self) -> Mapping[int, int]:
        """Number of tasks by the number of blocked tools."""
        return dict(sorted(Counter(len(task.blocked) for task in self.tasks.values()).items()))

    @property
    def unresolved(self) -> Sequence[str]:
        """Tasks in which no set of tools fits; nothing is blocked in them."""
        return [task_id for task_id, task in self.tasks.items() if not task.is_resolved]

    @property
    def mean_length(self) -> float:
        """Mean over tasks of the mean length of the paths that remain."""
        return sum(task.mean_length for task in self.tasks.values()) / max(1, len(self.tasks))

    def to_json(self) -> dict[str, Any]:
        """As JSON values, in the form of a plan's file."""
        return {
            "format": FORMAT,
            "setting": self.setting,
            "config": self.config,
            "fingerprint": self.fingerprint,
            "tasks": {task_id: asdict(task) for task_id, task in self.tasks.items()},
        }

    def _printed(self) -> str:
        from .results_text import block_plan_text

        return block_plan_text(self)


@takes(config=BlockPlanConfig)
def planbench_block_plan(config: BlockPlanConfig) -> BlockPlan:
    """Chooses the tools that are blocked in each task.

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If the data is unusable.
        OptionError: If a setting is.
    """
    plan = plan_of(load_data(config.data), config)
    if config.out is not None:
        write_atomically(
            config.out, orjson.dumps(plan.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
        )
    return plan


def plan_of(data: PlanBenchData, config: BlockPlanConfig) -> BlockPlan:
    """Chooses the blocked tools of each task, for data that has been read."""
    tasks = {task_id: _task_plan(data, task_id, config) for task_id in data.paths}
    used = config.model_dump(mode="json", exclude={"data", "out"})
    return BlockPlan(setting_name(config), tasks, used)


def setting_name(config: BlockPlanConfig) -> str:
    """The condition in a few words, in the form of the benchmark's own environment.

    A share is always that of the remaining paths: ``mixed, keep 0.8`` for a block ratio of 0.2.
    """
    if config.setting == "default":
        return "default"
    kinds = config.setting if config.setting in BLOCKER_TYPES.values() else "mixed"
    parts = ["random" if config.setting == "base" else kinds]
    if config.keep_paths is not None:
        parts += [f"{config.keep_paths} paths"] if config.keep_paths != 1 else []
    elif (ratio := _keep_ratio(config)) is not None:
        parts.append(f"keep {ratio:g}")
    if config.setting in {"longest", "shortest"}:
        parts.append(config.setting)
    return ", ".join(parts)


def _keep_ratio(config: BlockPlanConfig) -> float | None:
    """Share of the paths that should remain; None if a number of paths is wanted."""
    if config.keep_ratio is not None:
        return config.keep_ratio
    if config.block_ratio is not None:
        return round(1 - config.block_ratio, 12)
    return _BASE_RATIO if config.setting == "base" and config.keep_paths is None else None


def _task_plan(data: PlanBenchData, task_id: str, config: BlockPlanConfig) -> TaskPlan:
    lengths = [len(path.tools) for path in data.paths[task_id]]
    total = len(lengths)
    mean = sum(lengths) / max(1, total)
    if config.setting == "default":
        return TaskPlan({}, total, total, mean, 1)
    seed = int.from_bytes(sha256(task_id.encode()).digest()[:8], "big")
    rng = random.Random(config.seed + seed)  # noqa: S311 - as the authors draw
    ratio = _keep_ratio(config)
    wanted = (config.keep_paths or 1) if ratio is None else round(total * ratio)
    wanted = max(1, min(total, wanted))
    limit = config.max_candidates or (5000 if config.setting == "base" else 20_000)

    nearest, pool, n = TOLERANCE, list[tuple[tuple[str, ...], int]](), 0
    candidates = _candidates(data, task_id, config.max_tools)
    for tools, left in islice(candidates, limit):
        n += 1
        distance = abs((remaining := left.bit_count()) - wanted)
        if remaining and distance <= nearest:
            if distance < nearest:
                nearest = distance
                pool.clear()
            pool.append((tools, left))
    is_cut = next(candidates, None) is not None
    if not pool:
        return TaskPlan({}, total, total, mean, n, is_cut, is_resolved=False)
    averages = [Fraction(_length(left, lengths), left.bit_count()) for _, left in pool]
    if config.setting in {"longest", "shortest"}:
        best = max(averages) if config.setting == "longest" else min(averages)
        pool = [candidate for candidate, mean in zip(pool, averages, strict=True) if mean == best]
    tools, left = pool[rng.randrange(len(pool))]
    return TaskPlan(
        {tool: _kinds(config, rng) for tool in tools},
        total,
        left.bit_count(),
        _length(left, lengths) / left.bit_count(),
        n,
        is_cut,
    )


def _candidates(
    data: PlanBenchData, task_id: str, max_tools: int
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Sets of tools to block, with the paths that remain, as bits."""
    through: dict[str, int] = {}
    for i, path in enumerate(data.paths[task_id]):
        for tool in path.tools:
            through[tool] = through.get(tool, 0) | 1 << i
    all_paths = (1 << len(data.paths[task_id])) - 1
    for size in range(min(max_tools, len(through)) + 1):
        for tools in combinations(sorted(through), size):
            left = all_paths
            for tool in tools:
                left &= ~through[tool]
            yield tools, left


def _length(left: int, lengths: Sequence[int]) -> int:
    return sum(length for i, length in enumerate(lengths) if left >> i & 1)


def _kinds(config: BlockPlanConfig, rng: random.Random) -> tuple[str, ...]:
    """The noise types of the blockers of one tool."""
    if config.setting == "base":
        return ([*BLOCKER_TYPES][rng.randrange(len(BLOCKER_TYPES))],)
    return tuple(
        kind
        for kind, word in BLOCKER_TYPES.items()
        if config.setting == word or config.setting not in BLOCKER_TYPES.values()
    )


@dataclass(frozen=True, slots=True)
class _PlanFile:
    setting: str
    tasks: dict[str, TaskPlan]
    config: dict[str, Any] = field(default_factory=dict[str, Any])


def read_block_plan(file: Path, data: PlanBenchData) -> BlockPlan:
    """Reads a plan and checks that it belongs to this data.

    Raises:
        InputError: If it can't be read, or names a task, a tool or a kind of blocker that the data
            does not have; it names the file and the field.
    """
    files = DataFolder(file.parent)
    content = files.read(file.name, _PlanFile)
    for name, expected, got in _faults(content, data):
        raise files.inconsistent(file.name, name, expected, got)
    return BlockPlan(content.setting, content.tasks, content.config)


def _faults(content: _PlanFile, data: PlanBenchData) -> Iterator[tuple[str, str, str | None]]:
    """Yields field, expected and actual value of each fault."""
    known = {(tool.baseline_tool_name, tool.noise_type) for tool in data.blockers.values()}
    for task_id, task in content.tasks.items():
        if task_id not in data.tasks:
            yield f"tasks.{task_id}", "a task of the data", task_id
        for tool, kinds in task.blocked.items():
            for kind in kinds:
                if (tool, kind) not in known:
                    place = f"tasks.{task_id}.blocked.{tool}"
                    yield place, "a kind of blocker that the data has", kind
    for task_id in sorted(data.paths.keys() - content.tasks.keys()):
        yield "tasks", f"all tasks of the data, also {task_id}", None
