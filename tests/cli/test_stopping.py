"""Commands that ask models, paused in the middle: no call is lost, none is made twice."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import termios
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from apbjudge import Events, grade
from apbjudge.cli.stopping import stoppable
from tests.support.auditing import SHORT
from tests.support.batch_server import BatchServer
from tests.support.commands import start, without_progress
from tests.support.predicting import EXAMPLES, MODEL, REPLY
from tests.support.server import PATIENCE_S, Answer, Behaviour, ChatServer, Seen

from .conftest import Command, example

Words = Sequence[object]
USUAL = ("--no-cache", "--max-concurrency", 3, "--retries", 0)
RUNS = EXAMPLES / "trajectories"


def model(at: str) -> Words:
    return ("--model", f"{MODEL}@{at}")


COMMANDS: dict[str, Callable[[str], Words]] = {
    "predict": lambda at: ("predict", EXAMPLES / "unsolvable.jsonl", *model(at)),
    "refine": lambda at: (
        *("refine", EXAMPLES / "unsolvable.jsonl", "--mode", "self"),
        *("--model", f"hosted_vllm/alder-large@{at}", "--model", f"hosted_vllm/cress-small@{at}"),
    ),
    "simulate": lambda at: (
        *("simulate", RUNS / "library" / "data", "--trials", 4, "--max-turns", 3, *model(at)),
    ),
    "execute": lambda at: (
        *("execute", EXAMPLES / "own_benchmarks" / "storeroom.py", "--max-turns", 2, *model(at)),
        *("--mode", "plan-first"),
    ),
    "branch": lambda at: ("branch", RUNS / "slate_cases.jsonl", "--samples", 2, *model(at)),
    "audit": lambda at: (
        *("audit", f"{MODEL}@{at}", "--rows", SHORT, "--bases", 1, "--seed-of-draw", 1),
    ),
    "build": lambda at: (
        *("build", RUNS / "town.jsonl", "--split", "holistic_planning", "--data-root", EXAMPLES),
        *("--write", "query", *model(at)),
    ),
    "check": lambda at: (
        *("check", EXAMPLES / "asked" / "cases.jsonl", "--fail-on", "none"),
        *("--ask", f"{MODEL}@{at}"),
    ),
}


class Gate:
    """A server that holds back its answers from the middle of a run on, until it is let go."""

    def __init__(self) -> None:
        self.open_for = sys.maxsize
        self.let_go = threading.Event()

    def __call__(self, seen: Seen) -> Behaviour:
        if seen.number > self.open_for:
            self.let_go.wait(PATIENCE_S)
        if "response_format" not in seen.body:
            return Answer(REPLY)
        wanted = seen.body["response_format"]["json_schema"]["schema"]["properties"]
        sound = {"reasoning": "fine", "is_correct": True, "grade": 1.0, "category": 1}
        return Answer(json.dumps({name: sound.get(name, False) for name in wanted}))


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def server(gate: Gate) -> Iterator[ChatServer]:
    with ChatServer(gate) as server:
        yield server
        gate.let_go.set()


def calls(server: ChatServer) -> Counter[str]:
    """Each request that arrived, and how often."""
    return Counter(json.dumps(seen.body, sort_keys=True) for seen in server.requests)


def states(folder: Path) -> set[str]:
    """States of all runs in a folder; an audit's own manifest has none."""
    manifests = [json.loads(path.read_bytes()) for path in folder.rglob("manifest.json")]
    return {manifest["state"] for manifest in manifests if "state" in manifest}


def untimed(text: str) -> list[str]:
    """The lines that state no time."""
    return [line for line in text.splitlines() if not line.startswith("time, ")]


def until(stream: Any, text: str) -> None:
    """Reads lines until one begins with a text."""
    while not (line := stream.readline()).startswith(text):
        assert line


@pytest.mark.parametrize(
    "name",
    [
        name if name == "predict" else pytest.param(name, marks=pytest.mark.slow)
        for name in COMMANDS
    ],
)
def test_sigterm_loses_no_call_and_repeats_none(
    apbjudge: Command, gate: Gate, server: ChatServer, name: str
) -> None:
    words = (*COMMANDS[name](server.address), *USUAL, "--run" if name == "check" else "--out")
    whole = apbjudge(*words, "whole")
    expected = calls(server)
    server.forget()
    gate.open_for = expected.total() // 2
    with start(*words, "stopped", "--grace", PATIENCE_S) as process:
        server.wait_for(gate.open_for + 1)
        process.send_signal(signal.SIGTERM)
        until(process.stderr, "pausing: ")
        gate.let_go.set()
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 75
    assert err.splitlines()[-1] == "paused; the same command continues from stopped"
    assert "paused" in states(Path("stopped")) <= {"paused", "done"}
    assert calls(server) < expected
    again = apbjudge(*words, "stopped")
    assert again.code == whole.code
    assert untimed(again.out.replace("stopped", "whole")) == untimed(whole.out)
    assert calls(server) == expected
    assert states(Path("stopped")) == {"done"}


@pytest.mark.slow
def test_sigterm_ends_at_once_while_a_batch_is_waited_for(
    apbjudge: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with BatchServer(states=["in_progress"]) as server:
        words = ("grade", example("unsolvable"), "--judge", "openai/scripted", "--batch")
        words = (*words, "--api-base", server.address, "--out", "out", "--no-cache")
        with start(*words) as process:
            until(process.stderr, "batch batch-0: in_progress")
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 75
        assert without_progress(err) == "paused; the same command continues from out\n"
        assert states(Path("out")) == {"paused"}
        assert server.calls.count("GET batches/batch-0") == 1
        server.batches[0].states = ["completed"]
        assert apbjudge(*words).code == 0
        assert len(server.batches) == 1


def held(server: ChatServer, gate: Gate, *more: object) -> Words:
    """A command whose third call gets no answer before the gate is let go."""
    gate.open_for = 2
    words = ("predict", EXAMPLES / "unsolvable.jsonl", *model(server.address), *USUAL)
    return (*words, "--out", "out", *more)


def read_while(terminal: int, wait: Callable[[], None]) -> None:
    """Reads all that is written to a terminal while something is waited for: it holds but 16 KB."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        while not waiting.done():
            if select.select([terminal], [], [], 0.1)[0]:
                os.read(terminal, 1 << 16)
    waiting.result()


@pytest.mark.slow
def test_a_run_whose_terminal_is_closed_is_paused(
    apbjudge: Command, gate: Gate, server: ChatServer
) -> None:
    ours, terminal = os.openpty()
    words = map(str, held(server, gate, "--grace", 0))

    def take_terminal() -> None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        [sys.executable, "-m", "apbjudge", *words],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509
    ) as process:
        os.close(terminal)
        read_while(ours, lambda: server.wait_for(3))
        os.close(ours)
        assert process.wait(PATIENCE_S) == 75
    assert states(Path("out")) == {"paused"}
    gate.let_go.set()
    assert apbjudge(*held(server, gate)).code == 0


def test_only_the_command_handles_signals_and_only_those_that_nobody_does(
    apbjudge: Command,
) -> None:
    handlers: list[Any] = []
    watching = Events(
        progress=lambda _: handlers.append(signal.getsignal(signal.SIGTERM)), bad_row=lambda _: None
    )
    grade(example("unsolvable"), events=watching)
    assert set(handlers) == {signal.SIG_DFL}

    def of_the_caller(sign: int, frame: object) -> None:
        handlers.append(sign)

    assert apbjudge("grade", example("unsolvable"), "--out", "out").code == 0
    assert signal.signal(signal.SIGTERM, of_the_caller) is signal.SIG_DFL
    try:
        with stoppable({}, None):
            signal.raise_signal(signal.SIGTERM)
    finally:
        assert signal.signal(signal.SIGTERM, signal.SIG_DFL) is of_the_caller
    assert handlers[-1] == signal.SIGTERM


@pytest.mark.slow
def test_nohup_keeps_a_run_going(
    gate: Gate, server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = held(server, gate)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # children inherit it
    try:
        process = start(*words)
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        server.wait_for(3)
        process.send_signal(signal.SIGHUP)
        gate.let_go.set()
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert states(Path("out")) == {"done"}
