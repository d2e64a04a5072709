"""Generated benchmarks in the layout of PlanBench-XL (arXiv:2606.22388, app. B)."""

from .checks import DataCheck, DataFault, planbench_check
from .generate import GeneratedBenchmark, planbench_generate

__all__ = [
    "DataCheck",
    "DataFault",
    "GeneratedBenchmark",
    "planbench_check",
    "planbench_generate",
]
