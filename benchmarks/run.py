"""Measures what the README claims about speed, whole processes, as they run for a user.

    python benchmarks/run.py              # start-up and static grading, about a minute
    python benchmarks/run.py --million    # and a million rows, several minutes

The help, and commands that do little, are measured pair by pair against a typer program that does
nothing, so that the ratio holds on any machine. Static grading is measured in CPU seconds of the
whole process, start-up and summary included; the process is pinned to one core where the system
allows it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
BARE = '''
import typer
app = typer.Typer(add_completion=False, rich_markup_mode=None)
@app.command()
def main(name: str = "x") -> None:
    """Says hello."""
    typer.echo(name)
app()
'''
CODE = "from apbjudge.cli.main import main; main()"
QUICK = (["--help"], ["grade", "--help"], ["rubric", "list"])


class Cost(NamedTuple):
    """Wall seconds are not used: a busy machine stretches them."""

    cpu_s: float
    peak_mb: float


def cost(arguments: list[str], **environment: str) -> Cost:
    """CPU seconds and peak memory of a process, on one core."""
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.DEVNULL,
        # where this is set, files are compiled again at every start
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment},
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{arguments} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def pin() -> None:
    """Keeps this process and its children on one core, where the system allows it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def startup(pairs: int) -> None:
    """Help and small commands against a bare typer program, alternating."""
    ratios: dict[str, list[float]] = {}
    for _ in range(pairs):
        bare = cost([sys.executable, "-c", BARE, "--help"], TYPER_USE_RICH="0").cpu_s
        for words in QUICK:
            ours = cost([sys.executable, "-c", CODE, *words]).cpu_s
            ratios.setdefault(" ".join(words), []).append(ours / bare)
    for name, values in ratios.items():
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"{name} / bare typer: {middle:.2f} (min {low:.2f}, max {high:.2f}, n={pairs})")


def static(folder: Path, rows: int, row_kb: float, runs: int) -> None:
    """Static grading of rows with tools repeated between neighbours."""
    data = folder / f"rows-{rows}-{row_kb:g}.jsonl"
    maker = [sys.executable, str(HERE / "make_rows.py"), str(data)]
    subprocess.run([*maker, "--rows", str(rows), "--row-kb", str(row_kb)], check=True)
    size = data.stat().st_size / rows / 1000
    costs: list[Cost] = []
    for _ in range(runs):
        out = folder / "out"
        costs.append(cost([sys.executable, "-c", CODE, "grade", str(data), "--out", str(out)]))
        shutil.rmtree(out)
    rates = sorted(rows / c.cpu_s for c in costs)
    peak = max(c.peak_mb for c in costs)
    print(
        f"static, {rows} rows of {size:.1f} kB: median {statistics.median(rates):.0f} items/s of "
        f"CPU (min {rates[0]:.0f}, max {rates[-1]:.0f}, n={runs}), peak {peak:.0f} MB"
    )
    data.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--million", action="store_true", help="also a million rows of 1 kB")
    options = parser.parse_args()
    pin()
    startup(pairs=15)
    with tempfile.TemporaryDirectory() as name:
        static(Path(name), rows=10_000, row_kb=18, runs=5)
        if options.million:
            static(Path(name), rows=1_000_000, row_kb=1, runs=1)


if __name__ == "__main__":
    main()
