"""What ``coverage.py`` and ``coverage_differences.py`` share: populations, counts and tables."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
import scipy

from apbjudge.statistics.estimates import Estimate

T = TypeVar("T")

SEED = 20_261_122
SENSITIVITY, SPECIFICITY = 0.9, 0.8
PREVALENCES = (0.05, 0.5, 0.95)
SIZES = (30, 100, 720)
ICC = 0.2
"""Share of the variance that lies between cases, or between items for flags."""
CASES: Mapping[str, tuple[int, ...]] = {
    "60 cases of 12": (12,) * 60,
    "15 cases of 8": (8,) * 15,
    "30 cases of 1 to 22": tuple(1 + i * i // 40 for i in range(30)),
}
"""Rows of each case."""


def beta_of(mean: float) -> tuple[float, float]:
    """A beta distribution with this mean and intraclass correlation."""
    size = (1 - ICC) / ICC
    return mean * size, (1 - mean) * size


@dataclass
class Tally:
    """What became of the intervals of one kind."""

    truth: float
    held: int = 0
    runs: int = 0
    asked: int = 0
    widths: float = field(default=0.0)

    def add(self, estimate: Estimate) -> None:
        """Counts one more."""
        self.asked += 1
        if estimate.low is None or estimate.high is None:
            return
        self.runs += 1
        self.held += estimate.low <= self.truth <= estimate.high
        self.widths += estimate.high - estimate.low


class Row(NamedTuple):
    """A line of the table."""

    design: str
    prevalence: float
    measure: str
    method: str
    coverage: float
    width: float
    without: float


def summed(design: str, prevalence: float, tallies: Mapping[tuple[str, str], Tally]) -> list[Row]:
    """Lines of the table from what was counted."""
    return [
        Row(
            design,
            prevalence,
            measure,
            method,
            tally.held / max(1, tally.runs),
            tally.widths / max(1, tally.runs),
            1 - tally.runs / tally.asked,
        )
        for (measure, method), tally in tallies.items()
    ]


def table(rows: list[Row], prevalences: Sequence[float] = PREVALENCES) -> str:
    """Markdown: a line per measure, method and design, a column per prevalence."""
    lines = [
        "| rows | measure | interval | " + " | ".join(f"p = {p:g}" for p in prevalences) + " |",
        "|---|---|---|" + "---|" * len(prevalences),
    ]
    by: dict[tuple[str, str, str], dict[float, Row]] = {}
    for row in rows:
        by.setdefault((row.design, row.measure, row.method), {})[row.prevalence] = row
    for key, tallies in by.items():
        cells = [_cell(tallies[p]) if p in tallies else "" for p in prevalences]
        lines.append("| " + " | ".join((*key, *cells)) + " |")
    return "\n".join(lines)


def _cell(row: Row) -> str:
    if row.without > 0.995:
        return "none"
    missing = f", {row.without:.0%} none" if row.without >= 0.005 else ""
    mark = "" if 0.93 <= row.coverage <= 0.97 else ("**" if row.coverage < 0.93 else "*")
    return f"{mark}{100 * row.coverage:.1f}{mark} ({row.width:.3f}{missing})"


def arguments() -> argparse.ArgumentParser:
    """What the command line takes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reps", type=int, default=2000)
    parser.add_argument("--only", default="", help="designs whose name contains this")
    parser.add_argument("--jobs", type=int, default=1)
    return parser


def over_all(run: Callable[[T], list[Row]], chosen: Sequence[T], *, jobs: int) -> list[Row]:
    """Lines of all designs in order, with a word on each as it is done."""
    begun, rows = time.perf_counter(), list[Row]()
    with ProcessPoolExecutor(jobs) as pool:
        for done, result in enumerate(pool.map(run, chosen), 1):
            rows += result
            spent = time.perf_counter() - begun
            print(f"{done} of {len(chosen)}, {result[0].design}: {spent:.0f} s", file=sys.stderr)
    return rows


def heading(reps: int) -> str:
    """What the table was made with."""
    versions = f"numpy {np.__version__}, scipy {scipy.__version__}"
    return f"Python {platform.python_version()}, {versions}, {reps} replications\n"
