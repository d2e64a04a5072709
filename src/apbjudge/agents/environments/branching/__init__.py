"""Entropy-guided branching (arXiv:2604.12126): alternatives where an agent is uncertain."""
