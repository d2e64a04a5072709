"""Runs the command line: in this process where that is enough, else as a process of its own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from apbjudge.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["holistic", "step_wise", "tool_extraneous", "tool_broken", "unsolvable", "efficiency"]


@dataclass(frozen=True)
class Outcome:
    """What a command printed and its exit code."""

    code: int
    out: str
    err: str


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
    done = subprocess.run(command, cwd=cwd, text=True, timeout=60, check=False, **streams)
    assert "Traceback" not in (done.stderr or "")
    return Outcome(done.returncode, done.stdout or "", done.stderr or "")


@pytest.fixture
def apbjudge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command, run in this process in an empty folder; it may not retune this process."""
    for name in ("collect", "freeze", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *_: 0)
    monkeypatch.chdir(tmp_path)

    def run(*args: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["apbjudge", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run
