"""Entropy-guided branching (arXiv:2604.12126): alternatives are tried where an agent doubts."""

from .config import BranchConfig
from .distributions import Candidate, Distribution, from_labels, from_samples, label_shares
from .model_policy import ModelPolicy
from .policy import Decision, Estimate, Policy
from .search import Branch, BranchResult, Opinion, branch_case, branch_points

__all__ = [
    "Branch",
    "BranchConfig",
    "BranchResult",
    "Candidate",
    "Decision",
    "Distribution",
    "Estimate",
    "ModelPolicy",
    "Opinion",
    "Policy",
    "branch_case",
    "branch_points",
    "from_labels",
    "from_samples",
    "label_shares",
]
