"""Measures how long `apbjudge calibrate` takes to read a run and its labels, and in what memory.

    python benchmarks/reading.py                  # 300,000 judgements and as many labels
    python benchmarks/reading.py --rows 1000000

Reading is set against a bare loop over the same two files, ``for line in file:
orjson.loads(line)``, as a ratio of CPU times taken in the same run. Every figure is of a process
of its own: CPU seconds and peak resident memory by ``getrusage``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path

MODELS = ("asked_model-a", "asked_model-b", "asked_model-c", "asked_model-d", "asked_model-e")
CODES = ("E1", "E2", "E3", "E4", "E5", "E6")

BARE = """
import sys, orjson
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)
"""
READ = """
import sys
from pathlib import Path
from apbjudge.calibration.judged_run import read_judged_run
from apbjudge.calibration.matching import load_labels
problems = []
labels = load_labels(Path(sys.argv[2]), None, problems)
read_judged_run(Path(sys.argv[1]), problems).table.first_rows(problems)
"""
SUMMARY = """
import sys
from itertools import islice
from pathlib import Path
from apbjudge.jsonl import read_lines
from apbjudge.judge.summary import summarize
lines = islice(read_lines(Path(sys.argv[1])), int(sys.argv[2]))
summarize((line.values for line in lines), judge="judge")
"""
IMPORTS = """
import apbjudge.calibration.calibrate, scipy.stats, scipy.special
"""


def make(folder: Path, n: int) -> tuple[Path, Path]:
    """Judgements of five tested models on n / 5 cases, and one human's label of each."""
    rng = random.Random(1)
    judgements, labels = folder / "judgements.jsonl", folder / "labels.jsonl"
    with judgements.open("w") as rows, labels.open("w") as humans:
        for at in range(n):
            case, model = divmod(at, len(MODELS))
            correct = rng.random() < 0.6
            agrees = rng.random() < 0.9
            rows.write(json.dumps(_judgement(rng, case, MODELS[model], correct=correct)) + "\n")
            own = correct == agrees
            label = {
                "item_id": f"case-{case:06d}-item",
                "tested_model": MODELS[model],
                "is_correct": own,
                "grade": 1.0 if own else rng.choice((0.0, 0.2, 0.4, 0.6, 0.8)),
                "errors": {code: not own and rng.random() < 0.4 for code in CODES},
            }
            humans.write(json.dumps(label) + "\n")
    return judgements, labels


def _judgement(rng: random.Random, case: int, model: str, *, correct: bool) -> dict[str, object]:
    errors = {code: not correct and rng.random() < 0.4 for code in CODES}
    return {
        "item_id": f"case-{case:06d}-item",
        "case_id": f"case-{case:06d}",
        "tested_model": model,
        "protocol": "holistic",
        "rubric": "apb-holistic@1",
        "judge": "judge",
        "decided_by": None,
        "kind": "verdict",
        "is_correct": correct,
        "grade": 1.0 if correct else rng.choice((0.0, 0.2, 0.4, 0.6, 0.8)),
        "errors": errors,
        "category": None,
        "plan_cost": rng.random(),
        "uses_distractor": None,
        "matches_reference": correct,
        "findings": [],
        "overrides": [],
        "inconsistent": False,
        "uncertainty": {
            "method": "samples",
            "n": 5,
            "shares": {"is_correct": 0.8},
            "grades": {},
            "categories": {},
            "entropy": {"is_correct": 0.722},
        },
        "reasoning": " ".join(["word"] * 40),
        "reason": None,
        "detail": None,
        "raw": None,
        "usage": {
            "prompt_tokens": rng.randrange(1000, 3000),
            "completion_tokens": rng.randrange(100, 400),
            "cached_tokens": 0,
            "calls": 1,
            "lost": 0,
            "reused": 0,
        },
        "cost_usd": rng.random() / 100,
        "latency_s": rng.random() * 5,
        "fingerprint": f"{rng.getrandbits(128):032x}",
        "line": case + 1,
        "content_id": None,
        "groups": {"category": "travel", "modality": "text", "steps": "1-5", "level": 0},
    }


def measure(*command: str) -> tuple[float, float]:
    """CPU seconds and peak resident MiB of a command."""
    child = os.fork()
    if not child:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.execv(sys.executable, [sys.executable, *command])
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{' '.join(command)[:200]}: exit status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Prints a table of seconds and memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=300_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        judgements, labels = map(str, make(Path(name), options.rows))
        bare, _ = measure("-c", BARE, judgements, labels)
        base, base_memory = measure("-c", IMPORTS)
        print(f"{options.rows} judgements and {options.rows} labels; a bare loop: {bare:.1f} s")
        print(f"{'':<28}{'CPU s':>8}{'x bare':>8}{'MiB':>8}")
        print(f"{'imports alone':<28}{base:>8.1f}{'':>8}{base_memory:>8.0f}")
        calibrate = ("-m", "apbjudge", "calibrate", judgements, labels)
        for what, command in (
            ("reading, imports apart", ("-c", READ, judgements, labels)),
            ("calibrate", calibrate),
            ("calibrate --cluster none", (*calibrate, "--cluster", "none")),
        ):
            seconds, memory = measure(*command)
            seconds -= base if what.endswith("apart") else 0
            print(f"{what:<28}{seconds:>8.1f}{seconds / bare:>8.1f}{memory:>8.0f}", flush=True)
        part = options.rows // 3
        (_, few), (_, all_) = (
            measure("-c", SUMMARY, judgements, str(n)) for n in (part, options.rows)
        )
        a_row = (all_ - few) * 2**20 / (options.rows - part)
        print(f"a summary of a run takes {a_row:.0f} bytes a row")


if __name__ == "__main__":
    main()
