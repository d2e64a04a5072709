"""The command line, in this process or as a program of its own."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from apbjudge.cli import progress
from apbjudge.cli.main import main

_PROGRESS = re.compile(r"^\d+ (of (about )?\d+ )?rows, \d+\.\d/s, .*\n", re.MULTILINE)


class CommandResult(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def in_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., CommandResult]:
    """A function that runs the command here: no second start of Python.

    However long it takes, it doesn't say how far it has come: on a slow machine that line would
    stand among those that a test looks at.
    """
    monkeypatch.setattr(progress, "PLAIN_EVERY_S", math.inf)

    def run(*arguments: object) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["apbjudge", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        code = stop.value.code
        assert isinstance(code, int)
        return CommandResult(code, said.out, said.err)

    return run


def without_progress(said: str) -> str:
    """What a program wrote on stderr, without the lines that only a slow machine brings about."""
    return _PROGRESS.sub("", said)


def start(*arguments: object) -> subprocess.Popen[str]:
    """Starts the command as a program that Ctrl-C stops, also where these tests run behind it."""
    command = [sys.executable, "-m", "apbjudge", *map(str, arguments)]
    pipe = subprocess.PIPE
    listen = _listen_to_interrupts
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=listen)  # noqa: PLW1509


def _listen_to_interrupts() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so do its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
