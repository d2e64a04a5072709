"""Ways to a log: packed files, streams, folders, patterns and several files."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from apbjudge import InputError, OptionError
from apbjudge.records.files import PACKED, is_there, log_path, name_of
from apbjudge.records.trajectories import Trajectory
from apbjudge.trajectories.base import LogEntry
from apbjudge.trajectories.detection import detect
from apbjudge.trajectories.reading import read_log


def chat(run_id: str) -> str:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    return json.dumps({"id": run_id, "messages": messages}) + "\n"


def zst(data: bytes) -> bytes:
    """Two frames, as tools that append write them."""
    zstandard = pytest.importorskip("zstandard")
    half = len(data) // 2
    return b"".join(zstandard.ZstdCompressor().compress(of) for of in (data[:half], data[half:]))


PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zst}
TWO = (chat("a") + chat("b")).encode()


def entries(path: Path) -> list[LogEntry]:
    return list(read_log(path))


def ids(path: Path) -> list[str]:
    return [
        of.content.trajectory_id if isinstance(of.content, Trajectory) else f"! {of.content}"
        for of in entries(path)
    ]


# Packed files and streams ------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACKERS)
def test_packed_files_are_the_same_runs(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.jsonl{suffix}"
    path.write_bytes(PACKERS[suffix](TWO))
    plain = tmp_path / "plain" / "x.jsonl"
    plain.parent.mkdir()
    plain.write_bytes(TWO)
    assert detect(path) == "messages"
    expected = [entry._replace(file=str(path)) for entry in entries(plain)]
    assert entries(path) == expected
    path.write_bytes(PACKERS[suffix](chat("c").encode()))  # a changed file is unpacked anew
    assert ids(path) == ["c"]


def test_standard_input_is_read_more_than_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TWO)))
    path = Path("-")
    assert detect(path) == "messages"
    assert ids(path) == ids(path) == ["a", "b"]
    assert entries(path)[1].place == "-:2"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(InputError, match=r"^-: expected trajectories of agents, got an empty file"):
        detect(path)


def test_a_pipe_is_read_more_than_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=(TWO,))
    writer.start()
    assert ids(path) == ids(path) == ["a", "b"]
    writer.join()


@pytest.mark.parametrize("suffix", PACKED)
def test_a_packed_file_that_breaks_off_keeps_the_runs_before(tmp_path: Path, suffix: str) -> None:
    rows = "".join(map(chat, map(str, range(1000)))).encode()
    packed = PACKERS[suffix](rows)
    path = tmp_path / f"x.jsonl{suffix}"
    path.write_bytes(packed[: -len(packed) // 4])
    *read, torn, last = ids(path)
    assert read == list(map(str, range(len(read))))
    assert len(read) > 100
    assert "expected one JSON object" in torn
    assert "the packed file breaks off here" in last


@pytest.mark.parametrize("suffix", PACKED)
def test_what_is_not_packed_as_its_name_says_is_refused(tmp_path: Path, suffix: str) -> None:
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    path = tmp_path / f"x.jsonl{suffix}"
    path.write_bytes(TWO)
    with pytest.raises(InputError, match=rf"x\.jsonl\{suffix}: can't be unpacked: "):
        detect(path)


def test_zstd_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(b"(\xb5/\xfd")  # how a frame begins
    with pytest.raises(InputError, match=r'x\.jsonl\.zst: .*pip install "apbjudge\[zstd\]"'):
        detect(path)


# Several files -----------------------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "logs"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "a.jsonl").write_text(chat("a") + chat("b"))
    (folder / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(chat("c").encode()))
    (folder / "deep" / "er" / "x[1],{2}.json").write_text(chat("d"))
    (folder / ".hidden" / "c.jsonl").write_text(chat("no"))
    (folder / "notes.txt").write_text("no log")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("logs", "abcd"),
        ("logs/*.jsonl", "ab"),
        ("logs/**/*.json*", "abcd"),
        ("logs/deep/er/x[1],{2}.json", "d"),  # a file, though it looks like a pattern
        ("logs/{deep,a.jsonl}", "cdab"),
    ],
)
def test_folders_and_patterns(logs: Path, path: str, expected: str) -> None:
    (logs.parent / "x1.json").write_text(chat("other"))
    assert ids(Path(path)) == list(expected)
    assert is_there(Path(path))
    found = entries(Path(path))
    assert [entry.line for entry in found] == list(range(1, len(expected) + 1))
    assert all(Path(entry.file).is_file() for entry in found)


def test_several_files_have_one_path_whatever_their_names(logs: Path) -> None:
    odd = "logs/deep/er/x[1],{2}.json"
    assert ids(log_path([odd, "logs/a.jsonl"])) == ["d", "a", "b"]
    assert ids(log_path([logs / "a.jsonl", odd])) == ["a", "b", "d"]
    assert log_path(["logs"]) == log_path("logs") == Path("logs")
    names = [f"run-{'x' * 120}-{n}.jsonl" for n in range(4)]  # together longer than a name may be
    for name in names:
        Path(name).write_text(chat(name))
    assert ids(log_path(names)) == names
    with pytest.raises(OptionError, match="names of 99 files: name their folder, or quote"):
        log_path(names * 24 + names[:3])


def test_what_is_not_there_is_named(logs: Path) -> None:
    for path in map(Path, ("logs/none*", "{logs/a.jsonl,logs/none.jsonl}", "none")):
        with pytest.raises(InputError, match=r"none[*.jsonl]*: no such file or folder"):
            detect(path)
        assert not is_there(path)


def test_names_for_what_is_made_of_a_log() -> None:
    paths = ("runs/x.jsonl", "-", "logs/*.jsonl", "runs", "{./a.jsonl,./b c.jsonl}")
    assert [name_of(Path(path)) for path in paths] == ["x", "stdin", "log", "runs", "b-c"]
