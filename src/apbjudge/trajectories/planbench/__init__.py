"""PlanBench-XL (arXiv:2606.22388): trajectories with typed tools that have to be searched for."""

from .folder import PLANBENCH_RESULT, is_folder, read_folder
from .protocol import PLANBENCH

__all__ = ["PLANBENCH", "PLANBENCH_RESULT", "is_folder", "read_folder"]
