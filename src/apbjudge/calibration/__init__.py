"""Reliability of judges and plans for labels, from runs and human labels."""
