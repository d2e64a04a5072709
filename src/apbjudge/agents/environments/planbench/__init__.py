"""PlanBench-XL (arXiv:2606.22388) as a world that agents act in."""

from .blocking import BlockPlan, planbench_block_plan, read_block_plan
from .config import BlockPlanConfig, EpisodeConfig, PathsConfig
from .dialogue import PlanBenchDialogue
from .environment import PlanBenchEnvironment
from .episode import PlanBenchRules
from .paths import PathReport, TaskPaths, planbench_paths
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
    "load_world",
    "planbench_block_plan",
    "planbench_paths",
    "read_block_plan",
]
