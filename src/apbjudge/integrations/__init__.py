"""Adapters for other tools: engines for many machines, test runners, evaluation, training."""
