"""Measures runs against a server that fails: how long, how many calls, how many rows are judged.

    python benchmarks/faults.py                              # both transports, all faults
    python benchmarks/faults.py --rows 200 --only 500 429

Every run is a whole ``apbjudge grade`` with an empty cache. What counts is the ratio to the run in
which as large a share fails with 500, in the same session, or to what a rate limit allows.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path

from engine import Load, make_rows, ours, server, spawn

SHARE = ("--fail", "0.3")
FAULTS: dict[str, tuple[str, ...]] = {
    "none": (),
    "500": (*SHARE, "--status", "500"),
    "429": SHARE,
    "429, Retry-After 1": (*SHARE, "--retry-after", "1"),
    "50 a second": ("--rate", "50", "--burst", "50"),
    "50 a second, Retry-After 1": ("--rate", "50", "--burst", "50", "--retry-after", "1"),
    "empty replies": ("--bad", "0.3"),
}


def measure(transport: str, load: Load, out: Path) -> tuple[float, int, int, int]:
    """One run: seconds, calls, calls that failed, rows with a verdict."""
    contestant = ours(transport)
    with server(contestant.content, load) as (url, end):
        _, wall, _ = spawn(contestant.run(load, url, out), out / "stderr.txt", ends=(0, 1))
        seen = end()
    lines = (out / contestant.results).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    times = Counter((row["item_id"], row["tested_model"]) for row in rows)
    assert len(times) == load.calls, "a row is missing"
    assert max(times.values()) == 1, "a row is there twice"
    assert all(row["detail"] for row in rows if row["kind"] == "unscored"), "no reason is given"
    judged = sum(row["kind"] == "verdict" for row in rows)
    return wall, int(seen["requests"]), int(seen["failed"]), judged


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=780)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency-ms", type=float, default=100)
    parser.add_argument("--transport", nargs="*", default=["direct", "litellm"])
    parser.add_argument("--only", nargs="*", choices=FAULTS, default=[*FAULTS])
    options = parser.parse_args()
    print(
        f"{'transport':<11}{'fault':<28}{'s':>7}{'/500':>7}{'calls':>7}{'failed':>8}{'judged':>8}"
    )
    with tempfile.TemporaryDirectory(prefix="apbjudge-faults-") as name:
        rows = make_rows(Path(name) / "rows", options.rows)
        for transport in options.transport:
            base: float | None = None
            for number, fault in enumerate(options.only):
                out = Path(name) / f"{transport}-{number}"
                out.mkdir()
                sizes = (options.rows, options.concurrency, options.latency_ms)
                load = Load(rows, *sizes, faults=FAULTS[fault])
                wall, calls, failed, judged = measure(transport, load, out)
                base = wall if fault == "500" else base
                ratio = f"{wall / base:.2f}" if base else "-"
                counts = f"{calls:>7}{failed:>8}{judged:>8}"
                print(f"{transport:<11}{fault:<28}{wall:>7.1f}{ratio:>7}{counts}", flush=True)


if __name__ == "__main__":
    main()
