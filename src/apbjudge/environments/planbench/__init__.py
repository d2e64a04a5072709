"""PlanBench-XL (arXiv:2606.22388) as a world that agents act in."""

from .blocking import BlockPlan, block_plan, read_block_plan
from .config import BlockPlanConfig, EpisodeConfig, PathsConfig
from .dialogue import PlanBenchDialogue
from .environment import PlanBenchEnvironment
from .episode import PlanBenchRules
from .paths import PathReport, TaskPaths, paths
from .world import PlanBenchWorld, load_world

__all__ = [
    "BlockPlan",
    "BlockPlanConfig",
    "EpisodeConfig",
    "PathReport",
    "PathsConfig",
    "PlanBenchDialogue",
    "PlanBenchEnvironment",
    "PlanBenchRules",
    "PlanBenchWorld",
    "TaskPaths",
    "block_plan",
    "load_world",
    "paths",
    "read_block_plan",
]
