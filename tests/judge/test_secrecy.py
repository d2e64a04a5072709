"""What a run prints, logs and writes holds no key, and no prompt but where a reply repeats it."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.judging import MODEL, RIGHT, plan_row, write_rows
from tests.support.server import Answer, Behaviour, Body, Reset, Seen, Status

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
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("APBJUDGE_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY"):
        monkeypatch.setenv(name, KEY)


def files_of(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name: path.read_bytes().decode(errors="replace") for path in files}


def test_a_reply_that_repeats_the_prompt_is_in_the_raw_reply_and_the_cache_alone(
    serve: Any, tmp_path: Path, command: Any
) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", ROWS[:2])
    server = serve(lambda seen: Answer(f"You ask of {MARK}. {RIGHT}"))
    place = ["--judge", MODEL, "--api-base", server.address, "--out", tmp_path / "out"]
    done = command("grade", rows, *place)
    assert done.code == 0
    assert MARK not in done.out + done.err
    where = {name for name, text in files_of(tmp_path).items() if MARK in text}
    where -= {"rows.jsonl", "cache.db-wal", "cache.db-journal"}
    assert where == {"judgements.jsonl", "cache.db"}
    with sqlite3.connect(tmp_path / "cache" / "replies" / "cache.db") as con:
        keys = [key for (key,) in con.execute("SELECT key FROM Cache")]
    con.close()
    assert len(keys) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)


def test_neither_output_nor_files_nor_logs_hold_a_key_or_a_prompt(
    transport: str, serve: Any, tmp_path: Path, command: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rows = write_rows(tmp_path / "rows.jsonl", ROWS)
    place = ["--judge", MODEL, "--api-base", serve(behave).address, "--out", tmp_path / "out"]
    settings = ["--transport", transport, "--retries", 0, "--max-concurrency", 14]
    done = command("grade", rows, *place, *settings, "--max-unscored", 1)
    assert done.code == 0
    assert "asyncio" in {each.name for each in caplog.records}  # it does listen
    logged = [f"{each.getMessage()} {each.args!r}" for each in caplog.records]
    files = files_of(tmp_path / "out")
    assert {"manifest.json", "summary.json", "summary.csv", "judgements.jsonl"} <= files.keys()
    judged = files.pop("judgements.jsonl")
    assert KEY not in judged
    own = [json.loads(line) for line in judged.splitlines()]
    assert len(own) == len(ROWS)
    for row in own:
        assert len(row.pop("detail") or "") <= DETAIL
        row.pop("raw")
    kept = [*files.values(), *files_of(tmp_path / "cache").values()]  # requests are hashes there
    for text in (done.out, done.err, caplog.text, str(own), *kept, *logged):
        assert KEY not in text, text[:500]
        assert MARK not in text, text[:500]
