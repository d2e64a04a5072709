"""PlanBench-XL (arXiv:2606.22388) as a world that agents act in."""
