"""Measures how fast logs of whole runs are read and graded, and in what memory.

    python benchmarks/trajectories.py                   # 500 runs: about 0.1 GB
    python benchmarks/trajectories.py --runs 10000      # 2.4 GB

A run has 50 calls with their results and 30 tool definitions. Each figure is of a process of its
own, CPU seconds and peak resident memory by ``getrusage``; reading and grading are set against a
bare loop over the same file, ``for line in file: orjson.loads(line)``, in the same run. The same
runs are read as JSON lines of chat messages, as one JSON array (as tau-bench writes it), as ATIF
and in our own format.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson

STEPS, TOOLS = 50, 30

BARE = """
import sys, orjson
with open(sys.argv[1], "rb") as file:
    for line in file:
        orjson.loads(line)
"""
WHOLE = """
import sys, orjson
orjson.loads(open(sys.argv[1], "rb").read())
"""
READ = """
import sys
from pathlib import Path
from apbjudge.records.trajectories import Trajectory
from apbjudge.trajectories.detection import detect
from apbjudge.trajectories.reading import read_log
path = Path(sys.argv[1])
for entry in read_log(path, detect(path)):
    assert isinstance(entry.content, Trajectory) and len(entry.content.steps) > 50
"""
GRADE = """
import sys, apbjudge
run = apbjudge.grade(sys.argv[1], out=sys.argv[2])
assert not run.summary.totals.unscored
"""
STEP_WORDS = "order parcel refund invoice address courier window store basket voucher".split()


def make(folder: Path, n: int) -> dict[str, Path]:
    """The same runs in four forms."""
    from apbjudge.records.trajectories import LogPlace, trajectory_row
    from apbjudge.trajectories.formats.messages import MESSAGES
    from apbjudge.trajectories.writing import to_atif

    rng = random.Random(1)
    names = ("messages", "array", "atif", "own")
    paths = {name: folder / f"{name}.json{'' if name == 'array' else 'l'}" for name in names}
    files = {name: path.open("wb") for name, path in paths.items()}
    files["array"].write(b"[\n")
    for i in range(n):
        row = _run(rng, i)
        trajectory = MESSAGES.read(row, LogPlace("messages"), {})
        old = {"task_id": i // 4, "trial": i % 4, "reward": row["reward"], "info": {}}
        old["traj"] = row["messages"]
        files["messages"].write(orjson.dumps(row) + b"\n")
        files["array"].write(orjson.dumps(old) + (b",\n" if i + 1 < n else b"\n]\n"))
        files["atif"].write(orjson.dumps(to_atif(trajectory)) + b"\n")
        files["own"].write(orjson.dumps(trajectory_row(trajectory)) + b"\n")
    for file in files.values():
        file.close()
    return paths


def _run(rng: random.Random, number: int) -> dict[str, object]:
    messages: list[dict[str, object]] = [
        {"role": "system", "content": " ".join(rng.choices(STEP_WORDS, k=300))},
        {"role": "user", "content": " ".join(rng.choices(STEP_WORDS, k=60))},
    ]
    for step in range(STEPS):
        arguments = {"id": rng.randrange(10**6), "query": " ".join(rng.choices(STEP_WORDS, k=8))}
        function = {
            "name": f"tool_{rng.randrange(TOOLS)}",
            "arguments": orjson.dumps(arguments).decode(),
        }
        call = {"id": f"call_{step}", "type": "function", "function": function}
        messages.append(
            {
                "role": "assistant",
                "content": " ".join(rng.choices(STEP_WORDS, k=40)),
                "tool_calls": [call],
            }
        )
        rows = [{w: rng.randrange(10**6) for w in STEP_WORDS} for _ in range(20)]
        messages.append(
            {"role": "tool", "tool_call_id": call["id"], "content": orjson.dumps(rows).decode()}
        )
    messages.append({"role": "assistant", "content": "Done."})
    return {
        "id": f"run-{number}",
        "case_id": f"task-{number // 4}",
        "trial": number % 4,
        "tested_model": "model-a",
        "tools": [_tool(i) for i in range(TOOLS)],
        "messages": messages,
        "reward": float(rng.random() < 0.4),
    }


def _tool(number: int) -> dict[str, object]:
    properties = {
        word: {"type": "string", "description": f"The {word} that is meant, by its number."}
        for word in STEP_WORDS[:4]
    }
    parameters = {"type": "object", "properties": properties, "required": STEP_WORDS[:2]}
    text = "Looks something up and returns all that is known of it, or an error message. " * 2
    function = {"name": f"tool_{number}", "description": text, "parameters": parameters}
    return {"type": "function", "function": function}


def measured(program: str, *arguments: str) -> tuple[float, float]:
    """CPU seconds and peak MiB of a program in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", program, *arguments])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("a measured program failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    n = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = make(folder, n)
        idle, _ = measured("import apbjudge.trajectories.reading, apbjudge.trajectories.steps")
        print(f"{n:,} runs of {STEPS} calls with {TOOLS} tools each, CPU seconds less start-up")
        print(f"{'log':10} {'MB':>7} {'bare':>7} {'read':>7} {'ratio':>6} {'MB/s':>6} {'MiB':>5}"
              f" {'graded':>7} {'ratio':>6} {'MiB':>5}")  # fmt: skip
        for form, path in paths.items():
            size = path.stat().st_size / 1e6
            bare, _ = measured(WHOLE if form == "array" else BARE, str(path))
            bare -= measured("import orjson")[0]
            read, memory = measured(READ, str(path))
            graded, most = measured(GRADE, str(path), str(folder / f"run-{form}"))
            read, graded = read - idle, graded - idle
            print(
                f"{form:10} {size:7.0f} {bare:7.2f} {read:7.2f} {read / bare:6.2f} "
                f"{size / read:6.0f} {memory:5.0f} {graded:7.2f} {graded / bare:6.2f} {most:5.0f}"
            )


if __name__ == "__main__":
    main()
