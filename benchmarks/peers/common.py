"""What every contestant shares: its arguments, its rows, and the file its verdicts go to.

Only the standard library is used, so that this runs in the environment of any peer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

Row = dict[str, str]
"""``id``, and the texts a judge is shown: ``tools``, ``query``, ``reference``, ``prediction``."""

RESULTS = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Job:
    """What a contestant is asked to do.

    Attributes:
        path: The rows, one JSON object a line.
        rubric: The rubric, as text.
        url: Base address of the server.
        concurrency: Calls in flight at most.
        out: An empty folder for whatever is written.
    """

    path: Path
    rubric: str
    url: str
    concurrency: int
    out: Path

    def rows(self) -> list[Row]:
        """All rows."""
        with self.path.open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def read_job() -> Job:
    """The job on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--rubric", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rubric = options.rubric.read_text(encoding="utf-8")
    return Job(options.rows, rubric, options.url, options.concurrency, options.out)


def case_text(row: Row) -> str:
    """The case as one text, for tools that know inputs, outputs and a reference only."""
    return f"Tools that were available:\n{row['tools']}\n\nQuery:\n{row['query']}"


async def judge_all(job: Job, judge: Callable[[Row], Awaitable[object]]) -> None:
    """Judges every row, at most ``job.concurrency`` at once, and writes the results."""
    gate = asyncio.Semaphore(job.concurrency)

    async def one(row: Row) -> tuple[str, object]:
        async with gate:
            return row["id"], await judge(row)

    write_results(job, await asyncio.gather(*map(one, job.rows())))


def write_results(job: Job, results: list[tuple[str, object]]) -> None:
    """Writes a line for each pair of an id and a JSON value."""
    with (job.out / RESULTS).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": name, "result": r}) + "\n" for name, r in results)
