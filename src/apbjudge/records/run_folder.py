"""Names of the files in a run's folder."""

from __future__ import annotations

JUDGEMENTS = "judgements.jsonl"
MANIFEST = "manifest.json"
SUPERSEDED = "superseded.jsonl"
"""Records that the input no longer asks for, and failures that were asked again."""
DAMAGED = "damaged.txt"
"""Lines of the file of records that are no records."""
FIGURES = ("summary.json", "summary.csv", "queue.jsonl", "curve.csv")
"""What else a run writes into its folder; it can be computed again."""
