"""Runs of a judge over rows: from files, through its engine, into a folder; and their costs."""
