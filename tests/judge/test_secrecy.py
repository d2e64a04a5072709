"""What a run prints, logs and writes holds no key, and no prompt but where a reply repeats it."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.judging import MODEL, RIGHT, plan_row, write_rows
from tests.support.server import PATIENCE_S, Answer, Behaviour, Body, Reset, Seen, Status

KEY = "Zebra-Kettle-7Q9x2Lm4"
"""A key of no known form: only that it stands in the environment tells that it is one."""

MARK = "xylophone"
"""A word that stands in every prompt, and in no text of ours."""

ROWS = [
    plan_row(f"row-{n:02}", query=f"Which {MARK} trains go to Porto? (row-{n:02})")
    for n in range(14)
]
DETAIL = 600  # ours and up to 300 characters of the endpoint


def echo(seen: Seen) -> str:
    return f"invalid request: key {seen.header('authorization')} said {seen.text[-1500:]}"


def as_litellm_does(seen: Seen) -> bytes:
    return json.dumps(
        {"detail": [{"loc": ["body"], "input": seen.text, "msg": echo(seen)}]}
    ).encode()


ECHOES: dict[int, Callable[[Seen], Behaviour]] = {
    0: lambda seen: Status(400, echo(seen)),
    1: lambda seen: Status(500, echo(seen)),
    2: lambda seen: Status(429, echo(seen)),
    3: lambda seen: Status(422, echo(seen), error={"code": KEY, "type": echo(seen)}),
    4: lambda seen: Body(as_litellm_does(seen), code=503),
    5: lambda seen: Body(echo(seen).encode(), "text/plain", 502),
    6: lambda seen: Body(echo(seen).encode(), "text/plain"),
    7: lambda seen: Body(json.dumps({"error": {"message": echo(seen)}}).encode()),
    8: lambda seen: Answer(None, message={"refusal": f"I won't: {echo(seen)}"}),
    9: lambda seen: Reset(midway=True),
    10: lambda seen: Status(503, echo(seen), headers={"X-Request": KEY, "Retry-After": "0"}),
    11: lambda seen: Answer("", "content_filter"),
    12: lambda seen: Status(400, f"maximum context length: {echo(seen)}"),
}


def behave(seen: Seen) -> Behaviour:
    match = re.search(r"\(row-(\d+)\)", seen.text)
    assert match
    return ECHOES.get(int(match[1]), lambda seen: Answer(RIGHT))(seen)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY"):
        monkeypatch.setenv(name, KEY)


TRANSPORTS = ("direct", "litellm")
_PROGRAM = """
import json, sys
from apbjudge.cli.main import main
codes = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["apbjudge", *arguments]
    try:
        main()
    except SystemExit as stop:
        codes.append(stop.code)
sys.exit(any(codes) or len(codes) != 2)
"""


@pytest.fixture
def arguments(serve: Any, tmp_path: Path) -> Callable[[str], list[str]]:
    """The command for each transport."""
    rows = write_rows(tmp_path / "rows.jsonl", ROWS)
    server = serve(behave)

    def command_for(transport: str) -> list[str]:
        place = ["--judge", MODEL, "--api-base", server.address, "--out", tmp_path / transport]
        settings = ["--transport", transport, "--retries", "0", "--max-concurrency", "14"]
        return [str(part) for part in ("grade", rows, *place, *settings, "--max-unscored", "1")]

    return command_for


def files_of(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes().decode(errors="replace")


@pytest.mark.slow
def test_neither_output_nor_files_hold_a_key_or_a_prompt(
    arguments: Callable[[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APBJUDGE_CACHE_DIR", str(tmp_path / "cache"))
    # One program for both, of its own: litellm would write to the terminal that it was loaded in.
    both = json.dumps([arguments(transport) for transport in TRANSPORTS])
    command = [sys.executable, "-c", _PROGRAM, both]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, done.stderr):
        assert KEY not in text
        assert MARK not in text
    for transport in TRANSPORTS:
        assert_kept_secret(tmp_path / transport)
    for name, text in files_of(tmp_path / "cache"):
        assert KEY not in text, name
        assert MARK not in text, name  # requests are kept as hashes


def assert_kept_secret(out: Path) -> None:
    files = dict(files_of(out))
    assert {"manifest.json", "summary.json", "summary.csv", "judgements.jsonl"} <= set(files)
    lines = files.pop("judgements.jsonl")
    for name, text in files.items():
        assert KEY not in text, name
        assert MARK not in text, name
    rows = [json.loads(line) for line in lines.splitlines()]
    assert len(rows) == len(ROWS)
    assert KEY not in lines
    for row in rows:
        assert len(row["detail"] or "") <= DETAIL
        rest = {name: value for name, value in row.items() if name not in ("detail", "raw")}
        assert MARK not in json.dumps(rest), row["item_id"]


def test_a_reply_that_repeats_the_prompt_is_in_the_raw_reply_and_the_cache_alone(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    monkeypatch.setenv("APBJUDGE_CACHE_DIR", str(tmp_path / "cache"))
    rows = write_rows(tmp_path / "rows.jsonl", ROWS[:2])
    server = serve(lambda seen: Answer(f"You ask of {MARK}. {RIGHT}"))
    place = ["--judge", MODEL, "--api-base", server.address, "--out", tmp_path / "out"]
    done = command("grade", rows, *place)
    assert done.code == 0
    assert MARK not in done.out + done.err
    where = {name for name, text in files_of(tmp_path) if MARK in text and name != "rows.jsonl"}
    assert where - {"cache.db-wal", "cache.db-journal"} == {"judgements.jsonl", "cache.db"}
    with sqlite3.connect(tmp_path / "cache" / "replies" / "cache.db") as con:
        keys = [key for (key,) in con.execute("SELECT key FROM Cache")]
    con.close()
    assert len(keys) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)


class Everything(logging.Handler):
    """Takes down whatever anybody logs, at any level."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.entries: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.entries.append(f"{record.name}: {self.format(record)} {record.args!r}")


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """All that is logged in a program that wants to know everything."""
    handler, root = Everything(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield handler.entries
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_nothing_secret_is_logged_even_when_everything_is(
    transport: str, arguments: Callable[[str], list[str]], logged: list[str], command: Any
) -> None:
    done = command(*arguments(transport))
    assert done.code == 0
    assert any(entry.startswith("asyncio: ") for entry in logged)  # it does listen
    for entry in logged:
        assert KEY not in entry, entry[:500]
        assert MARK not in entry, entry[:500]
