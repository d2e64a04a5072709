"""A process that is killed, stopped or joined by a second one: every row once, no call twice."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from apbjudge.judge import JudgeSpec, Source
from apbjudge.judge.session import run_identity
from apbjudge.judge.worker import JUDGEMENT_RECORDS
from apbjudge.runs.folder import RecordLog
from tests.support.commands import start
from tests.support.judging import MODEL, RIGHT, plan_row, read_rows, write_rows
from tests.support.server import PATIENCE_S, Answer, Behaviour, Hang, Seen

NAMES = [f"row-{n:02}" for n in range(12)]
FINISHED = 5
IN_FLIGHT = 3


class Interrupted:
    """A run of the command that has finished 5 rows and has 3 requests in flight."""

    def __init__(self, serve: Any, folder: Path) -> None:
        self.out = folder / "out"
        self.server = serve(self._stall)
        rows = write_rows(folder / "rows.jsonl", [plan_row(name) for name in NAMES])
        target = ["--judge", MODEL, "--api-base", self.server.address, "--out", self.out]
        settings = ["--config", f"max_concurrency={IN_FLIGHT}", "--config", "retries=0"]
        self.arguments = ["grade", rows, *target, *settings]
        self.code, self.err = 0, ""

    def _stall(self, seen: Seen) -> Behaviour:
        return Answer(RIGHT) if seen.number <= FINISHED else Hang()

    def by(self, sign: signal.Signals) -> None:
        """Starts the command and sends it a signal in the middle."""
        with start(*self.arguments) as process:
            # A request in the ninth place means that the answers before are on disk.
            self.server.wait_for(FINISHED + IN_FLIGHT)
            process.send_signal(sign)
            _, self.err = process.communicate(timeout=PATIENCE_S)
            self.code = process.returncode

    def answer_all(self) -> None:
        """Lets the server answer from now on."""
        self.server.behave = lambda seen: Answer(RIGHT)
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
def run(serve: Any, tmp_path: Path) -> Interrupted:
    return Interrupted(serve, tmp_path)


def test_a_killed_run_goes_on_without_asking_for_what_is_on_disk(
    run: Interrupted, command: Any
) -> None:
    run.by(signal.SIGKILL)
    assert run.code == -signal.SIGKILL
    assert run.state() == "running"
    saved = run.written
    assert len(saved) == FINISHED
    run.answer_all()
    done = command(*run.arguments)
    assert done.code == 0
    assert "12 rows, 12 scored" in done.out
    assert [line for line in done.err.splitlines() if " done before, " not in line] == []
    assert run.asked == sorted(set(NAMES) - set(saved))
    assert run.written == NAMES
    assert run.state() == "done"


def test_a_stopped_run_says_so_and_goes_on(run: Interrupted, command: Any) -> None:
    run.by(signal.SIGINT)
    assert run.code == 130
    assert run.err.splitlines()[-1] == f"stopped; the same command continues from {run.out}"
    assert "Traceback" not in run.err
    assert run.state() == "interrupted"
    saved = run.written
    assert len(saved) == FINISHED
    run.answer_all()
    done = command(*run.arguments)
    assert done.code == 0
    assert run.asked == sorted(set(NAMES) - set(saved))
    assert run.written == NAMES
    assert run.state() == "done"


def test_a_second_process_in_the_same_folder_is_turned_away(tmp_path: Path, command: Any) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row("a")])
    identity = run_identity(JudgeSpec(), Source(rows))
    first = RecordLog(tmp_path / "out", JUDGEMENT_RECORDS, identity)
    first.write_manifest({"identity": identity})
    arguments = ["grade", rows, "--out", tmp_path / "out"]
    with start(*arguments) as process:
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert err == f"apbjudge: --out: another process is writing {tmp_path / 'out'}\n"
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
