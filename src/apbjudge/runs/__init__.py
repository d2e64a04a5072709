"""Runs over rows: one record for every row, resumed where the last session ended."""
