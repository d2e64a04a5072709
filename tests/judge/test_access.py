"""An endpoint that refuses every call ends the run: at once, in one sentence, losing nothing."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apbjudge.errors import OptionError
from tests.llm.faults import TOO_LONG
from tests.support.judging import MODEL, RIGHT, Bench, plan_row, read_rows, write_rows
from tests.support.server import Answer, Body, Hang, Status

NAMES = ("amber", "birch", "cedar", "dogwood")
REFUSED = Status(401, "no such key")
SECRET = "sk-proj-Ab12Cd34Ef56Gh78"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", [plan_row(name) for name in NAMES])


def grade_arguments(rows: Path, server: Any, *more: object) -> list[object]:
    settings = ["--config", "retries=0", "--config", "max_concurrency=1"]
    target = ["--judge", MODEL, "--api-base", server.address]
    return ["grade", rows, *target, "--out", rows.parent / "out", *settings, *more]


def test_the_command_says_so_in_one_line_and_goes_on_when_access_is_back(
    serve: Any, rows: Path, command: Any
) -> None:
    server = serve(lambda seen: Answer(RIGHT) if seen.number < 3 else REFUSED)
    refused = command(*grade_arguments(rows, server))
    assert refused.code == 2
    assert refused.err.startswith(f"apbjudge: --judge {MODEL}: ")
    assert refused.err.count("\n") == 1
    manifest = json.loads((rows.parent / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "interrupted"
    server.behave = lambda seen: Answer(RIGHT)
    server.forget()
    allowed = command(*grade_arguments(rows, server))
    assert allowed.code == 0
    assert len(server.requests) == 2
    assert sorted(row["item_id"] for row in read_rows(rows.parent / "out")) == sorted(NAMES)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens: the port is taken, so that nobody else does either."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def test_where_nobody_listens_the_run_ends_after_two_short_waits(
    nobody: str, tmp_path: Path, transport: str
) -> None:
    bench = Bench(nobody, tmp_path)
    with pytest.raises(OptionError, match=f"nobody answers at {nobody}: start the server"):
        bench.judge(map(plan_row, NAMES), transport=transport)
    assert read_rows(tmp_path / "run") == []
    assert max(bench.waits) <= 2.0
    assert sum(bench.waits) <= 3.0


KEY = "HOSTED_VLLM_API_KEY"
NO_JSON_SCHEMA = "response_format json_schema is not supported"
FIRST_ERRORS: dict[str, tuple[Any, int, str]] = {
    "no key": (Status(401, "Unauthorized"), 2, f"none was sent: set {KEY} in the environment"),
    "wrong key": (Status(401, "Incorrect API key"), 2, f"does not accept the key: correct {KEY}"),
    "not allowed": (Status(403, "forbidden"), 2, f"the key may not use {MODEL}: grant"),
    "unknown model": (
        Status(404, "The model `m` does not exist."),
        2,
        f"not know the model scripted: correct its name; apbjudge doctor --judge {MODEL}@http://127",
    ),
    "context too long": (Status(400, TOO_LONG), 1, "model's context: lower --max-reply-tokens"),
    "too fast": (Status(429, "slow down"), 1, "for this account: set --rpm or --tpm to its limits"),
    "no credit": (Status(429, "insufficient_quota"), 2, "no credit or quota left: add credit"),
    "a page": (Body(b"<html>Hello</html>", "text/html"), 1, "not as an OpenAI-compatible server:"),
    "no format": (Status(400, NO_JSON_SCHEMA), 1, "nor tool calls: take another model"),
    "loading": (Status(503, "Loading"), 1, "overloaded: wait for it with apbjudge doctor --wait"),
    "timeout": (Hang(), 1, "the endpoint was too slow: raise --timeout-s, or lower --max-conc"),
}
"""Behaviour of a server, the exit code, and what is said of the cause and what to try."""


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key or address in the environment; what a test sets there is gone after it."""
    monkeypatch.setenv(KEY, "")
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_API_BASE"))]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("case", "transport"),
    [*((case, "direct") for case in FIRST_ERRORS), ("wrong key", "litellm"), ("a page", "litellm")],
)
@pytest.mark.usefixtures("no_keys")
def test_a_first_error_says_what_happened_and_what_to_try(
    case: str, serve: Any, rows: Path, command: Any, transport: str
) -> None:
    behaviour, code, words = FIRST_ERRORS[case]
    if case == "wrong key":
        os.environ[KEY] = "mistyped"
    write_rows(rows, [plan_row("amber")])
    server = serve(lambda seen: behaviour)
    limit = "timeout_s=0.2" if case == "timeout" else "timeout_s=60"
    config = ["--config", f"transport={transport}", "--config", limit, "--no-cache"]
    done = command(*grade_arguments(rows, server, *config))
    assert done.code == code
    records = "" if code == 2 else read_rows(rows.parent / "out")[0]["detail"]
    text = done.err if code == 2 else records
    assert words in text
    assert text.count("\n") == (code == 2)
    if isinstance(behaviour, Status):  # what the endpoint itself says stands behind it
        assert words in text[: text.index(behaviour.message)]


@pytest.mark.usefixtures("no_keys")
def test_what_no_server_answers_is_explained_too(rows: Path, command: Any) -> None:
    unknown = "http://no-such-host.invalid/v1"
    for words, *judge in (
        ("needs an API key and none was sent: set OPENAI_API_KEY in the", "openai/gpt-4o"),
        ("my-model names no provider that is known: write PROVIDER/MODEL, such as", "my-model"),
        (f"the host in {unknown} is unknown: correct its name", MODEL, "--api-base", unknown),
    ):
        done = command("grade", rows, "--judge", *judge, "--config", "retries=0", "--no-cache")
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert words in done.err


def test_an_endpoint_can_not_write_to_the_terminal(serve: Any, rows: Path, command: Any) -> None:
    server = serve([Status(401, "\x1b[2J\x1b]0;owned\x07 no such \u202ekey\r\nsecond line")])
    done = command(*grade_arguments(rows, server))
    assert done.code == 2
    assert "no such" in done.err
    assert done.err.removesuffix("\n").isprintable()


def test_a_key_among_the_parameters_is_not_shown_or_written(
    serve: Any, rows: Path, command: Any
) -> None:
    config = rows.parent / "judge.toml"
    header = f'extra_headers = {{Authorization = "Bearer {SECRET}"}}'
    config.write_text(f"[params]\n{header}\n", encoding="utf-8")
    done = command(*grade_arguments(rows, serve([Answer(RIGHT)]), "--config", config))
    assert SECRET not in done.out + done.err
    for path in (rows.parent / "out").glob("*"):
        assert SECRET not in path.read_text(encoding="utf-8")
