"""Whole runs of agents: read from any log, measured and diagnosed by code."""
