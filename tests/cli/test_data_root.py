"""Pictures in the layout of the benchmark's authors: below a data folder, predictions elsewhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.judging import MODEL, RIGHT, plan_row, read_rows, write_rows
from tests.support.server import Answer, ChatServer

from .conftest import Command

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PICTURE = "images/one.png"
ROWS = [plan_row("a", files=[{"type": "image", "path": PICTURE}]), plan_row("b")]


@pytest.fixture
def layout(apbjudge: Command) -> Path:
    """``data/images/one.png`` and ``outputs/rows.jsonl``, in the current folder."""
    Path("data/images").mkdir(parents=True)
    Path("data", PICTURE).write_bytes(PNG)
    Path("outputs").mkdir()
    return write_rows(Path("outputs/rows.jsonl"), ROWS)


@pytest.fixture
def judge() -> Iterator[list[object]]:
    with ChatServer(lambda seen: Answer(RIGHT)) as server:
        yield ["--judge", MODEL, "--api-base", server.address, "--vision", "yes"]


def test_a_run_finds_pictures_below_the_data_root_and_says_where_it_looked(
    layout: Path, apbjudge: Command, judge: list[object]
) -> None:
    without = apbjudge("grade", layout, *judge, "--out", "run")
    assert without.code == 1
    assert without.err.splitlines()[0] == (
        "outputs/rows.jsonl:1: field files[0].path: expected a readable picture in outputs "
        "(--data-root names another folder, --no-images judges without), got 'images/one.png: "
        "No such file or directory'"
    )
    both = apbjudge("grade", layout, *judge, "--out", "run", "--data-root", "data")
    assert (both.code, both.err) == (0, "")
    rows = read_rows(Path("run"))
    assert {row["item_id"]: row["kind"] for row in rows} == {"a": "verdict", "b": "verdict"}
    manifest = json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))
    assert manifest["data_root"] == "data"


def test_every_command_that_reads_pictures_takes_the_data_root(
    layout: Path, apbjudge: Command, judge: list[object]
) -> None:
    root = ("--data-root", "data")
    prompt = apbjudge("prompt", layout, "--id", "a", *root)
    assert "[picture images/one.png," in prompt.out
    assert apbjudge("prompt", layout, "--id", "a").code == 2
    dry = apbjudge("grade", layout, *judge, "--dry-run", *root)
    assert "2 to do, 0 finished, 0 bad" in dry.out
    assert "0 bad" in apbjudge("doctor", layout, *judge, *root).out
    exported = apbjudge("batch", "export", layout, *judge, "--out", "r.jsonl", *root)
    assert "r.jsonl: 2 requests" in exported.out
    audited = apbjudge("audit", MODEL, *judge[2:], "--rows", layout, "--dry-run", *root)
    assert (audited.code, "files[0].path" in audited.err) == (0, False)


def test_a_data_root_that_is_no_folder_is_refused(layout: Path, apbjudge: Command) -> None:
    for command in (("grade",), ("prompt", "--id", "a"), ("label", "--out", "l.jsonl")):
        done = apbjudge(*command, layout, "--data-root", "missing")
        assert (done.code, done.out) == (2, "")
        assert done.err == "apbjudge: --data-root: expected a folder, got 'missing'\n"


def test_a_report_replaces_a_report_and_nothing_else(layout: Path, apbjudge: Command) -> None:
    assert apbjudge("grade", layout, "--out", "run").code == 0
    for form in ("text", "md", "latex", "csv", "json", "html", "text"):
        assert apbjudge("report", "run", "--format", form, "--out", "report").code == 0
    for form in ("text", "md", "csv", "json", "text"):
        changes = ("report", "run", "run", "--table", "changes", "--format", form, "--out", "c")
        assert apbjudge(*changes).code == 0, form
    for path in (layout, Path("run/summary.csv")):
        held = path.read_bytes()
        done = apbjudge("report", "run", "--out", path)
        assert (done.code, done.out) == (2, "")
        assert f"--out: {path} exists and is no report of apbjudge; choose another" in done.err
        assert path.read_bytes() == held
