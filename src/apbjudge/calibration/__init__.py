"""Statistics of judges and runs: pure functions on arrays."""

from .intervals import Estimate, bounded_mean, cluster_bootstrap, rate, ratio, wilson

__all__ = ["Estimate", "bounded_mean", "cluster_bootstrap", "rate", "ratio", "wilson"]
