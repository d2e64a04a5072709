"""Agents that act in environments of installed packages, and plans judged by what came of them."""
