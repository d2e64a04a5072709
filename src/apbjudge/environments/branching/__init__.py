"""Entropy-guided branching (arXiv:2604.12126): where an agent doubts, its alternatives are tried."""

from .config import BranchConfig
from .distributions import Candidate, Distribution, from_labels, from_samples, label_shares
from .policy import Decision, Estimate, Policy
from .search import Branch, BranchResult, branch_case, branch_points

__all__ = [
    "Branch",
    "BranchConfig",
    "BranchResult",
    "Candidate",
    "Decision",
    "Distribution",
    "Estimate",
    "Policy",
    "branch_case",
    "branch_points",
    "from_labels",
    "from_samples",
    "label_shares",
]
