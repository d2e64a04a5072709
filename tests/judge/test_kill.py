"""A process that is killed, stopped or joined by a second one: every row once, no call twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apbjudge import agrade
from apbjudge.judge import JudgeSpec, Source
from apbjudge.judge.session import run_identity
from apbjudge.judge.worker import JUDGEMENT_RECORDS
from apbjudge.runs.folder import RecordLog
from tests.support.commands import start
from tests.support.judging import MODEL, RIGHT, plan_row, read_rows, write_rows
from tests.support.server import PATIENCE_S, Answer, Behaviour, Seen

NAMES = [f"row-{n:02}" for n in range(12)]
FINISHED = 5
IN_FLIGHT = 3


NOTEBOOK = """
import asyncio, signal, sys
from apbjudge import JudgeSpec, grade

async def cell(rows, out, judge):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a notebook's kernel does
    try:
        grade(rows, judge=JudgeSpec.model_validate_json(judge), out=out)
    except KeyboardInterrupt:
        sys.exit(130)

asyncio.run(cell(*sys.argv[1:]))
"""


class Stopped:
    """A run that has finished 5 rows and has 3 requests in flight when it is stopped.

    Attributes:
        out: The run's folder.
        code: Exit code of what was stopped.
        err: What it wrote to stderr.
    """

    def __init__(self, serve: Any, folder: Path) -> None:
        self.out = folder / "out"
        self.server = serve(self._behave)
        self.rows = write_rows(folder / "rows.jsonl", [plan_row(name) for name in NAMES])
        settings = {"max_concurrency": IN_FLIGHT, "retries": 0}
        self.spec = JudgeSpec(model=MODEL, api_base=self.server.address, **settings)
        target = ["--judge", MODEL, "--api-base", self.server.address, "--out", self.out]
        several = [w for name, value in settings.items() for w in ("--config", f"{name}={value}")]
        self.arguments = ["grade", self.rows, *target, *several]
        self.code, self.err = 0, ""
        self._answers = threading.Event()

    def _behave(self, seen: Seen) -> Behaviour:
        if seen.number > FINISHED:
            self._answers.wait(PATIENCE_S)
        return Answer(RIGHT)

    def by(self, *signs: signal.Signals, grace: float = PATIENCE_S, answers: bool = False) -> None:
        """Starts the command and sends it signals in the middle.

        Args:
            signs: The signals; each after what came before was noticed.
            grace: The option.
            answers: Whether the requests in flight are answered after the signals.
        """
        with start(*self.arguments, "--grace", grace) as process:
            assert process.stderr is not None
            # a request in the ninth place means that the answers before are on disk
            self.server.wait_for(FINISHED + IN_FLIGHT)
            for sign in signs:
                process.send_signal(sign)
                if sign in (signal.SIGTERM, signal.SIGHUP):
                    self.err += process.stderr.readline()
            if answers:
                self._answers.set()
            self.err += process.communicate(timeout=PATIENCE_S)[1]
            self.code = process.returncode

    def by_interrupt_of_a_notebook(self) -> None:
        """Calls ``grade`` inside a running loop, and interrupts it in the middle."""
        judge = self.spec.model_dump_json(exclude_unset=True)
        words = [sys.executable, "-c", NOTEBOOK, self.rows, self.out, judge]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            self.server.wait_for(FINISHED + IN_FLIGHT)
            process.send_signal(signal.SIGINT)
            _, self.err = process.communicate(timeout=PATIENCE_S)
            self.code = process.returncode

    def by_cancelling_a_task(self) -> None:
        """Awaits ``agrade``, and cancels it in the middle."""

        async def main() -> None:
            task = asyncio.create_task(agrade(self.rows, judge=self.spec, out=self.out))
            await asyncio.to_thread(self.server.wait_for, FINISHED + IN_FLIGHT)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())

    def answer_all(self) -> None:
        """Lets the server answer from now on."""
        self._answers.set()
        self.server.forget()

    @property
    def asked(self) -> list[str]:
        return sorted(n for seen in self.server.requests for n in NAMES if f"({n})" in seen.text)

    @property
    def written(self) -> list[str]:
        return sorted(row["item_id"] for row in read_rows(self.out))

    def state(self) -> str:
        manifest = json.loads((self.out / "manifest.json").read_text(encoding="utf-8"))
        return manifest["state"]


@pytest.fixture
def run(serve: Any, tmp_path: Path) -> Stopped:
    return Stopped(serve, tmp_path)


INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
WAYS: dict[str, tuple[Callable[[Stopped], None], tuple[int, str, int]]] = {
    "kill -9": (lambda run: run.by(signal.SIGKILL), (-signal.SIGKILL, "running", FINISHED)),
    "SIGINT": (lambda run: run.by(INT), (130, "interrupted", FINISHED)),
    "SIGTERM": (lambda run: run.by(TERM, answers=True), (75, "paused", FINISHED + IN_FLIGHT)),
    "SIGHUP": (lambda run: run.by(HUP, answers=True), (75, "paused", FINISHED + IN_FLIGHT)),
    "SIGTERM without grace": (lambda run: run.by(TERM, grace=0), (75, "paused", FINISHED)),
    "SIGTERM twice": (lambda run: run.by(TERM, TERM), (75, "paused", FINISHED)),
    "SIGTERM, then SIGINT": (lambda run: run.by(TERM, INT), (130, "interrupted", FINISHED)),
    "a cancelled task": (Stopped.by_cancelling_a_task, (0, "interrupted", FINISHED)),
    "an interrupted notebook": (
        Stopped.by_interrupt_of_a_notebook,
        (130, "interrupted", FINISHED),
    ),
}
"""How a run is stopped; its exit code, its state, and the rows that have a record then."""


SLOW = (
    "SIGHUP",
    "SIGTERM",
    "a cancelled task",
    "SIGTERM without grace",
    "SIGTERM twice",
    "SIGTERM, then SIGINT",
)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        pytest.param(*way, id=name, marks=[pytest.mark.slow] * (name in SLOW))
        for name, way in WAYS.items()
    ],
)
def test_a_stopped_run_goes_on_without_asking_for_what_is_on_disk(
    run: Stopped,
    command: Any,
    stop: Callable[[Stopped], None],
    expected: tuple[int, str, int],
) -> None:
    stop(run)
    saved = run.written
    assert (run.code, run.state(), len(saved)) == expected
    assert "Traceback" not in run.err
    if len(saved) > FINISHED:
        assert run.err.splitlines() == [
            "pausing: 3 rows in flight, no others are begun",
            f"paused; the same command continues from {run.out}",
        ]
    assert len(run.asked) == FINISHED + IN_FLIGHT
    run.answer_all()
    done = command(*run.arguments)
    assert done.code == 0
    assert "12 rows, 12 scored" in done.out
    assert [line for line in done.err.splitlines() if " done before, " not in line] == []
    assert run.asked == sorted(set(NAMES) - set(saved))
    assert run.written == NAMES
    assert run.state() == "done"


def test_a_second_process_in_the_same_folder_is_turned_away(tmp_path: Path, command: Any) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row("a")])
    identity = run_identity(JudgeSpec(), Source(rows))
    first = RecordLog(tmp_path / "out", JUDGEMENT_RECORDS, identity)
    first.write_manifest({"identity": identity})
    arguments = ["grade", rows, "--out", tmp_path / "out"]
    said = f"apbjudge: --out: another process is writing {tmp_path / 'out'}\n"
    assert command(*arguments) == (2, "", said)
    first.close()
    assert command(*arguments).code == 0


def test_rows_finish_in_any_order_within_the_limit_of_concurrency(serve: Any, bench: Any) -> None:
    limit, lock = 6, threading.Lock()
    active, counts = set[int](), list[int]()

    def behave(seen: Seen) -> Answer:
        with lock:
            active.add(seen.number)
            counts.append(len(active))
        if "(row-00)" in seen.text:
            server.wait_for(len(NAMES))
        with lock:
            active.remove(seen.number)
        return Answer(RIGHT)

    server = serve(behave)
    judged = bench(server).judge([plan_row(name) for name in NAMES], max_concurrency=limit)
    assert sorted(row["item_id"] for row in judged.rows) == NAMES
    assert judged.rows[0]["item_id"] != "row-00"
    assert [row["line"] for row in sorted(judged.rows, key=lambda row: row["item_id"])] == [
        *range(1, len(NAMES) + 1)
    ]
    assert 2 <= max(counts) <= limit
