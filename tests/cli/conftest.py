"""Runs the command line: in this process where that is enough, else as a process of its own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support.commands import CommandResult as Outcome
from tests.support.commands import in_process, without_progress
from tests.support.server import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["holistic", "step_wise", "tool_extraneous", "tool_broken", "unsolvable", "efficiency"]


class Command(Protocol):
    """Runs ``apbjudge`` with arguments; fails the test when a traceback is shown."""

    def __call__(self, *args: object) -> Outcome: ...


def example(name: str) -> Path:
    return EXAMPLES / f"{name}.jsonl"


def process(*args: object, cwd: Path, **options: Any) -> Outcome:
    """Runs ``python -m apbjudge`` in a process of its own."""
    command = [sys.executable, "-m", "apbjudge", *map(str, args)]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    streams = {"env": os.environ, **streams}
    done = subprocess.run(command, cwd=cwd, text=True, timeout=PATIENCE_S, check=False, **streams)
    err = without_progress(done.stderr or "")
    assert "Traceback" not in err
    return Outcome(done.returncode, done.stdout or "", err)


@pytest.fixture
def apbjudge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command, run in this process in an empty folder; it may not retune this process."""
    for name in ("collect", "freeze", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *_: 0)
    monkeypatch.chdir(tmp_path)
    command = in_process(monkeypatch, capsys)

    def run(*args: object) -> Outcome:
        capsys.readouterr()
        done = command(*args)
        assert "Traceback" not in done.err
        return done

    return run
