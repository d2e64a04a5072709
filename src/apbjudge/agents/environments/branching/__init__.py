"""Entropy-guided branching (arXiv:2604.12126): alternatives are tried where an agent doubts."""
