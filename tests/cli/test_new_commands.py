"""The commands around a judge's run, each once from one end to the other, against a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.batch_server import answered, bad, by_text, says
from tests.support.judging import RIGHT, plan_row, read_rows, write_rows
from tests.support.server import Answer, Behave, ChatServer, Status

from .conftest import Command, Outcome

NAMES = [f"row-{n}" for n in range(6)]
MODEL = "hosted_vllm/m"
OK = Answer(RIGHT)


def asked(server: ChatServer) -> list[str]:
    """Which rows the requests since the last call were about."""
    names = [name for seen in server.requests for name in NAMES if f"({name})" in seen.text]
    server.forget()
    return sorted(names)


@pytest.fixture
def serve() -> Iterator[Callable[[Behave], ChatServer]]:
    with ExitStack() as stack:
        yield lambda behave: stack.enter_context(ChatServer(behave))


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("APBJUDGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("HOSTED_VLLM_API_KEY", raising=False)
    write_rows(tmp_path / "rows.jsonl", [plan_row(name) for name in NAMES])


def target(server: ChatServer, *more: object) -> tuple[object, ...]:
    return ("rows.jsonl", "--judge", MODEL, "--api-base", server.address, *more)


def is_one_line(done: Outcome, text: str) -> None:
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("apbjudge: ")
    assert text in done.err


# batch export and import --------------------------------------------------------------------------


def test_requests_go_out_and_answers_come_back(
    apbjudge: Command, serve: Any, tmp_path: Path
) -> None:
    server = serve(lambda seen: OK)
    done = apbjudge("batch", "export", *target(server), "--out", "requests.jsonl")
    size = Path("requests.jsonl").stat().st_size
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"requests.jsonl: 6 requests, {size} bytes; 0 rows are answered already, "
        "0 rows are unusable\n"
    )
    lines = [json.loads(line) for line in Path("requests.jsonl").read_text().splitlines()]
    assert {line["body"]["model"] for line in lines} == {"m"}

    replies = by_text({"(row-3)": lambda line: bad(line, 500, "oops")}, says(RIGHT))
    Path("answers.jsonl").write_bytes(answered(lines, replies) + b"rubbish\n")
    done = apbjudge("batch", "import", "answers.jsonl")
    assert (done.code, done.out) == (1, "5 replies taken, 1 failed, 1 lines unreadable\n")
    assert done.err.startswith("answers.jsonl:7: ")

    done = apbjudge("batch", "export", *target(server), "--out", "requests.jsonl")
    assert done.out.startswith("requests.jsonl: 1 requests, ")
    assert "; 5 rows are answered already" in done.out
    assert server.requests == []
    assert apbjudge("grade", *target(server, "--out", "run")).code == 0
    assert asked(server) == ["row-3"]
    assert {row["is_correct"] for row in read_rows(Path("run"))} == {True}


# cache --------------------------------------------------------------------------------------------


def test_the_cache_is_shown_used_and_cleared(apbjudge: Command, serve: Any, tmp_path: Path) -> None:
    server = serve(lambda seen: OK)
    folder = tmp_path / "cache" / "replies"
    assert apbjudge("cache", "stats").out.startswith(f"{folder}: 0 replies, 0.")
    assert apbjudge("grade", *target(server, "--out", "one")).code == 0
    assert asked(server) == NAMES
    assert apbjudge("cache", "stats").out.startswith(f"{folder}: 6 replies, 0.")
    assert apbjudge("grade", *target(server, "--out", "two")).code == 0
    assert asked(server) == []
    assert apbjudge("grade", *target(server, "--out", "three", "--no-cache")).code == 0
    assert asked(server) == NAMES
    assert (tmp_path / "cache" / "endpoints.json").exists()
    assert apbjudge("cache", "clear") == Outcome(0, "6 replies removed\n", "")
    assert not (tmp_path / "cache" / "endpoints.json").exists()
    assert apbjudge("cache", "clear").out == "0 replies removed\n"
    assert apbjudge("grade", *target(server, "--out", "four")).code == 0
    assert asked(server) == NAMES


# dry run ------------------------------------------------------------------------------------------


# budget -------------------------------------------------------------------------------------------


def test_a_budget_ends_the_session_and_the_same_command_goes_on(
    apbjudge: Command, serve: Any
) -> None:
    server = serve(lambda seen: OK)
    done = apbjudge("grade", *target(server, "--out", "run", "--max-calls", "2"))
    assert done.code == 1
    assert done.err.splitlines() == [
        "the budget ended with 4 rows left: the same command continues with them",
        "apbjudge: 66.67% of the rows are unscored; 0.00% are allowed",
    ]
    assert "6 rows, 2 scored; unscored: 4 budget" in done.out
    first = asked(server)
    assert len(first) == 2
    done = apbjudge("grade", *target(server, "--out", "run"))
    assert (done.code, done.err) == (0, "")
    assert sorted([*first, *asked(server)]) == NAMES
    assert len(read_rows(Path("run"))) == len(NAMES)


# several judges -----------------------------------------------------------------------------------


def test_a_wrong_key_of_the_second_judge_keeps_what_the_first_said(
    apbjudge: Command, serve: Any
) -> None:
    server = serve(lambda s: Status(401, "no such key") if s.body["model"] == "b" else OK)
    judges = [w for n in "ab" for w in ("--judge", f"hosted_vllm/{n}@{server.address}")]
    is_one_line(apbjudge("grade", "rows.jsonl", *judges, "--out", "run"), "hosted_vllm/b: ")
    server.behave = lambda seen: OK
    server.forget()
    assert apbjudge("grade", "rows.jsonl", *judges, "--out", "run").code == 0
    assert {seen.body["model"] for seen in server.requests} == {"b"}
