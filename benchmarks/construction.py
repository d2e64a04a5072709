"""Measures how time and memory of checking and building grow with the number of cases.

    python benchmarks/construction.py                     # 1,000 and 10,000 seeds
    python benchmarks/construction.py --seeds 100000      # 10,000 and 100,000: 0.4 GB of source

A seed is a run of four calls with results and six tools, of a town where every task has tools of
its own. Each figure is of a process of its own, CPU seconds and peak resident memory by
``getrusage``. Linear in time means that ten times the seeds take ten times the CPU less what
starting takes; flat in memory, that the peak does not grow by more than some bytes a seed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS = (
    "amber birch cedar delta ember fjord grove heath inlet jetty knoll ledge marsh north".split()
)
BUILD = """
import sys
from apbjudge.agents.cases.build import build
build(sys.argv[1], split=sys.argv[3:], out=sys.argv[2], overwrite=True)
"""
CHECK = """
import sys
from apbjudge.agents.cases.check import check
report = check(sys.argv[1])
assert not report.count("proven"), [*report.listed][:3]
"""
START = """
import apbjudge.agents.cases.build
"""


def definition(name: str, description: str, **types: str) -> dict[str, object]:
    parameters = {key: {"type": kind} for key, kind in types.items()}
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


def row(n: int) -> dict[str, object]:
    """A run in which a crossing is looked up, checked, booked and paid."""
    place, other = WORDS[n % len(WORDS)], WORDS[(n // len(WORDS)) % len(WORDS)]
    day, account, people = f"2027-{1 + n % 12:02}-{1 + n % 28:02}", f"T-{n:07}", 2 + n % 7
    tag = f"{place}_{other}"
    tools = [
        definition(
            f"find_{tag}_sailings", "Lists sailings on a day.", harbour="string", day="string"
        ),
        definition(f"check_{tag}_space", "States the room left on a sailing.", sailing="string"),
        definition(f"book_{tag}_crossing", "Books places.", sailing="string", people="integer"),
        definition(f"pay_{tag}_crossing", "Pays a booking.", booking="string", account="string"),
        definition(f"get_{tag}_tides", "Gives high and low water.", harbour="string"),
        definition(f"report_{tag}_loss", "Reports a thing left behind.", thing="string"),
    ]
    sailing, booking = f"S-{n}", f"B-{n}"
    calls = [
        (f"find_{tag}_sailings", {"harbour": place.title(), "day": day}, {"sailing": sailing}),
        (f"check_{tag}_space", {"sailing": sailing}, {"left": 40}),
        (f"book_{tag}_crossing", {"sailing": sailing, "people": people}, {"booking": booking}),
        (f"pay_{tag}_crossing", {"booking": booking, "account": account}, {"paid": True}),
    ]
    query = (
        f"Please book a crossing from {place.title()} on {day} for {people} people, "
        f"and pay it from account {account}."
    )
    messages: list[dict[str, object]] = [{"role": "user", "content": query}]
    for at, (name, arguments, result) in enumerate(calls):
        call = {"name": name, "arguments": json.dumps(arguments)}
        made = {"id": f"c{at}", "type": "function", "function": call}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": json.dumps(result)},
        ]
    messages.append({"role": "assistant", "content": "Done."})
    own = {"id": f"run-{n}", "case_id": f"task-{n}", "tested_model": "agent", "reward": 1.0}
    return {**own, "messages": messages, "tools": tools}


def measured(script: str, *arguments: str) -> tuple[float, float]:
    """CPU seconds and peak MiB of a script in a process of its own."""
    command = [sys.executable, "-c", script, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {script}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--split", action="append")
    seeds: int = parser.parse_args().seeds
    splits: list[str] = parser.parse_args().split or ["all"]
    start, _ = measured(START)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures: dict[tuple[str, int], tuple[float, float]] = {}
        for n in (seeds // 10, seeds):
            source = folder / f"{n}.jsonl"
            with source.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(row(i)) + "\n" for i in range(n))
            out = folder / f"built-{n}"
            figures["build", n] = measured(BUILD, str(source), str(out), *splits)
            figures["check", n] = measured(CHECK, str(out / "cases.jsonl"))
            with (out / "cases.jsonl").open("rb") as file:
                print(f"{n} seeds: {sum(1 for _ in file)} cases")
        for what in ("build", "check"):
            (less, low), (more, high) = figures[what, seeds // 10], figures[what, seeds]
            print(
                f"{what}: {less - start:.1f} s and {low:.0f} MiB for {seeds // 10} seeds, "
                f"{more - start:.1f} s and {high:.0f} MiB for {seeds}: "
                f"{(more - start) / (less - start):.1f} x the CPU, {high / low:.2f} x the memory"
            )


if __name__ == "__main__":
    main()
