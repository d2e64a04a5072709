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
    assert [(row["item_id"], row["kind"]) for row in sorted(rows, key=lambda row: row["line"])] == [
        ("a", "verdict"),
        ("b", "verdict"),
    ]
    manifest = json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))
    assert manifest["data_root"] == "data"


def test_the_fingerprint_is_of_the_picture_and_not_of_its_folder(
    layout: Path, apbjudge: Command, judge: list[object]
) -> None:

    def fingerprint(rows: Path, out: str, *more: object) -> str:
        assert apbjudge("grade", rows, *judge, "--out", out, *more).code == 0
        return next(row["fingerprint"] for row in read_rows(Path(out)) if row["item_id"] == "a")

    first = fingerprint(layout, "one", "--data-root", "data")
    beside = write_rows(Path("data/rows.jsonl"), ROWS)
    assert fingerprint(beside, "two") == first
    Path("data", PICTURE).write_bytes(PNG + b"other")
    assert fingerprint(beside, "three") != first
    assert fingerprint(layout, "one", "--config", "data_root=data") != first


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
    audited = apbjudge("audit", MODEL, *judge[2:], "--rows", layout, "--out", "audit", *root)
    assert (audited.code, "files[0].path" in audited.err) == (0, False)


@pytest.mark.parametrize("name", ["missing", "outputs/rows.jsonl"])
def test_a_data_root_that_is_no_folder_is_refused(
    layout: Path, apbjudge: Command, name: str
) -> None:
    for command in (("grade",), ("prompt", "--id", "a"), ("label", "--out", "l.jsonl")):
        done = apbjudge(*command, layout, "--data-root", name)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"apbjudge: --data-root: expected a folder, got {name!r}\n"


def test_a_report_replaces_a_report_and_nothing_else(layout: Path, apbjudge: Command) -> None:
    assert apbjudge("grade", layout, "--out", "run").code == 0
    formats = ("text", "md", "latex", "csv", "json", "html")
    for before in formats:
        for now in (before, "csv"):
            assert apbjudge("report", "run", "--format", now, "--out", "report").code == 0
    for before in ("text", "md", "csv", "json"):
        changes = ("report", "run", "run", "--table", "changes", "--format", before, "--out", "c")
        assert [apbjudge(*changes).code for _ in range(2)] == [0, 0], before
    for path in (layout, Path("run/judgements.jsonl"), Path("run/summary.csv")):
        held = path.read_bytes()
        done = apbjudge("report", "run", "--out", path)
        assert (done.code, done.out) == (2, "")
        assert f"--out: {path} exists and is no report of apbjudge; choose another" in done.err
        assert path.read_bytes() == held
    Path("mine.md").write_text("# Mine\n", encoding="utf-8")
    assert apbjudge("report", "run", "--format", "md", "--out", "mine.md").code == 2
    assert Path("mine.md").read_text(encoding="utf-8") == "# Mine\n"
