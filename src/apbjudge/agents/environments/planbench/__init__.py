"""PlanBench-XL (arXiv:2606.22388) as an environment that agents act in."""

from .blocking import BlockPlan, planbench_block_plan, read_block_plan
from .config import BlockPlanConfig, EpisodeConfig, PathsConfig
from .database import PlanBenchDatabase, load_database
from .dialogue import PlanBenchDialogue
from .environment import PlanBenchEnvironment, PlanBenchRules
from .paths import PathReport, TaskPaths, planbench_paths

__all__ = [
    "BlockPlan",
    "BlockPlanConfig",
    "EpisodeConfig",
    "PathReport",
    "PathsConfig",
    "PlanBenchDatabase",
    "PlanBenchDialogue",
    "PlanBenchEnvironment",
    "PlanBenchRules",
    "TaskPaths",
    "load_database",
    "planbench_block_plan",
    "planbench_paths",
    "read_block_plan",
]
