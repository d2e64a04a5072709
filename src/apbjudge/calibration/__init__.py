"""Statistics of judges and runs: pure functions on arrays."""

from .intervals import Estimate, cluster_bootstrap, rate, ratio, wilson

__all__ = ["Estimate", "cluster_bootstrap", "rate", "ratio", "wilson"]
