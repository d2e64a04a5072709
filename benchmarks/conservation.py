"""Measures what it costs to compare the records of a log with the runs made of them.

    python benchmarks/conservation.py                  # 400 runs in four forms, about 70 MB each
    python benchmarks/conservation.py LOG...           # logs of your own

Each log is read twice in this process, without and with the comparison; both are CPU seconds. The
last two columns are seconds per MB of the log (at most 0.15 are meant to be spent) and the ratio to
``orjson.loads`` of the same bytes, which does not depend on the machine. Of logs above 100 MiB the
comparison takes every tenth run only, so their figure is lower.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import orjson

from apbjudge.trajectories import reading
from apbjudge.trajectories.conservation import Conservation
from apbjudge.trajectories.detection import detect
from apbjudge.trajectories.reading import read_log
from trajectories import make


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of the faster of two."""
    taken: list[float] = []
    for _ in range(2):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def parse_all(lines: list[bytes]) -> None:
    """Parses the lines."""
    deque(map(orjson.loads, lines), 0)


def read_all(path: Path, format_: str) -> None:
    """Reads a log to its end."""
    deque(read_log(path, format_, conservation=Conservation(accepts=1)), 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("logs", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        logs: list[Path] = options.logs or [*make(Path(name), options.runs).values()]
        print(
            f"{'log':24} {'MB':>6} {'parse':>6} {'read':>6} {'compare':>8} {'s/MB':>6} {'ratio':>6}"
        )
        for path in logs:
            format_, size = detect(path), path.stat().st_size / 1e6
            whole = path.suffix == ".json"
            lines = [path.read_bytes()] if whole else path.read_bytes().splitlines()
            bare = seconds(partial(parse_all, lines))
            both = seconds(partial(read_all, path, format_))
            with patch.object(reading, "_compared", lambda entry, _: entry):
                read = seconds(partial(read_all, path, format_))
            compare = both - read
            print(
                f"{path.name[:24]:24} {size:6.1f} {bare:6.2f} {read:6.2f} {compare:8.2f} "
                f"{compare / size:6.3f} {compare / bare:6.1f}"
            )


if __name__ == "__main__":
    main()
