"""Claims: locks of the operating system, and files where these do not work."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from apbjudge import InputError, OptionError, grade
from apbjudge.judge.worker import JUDGEMENT_RECORDS
from apbjudge.locks import SILENCE_S, ClaimFile, Claiming, Lock
from apbjudge.runs.clearing import take_folder_lock
from apbjudge.runs.folder import RecordLog

ROWS = Path(__file__).parents[1] / "examples" / "holistic.jsonl"
NOW = 1_700_000_000.0
HERE = {
    "token": "abc",
    "host": platform.node(),
    "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    "pid": os.getpid(),
    "born": Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19],
}
GONE = {**HERE, "pid": 2**22 + 1}  # more than a system has


@dataclass
class _Clock:
    """Time that passes in waits; ``meanwhile`` happens in each."""

    meanwhile: Callable[[], object] = lambda: None
    waits: list[float] = field(default_factory=list[float])

    def now(self) -> float:
        return NOW + sum(self.waits)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.meanwhile()


def _claim(folder: Path, clock: _Clock | None = None, *, take_over: bool = False) -> Lock:
    clock = clock or _Clock()
    claiming = Claiming(by="file", take_over=take_over, now=clock.now, sleep=clock.sleep)
    return take_folder_lock(folder, claiming)


def _left(folder: Path, age: float, content: object = GONE) -> Path:
    """A claim whose last beat was so long ago."""
    path = folder / "claim.json"
    path.write_text(json.dumps(content) if content else "")
    os.utime(path, (NOW - age, NOW - age))
    return path


def _without_locks(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def flock(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_there_are_no_locks_the_file_system_and_another_way_are_named(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["df", "--output=fstype", tmp_path]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    kind = shown.stdout.split()[-1]
    _without_locks(monkeypatch, code)
    complaint = f"run: can't .*{os.strerror(code)}: .* got {kind}: --claim file works on any"
    with pytest.raises(InputError, match=complaint):
        grade(ROWS, out=tmp_path / "run")
    run = grade(ROWS, out=tmp_path / "run", claim="file")
    assert run.summary.totals.rows
    assert not (tmp_path / "run" / "claim.json").exists()


@pytest.mark.parametrize("is_stale", [False, True])
def test_one_of_several_claimants_wins_100_of_100_tries(tmp_path: Path, *, is_stale: bool) -> None:
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        if is_stale:
            _left(folder, SILENCE_S)
        won: list[Lock] = []
        barrier = threading.Barrier(3)

        def claim(folder: Path = folder, barrier: Any = barrier, won: Any = won) -> None:
            barrier.wait()
            with suppress(OptionError):
                won.append(_claim(folder))

        threads = [threading.Thread(target=claim) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert [path.name for path in folder.iterdir()] == ["claim.json"]
        won[0].check()
        won[0].close()
        assert not any(folder.iterdir())


ELSEWHERE = {**HERE, "host": "elsewhere"}


@pytest.mark.parametrize(
    ("content", "age", "take_over", "waits"),
    [
        (GONE, SILENCE_S, False, []),
        (GONE, 10, False, [SILENCE_S - 10]),
        ({**HERE, "boot": "another"}, SILENCE_S, False, []),
        ({**HERE, "born": "1"}, SILENCE_S, False, []),  # the number is another process's now
        (HERE, 0, True, [SILENCE_S]),
        (ELSEWHERE, SILENCE_S, True, [SILENCE_S]),  # its clock may differ
        (ELSEWHERE, -500, True, [SILENCE_S]),
        ("", SILENCE_S, True, [SILENCE_S]),
    ],
)
def test_a_claim_is_taken_over_after_three_missed_beats(
    content: object, age: float, take_over: bool, waits: list[float], tmp_path: Path
) -> None:
    path, clock = _left(tmp_path, age, content), _Clock()
    lock = _claim(tmp_path, clock, take_over=take_over)
    assert clock.waits == waits
    assert json.loads(path.read_text())["pid"] == os.getpid()
    lock.check()
    lock.close()
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "age", "more"),
    [
        (HERE, SILENCE_S, r"90 s ago; if it does not run any more, --take-over"),
        (ELSEWHERE, 29, "on elsewhere, last beat 29 s ago$"),
        ({**GONE, "pid": "1", "host": "\x1b[2J"}, 100, "an unknown one"),
        ("", 0, "an unknown one"),
    ],
)
def test_a_claim_of_a_process_that_may_run_is_refused(
    content: object, age: float, more: str, tmp_path: Path
) -> None:
    path = _left(tmp_path, age, content)
    before = path.read_bytes()
    with pytest.raises(OptionError, match=f"another process is writing .*{more}"):
        _claim(tmp_path)
    assert path.read_bytes() == before
    with pytest.raises(OptionError, match=r"it holds claim\.json, which --claim file obeys"):
        take_folder_lock(tmp_path)


def test_a_beat_while_somebody_waits_saves_a_claim(tmp_path: Path) -> None:
    path = _left(tmp_path, 40, ELSEWHERE)
    clock = _Clock(lambda: os.utime(path, (NOW, NOW)))
    with pytest.raises(OptionError, match="another process is writing"):
        _claim(tmp_path, clock, take_over=True)
    assert json.loads(path.read_text()) == ELSEWHERE


def test_a_holder_beats_and_notices_when_its_claim_is_another_one_s(tmp_path: Path) -> None:
    clock = _Clock()
    lock = _claim(tmp_path, clock)
    assert isinstance(lock, ClaimFile)
    path = tmp_path / "claim.json"
    clock.waits.append(30)
    lock.beat()
    assert path.stat().st_mtime == NOW + 30
    lock.check()
    _left(tmp_path, 0, ELSEWHERE)
    lock.beat()
    with pytest.raises(OptionError, match="another process has taken over"):
        lock.check()
    lock.close()
    assert json.loads(path.read_text()) == ELSEWHERE


def test_a_run_whose_claim_was_taken_over_leaves_the_folder_to_the_other(tmp_path: Path) -> None:
    clock = _Clock()
    claiming = Claiming(by="file", now=clock.now, sleep=clock.sleep)
    other = (tmp_path / "manifest.json", tmp_path / "judgements.jsonl")

    def run() -> None:
        with RecordLog(tmp_path, JUDGEMENT_RECORDS, {"a": 1}, claiming=claiming) as log:
            _left(tmp_path, 0, ELSEWHERE)
            for path in other:
                path.write_text("{}")
            lock = log._lock
            assert isinstance(lock, ClaimFile)
            lock.beat()
            log.write_manifest({})

    with pytest.raises(OptionError, match="another process has taken over"):
        run()
    assert [path.read_text() for path in other] == ["{}", "{}"]
    assert json.loads((tmp_path / "claim.json").read_text()) == ELSEWHERE
