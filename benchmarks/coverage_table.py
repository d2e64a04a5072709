"""Populations, counts and results that the studies of coverage share.

    python benchmarks/coverage_designs.py --out docs/data/coverage.csv   # a study renews its lines
    python benchmarks/coverage_table.py                                  # renews the page's tables

``docs/data`` holds every measured cell. ``docs/coverage.md`` has the lowest and the median of them
by design and method, between markers such as ``<!-- table: commands -->``.
"""

from __future__ import annotations

import argparse
import csv
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple, TextIO, TypeVar

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
    """Counts of the intervals of one kind."""

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
    """Results of a cell: a measure in one population, with one kind of interval."""

    design: str
    prevalence: float
    measure: str
    method: str
    coverage: float
    width: float
    without: float


def summed(design: str, prevalence: float, tallies: Mapping[tuple[str, str], Tally]) -> list[Row]:
    """Rows from what was counted."""
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


DATA = Path(__file__).parent.parent / "docs" / "data"
PAGE = DATA.parent / "coverage.md"
KEY = ("study", "rows", "measure", "interval", "p")
LOW = 93.0
"""Coverage in percent below which a cell is in bold and in the table of the lowest cells."""
Cell = Mapping[str, str]
"""A line of a data file."""


def cells(study: str, rows: Iterable[Row]) -> list[Cell]:
    """Lines of ``coverage.csv``: coverage and the share of samples without interval in percent."""
    return [
        {
            "study": study,
            "rows": row.design,
            "measure": row.measure,
            "interval": row.method or "default",
            "p": f"{row.prevalence:g}",
            "coverage": f"{100 * row.coverage:.1f}" if row.without < 1 else "",
            "width": f"{row.width:.3f}" if row.without < 1 else "",
            "without": f"{100 * row.without:.0f}",
        }
        for row in rows
    ]


def store(found: Sequence[Cell], out: str) -> None:
    """Prints the lines, or puts them into a file in place of its lines on the same cells."""
    if not out:
        _write(found, sys.stdout)
        return
    path = Path(out)
    by_key = {tuple(cell[name] for name in KEY): cell for cell in read(path.name, path.parent)}
    by_key |= {tuple(cell[name] for name in KEY): cell for cell in found}
    with path.open("w", encoding="utf-8", newline="") as file:
        _write(list(by_key.values()), file)


def _write(found: Sequence[Cell], file: TextIO) -> None:
    writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)


def read(name: str, folder: Path = DATA) -> list[Cell]:
    """Lines of a data file; none if there is no such file."""
    path = folder / name
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page(text: str) -> str:
    """The page with the tables that the data give."""
    for name, made in tables().items():
        marker = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, times = marker.subn(
            lambda match, made=made: f"{match[1]}\n{made}\n\n{match[2]}", text
        )
        assert times == 1, name
    return text


def tables() -> dict[str, str]:
    """Markdown of each table of the page, by its name there."""
    of = dict[str, list[Cell]]()
    for cell in read("coverage.csv"):
        of.setdefault(cell["study"], []).append(cell)
    defaults = [cell for study, found in of.items() if study != "contrast" for cell in found]
    by_interval = [*of["statistics"], *of["contrast"]]
    return {
        "lowest": lowest(defaults),
        "commands": folded("labels", of["commands"], lambda cell: (cell["rows"], _kind(cell))),
        "statistics": folded("rows", by_interval, lambda cell: (cell["rows"], cell["interval"])),
        "differences": folded("rows", of["differences"], _difference),
        "parts": folded("rows of the parts", of["parts"], lambda c: (c["rows"], c["measure"])),
        "corrected": folded("labels", of["corrected"], _correction),
        "execution": of_executions(read("coverage-execution.csv")),
        "bootstrap": of_bootstraps(read("coverage-bootstrap.csv")),
    }


def folded(head: str, found: Sequence[Cell], place: Callable[[Cell], tuple[str, str]]) -> str:
    """A table of the lowest and the median coverage of the cells with the same row and column."""
    by_place = dict[tuple[str, str], list[float]]()
    for cell in found:
        if cell["coverage"]:
            by_place.setdefault(place(cell), []).append(float(cell["coverage"]))
    columns = list(dict.fromkeys(column for _, column in by_place))
    rows = dict.fromkeys(row for row, _ in by_place)
    return markdown(
        [head, *columns],
        ([row, *(_folded(by_place.get((row, column), [])) for column in columns)] for row in rows),
    )


def _folded(coverages: Sequence[float]) -> str:
    if not coverages:
        return "–"
    least, mark = min(coverages), "**" if min(coverages) < LOW else ""
    return f"{mark}{least:.1f}{mark}/{median(coverages):.1f}"


def _kind(cell: Cell) -> str:
    measure = cell["measure"]
    if measure.startswith("corrected"):
        return "corrected rates"
    coefficient = measure in ("kappa", "phi", "AC1") or measure.endswith((")", "alpha"))
    return "coefficients" if coefficient and "Err-Type" not in measure else "rates and means"


def _difference(cell: Cell) -> tuple[str, str]:
    rows, _, judges = cell["rows"].rpartition(", ")
    measures = "CR, agreement" if cell["interval"] != "jackknife" else "precision, recall, F1"
    return rows, f"{measures}, {judges}"


def _correction(cell: Cell) -> tuple[str, str]:
    match = re.fullmatch(r"(\d+ labels(?:, \d+ cases)?), (.*)", cell["rows"])
    assert match, cell
    return match[1], f"{'labels only, ' * cell['measure'].endswith('only')}{match[2]}"


def lowest(found: Sequence[Cell]) -> str:
    """A table of the cells below ``LOW``, a row for each measure."""
    low = [cell for cell in found if cell["coverage"] and float(cell["coverage"]) < LOW]
    low.sort(key=lambda cell: float(cell["coverage"]))
    by_measure = dict[str, list[Cell]]()
    for cell in low:
        by_measure.setdefault(cell["measure"], []).append(cell)
    return markdown(
        ["measure", f"cells below {LOW:g}", "lowest", "there"],
        (
            [measure, str(len(of)), of[0]["coverage"], f"{of[0]['rows']}, p = {of[0]['p']}"]
            for measure, of in by_measure.items()
        ),
    )


def of_executions(found: Sequence[Cell]) -> str:
    """A table of the lowest and the median coverage of each measure over all designs."""
    names = {
        "difference": "difference of success",
        "bootstrap": "the same, bootstrap over tasks",
        "auc": "AUC",
        "r": "r",
        "within": "within a task",
    }
    each = {name: [float(cell[name]) for cell in found if cell[name]] for name in names}
    return markdown(list(names.values()), [[_folded(each[name]) for name in names]])


def of_bootstraps(found: Sequence[Cell]) -> str:
    """A table of the least and the greatest coverage by the number of cases."""
    methods = ("percentile", "bca", "default")
    rows = list[list[str]]()
    for n in dict.fromkeys(cell["cases"] for cell in found):
        row = [n]
        for differences in (False, True):
            of = [
                c for c in found if c["cases"] == n and (c["figure"] == "difference") == differences
            ]
            row += [
                f"{min(int(c[f'{method}_least']) for c in of)}–"
                f"{max(int(c[f'{method}_most']) for c in of)}"
                for method in methods
            ]
        rows.append(row)
    return markdown(["cases", *methods, *(f"differences: {method}" for method in methods)], rows)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    first, *others = ("| " + " | ".join(line) + " |" for line in (head, *rows))
    return "\n".join([first, "|" + "---|" * len(head), *others])


def arguments() -> argparse.ArgumentParser:
    """Options that all studies have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reps", type=int, default=2000)
    parser.add_argument("--only", default="", help="designs whose name contains this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--out", default="", help="CSV file in which the measured lines are renewed"
    )
    return parser


def over_all(run: Callable[[T], list[Row]], chosen: Sequence[T], *, jobs: int) -> list[Row]:
    """Rows of all designs in order; says on stderr when one is done."""
    begun, rows = time.perf_counter(), list[Row]()
    with ProcessPoolExecutor(jobs) as pool:
        for done, result in enumerate(pool.map(run, chosen), 1):
            rows += result
            spent = time.perf_counter() - begun
            print(f"{done} of {len(chosen)}, {result[0].design}: {spent:.0f} s", file=sys.stderr)
    return rows


def heading(reps: int) -> str:
    """Versions and replications."""
    versions = f"numpy {np.__version__}, scipy {scipy.__version__}"
    return f"Python {platform.python_version()}, {versions}, {reps} replications\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
