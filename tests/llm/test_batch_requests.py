"""Requests written down, and answers read back: of providers, of vLLM, of all sorts of trouble."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from apbjudge.errors import (
    InputError,
    JudgeError,
    PendingError,
    RateLimitedError,
    RowError,
    TransportError,
    TruncatedError,
)
from apbjudge.llm.base import Request
from apbjudge.llm.batch_requests import Answer, BatchFiles, BatchWriter, read_answer, read_answers
from apbjudge.llm.cache import ReplyCache
from apbjudge.llm.chat_format import chat_body
from tests.records.strategies import json_values
from tests.support.batch_server import bad, expired, good, says

KEY = "0123456789abcdef" * 2
LINE = {"custom_id": KEY}


class Reply(BaseModel):
    ok: bool


def ask(name: str = "a", **changes: Any) -> Request:
    messages = [{"role": "user", "content": name}]
    return Request(model="openai/m", messages=messages, reply=Reply, **changes)


def vllm_failure(status: int, message: str) -> dict[str, Any]:
    """What ``vllm run-batch`` writes for a request that the engine turned away."""
    error = {"object": "error", "message": message, "type": "BadRequestError", "code": status}
    response = {"status_code": status, "request_id": "vllm-1", "body": None}
    return {"id": "vllm-1", "custom_id": KEY, "response": response, "error": error}


FAILURES = [
    (bad(LINE, 400, "maximum context length is 8 tokens"), TruncatedError),
    (expired(LINE), TransportError),
    (vllm_failure(400, "maximum context length is 8 tokens"), TruncatedError),
    (
        {**LINE, "response": {"request_id": "v"}, "error": {"error": {"code": 429}}},
        RateLimitedError,
    ),
    ({**LINE, "response": None, "error": {"code": "batch_cancelled"}}, TransportError),
    (good(LINE, None), TransportError),
]


@pytest.mark.parametrize(("line", "kind"), FAILURES)
def test_a_failed_line_means_what_the_same_failure_of_a_call_means(line: Any, kind: Any) -> None:
    answer = read_answer(line)
    assert answer.completion is None
    assert type(answer.error) is kind
    assert answer.cacheable is None


ANY = json_values()


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "custom_id": st.just(KEY) | ANY,
            "response": ANY
            | st.fixed_dictionaries({}, optional={"status_code": st.just(200) | ANY, "body": ANY}),
            "error": ANY,
        },
    )
)
def test_any_line_is_an_answer_or_a_complaint(line: dict[str, Any]) -> None:
    try:
        answer = read_answer(line)
    except RowError:
        return
    assert answer.key == KEY
    assert (answer.completion is None) != (answer.error is None)


def test_nonsense_names_its_place_and_costs_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    right = json.dumps(says("yes")(LINE))
    path.write_text(f"{right}\nnonsense\n[1]\n\n{right}\n")
    result = list(read_answers(path))
    assert [type(each) for each in result] == [Answer, InputError, InputError, Answer]
    assert str(result[1]).startswith(f"{path}:2: field line: expected one JSON object")
    assert str(result[2]).startswith(f"{path}:3: ")


def written(folder: Path, *requests: Request) -> tuple[list[JudgeError], BatchWriter]:
    """What is said of requests that nobody has answered, and the client that wrote them down."""
    files, cache = BatchFiles(folder / "requests.jsonl"), ReplyCache(folder / "c", warn=pytest.fail)
    client = BatchWriter(
        body=lambda request: chat_body(request, "m"), files=files, place="", cache=cache
    )

    async def main() -> list[JudgeError]:
        errors: list[JudgeError] = []
        for request in requests:
            with pytest.raises(JudgeError) as raised:
                await client.complete(request)
            errors.append(raised.value)
        await client.close()
        return errors

    return asyncio.run(main()), client


def test_what_is_not_known_is_written_down_once(tmp_path: Path) -> None:
    errors, client = written(tmp_path, ask("a"), ask("b"), ask("a"))
    assert [type(error) for error in errors] == [PendingError] * 3
    assert client.count == 2
    first, second = map(json.loads, (tmp_path / "requests.jsonl").read_text().splitlines())
    assert first == {
        "custom_id": ask("a").key(),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": json.loads(json.dumps(chat_body(ask("a"), "m"))),
    }
    assert second["custom_id"] == ask("b").key()


def test_files_end_at_their_limits(tmp_path: Path) -> None:
    files = BatchFiles(tmp_path / "requests.jsonl", max_lines=2, max_bytes=10)
    for line in (b"aaa\n", b"bbb\n", b"c\n", b"long line, alone\n", b"d\n"):
        files.add(line)
    files.close()
    result = [(p.path.name, p.lines, p.size, p.path.read_bytes()) for p in files.written]
    assert result == [
        ("requests.jsonl", 2, 8, b"aaa\nbbb\n"),
        ("requests-2.jsonl", 1, 2, b"c\n"),
        ("requests-3.jsonl", 1, 17, b"long line, alone\n"),
        ("requests-4.jsonl", 1, 2, b"d\n"),
    ]


def test_a_request_beyond_any_limit_is_a_failure_of_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apbjudge.llm.batch_requests.MAX_LINE_BYTES", 1000)
    (error, pending), client = written(tmp_path, ask("x" * 2000), ask("a"))
    assert "too long for a batch file" in str(error)
    assert not isinstance(error, PendingError)
    assert isinstance(pending, PendingError)
    assert client.count == 1
