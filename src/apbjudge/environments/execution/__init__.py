"""Execution of plans in real environments, and whether better plans succeed."""
