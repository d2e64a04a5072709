"""The commands: what they print, where they leave files, and with which code they end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apbjudge.version import VERSION

from .conftest import Command, example, process


def test_the_version_is_printed(apbjudge: Command) -> None:
    assert apbjudge("--version").out == f"apbjudge {VERSION}\n"


@pytest.mark.parametrize("path", ["no.jsonl", ".", "empty.jsonl", "blank.jsonl"])
def test_an_unusable_file_ends_with_code_2_and_one_clear_line(path: str, apbjudge: Command) -> None:
    Path("empty.jsonl").touch()
    Path("blank.jsonl").write_text("\n \n\t\r\n", encoding="utf-8")
    done = apbjudge("grade", path, "--out", "run")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"apbjudge: {path}: ")


def test_the_same_command_finds_its_default_folder_again(apbjudge: Command) -> None:
    first = apbjudge("grade", example("holistic"))
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("holistic-auto-static-")
    assert f"\n{folder}/: judgements.jsonl" in first.out
    before = (folder / "judgements.jsonl").read_bytes()
    second = apbjudge("grade", example("holistic"))
    assert list(Path("runs").iterdir()) == [folder]
    assert second == first
    assert (folder / "judgements.jsonl").read_bytes() == before


def test_a_closed_pipe_is_no_reason_to_complain(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = process("grade", example("holistic"), cwd=tmp_path, stdout=writing)
    os.close(writing)
    assert done.err == ""
    assert done.code in (0, 1)
