"""A disk that fills up in the middle of a run."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

import apbjudge
from apbjudge import InputError, JudgeSpec, ScriptedClient
from apbjudge.jsonl import Appender
from tests.support.judging import RIGHT, plan_row, read_rows

NAMES = ("amber", "birch", "cedar", "dogwood")
ROWS = [plan_row(name) for name in NAMES]
SPEC = JudgeSpec(model="scripted/judge", max_concurrency=1)


class Disk:
    """Takes so many rows, then half of one, then none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, space: int) -> None:
        self._space = space
        self._full: int | None = None
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor: int, data: bytes) -> int:
        if descriptor == self._full:
            raise OSError(errno.ENOSPC, "No space left on device")
        if bytes(data[:1]) == b"{":
            self._space -= 1
            if self._space < 0:
                self._full = descriptor
                return self._write(descriptor, bytes(data)[: len(data) // 2])
        return self._write(descriptor, data)


def test_a_run_that_filled_the_disk_says_so_and_goes_on_when_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = ScriptedClient(lambda request: RIGHT)
    with monkeypatch.context() as patch:
        Disk(patch, space=2)
        with pytest.raises(InputError, match=r"judgements\.jsonl: can't be written: No space"):
            apbjudge.grade(ROWS, judge=SPEC, client=client, out=tmp_path / "out")
    asked = len(client.requests)
    apbjudge.grade(ROWS, judge=SPEC, client=client, out=tmp_path / "out")
    assert sorted(row["item_id"] for row in read_rows(tmp_path / "out")) == sorted(NAMES)
    assert len(client.requests) - asked == 2


def test_nothing_is_written_behind_half_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    appender = Appender(tmp_path / "rows.jsonl")
    appender.append({"name": "amber"})
    with monkeypatch.context() as patch:
        Disk(patch, space=0)
        with pytest.raises(InputError):
            appender.append({"name": "birch", "text": "x" * 100})
    with suppress(InputError):  # there is space again
        appender.append({"name": "cedar"})
    appender.close()
    lines = (tmp_path / "rows.jsonl").read_bytes().split(b"\n")[:-1]
    assert [orjson.loads(line)["name"] for line in lines] in (["amber"], ["amber", "cedar"])
