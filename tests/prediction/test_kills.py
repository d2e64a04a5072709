"""Runs that are killed again and again in a storm of faults: one record a row, none paid twice."""

from __future__ import annotations

import random
import signal
from collections import Counter
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from tests.support.commands import start
from tests.support.judging import plan_row, write_rows
from tests.support.predicting import MODEL, read_lines
from tests.support.server import PATIENCE_S, Answer, Behaviour, Body, Reset, Seen, Status

NAMES = [f"row-{n}" for n in range(6)]
STORM: tuple[Behaviour, ...] = (Status(503), Status(429), Reset(), Reset(midway=True), Body(b""))
SHARE = 0.3
KILLS = (1, 2, 5, 9)
"""Calls, counted over all sessions, during which the process is killed."""
COMMANDS = {"predict": 1, "refine": 2}
"""Calls a row takes."""


class Killer:
    """Answers one call at a time, a share of them wrongly, and kills who makes certain calls."""

    def __init__(self) -> None:
        self.answered: Counter[tuple[str, bool]] = Counter()
        self.processes: list[Popen[str]] = []
        self.faults = 0

    def __call__(self, seen: Seen) -> Behaviour:
        if seen.number in KILLS:
            self.processes[-1].send_signal(signal.SIGKILL)
            return Reset()
        rng = random.Random(seen.number)
        if rng.random() < SHARE:
            self.faults += 1
            return rng.choice(STORM)
        name = next(name for name in NAMES if f"({name})" in seen.text)
        self.answered[name, "Here is a review" in seen.text] += 1
        return Answer("Another tool.\nVERDICT: CHANGE")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_killed_again_and_again_pays_for_no_answer_twice(
    serve: Any, tmp_path: Path, name: str
) -> None:
    killer = Killer()
    model = f"{MODEL}@{serve(killer).address}"
    rows = [plan_row(row, tested_model=MODEL) for row in NAMES]
    out = tmp_path / "out"
    command = [name, write_rows(tmp_path / "rows.jsonl", rows), "--model", model, "--out", out]
    command += ["--mode", "self"] if name == "refine" else []
    codes: list[int] = []
    while 0 not in codes and len(codes) < 20:
        settings = ["max_concurrency=1", "retries=0"]
        with start(
            *command, *(word for each in settings for word in ("--config", each))
        ) as process:
            killer.processes.append(process)
            process.communicate(timeout=PATIENCE_S)
        codes.append(process.returncode)
        made = read_lines(out / "predictions.jsonl")
        assert len({row["id"] for row in made}) == len(made)
        assert set(codes) <= {0, 1, -signal.SIGKILL}
    assert codes[-1] == 0
    assert codes.count(-signal.SIGKILL) == len(KILLS)
    assert killer.faults > 0
    assert sorted(row["id"] for row in made) == NAMES
    assert set(killer.answered.values()) == {1}
    assert len(killer.answered) == COMMANDS[name] * len(NAMES)
