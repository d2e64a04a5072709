"""Worlds that answer an agent's calls, and what runs agents in them."""
