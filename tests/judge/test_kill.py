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
from apbjudge.judge import ItemSource, JudgeSpec
from apbjudge.judge.session import run_identity
from apbjudge.judge.worker import JUDGEMENT_RECORDS
from apbjudge.runs.folder import RecordLog
from tests.support.commands import start
from tests.support.judging import MODEL, RIGHT, plan_row, read_rows, write_rows
from tests.support.server import PATIENCE_S, Answer, Hang, Seen

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

    Each way of stopping it returns the exit code.
    """

    def __init__(self, serve: Any, folder: Path) -> None:
        self.out = folder / "out"
        self.server = serve([*[Answer(RIGHT)] * FINISHED, Hang()])
        self.rows = write_rows(folder / "rows.jsonl", [plan_row(name) for name in NAMES])
        settings = {"max_concurrency": IN_FLIGHT, "retries": 0}
        self.spec = JudgeSpec(model=MODEL, api_base=self.server.address, **settings)
        target = ["--judge", MODEL, "--api-base", self.server.address, "--out", self.out]
        several = [w for name, value in settings.items() for w in ("--config", f"{name}={value}")]
        self.arguments = ["grade", self.rows, *target, *several]

    def by(self, *signs: signal.Signals, notebook: bool = False) -> int:
        """Starts the command, or a notebook, and sends it signals in the middle."""
        judge = self.spec.model_dump_json(exclude_unset=True)
        cell = [sys.executable, "-c", NOTEBOOK, self.rows, self.out, judge]
        command = (*self.arguments, "--grace", PATIENCE_S)
        pipe = subprocess.PIPE
        with (
            subprocess.Popen(cell, stderr=pipe, text=True) if notebook else start(*command)
        ) as process:
            assert process.stderr is not None
            # a request in the ninth place means that the answers before are on disk
            self.server.wait_for(FINISHED + IN_FLIGHT)
            for sign in signs:
                process.send_signal(sign)
                if sign is signal.SIGTERM:  # each after what came before was noticed
                    assert process.stderr.readline().startswith(("pausing: ", "paused; "))
            assert "Traceback" not in process.communicate(timeout=PATIENCE_S)[1]
        return process.returncode

    def by_cancelling_a_task(self) -> int:
        """Awaits ``agrade``, and cancels it in the middle."""

        async def main() -> None:
            task = asyncio.create_task(agrade(self.rows, judge=self.spec, out=self.out))
            await asyncio.to_thread(self.server.wait_for, FINISHED + IN_FLIGHT)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        return 0

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


KILL, INT, TERM = signal.SIGKILL, signal.SIGINT, signal.SIGTERM


@pytest.mark.parametrize(
    ("stop", "code", "state"),
    [
        pytest.param(lambda run: run.by(KILL), -KILL, "running", id="kill -9"),
        pytest.param(
            lambda run: run.by(INT), 130, "interrupted", id="SIGINT", marks=pytest.mark.slow
        ),
        pytest.param(
            lambda run: run.by(TERM, TERM), 75, "paused", id="SIGTERM twice", marks=pytest.mark.slow
        ),
        pytest.param(Stopped.by_cancelling_a_task, 0, "interrupted", id="a cancelled task"),
        pytest.param(
            lambda run: run.by(INT, notebook=True),
            130,
            "interrupted",
            id="an interrupted notebook",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_stopped_run_goes_on_without_asking_for_what_is_on_disk(
    run: Stopped, command: Any, stop: Callable[[Stopped], int], code: int, state: str
) -> None:
    assert stop(run) == code
    saved = run.written
    assert (run.state(), len(saved)) == (state, FINISHED)
    assert len(run.asked) == FINISHED + IN_FLIGHT
    run.server.behave = lambda seen: Answer(RIGHT)
    run.server.forget()
    done = command(*run.arguments)
    assert done.code == 0
    assert "12 rows, 12 scored" in done.out
    assert run.asked == sorted(set(NAMES) - set(saved))
    assert run.written == NAMES
    assert run.state() == "done"


def test_a_second_process_in_the_same_folder_is_turned_away(tmp_path: Path, command: Any) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row("a")])
    identity = run_identity(JudgeSpec(), ItemSource(rows))
    first = RecordLog(tmp_path / "out", JUDGEMENT_RECORDS, identity)
    first.write_manifest({"identity": identity})
    arguments = ["grade", rows, "--out", tmp_path / "out"]
    said = f"apbjudge: --out: another process is writing {tmp_path / 'out'}\n"
    assert command(*arguments) == (2, "", said)
    first.close()
    assert command(*arguments).code == 0


def test_rows_finish_in_any_order_within_the_limit_of_concurrency(serve: Any, bench: Any) -> None:
    limit, active, counts = 6, set[int](), list[int]()
    first = threading.Barrier(limit, timeout=PATIENCE_S)

    def behave(seen: Seen) -> Answer:
        active.add(seen.number)
        counts.append(len(active))
        if seen.number <= limit:
            first.wait()
        if "(row-00)" in seen.text:
            server.wait_for(len(NAMES))
        active.remove(seen.number)
        return Answer(RIGHT)

    server = serve(behave)
    judged = bench(server).judge([plan_row(name) for name in NAMES], max_concurrency=limit)
    assert judged.rows[0]["item_id"] != "row-00"
    places = sorted((row["item_id"], row["line"]) for row in judged.rows)
    assert places == [(name, line) for line, name in enumerate(NAMES, 1)]
    assert max(counts) == limit
