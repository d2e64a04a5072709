"""Environments that answer an agent's calls, and runners of agents in them."""
