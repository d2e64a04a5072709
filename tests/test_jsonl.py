"""Reading lines, appending rows, and what a kill in the middle of a write leaves behind."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge import InputError, RowError, jsonl
from apbjudge.jsonl import (
    Appender,
    Span,
    cut_torn_line,
    is_replaceable,
    read_line_at,
    read_lines,
    write_atomically,
)


def _file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _read(path: Path) -> list[tuple[int, object]]:
    """Line numbers with the object, or with the complaint."""
    return [
        (n, str(values) if isinstance(values, RowError) else values)
        for n, values in ((line.number, line.values) for line in read_lines(path))
    ]


GOOD = {
    "plain": (b'{"a": 1}\n{"a": 2}\n', [1, 2]),
    "CRLF": (b'{"a": 1}\r\n{"a": 2}\r\n', [1, 2]),
    "byte order mark": (b'\xef\xbb\xbf{"a": 1}\n{"a": 2}\n', [1, 2]),
    "blank lines": (b'\n{"a": 1}\n \t\r\n\n{"a": 2}\n\n', [2, 5]),
    "separators inside a string": ('{"a": 1, "t": "\u2028\u0085\\n"}\n{"a": 2}'.encode(), [1, 2]),
}


@pytest.mark.parametrize(("data", "numbers"), GOOD.values(), ids=GOOD)
def test_lines_are_read_with_their_numbers(tmp_path: Path, data: bytes, numbers: list[int]) -> None:
    lines = list(read_lines(_file(tmp_path / "x.jsonl", data)))
    assert [line.number for line in lines] == numbers
    assert [line.values["a"] for line in lines if isinstance(line.values, dict)] == [1, 2]


@pytest.mark.parametrize("size", [1_000, 300_000, 2_300_000])
def test_of_a_span_no_more_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    n_read, line = 0, b'{"a": "' + b"x" * 90 + b'"}\n'

    class Counted(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            nonlocal n_read
            n = super().readinto(buffer) or 0
            n_read += n
            return n

    def counted(path: Path, mode: str, buffering: int, *args: object) -> io.BufferedReader:
        return io.BufferedReader(Counted(path, mode), buffering)

    path = _file(tmp_path / "x.jsonl", line * 60_000)
    monkeypatch.setattr(io, "open", counted)
    lines = [*read_lines(path, span=Span(1_000, 1_000 + size, 11))]
    assert [lines[0].number, lines[-1].number] == [11, 10 + size // len(line)]
    assert size <= n_read <= 1.02 * size + io.DEFAULT_BUFFER_SIZE


BAD = {
    "not JSON": (b"{a: 1}", "expected one JSON object"),
    "two objects": (b"{} {}", "expected one JSON object"),
    "a list": (b"[1]", "got [1] (list)"),
    "null": (b"null", "got nothing"),
    "NaN": (b'{"b": [0, {"a": NaN}]}', "field b.1.a: expected a number that JSON has, got nan"),
    "number out of range": (b'{"a": 1e999}', "field a: expected a number that JSON has, got inf"),
    "invalid UTF-8": (b'{"a": "\xff"}', "invalid UTF-8 at byte 7"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "invalid UTF-8 at byte 0"),
    "lone surrogate": (b'{"a": "\\ud800"}', "surrogate"),
    "deep": (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", "expected one JSON object"),
}


@pytest.mark.parametrize(("line", "complaint"), BAD.values(), ids=BAD)
def test_a_bad_line_is_said_so_and_its_neighbours_are_read(
    tmp_path: Path, line: bytes, complaint: str
) -> None:
    data = b'{"a": 1}\n' + line.replace(b"\n", b"") + b'\n{"a": 3}\n'
    first, bad, last = _read(_file(tmp_path / "x.jsonl", data))
    assert (first, last) == ((1, {"a": 1}), (3, {"a": 3}))
    assert bad[0] == 2
    assert str(bad[1]).startswith((complaint, "field line: expected one JSON object"))
    assert complaint in str(bad[1])
    assert str(bad[1]).isprintable()


ROWS_TEXT = '{"a": 1}\n{"a": 2}\n'
OTHER_FORMATS = {
    "gzip": (gzip.compress(ROWS_TEXT.encode()), "a gzip file: decompress it first"),
    "zstd": (b"\x28\xb5\x2f\xfd\x00", "a zstd file"),
    "workbook": (b"PK\x03\x04\x14\x00", "a ZIP file or an Excel workbook"),
    "Parquet": (b"PAR1\x15\x04", "a Parquet file"),
    **{
        name: (ROWS_TEXT.encode(name), f"{name.upper()[:6]} text: convert it first (iconv")
        for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
    },
    "array": (b'[{"a": 1}, {"a": 2}]', "a JSON array"),
    "array, torn": (b'[{"a": 1}, {"a"', "a JSON array"),
    "indented": (json.dumps({"a": 1, "b": [2]}, indent=2).encode(), "JSON spread over several"),
    "wrapped": (b'{"rows": [\n {"a": 1},\n {"a": 2}]}', "JSON spread over several lines"),
    "CSV": (b"id,tested_model\na,b\n", "a table such as CSV"),
    "TSV": (b"\xef\xbb\xbfid\ttested_model\r\na\tb\r\n", "a table such as CSV"),
}


@pytest.mark.parametrize(("data", "name"), OTHER_FORMATS.values(), ids=OTHER_FORMATS)
def test_a_file_in_another_format_gets_one_message(tmp_path: Path, data: bytes, name: str) -> None:
    path = _file(tmp_path / "x.jsonl", data)
    with pytest.raises(InputError) as caught:
        list(read_lines(path))
    expected = f"{path}: expected one JSON object a line in UTF-8, got {name}"
    assert str(caught.value).startswith(expected)


LIMIT = 64


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("extra", [0, 1, 3_000_000])
def test_a_line_over_the_limit_is_bad_and_the_rest_is_read(
    tmp_path: Path, extra: int, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", LIMIT)
    huge = b'{"a": "' + b"x" * (LIMIT + extra - 9) + b'"}'
    data = b'{"a": 1}\n' + huge + end + b'{"a": 3}\n' * bool(end)
    digest = hashlib.sha256()
    lines = list(read_lines(_file(tmp_path / "x.jsonl", data), digest=digest))
    assert [line.number for line in lines] == ([1, 2, 3] if end else [1, 2])
    fits = extra + len(end.rstrip(b"\n")) <= 0  # a carriage return counts
    assert isinstance(lines[1].values, dict) == fits
    assert len(lines[1].raw) <= max(LIMIT, 256)
    assert digest.hexdigest() == hashlib.sha256(data).hexdigest()
    if end:
        assert lines[2].values == {"a": 3}
        assert lines[2].offset == len(b'{"a": 1}\n' + huge + end)


_lines = st.lists(
    st.dictionaries(st.text(max_size=3), st.text(max_size=5) | st.integers(0, 9), max_size=2),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(rows=_lines, end=st.sampled_from(["\n", "\r\n"]), mark=st.booleans())
def test_a_line_is_found_again_at_its_offset(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], end: str, mark: bool
) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + end for row in rows)
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    path.write_bytes(text.encode("utf-8-sig" if mark else "utf-8"))
    lines = list(read_lines(path))
    assert [line.values for line in lines] == rows
    for line in lines:
        assert read_line_at(path, line.offset) == line.raw
        assert orjson.loads(line.raw) == line.values


TORN = {
    "nothing": (b"", b""),
    "torn": (b'{"a": 1}\n{"a"', b'{"a": 1}\n'),
    "a whole line without its end": (b'{"a": 1}\n{"a": 2}', b'{"a": 1}\n'),
    "a long torn line": (b"1\n" + b"x" * 200_000, b"1\n"),
}


@pytest.mark.parametrize(("before", "after"), TORN.values(), ids=TORN)
def test_a_torn_last_line_is_cut_off(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = _file(tmp_path / "x.jsonl", before)
    cut_torn_line(path)
    assert path.read_bytes() == after
    cut_torn_line(tmp_path / "missing.jsonl")
    assert not (tmp_path / "missing.jsonl").exists()


def test_rows_wait_for_the_flush_and_none_is_lost_at_the_end(tmp_path: Path) -> None:
    path = _file(tmp_path / "x.jsonl", b'{"n": -1}\n{"n": ')
    appender = Appender(path, every=3)
    seen: list[int] = []
    for n in range(5):
        appender.append({"n": n})
        seen.append(path.read_bytes().count(b"\n"))
    appender.close()
    assert seen == [1, 1, 4, 4, 4]
    assert [line.values for line in read_lines(path)] == [{"n": n} for n in range(-1, 5)]


def test_a_flush_that_the_system_splits_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:7])))
    path = tmp_path / "x.jsonl"
    appender = Appender(path)
    appender.append({"text": "longer than seven bytes"})
    appender.close()
    assert [line.values for line in read_lines(path)] == [{"text": "longer than seven bytes"}]


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    appender = Appender(tmp_path / "x.jsonl")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(InputError, match=r"x\.jsonl: can't be written: No space left"):
            appender.append({"a": 1})
    appender.close()


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = _file(tmp_path / "m.json", b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]
    with pytest.raises(InputError, match="can't be written"):
        write_atomically(tmp_path / "no" / "m.json", b"new")


def test_what_killed_processes_left_beside_a_file_is_removed(tmp_path: Path) -> None:
    ended = 2**22 + 1  # more than a system has
    mine = jsonl.temporary_beside(tmp_path / "m.json")
    stale = _file(mine.with_name(mine.name.replace(str(os.getpid()), str(ended))), b"half")
    running = _file(mine.with_name(mine.name.replace(str(os.getpid()), str(os.getppid()))), b"half")
    elsewhere = _file(tmp_path / f".m.json.another-host-{ended}.tmp", b"half")
    write_atomically(tmp_path / "m.json", b"new")
    assert not stale.exists()
    assert running.exists()
    assert elsewhere.exists()


def test_a_file_that_is_read_whole_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path / "names.json", b"12345")
    monkeypatch.setattr(jsonl, "MAX_WHOLE_BYTES", 5)
    assert jsonl.read_small(path) == b"12345"
    _file(path, b"123456")
    with pytest.raises(InputError, match=r"names\.json: expected at most 0 MiB"):
        jsonl.read_small(path)


def test_a_link_is_never_replaced_whatever_it_leads_to(tmp_path: Path) -> None:
    plain, pipe, nothing = (tmp_path / name for name in ("plain", "pipe", "nothing"))
    plain.touch()
    os.mkfifo(pipe)
    assert is_replaceable(plain)
    assert is_replaceable(nothing)
    assert not is_replaceable(pipe)
    assert not is_replaceable(tmp_path)
    for number, target in enumerate((plain, nothing, pipe)):
        (link := tmp_path / f"link{number}").symlink_to(target)
        assert not is_replaceable(link)


def test_what_is_no_plain_file_is_written_in_place(tmp_path: Path) -> None:
    target, link, pipe = (tmp_path / name for name in ("target", "link", "pipe"))
    target.write_bytes(b"old and longer")
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")

    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"through")
    assert (pipe.is_fifo(), os.read(reader, 100)) == (True, b"through")
    os.close(reader)
